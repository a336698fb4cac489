//! Takes batches of a table's rows and gives the data files that hold them.
//!
//! Rows wait by partition until there are enough of them to encode, one chunk is encoded while the next is
//! taken in, and when memory or open files come to their bound, the partition that holds most, or was used
//! longest ago, makes room.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::stream::{self, StreamExt};

use super::lineage::schema_with_lineage;
use super::partition::Partition;
use super::setup::{Rows, Setup, WriterLimits};
use super::stored::bytes_of;
use crate::error::{Error, Result};
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::{PartitionValues, TableMetadata};
use crate::io::TableIo;
use crate::runtime::DecodePool;

/// Rows and bytes of a batch that are taken in at a time.
const MAX_ROWS: usize = 64 << 10;
const MAX_BYTES: usize = 16 << 20;
/// What a partition takes beside its rows, about.
const PARTITION_BYTES: u64 = 512;
/// Files that are ended at the same time.
const ENDING: usize = 8;

/// Writes rows into new data files of a table.
///
/// Dropped without [`Self::finish`], it deletes what it created as far as a runtime is at hand.
#[derive(Debug)]
pub struct DataWriter {
    setup: Arc<Setup>,
    partitions: HashMap<PartitionValues, Partition>,
    /// The partition with a chunk that is being encoded.
    busy: Option<PartitionValues>,
    done: Vec<DataFile>,
    rows: u64,
    waiting: u64,
    clock: u64,
    failed: bool,
}

impl DataWriter {
    /// A writer of rows of the table's current schema, under its default partition spec and sort order and by
    /// its properties. `write_id` is of letters, digits and hyphens and unique to the write, `task` to this
    /// writer within it: both are part of the files' names.
    ///
    /// Errors: `Unsupported` for a table that cannot be written, naming the column or property;
    /// `InvalidInput` for a property that says nothing.
    pub fn new(
        io: TableIo,
        pool: Arc<DecodePool>,
        metadata: &TableMetadata,
        write_id: &str,
        task: u32,
        limits: WriterLimits,
    ) -> Result<Self> {
        let schema = metadata.current_schema().cloned();
        let setup = schema.and_then(|schema| Setup::new(io, pool, metadata, schema, write_id, task, limits));
        setup.map(Self::with).map_err(|e| e.with("table", &metadata.location))
    }

    /// As [`Self::new`], for rows that are written anew and keep what they are: behind the table's columns come
    /// `_row_id` and `_last_updated_sequence_number`, of type Int64, which the files keep (spec "Row Lineage").
    /// Null stands for what a row gets from the commit: a new id, the commit's sequence number.
    ///
    /// Errors: also `Unsupported` for a table below format version 3.
    pub fn with_lineage(
        io: TableIo,
        pool: Arc<DecodePool>,
        metadata: &TableMetadata,
        write_id: &str,
        task: u32,
        limits: WriterLimits,
    ) -> Result<Self> {
        let setup = schema_with_lineage(metadata).and_then(|schema| Setup::new(io, pool, metadata, schema, write_id, task, limits));
        setup.map(Self::with).map_err(|e| e.with("table", &metadata.location))
    }

    fn with(setup: Setup) -> Self {
        Self {
            setup: Arc::new(setup),
            partitions: HashMap::new(),
            busy: None,
            done: Vec::new(),
            rows: 0,
            waiting: 0,
            clock: 0,
            failed: false,
        }
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of rows and pages that are held now.
    pub fn memory(&self) -> u64 {
        let files: u64 = self.partitions.values().map(Partition::file_memory).sum();
        self.waiting + files + PARTITION_BYTES * self.partitions.len() as u64
    }

    /// Writes a batch: the table's columns, by order and name, in the arrow types of
    /// [`arrow_columns`](crate::iceberg::arrow_columns). After an error the writer can only be aborted.
    ///
    /// Errors: `InvalidInput` for rows that the table does not take, naming column and row (counted from 0
    /// over all batches); `ResourceExhausted` for too many files; `Unavailable`, `PermissionDenied`.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.failed {
            return Err(Error::internal("rows were given to a write that had failed"));
        }
        // Also where this future is dropped half way.
        self.failed = true;
        self.take_in(batch).await?;
        self.failed = false;
        Ok(())
    }

    async fn take_in(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes: usize = batch.columns().iter().map(|column| bytes_of(column.as_ref())).sum();
        let parts = bytes.div_ceil(MAX_BYTES).max(1);
        let step = batch.num_rows().div_ceil(parts).clamp(1, MAX_ROWS);
        let mut start = 0;
        while start < batch.num_rows() {
            let part = batch.slice(start, step.min(batch.num_rows() - start));
            start += part.num_rows();
            let (setup, first_row) = (Arc::clone(&self.setup), self.rows);
            self.rows += part.num_rows() as u64;
            let shares = self.setup.file.pool.spawn(move |_| setup.divide(&part, first_row)).await?;
            for share in shares {
                self.add(share).await?;
            }
            self.make_room().await?;
        }
        Ok(())
    }

    async fn add(&mut self, rows: Rows) -> Result<()> {
        let values = Arc::clone(&rows.values);
        let partition = self
            .partitions
            .entry(Arc::clone(&values))
            .or_insert_with(|| Partition::new(Arc::clone(&values)));
        self.clock += 1;
        partition.used = self.clock;
        self.waiting += rows.bytes;
        partition.add(rows)?;
        if partition.waiting() >= self.setup.chunk {
            self.encode(&values).await?;
        }
        Ok(())
    }

    /// Starts to encode what waits in a partition.
    async fn encode(&mut self, values: &PartitionValues) -> Result<()> {
        self.settle().await?;
        let opens = self.partitions.get(values).is_some_and(|partition| !partition.is_open());
        if opens {
            self.limit_files().await?;
        }
        let Some(partition) = self.partitions.get_mut(values) else {
            return Ok(());
        };
        self.waiting = self.waiting.saturating_sub(partition.waiting());
        partition.encode(&self.setup).await?;
        self.busy = Some(Arc::clone(values));
        Ok(())
    }

    /// Waits for the chunk that is being encoded.
    async fn settle(&mut self) -> Result<()> {
        let Some(values) = self.busy.take() else { return Ok(()) };
        let Some(partition) = self.partitions.get_mut(&values) else {
            return Ok(());
        };
        let done = partition.settle(&self.setup).await?;
        if partition.is_idle() {
            self.partitions.remove(&values);
        }
        self.done.extend(done);
        Ok(())
    }

    /// Makes room for one more open file.
    async fn limit_files(&mut self) -> Result<()> {
        if self.setup.file.created.count() >= self.setup.limits.files {
            return Err(Error::resource_exhausted(format!(
                "a write makes more than {} files: sort its rows by partition, or write fewer partitions at a time",
                self.setup.limits.files
            )));
        }
        while self.open_files() >= self.setup.limits.open_files.max(1) {
            self.close_oldest().await?;
        }
        Ok(())
    }

    fn open_files(&self) -> usize {
        self.partitions.values().filter(|partition| partition.is_open()).count()
    }

    /// Ends the file that rows came for longest ago; false when none is open.
    async fn close_oldest(&mut self) -> Result<bool> {
        let open = self.partitions.iter().filter(|(_, partition)| partition.is_open());
        let Some((values, _)) = open.min_by_key(|(_, partition)| partition.used) else {
            return Ok(false);
        };
        let values = Arc::clone(values);
        if let Some(partition) = self.partitions.get_mut(&values) {
            self.done.extend(partition.close(&self.setup).await?);
            if partition.is_idle() {
                self.partitions.remove(&values);
            }
        }
        Ok(true)
    }

    /// Brings memory below its bound, and then some, so that not every batch has to.
    async fn make_room(&mut self) -> Result<()> {
        let limit = self.setup.limits.memory;
        if self.memory() <= limit {
            return Ok(());
        }
        self.settle().await?;
        while self.memory() > limit / 4 * 3 {
            let rows = self.partitions.iter().max_by_key(|(_, partition)| partition.waiting());
            let pages = self.partitions.iter().max_by_key(|(_, partition)| partition.group_memory());
            let (Some((rows, most_rows)), Some((pages, most_pages))) = (rows, pages) else {
                break;
            };
            if most_rows.waiting() == 0 && most_pages.group_memory() == 0 {
                // What is left are bytes that have not reached their files yet.
                if !self.close_oldest().await? {
                    break;
                }
            } else if most_rows.waiting() >= most_pages.group_memory() {
                let values = Arc::clone(rows);
                self.encode(&values).await?;
                self.settle().await?;
            } else {
                let values = Arc::clone(pages);
                if let Some(partition) = self.partitions.get_mut(&values) {
                    partition.flush_group().await?;
                }
            }
        }
        Ok(())
    }

    /// Ends all files and gives them, each durable under its name, in the order of their paths. No rows, no files.
    ///
    /// Errors as for [`Self::write`]; then the files are deleted, as far as they can be.
    pub async fn finish(mut self) -> Result<Vec<DataFile>> {
        if self.failed {
            return Err(Error::internal("a write was finished after it had failed"));
        }
        match self.end().await {
            Ok(()) => {
                self.setup.file.created.release();
                let mut done = std::mem::take(&mut self.done);
                done.sort_by(|a, b| a.file_path.cmp(&b.file_path));
                Ok(done)
            }
            Err(e) => {
                if let Err(error) = self.abort().await {
                    tracing::warn!(%error, "data files of a write that failed could not be deleted");
                }
                Err(e)
            }
        }
    }

    async fn end(&mut self) -> Result<()> {
        self.settle().await?;
        let files = self.partitions.len() + self.setup.file.created.count();
        if files > self.setup.limits.files {
            return Err(Error::resource_exhausted(format!(
                "a write makes more than {} files: sort its rows by partition, or write fewer partitions at a time",
                self.setup.limits.files
            )));
        }
        let setup = &self.setup;
        let ends = self.partitions.drain().map(|(_, mut partition)| async move {
            partition.encode(setup).await?;
            partition.close(setup).await
        });
        // All are waited for: a file must not come to be after its deletion.
        let ends: Vec<Result<Option<DataFile>>> = stream::iter(ends).buffer_unordered(ENDING).collect().await;
        for done in ends {
            self.done.extend(done?);
        }
        Ok(())
    }

    /// Gives the write up and deletes exactly the files that it created.
    ///
    /// Errors: `Unavailable` when a file may still be there.
    pub async fn abort(mut self) -> Result<()> {
        // Open files leave nothing behind when they are dropped.
        self.partitions.clear();
        self.setup.file.created.delete().await
    }
}
