//! The rows of one partition: those that wait, and the file that takes them.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::parquet_file::{Chunk, ParquetFile};
use super::setup::{Rows, Setup};
use crate::error::Result;
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::PartitionValues;

/// Row groups of a file, beyond which it is ended: its footer grows with them.
const MAX_ROW_GROUPS: usize = 2_000;
/// Waiting parts that are put together when there are more of them.
const MAX_PIECES: usize = 64;

/// A partition that rows have come for.
#[derive(Debug)]
pub(super) struct Partition {
    values: PartitionValues,
    pieces: Vec<Vec<ArrayRef>>,
    rows: usize,
    /// Of the waiting rows.
    bytes: u64,
    file: Option<ParquetFile>,
    /// When rows last came.
    pub(super) used: u64,
}

impl Partition {
    pub(super) fn new(values: PartitionValues) -> Self {
        Self {
            values,
            pieces: Vec::new(),
            rows: 0,
            bytes: 0,
            file: None,
            used: 0,
        }
    }

    /// Bytes of rows that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.file.is_none() && self.rows == 0
    }

    /// Bytes of the file in memory.
    pub(super) fn file_memory(&self) -> u64 {
        self.file.as_ref().map_or(0, ParquetFile::memory)
    }

    /// Bytes that ending the open row group would free.
    pub(super) fn group_memory(&self) -> u64 {
        self.file.as_ref().map_or(0, ParquetFile::group_memory)
    }

    /// Takes rows in, to wait.
    pub(super) fn add(&mut self, rows: Rows) -> Result<()> {
        self.rows += rows.rows;
        self.bytes += rows.bytes;
        self.pieces.push(rows.columns);
        if self.pieces.len() > MAX_PIECES && self.bytes < (1 << 20) {
            self.pieces = vec![together(&self.pieces)?];
        }
        Ok(())
    }

    /// Starts to encode the rows that wait.
    pub(super) async fn encode(&mut self, setup: &Arc<Setup>) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(ParquetFile::open(&setup.file, setup.next_location(&self.values)).await?),
        };
        let (pieces, rows) = (std::mem::take(&mut self.pieces), std::mem::take(&mut self.rows));
        let bytes = std::mem::take(&mut self.bytes);
        let (pieces, sorted) = if setup.sorter.is_some() {
            let plan = Arc::clone(setup);
            let sort = move |_: &crate::runtime::Cancelled| {
                let sorted = plan.sorter.as_ref().map(|sorter| sorter.sort(&pieces, rows)).transpose()?;
                Ok((pieces, sorted.flatten()))
            };
            setup.file.pool.spawn(sort).await?
        } else {
            (pieces, None)
        };
        file.start(Chunk {
            pieces,
            sorted,
            rows,
            bytes,
        })
        .await
    }

    /// Waits for what is being encoded, and ends the row group and the file where they are full.
    pub(super) async fn settle(&mut self, setup: &Setup) -> Result<Option<DataFile>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        file.settle().await?;
        if file.length() >= setup.sizes.file || file.row_groups() >= MAX_ROW_GROUPS {
            return self.close(setup).await;
        }
        if file.group_length() >= setup.sizes.row_group {
            file.flush_group().await?;
        }
        Ok(None)
    }

    /// Ends the open row group.
    pub(super) async fn flush_group(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.flush_group().await,
            None => Ok(()),
        }
    }

    /// Ends the file; rows that wait go on waiting.
    pub(super) async fn close(&mut self, setup: &Setup) -> Result<Option<DataFile>> {
        match self.file.take() {
            Some(file) => file.finish(setup.spec_id(), Arc::clone(&self.values)).await.map(Some),
            None => Ok(None),
        }
    }
}

fn together(pieces: &[Vec<ArrayRef>]) -> Result<Vec<ArrayRef>> {
    let width = pieces.first().map_or(0, Vec::len);
    let columns = (0..width).map(|at| {
        let parts: Vec<&dyn arrow::array::Array> = pieces.iter().filter_map(|piece| piece.get(at)).map(AsRef::as_ref).collect();
        Ok(arrow::compute::concat(&parts)?)
    });
    columns.collect()
}
