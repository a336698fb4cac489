//! Values for the placeholders of a prepared statement: announcing, reading, keeping.
//!
//! Invariants: values go to the engine in the types they came in, since only the engine knows what
//! a cast would lose; there is one column per placeholder; compressed buffers
//! are refused before they are decoded, since their size is whatever the client says.
//! Traps: flight-sql.md T4, T10, T11, T13.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::root_as_message;
use arrow::ipc::writer::StreamWriter;
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use moka::future::Cache;
use tonic::metadata::MetadataMap;

use super::sql_info::HANDLE_TIMEOUT_MS;
use super::wire::wire_schema;
use crate::error::{Error, Result, ResultExt};
use crate::proto::ticket::Parameters;
use crate::proto::ticket::parameters::Source;
use crate::sql::Parameter;

/// Bytes of values that travel inside a handle.
const INLINE: usize = 16 << 10;
/// Bytes of values that one statement may have.
const MAX_VALUES: usize = 64 << 20;
/// Bytes of values that are kept for all statements.
const MAX_KEPT: u64 = 256 << 20;

/// The schema that clients are asked to bind.
pub(super) fn parameter_schema(parameters: &[Parameter]) -> Arc<Schema> {
    let fields: Vec<Field> = parameters.iter().map(|p| Field::new(&p.name, p.data_type.clone(), true)).collect();
    wire_schema(&Schema::new(fields), None)
}

/// The batches of a DoPut.
pub(super) fn batches(data: impl Stream<Item = Result<FlightData>> + Send + 'static) -> BoxStream<'static, Result<RecordBatch>> {
    decoded(data).map_err(from_flight).boxed()
}

fn decoded(data: impl Stream<Item = Result<FlightData>> + Send + 'static) -> FlightRecordBatchStream {
    let data = data
        // The descriptor may come in a message without content.
        .try_filter(|message| std::future::ready(!message.data_header.is_empty()))
        .and_then(|message| std::future::ready(check_message(&message).map(|()| message)))
        .map_err(|e| FlightError::ExternalError(Box::new(e)));
    FlightRecordBatchStream::new_from_flight_data(data)
}

/// Reads the batches of a DoPut into one. `None`: no columns, so nothing was bound; columns without rows are values
/// of no execution.
pub(super) async fn read(data: impl Stream<Item = Result<FlightData>> + Send + 'static) -> Result<Option<RecordBatch>> {
    let mut stream = decoded(data);
    let mut batches = Vec::new();
    let mut bytes = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(from_flight)?;
        bytes += batch.get_array_memory_size();
        if bytes > MAX_VALUES {
            return Err(Error::resource_exhausted(format!(
                "the bound values take more than {MAX_VALUES} bytes; bind fewer rows at once"
            )));
        }
        batches.push(batch);
    }
    match stream.schema().filter(|schema| !schema.fields().is_empty()) {
        Some(schema) => Ok(Some(concat_batches(schema, &batches)?)),
        None => Ok(None),
    }
}

/// Refuses compressed buffers.
fn check_message(data: &FlightData) -> Result<()> {
    let message = root_as_message(&data.data_header).map_err(|e| Error::invalid(format!("not an Arrow IPC message: {e}")))?;
    let record_batch = message
        .header_as_record_batch()
        .or_else(|| message.header_as_dictionary_batch().and_then(|d| d.data()));
    match record_batch.and_then(|b| b.compression()) {
        Some(_) => Err(Error::unsupported("uploads may not be compressed")),
        None => Ok(()),
    }
}

fn from_flight(error: FlightError) -> Error {
    match error {
        FlightError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::invalid(format!("cannot read the upload: {other}")),
        },
        other => Error::invalid(format!("cannot read the upload: {other}")),
    }
}

/// Whether values can be those of the placeholders.
pub(super) fn check(parameters: &[Parameter], values: &RecordBatch) -> Result<()> {
    if values.num_columns() != parameters.len() {
        return Err(Error::invalid(format!(
            "the statement has {} parameters, {} values were bound",
            parameters.len(),
            values.num_columns()
        )));
    }
    Ok(())
}

/// Whether a client takes the handle that answers a binding. Arrow's Java library before version
/// 17, which came with gRPC 1.63 or newer, does not: it leaks the answer's buffer, and closing the
/// connection then fails. Such a client finds its values by the statement's own handle.
pub(super) fn reads_answer(request: &MetadataMap) -> bool {
    let agent = request.get("user-agent").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let minor = agent
        .split("grpc-java-netty/1.")
        .nth(1)
        .and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    minor.is_none_or(|minor| minor >= 63)
}

/// Values that are kept on the server: those too large to travel, and the last ones bound to each
/// statement, for drivers that go on using the handle they had before.
#[derive(Debug)]
pub(super) struct Kept {
    cache: Cache<Bytes, RecordBatch>,
}

impl Kept {
    pub(super) fn new() -> Self {
        let idle = Duration::from_millis(u64::from(HANDLE_TIMEOUT_MS.unsigned_abs()));
        let cache = Cache::builder()
            .max_capacity(MAX_KEPT)
            .weigher(|key: &Bytes, batch: &RecordBatch| u32::try_from(key.len() + batch.get_array_memory_size() + 256).unwrap_or(u32::MAX))
            .time_to_idle(idle)
            .build();
        Self { cache }
    }

    /// Keeps the values bound to a statement.
    pub(super) async fn keep(&self, id: Bytes, values: RecordBatch) {
        self.cache.insert(id, values).await;
    }

    /// The values last bound to a statement.
    pub(super) async fn get(&self, id: &Bytes) -> Option<RecordBatch> {
        self.cache.get(id).await
    }

    /// Forgets a statement's values.
    pub(super) async fn forget(&self, id: &Bytes) {
        self.cache.invalidate(id).await;
    }

    /// Values as they travel: in full, or as the key under which they are kept.
    pub(super) async fn pack(&self, values: &RecordBatch) -> Result<Parameters> {
        let source = match small_ipc(values)? {
            Some(ipc) => Source::Ipc(ipc),
            None => {
                let key = random_id();
                self.keep(key.clone(), values.clone()).await;
                Source::Stash(key)
            }
        };
        Ok(Parameters { source: Some(source) })
    }

    /// Values from where they are.
    ///
    /// Errors: `NotFound` when they are no longer kept.
    pub(super) async fn unpack(&self, parameters: &Parameters) -> Result<Option<RecordBatch>> {
        match &parameters.source {
            None => Ok(None),
            Some(Source::Ipc(ipc)) => from_ipc(ipc).map(Some),
            Some(Source::Stash(key)) => match self.get(key).await {
                Some(values) => Ok(Some(values)),
                None => Err(Error::not_found(
                    "the values bound to this statement are no longer kept; bind them again",
                )),
            },
        }
    }
}

/// A new id of 16 random bytes.
pub(super) fn random_id() -> Bytes {
    Bytes::copy_from_slice(&rand::random::<[u8; 16]>())
}

/// The values as an IPC stream, if it is small enough to travel.
fn small_ipc(values: &RecordBatch) -> Result<Option<Bytes>> {
    if values.get_array_memory_size() > 64 * INLINE {
        return Ok(None);
    }
    let mut out = Vec::new();
    let mut writer = StreamWriter::try_new(&mut out, &values.schema())?;
    writer.write(values)?;
    writer.finish()?;
    drop(writer);
    Ok((out.len() <= INLINE).then(|| out.into()))
}

/// Values out of a signed handle.
fn from_ipc(ipc: &[u8]) -> Result<RecordBatch> {
    let mut reader = StreamReader::try_new(ipc, None)?;
    let batch = reader
        .next()
        .ok_or_else(|| Error::internal("a handle has an empty stream of values"))?;
    batch.map_err(Error::from).context("part", || "bound values")
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Int64Type};
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
    use arrow_flight::encode::FlightDataEncoderBuilder;
    use futures::stream;

    use super::*;
    use crate::error::ErrorKind;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter(columns).unwrap()
    }

    async fn read_batches(batches: Vec<RecordBatch>) -> Result<Option<RecordBatch>> {
        let encoder = FlightDataEncoderBuilder::new().build(stream::iter(batches.into_iter().map(Ok)));
        read(encoder.map_err(|e| Error::internal(e.to_string()))).await
    }

    #[test]
    fn as_many_values_as_placeholders() {
        let parameters = [Parameter {
            name: "1".to_owned(),
            data_type: DataType::Int64,
        }];
        let one = batch(vec![("a", Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef)]);
        assert!(check(&parameters, &one).is_ok());
        assert_eq!(check(&[], &one).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn old_java_gets_no_answer() {
        for (agent, reads) in [
            ("grpc-java-netty/1.60.0", false),
            ("grpc-java-netty/1.71.0", true),
            ("grpc-go/1.40.0", true),
            ("grpc-java-netty/x", true),
        ] {
            let mut request = MetadataMap::new();
            request.insert("user-agent", agent.parse().unwrap());
            assert_eq!(reads_answer(&request), reads, "{agent}");
        }
        assert!(reads_answer(&MetadataMap::new()));
    }

    #[tokio::test]
    async fn batches_of_a_stream_become_one() {
        let one = batch(vec![("1", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)]);
        let two = batch(vec![("1", Arc::new(Int64Array::from(vec![3])) as ArrayRef)]);
        let read = read_batches(vec![one, two]).await.unwrap().unwrap();
        assert_eq!(read.column(0).as_primitive::<Int64Type>().values(), &[1, 2, 3]);
    }

    #[tokio::test]
    async fn an_empty_schema_binds_nothing() {
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert!(read_batches(vec![empty]).await.unwrap().is_none());
        assert!(read(stream::iter([Ok(FlightData::default())])).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn columns_without_rows_are_values_of_no_execution() {
        let one = batch(vec![("1", Arc::new(Int64Array::from(vec![7])) as ArrayRef)]);
        let none = RecordBatch::new_empty(one.schema());
        let schema_only = FlightDataEncoderBuilder::new().with_schema(one.schema()).build(stream::empty());
        let schema_only = read(schema_only.map_err(|e| Error::internal(e.to_string()))).await;
        assert_eq!(schema_only.unwrap().unwrap(), none);
        assert_eq!(read_batches(vec![none.clone()]).await.unwrap().unwrap(), none);
        assert_eq!(read_batches(vec![none, one.clone()]).await.unwrap().unwrap(), one);
    }

    #[tokio::test]
    async fn compressed_or_broken_values_are_refused() {
        let values = batch(vec![("1", Arc::new(Int64Array::from(vec![1; 1000])) as ArrayRef)]);
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::LZ4_FRAME))
            .unwrap();
        let (_, encoded) = IpcDataGenerator::default()
            .encode(&values, &mut DictionaryTracker::new(true), &options, &mut Default::default())
            .unwrap();
        let data = FlightData {
            data_header: encoded.ipc_message.into(),
            data_body: encoded.arrow_data.into(),
            ..Default::default()
        };
        let error = read(stream::iter([Ok(data)])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let broken = FlightData {
            data_header: Bytes::from_static(b"\x01\x02\x03\x04garbage"),
            ..Default::default()
        };
        assert_eq!(read(stream::iter([Ok(broken)])).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[tokio::test]
    async fn small_values_travel_and_large_ones_stay() {
        let kept = Kept::new();
        let small = batch(vec![("1", Arc::new(Int64Array::from(vec![7])) as ArrayRef)]);
        let packed = kept.pack(&small).await.unwrap();
        assert!(matches!(packed.source, Some(Source::Ipc(_))));
        assert_eq!(Kept::new().unpack(&packed).await.unwrap().unwrap(), small);

        let large = batch(vec![("1", Arc::new(Int64Array::from(vec![7; 10_000])) as ArrayRef)]);
        let packed = kept.pack(&large).await.unwrap();
        assert!(matches!(packed.source, Some(Source::Stash(_))));
        assert_eq!(kept.unpack(&packed).await.unwrap().unwrap(), large);
        assert_eq!(Kept::new().unpack(&packed).await.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
