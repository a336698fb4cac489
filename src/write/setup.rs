//! What all files of a write have in common.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::take;
use arrow::record_batch::RecordBatch;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::SchemaDescriptor;

use super::created::Created;
use super::file_schema::FileSchema;
use super::locations::Locations;
use super::metrics_mode::MetricsModes;
use super::partition_key::Partitioner;
use super::properties::{Of, Sizes, check_supported, writer_properties};
use super::sort::Sorter;
use super::stored::{bytes_of, compact, stored};
use crate::error::{Error, Result};
use crate::iceberg::manifest::FileContent;
use crate::iceberg::partition_path;
use crate::iceberg::spec::{PartitionSpec, PartitionValues, Schema, SortOrder, TableMetadata};
use crate::io::TableIo;
use crate::runtime::DecodePool;

/// Bounds of what a writer holds.
#[derive(Debug, Clone, Copy)]
pub struct WriterLimits {
    /// Bytes of rows and encoded pages that wait in memory, over all partitions.
    pub memory: u64,
    /// Files that are open at the same time; at least one.
    pub open_files: usize,
    /// Files of one write. Beyond it the write is refused: its commit would be as large as its data.
    pub files: usize,
}

impl Default for WriterLimits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            open_files: 64,
            files: 100_000,
        }
    }
}

/// Bytes of rows that are encoded at a time.
const CHUNK: u64 = 8 << 20;
/// Bytes of rows that are sorted at a time.
const SORTED_CHUNK: u64 = 64 << 20;
const SMALLEST_CHUNK: u64 = 4 << 10;

/// What each file is written with.
#[derive(Debug)]
pub(super) struct FileSetup {
    pub(super) io: TableIo,
    pub(super) pool: Arc<DecodePool>,
    pub(super) content: FileContent,
    pub(super) schema: FileSchema,
    pub(super) properties: WriterPropertiesPtr,
    pub(super) modes: MetricsModes,
    /// The order of a data file whose rows are sorted.
    pub(super) order_id: i32,
    pub(super) created: Created,
}

/// The plan of a write of rows.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) file: Arc<FileSetup>,
    pub(super) limits: WriterLimits,
    schema: Arc<Schema>,
    spec: Arc<PartitionSpec>,
    pub(super) sizes: Sizes,
    pub(super) sorter: Option<Sorter>,
    partitioner: Partitioner,
    locations: Locations,
    /// Bytes of rows that wait before they are encoded.
    pub(super) chunk: u64,
}

/// Rows of one partition, in stored form.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) values: PartitionValues,
    /// The stored columns.
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
    pub(super) bytes: u64,
}

impl Setup {
    /// For rows of `schema`, whose first columns are those of the table's current one, under its default spec and
    /// sort order.
    pub(super) fn new(
        io: TableIo,
        pool: Arc<DecodePool>,
        metadata: &TableMetadata,
        schema: Arc<Schema>,
        write_id: &str,
        task: u32,
        limits: WriterLimits,
    ) -> Result<Self> {
        check_supported(&metadata.properties, Of::Data)?;
        let spec = metadata.spec_by_id(metadata.default_spec_id);
        let spec = spec.ok_or_else(|| Error::corrupt(format!("table has no partition spec {}, its default", metadata.default_spec_id)))?;
        let order = metadata
            .sort_orders
            .iter()
            .find(|order| order.order_id == metadata.default_sort_order_id);
        let unsorted = SortOrder::unsorted();
        let order = order.unwrap_or(&unsorted);
        let files = FileSchema::new(&schema)?;
        let sizes = Sizes::new(metadata, Of::Data)?;
        let descriptor = SchemaDescriptor::new(Arc::clone(&files.parquet));
        let sorter = Sorter::new(order, &files.columns);
        let chunk = if sorter.is_some() {
            SORTED_CHUNK.min(limits.memory / 4)
        } else {
            CHUNK.min(limits.memory / 4)
        };
        Ok(Self {
            limits,
            partitioner: Partitioner::new(spec, &files.columns)?,
            locations: Locations::new(&metadata.location, &metadata.properties, write_id, task)?,
            chunk: chunk.min(sizes.file).min(sizes.row_group).max(SMALLEST_CHUNK),
            sizes,
            spec: Arc::clone(spec),
            file: Arc::new(FileSetup {
                created: Created::new(io.clone()),
                io,
                pool,
                content: FileContent::Data,
                properties: Arc::new(writer_properties(metadata, Of::Data, &schema, &descriptor)?),
                modes: MetricsModes::new(metadata.current_schema()?, &metadata.properties, order)?,
                order_id: sorter.as_ref().map_or(unsorted.order_id, |sorter| sorter.order_id),
                schema: files,
            }),
            sorter,
            schema,
        })
    }

    pub(super) fn spec_id(&self) -> i32 {
        self.spec.spec_id
    }

    /// A name for the next file of a partition, as the table records it.
    pub(super) fn next_location(&self, values: &PartitionValues) -> String {
        self.locations.next(&partition_path(&self.spec, &self.schema, values))
    }

    /// Checks a batch and divides it by partition. Bounded work for the decode pool.
    pub(super) fn divide(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<Rows>> {
        let rows = batch.num_rows();
        let arrays = stored(&self.file.schema.columns, batch, first_row)?;
        let shares = self.partitioner.divide(&arrays, rows)?;
        let columns = self
            .file
            .schema
            .columns
            .iter()
            .zip(&arrays)
            .filter(|(column, _)| column.is_stored());
        let columns: Vec<&ArrayRef> = columns.map(|(_, array)| array).collect();
        let shares = shares.into_iter().map(|share| {
            let (columns, rows) = match &share.rows {
                // Not slices, which would keep all rows alive for a few.
                Some(own) => {
                    let columns = columns.iter().map(|column| Ok(take(column, own, None)?));
                    (columns.collect::<Result<Vec<_>>>()?, own.len())
                }
                None => (compact(columns.iter().map(|column| Arc::clone(column)).collect())?, rows),
            };
            Ok(Rows {
                values: share.values,
                bytes: columns.iter().map(|column| bytes_of(column.as_ref()) as u64).sum(),
                rows,
                columns,
            })
        });
        shares.collect()
    }
}
