//! Position delete files (spec "Position Delete Files"): which rows of which data files are deleted, for tables of
//! format version 2.
//!
//! Invariants: the rows of a file are sorted by path and position and lie in one partition of one spec; bounds are
//! whole, so that equal ones of paths tell a file that is about one data file; memory is bounded however many
//! positions there are; of a write that fails no file is left.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, Int64Array, StringBuilder};
use futures::stream::{self, StreamExt};
use parquet::schema::types::SchemaDescriptor;

use super::created::Created;
use super::file_schema::FileSchema;
use super::locations::Locations;
use super::metrics_mode::MetricsModes;
use super::parquet_file::{Chunk, ParquetFile};
use super::properties::{Of, Sizes, check_supported, writer_properties};
use super::setup::{FileSetup, WriterLimits};
use crate::bitmap::RowSet;
use crate::error::{Error, Result};
use crate::iceberg::manifest::{DataFile, FileContent};
use crate::iceberg::partition_path;
use crate::iceberg::spec::{
    DELETE_FILE_PATH_ID, DELETE_POS_ID, NestedField, PartitionSpec, PartitionValues, PrimitiveType, Schema, SortOrder, StructType,
    TableMetadata, Type,
};
use crate::io::TableIo;
use crate::runtime::DecodePool;

const GRANULARITY: &str = "write.delete.granularity";

/// Rows and bytes that are encoded at a time.
const CHUNK_ROWS: usize = 64 << 10;
const CHUNK_BYTES: u64 = 4 << 20;
/// Memory of an open row group, beyond which it is ended.
const GROUP_MEMORY: u64 = 16 << 20;
/// Files that are written at the same time.
const AT_ONCE: usize = 8;

/// Rows of one data file that are deleted.
#[derive(Debug, Clone)]
pub struct DeletedRows {
    /// As the manifest spells it.
    pub data_file: String,
    /// Of the data file.
    pub spec_id: i32,
    pub partition: PartitionValues,
    pub rows: Arc<RowSet>,
}

/// Writes position delete files, each durable when this returns, in the order of their paths. `write_id` is as for
/// [`DataWriter::new`](super::DataWriter::new). No rows, no files.
///
/// Errors: `Unsupported` for a table that cannot have such files, naming the property where it is one;
/// `InvalidInput` for a property that says nothing; `ResourceExhausted` for too many files; `Unavailable`,
/// `PermissionDenied`. Then the files are deleted, as far as they can be.
pub async fn write_position_deletes(
    io: &TableIo,
    pool: &Arc<DecodePool>,
    metadata: &TableMetadata,
    write_id: &str,
    rows: Vec<DeletedRows>,
) -> Result<Vec<DataFile>> {
    let plan = Plan::new(io, pool, metadata, write_id).map_err(|e| e.with("table", &metadata.location))?;
    let shares = plan.shares(metadata, rows).map_err(|e| e.with("table", &metadata.location))?;
    let failed = AtomicBool::new(false);
    let (plan, failed) = (&plan, &failed);
    let writes = shares.into_iter().map(|share| async move {
        if failed.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let written = plan.write(share).await;
        failed.fetch_or(written.is_err(), Ordering::Relaxed);
        written
    });
    // All are waited for: a file must not come to be after its deletion.
    let written: Vec<Result<Vec<DataFile>>> = stream::iter(writes).buffer_unordered(AT_ONCE).collect().await;
    match written.into_iter().collect::<Result<Vec<_>>>() {
        Ok(files) => {
            plan.file.created.release();
            let mut files: Vec<DataFile> = files.into_iter().flatten().collect();
            files.sort_by(|a, b| a.file_path.cmp(&b.file_path));
            Ok(files)
        }
        Err(e) => {
            if let Err(error) = plan.file.created.delete().await {
                tracing::warn!(%error, "delete files of a write that failed could not be deleted");
            }
            Err(e)
        }
    }
}

/// What all files of a write have in common.
struct Plan {
    file: Arc<FileSetup>,
    sizes: Sizes,
    locations: Locations,
    /// One file for each data file, where its size allows.
    by_data_file: bool,
}

/// The rows of one file, or of several where one would be too large.
struct Share {
    spec_id: i32,
    partition: PartitionValues,
    /// The partition's path.
    folder: String,
    /// Sorted by path.
    rows: Vec<DeletedRows>,
}

impl Plan {
    fn new(io: &TableIo, pool: &Arc<DecodePool>, metadata: &TableMetadata, write_id: &str) -> Result<Self> {
        if metadata.format_version != 2 {
            return Err(Error::unsupported(format!(
                "position delete files are written for tables of format version 2, and this one has {}",
                metadata.format_version
            )));
        }
        check_supported(&metadata.properties, Of::Deletes)?;
        let schema = delete_schema()?;
        let files = FileSchema::new(&schema)?;
        let descriptor = SchemaDescriptor::new(Arc::clone(&files.parquet));
        Ok(Self {
            sizes: Sizes::new(metadata, Of::Deletes)?,
            locations: Locations::new(&metadata.location, &metadata.properties, write_id, 0)?.of_deletes(),
            by_data_file: is_by_data_file(metadata)?,
            file: Arc::new(FileSetup {
                created: Created::new(io.clone()),
                io: io.clone(),
                pool: Arc::clone(pool),
                content: FileContent::PositionDeletes,
                properties: Arc::new(writer_properties(metadata, Of::Deletes, &schema, &descriptor)?),
                modes: MetricsModes::full(),
                order_id: SortOrder::unsorted().order_id,
                schema: files,
            }),
        })
    }

    /// Divides rows by partition, or by data file.
    fn shares(&self, metadata: &TableMetadata, rows: Vec<DeletedRows>) -> Result<Vec<Share>> {
        let mut rows: Vec<DeletedRows> = rows.into_iter().filter(|rows| !rows.rows.is_empty()).collect();
        rows.sort_by(|a, b| a.data_file.cmp(&b.data_file));
        let mut seen = HashSet::new();
        if let Some(twice) = rows.iter().find(|rows| !seen.insert(rows.data_file.as_str())) {
            return Err(Error::internal("the deleted rows of a data file were given twice").with("file", &twice.data_file));
        }
        let mut shares: Vec<Share> = Vec::new();
        let mut known: HashMap<(i32, PartitionValues), usize> = HashMap::new();
        for rows in rows {
            let key = (rows.spec_id, Arc::clone(&rows.partition));
            if let Some(share) = known.get(&key).and_then(|at| shares.get_mut(*at)) {
                share.rows.push(rows);
                continue;
            }
            if !self.by_data_file {
                known.insert(key, shares.len());
            }
            shares.push(Share {
                spec_id: rows.spec_id,
                folder: folder(metadata, &rows)?,
                partition: Arc::clone(&rows.partition),
                rows: vec![rows],
            });
        }
        let most = WriterLimits::default().files;
        if shares.len() > most {
            return Err(Error::resource_exhausted(format!(
                "a write makes more than {most} delete files: delete from fewer partitions at a time"
            )));
        }
        Ok(shares)
    }

    async fn write(&self, share: Share) -> Result<Vec<DataFile>> {
        let mut done = Vec::new();
        let mut open: Option<ParquetFile> = None;
        let mut next = self.take(Cursor::new(share.rows, self.chunk_bytes())).await?;
        while let (cursor, Some(chunk)) = next {
            let file = match &mut open {
                Some(file) => file,
                none => none.insert(ParquetFile::open(&self.file, self.locations.next(&share.folder)).await?),
            };
            file.start(chunk).await?;
            // Made while the one before is encoded.
            next = self.take(cursor).await?;
            file.settle().await?;
            if file.length() < self.sizes.file {
                if file.group_length() >= self.sizes.row_group || file.group_memory() >= GROUP_MEMORY {
                    file.flush_group().await?;
                }
            } else if let Some(file) = open.take() {
                done.push(end(file, share.spec_id, &share.partition).await?);
            }
        }
        if let Some(file) = open {
            done.push(end(file, share.spec_id, &share.partition).await?);
        }
        Ok(done)
    }

    fn chunk_bytes(&self) -> u64 {
        CHUNK_BYTES.min(self.sizes.file).min(self.sizes.row_group)
    }

    /// The next rows, made on the pool.
    async fn take(&self, mut cursor: Cursor) -> Result<(Cursor, Option<Chunk>)> {
        let take = move |_: &crate::runtime::Cancelled| {
            let chunk = cursor.take()?;
            Ok((cursor, chunk))
        };
        self.file.pool.spawn(take).await
    }
}

async fn end(file: ParquetFile, spec_id: i32, partition: &PartitionValues) -> Result<DataFile> {
    let mut file = file.finish(spec_id, Arc::clone(partition)).await?;
    let bounds = (
        file.lower_bounds.get(&DELETE_FILE_PATH_ID),
        file.upper_bounds.get(&DELETE_FILE_PATH_ID),
    );
    if let (Some(least), Some(greatest)) = bounds
        && least == greatest
    {
        file.referenced_data_file = std::str::from_utf8(least).ok().map(str::to_owned);
    }
    Ok(file)
}

/// Where in its rows a share is.
struct Cursor {
    rows: Vec<DeletedRows>,
    /// The data file, and the least position of it that may be next.
    at: usize,
    from: u64,
    chunk_bytes: u64,
}

impl Cursor {
    fn new(rows: Vec<DeletedRows>, chunk_bytes: u64) -> Self {
        Self {
            rows,
            at: 0,
            from: 0,
            chunk_bytes,
        }
    }

    /// The next rows; `None` at the end.
    fn take(&mut self) -> Result<Option<Chunk>> {
        let (mut paths, mut positions, mut bytes) = (StringBuilder::new(), Vec::new(), 0_u64);
        while let Some(rows) = self.rows.get(self.at) {
            if bytes >= self.chunk_bytes || positions.len() >= CHUNK_ROWS {
                break;
            }
            let each = rows.data_file.len() as u64 + size_of::<i64>() as u64;
            let room = usize::try_from((self.chunk_bytes - bytes) / each).unwrap_or(usize::MAX);
            let room = room.clamp(1, CHUNK_ROWS - positions.len());
            let before = positions.len();
            for position in rows.rows.iter_from(self.from).take(room) {
                let position = i64::try_from(position);
                positions.push(position.map_err(|_| Error::internal("a row's position is beyond 2^63").with("file", &rows.data_file))?);
                paths.append_value(&rows.data_file);
            }
            let taken = positions.len() - before;
            bytes += taken as u64 * each;
            match positions.last().filter(|_| taken == room) {
                Some(last) => self.from = last.cast_unsigned() + 1,
                None => (self.at, self.from) = (self.at + 1, 0),
            }
        }
        let rows = positions.len();
        let columns: Vec<ArrayRef> = vec![Arc::new(paths.finish()), Arc::new(Int64Array::from(positions))];
        Ok((rows > 0).then(|| Chunk {
            pieces: vec![columns],
            sorted: None,
            rows,
            bytes,
        }))
    }
}

/// The columns of position delete files as Iceberg Java names and describes them.
fn delete_schema() -> Result<Schema> {
    let field = |id, name: &str, of, doc: &str| {
        Arc::new(NestedField {
            id,
            name: name.to_owned(),
            required: true,
            field_type: Type::Primitive(of),
            doc: Some(doc.to_owned()),
            initial_default: None,
            write_default: None,
        })
    };
    let path = "Path of a file in which a deleted row is stored";
    let position = "Ordinal position of a deleted row in the data file";
    let fields = vec![
        field(DELETE_FILE_PATH_ID, "file_path", PrimitiveType::String, path),
        field(DELETE_POS_ID, "pos", PrimitiveType::Long, position),
    ];
    Schema::new(0, StructType { fields }, Vec::new())
}

/// Whether the table wants delete files that are each about one data file.
fn is_by_data_file(metadata: &TableMetadata) -> Result<bool> {
    match metadata.properties.get(GRANULARITY) {
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("partition") => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("file") => Ok(true),
        Some(text) => Err(Error::invalid(format!(
            "property {GRANULARITY} is \"{text}\": it must be partition or file"
        ))),
    }
}

/// The path of the partition that a data file lies in, by the spec that it was written with.
fn folder(metadata: &TableMetadata, rows: &DeletedRows) -> Result<String> {
    let spec = metadata.spec_by_id(rows.spec_id);
    let spec = spec.filter(|spec| spec.fields.len() == rows.partition.len());
    let spec = spec.ok_or_else(|| {
        let message = format!("a data file's partition does not fit spec {}", rows.spec_id);
        Error::internal(message).with("file", &rows.data_file)
    })?;
    Ok(partition_path(spec, schema_of(metadata, spec)?, &rows.partition))
}

/// A schema that has the columns of a spec: the current one, or the newest where a column was dropped.
fn schema_of<'a>(metadata: &'a TableMetadata, spec: &PartitionSpec) -> Result<&'a Schema> {
    let current = metadata.current_schema()?;
    let mut older: Vec<&Arc<Schema>> = metadata.schemas.iter().collect();
    older.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
    let fits = |schema: &&Arc<Schema>| spec.fields.iter().all(|field| schema.field_by_id(field.source_id).is_some());
    Ok(std::iter::once(current).chain(older).find(fits).unwrap_or(current))
}
