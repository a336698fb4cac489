//! Record batches as Flight messages, and the stream of a DoGet.
//!
//! Invariants: the schema is the first message of every stream, also of an empty one; a body is
//! about [`TARGET`] bytes and stays below [`CEILING`], measured on the bytes that are sent, except
//! for a single row that is larger; a stream that fails ends in a status; a silent stream sends an
//! empty batch now and then, so that no proxy takes it for dead; dropping the stream drops the
//! query. The encoder of arrow-flight is not used: it renames large lists, counts whole buffers
//! where slices are sent, and does not compare schemas (flight-sql.md 1.11, A4 to A6).

use std::collections::VecDeque;
use std::time::Duration;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef, UnionMode};
use arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use arrow_flight::{FlightData, SchemaAsIpc};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use tonic::Status;

use super::call::Call;
use super::wire::to_wire;
use crate::error::{Error, Result};

/// Bytes of body that a message aims at.
const TARGET: usize = 1 << 20;
/// Bytes of body that no message with more than one row has: stock clients stop at 4 MiB.
const CEILING: usize = 3 << 20;
/// Silence after which an empty batch is sent.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Alignment of buffers inside a body.
const ALIGNMENT: usize = 64;

/// The rows of a DoGet.
pub(super) struct Rows {
    /// The announced schema.
    pub schema: SchemaRef,
    /// Batches, in any type that [`to_wire`] brings into the schema.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl Rows {
    /// One batch that is there already.
    pub(super) fn one(batch: RecordBatch) -> Self {
        Self {
            schema: batch.schema(),
            batches: stream::iter([Ok(batch)]).boxed(),
        }
    }
}

/// Encodes batches of one schema.
struct Encoder {
    schema: SchemaRef,
    options: IpcWriteOptions,
    context: IpcWriteContext,
    tracker: DictionaryTracker,
}

impl Encoder {
    fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            options: IpcWriteOptions::default(),
            context: IpcWriteContext::default(),
            tracker: DictionaryTracker::new(true),
        }
    }

    /// The message that starts a stream.
    fn schema_message(&self) -> FlightData {
        SchemaAsIpc::new(&self.schema, &self.options).into()
    }

    /// The batch as messages; the batch has the encoder's schema.
    fn encode(&mut self, batch: &RecordBatch, out: &mut VecDeque<FlightData>) -> Result<()> {
        for slice in split(batch, TARGET) {
            self.encode_slice(&slice, out)?;
        }
        Ok(())
    }

    /// One message, or more where the estimate was too low.
    fn encode_slice(&mut self, slice: &RecordBatch, out: &mut VecDeque<FlightData>) -> Result<()> {
        let message = self.message(slice)?;
        let rows = slice.num_rows();
        if message.data_body.len() > CEILING && rows > 1 {
            let half = rows / 2;
            self.encode_slice(&slice.slice(0, half), out)?;
            return self.encode_slice(&slice.slice(half, rows - half), out);
        }
        out.push_back(message);
        Ok(())
    }

    fn message(&mut self, batch: &RecordBatch) -> Result<FlightData> {
        let (dictionaries, encoded) = IpcDataGenerator::default().encode(batch, &mut self.tracker, &self.options, &mut self.context)?;
        if !dictionaries.is_empty() {
            return Err(Error::internal("a dictionary reached the wire"));
        }
        Ok(FlightData {
            data_header: encoded.ipc_message.into(),
            data_body: encoded.arrow_data.into(),
            ..Default::default()
        })
    }
}

/// Cuts a batch into runs of rows of at most `target` encoded bytes each, a larger row alone.
fn split(batch: &RecordBatch, target: usize) -> Vec<RecordBatch> {
    let rows = batch.num_rows();
    let mut slices = Vec::new();
    let mut start = 0;
    while start < rows {
        let length = fitting_rows(batch, start, target);
        slices.push(batch.slice(start, length));
        start += length;
    }
    slices
}

/// The most rows from `start` that fit into `target` bytes, at least one.
fn fitting_rows(batch: &RecordBatch, start: usize, target: usize) -> usize {
    let size = |length: usize| -> usize { batch.columns().iter().map(|c| encoded_size(c.as_ref(), start, length)).sum() };
    let left = batch.num_rows() - start;
    if size(left) <= target {
        return left;
    }
    // `fits` always fits (or is one), `fails` never does.
    let (mut fits, mut fails) = (1, left);
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        if size(middle) <= target {
            fits = middle;
        } else {
            fails = middle;
        }
    }
    fits
}

/// Bytes that the IPC format needs for some rows of an array, paddings included.
fn encoded_size(array: &dyn Array, start: usize, length: usize) -> usize {
    let validity = if array.null_count() > 0 { pad(length.div_ceil(8)) } else { 0 };
    let data_type = array.data_type();
    let values = match data_type {
        DataType::Null => 0,
        DataType::Boolean => pad(length.div_ceil(8)),
        DataType::FixedSizeBinary(width) => pad(usize::try_from(*width).unwrap_or(0) * length),
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            pad(4 * (length + 1)) + pad(range(offsets, start, length).1)
        }
        DataType::Binary => {
            let offsets = array.as_binary::<i32>().value_offsets();
            pad(4 * (length + 1)) + pad(range(offsets, start, length).1)
        }
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            pad(8 * (length + 1)) + pad(range(offsets, start, length).1)
        }
        DataType::LargeBinary => {
            let offsets = array.as_binary::<i64>().value_offsets();
            pad(8 * (length + 1)) + pad(range(offsets, start, length).1)
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (first, count) = range(list.value_offsets(), start, length);
            pad(4 * (length + 1)) + encoded_size(list.values().as_ref(), first, count)
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let (first, count) = range(list.value_offsets(), start, length);
            pad(8 * (length + 1)) + encoded_size(list.values().as_ref(), first, count)
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let (first, count) = range(map.value_offsets(), start, length);
            pad(4 * (length + 1)) + encoded_size(map.entries(), first, count)
        }
        DataType::FixedSizeList(_, width) => {
            let width = usize::try_from(*width).unwrap_or(0);
            encoded_size(array.as_fixed_size_list().values().as_ref(), start * width, length * width)
        }
        DataType::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .map(|c| encoded_size(c.as_ref(), start, length))
            .sum(),
        // The children of a dense union are always sent whole.
        DataType::Union(_, UnionMode::Dense) => pad(length) + pad(4 * length) + array.get_buffer_memory_size(),
        other => match other.primitive_width() {
            Some(width) => pad(width * length),
            None => array
                .slice(start, length)
                .to_data()
                .get_slice_memory_size()
                .unwrap_or_else(|_| array.get_buffer_memory_size()),
        },
    };
    validity + values
}

/// First element and number of elements that some rows cover.
fn range<O: Copy + TryInto<usize>>(offsets: &[O], start: usize, length: usize) -> (usize, usize) {
    let at = |i: usize| offsets.get(i).and_then(|o| (*o).try_into().ok()).unwrap_or(0);
    let first = at(start);
    (first, at(start + length).saturating_sub(first))
}

fn pad(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The state of a running DoGet.
struct Sending {
    call: Call,
    encoder: Encoder,
    batches: BoxStream<'static, Result<RecordBatch>>,
    ready: VecDeque<FlightData>,
    done: bool,
}

/// The messages of a DoGet; an empty batch after each silence of `keep_alive`. The stream ends the call.
pub(super) fn messages(call: Call, rows: Rows, keep_alive: Duration) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    let encoder = Encoder::new(rows.schema);
    let ready = VecDeque::from([encoder.schema_message()]);
    let sending = Sending {
        call,
        encoder,
        batches: rows.batches,
        ready,
        done: false,
    };
    stream::unfold(sending, move |mut sending| async move {
        if sending.done {
            return None;
        }
        if let Some(message) = sending.ready.pop_front() {
            return Some((Ok(message), sending));
        }
        let Sending {
            call,
            encoder,
            batches,
            ready,
            ..
        } = &mut sending;
        match call.guard(next_messages(encoder, batches, ready, keep_alive)).await {
            Ok(Some(rows)) => {
                call.add_rows(rows);
                ready.pop_front().map(|message| (Ok(message), sending))
            }
            Ok(None) => {
                sending.call.end_ok();
                None
            }
            Err(error) => {
                let status = sending.call.end_error(&error);
                sending.done = true;
                Some((Err(status), sending))
            }
        }
    })
}

/// Encodes the next batch with rows, or an empty one after a long silence; `None` at the end.
async fn next_messages(
    encoder: &mut Encoder,
    batches: &mut BoxStream<'static, Result<RecordBatch>>,
    ready: &mut VecDeque<FlightData>,
    keep_alive: Duration,
) -> Result<Option<usize>> {
    loop {
        let Ok(next) = tokio::time::timeout(keep_alive, batches.next()).await else {
            let empty = RecordBatch::new_empty(encoder.schema.clone());
            ready.push_back(encoder.message(&empty)?);
            return Ok(Some(0));
        };
        let Some(batch) = next else { return Ok(None) };
        let batch = to_wire(&batch?, &encoder.schema)?;
        if batch.num_rows() > 0 {
            encoder.encode(&batch, ready)?;
            return Ok(Some(batch.num_rows()));
        }
    }
}

#[cfg(test)]
mod tests;
