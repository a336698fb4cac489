//! Copy-on-write: the rows of data files that stay, written anew.
//!
//! Invariants: only the files that are named are read; of these every row is written that was there and is not
//! deleted now, with its row id and the number of the commit that last changed it (v3).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;

use crate::bitmap::RowSet;
use crate::error::{Error, Result};
use crate::iceberg::IcebergSnapshot;
use crate::table::{Column, FileScanTask, HiddenColumn, PlanCounts, ScanPlan, ScanRequest, Snapshot, TableIdent};

use super::super::hidden::with_places;
use super::places::{by_file, positions};

/// Some data files of a snapshot.
#[derive(Debug)]
struct Files {
    of: IcebergSnapshot,
    scan: ScanPlan,
}

#[async_trait]
impl Snapshot for Files {
    fn table(&self) -> &TableIdent {
        self.of.table()
    }
    fn id(&self) -> Option<i64> {
        self.of.id()
    }
    fn metadata_location(&self) -> &str {
        self.of.metadata_location()
    }
    fn schema(&self) -> &SchemaRef {
        self.of.schema()
    }
    fn columns(&self) -> &[Arc<Column>] {
        self.of.columns()
    }
    fn hidden_column(&self, kind: HiddenColumn) -> Result<Option<arrow::datatypes::FieldRef>> {
        self.of.hidden_column(kind)
    }
    fn identifier_columns(&self) -> Vec<String> {
        self.of.identifier_columns()
    }
    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let mut scan = self.scan.clone();
        scan.proved = vec![false; request.misses.len()];
        Ok(scan)
    }
}

/// The rows of these files, with where they lie and, with `lineage`, their row ids behind the table's columns.
///
/// Errors: `Unsupported` for a table that has columns of such names.
pub(super) fn rows_of(of: IcebergSnapshot, scan: ScanPlan, tasks: Vec<Arc<FileScanTask>>, lineage: bool) -> Result<Arc<dyn Snapshot>> {
    let scan = ScanPlan {
        tasks,
        counts: PlanCounts::default(),
        ..scan
    };
    let mut kinds = Vec::new();
    if lineage {
        kinds.extend([HiddenColumn::RowId, HiddenColumn::LastUpdatedSequenceNumber]);
    }
    kinds.extend([HiddenColumn::File, HiddenColumn::Position]);
    let taken = |kind: &&HiddenColumn| of.schema().fields().iter().any(|f| f.name().eq_ignore_ascii_case(kind.name()));
    if let Some(kind) = kinds.iter().find(taken) {
        let message = format!(
            "rows of a table that has a column named {} cannot be written anew: rename it",
            kind.name()
        );
        return Err(Error::unsupported(message).with("table", of.table()));
    }
    with_places(Arc::new(Files { of, scan }), &kinds)
}

/// The rows of a batch that stay, without where they lay.
///
/// Errors: `Internal` for a batch of other columns, or rows of another file.
pub(super) fn rows_that_stay(batch: &RecordBatch, deleted: &HashMap<String, Arc<RowSet>>) -> Result<RecordBatch> {
    let lost = || Error::internal("rows that are written anew do not say where they lay");
    let width = batch.num_columns().checked_sub(2).ok_or_else(lost)?;
    let positions = positions(batch.column(width + 1))?;
    let mut keep = Vec::with_capacity(batch.num_rows());
    for (path, range) in by_file(batch.column(width))? {
        let rows = deleted.get(path).ok_or_else(lost)?;
        for position in positions.values().get(range).unwrap_or_default() {
            keep.push(!rows.contains(u64::try_from(*position).map_err(|_| lost())?));
        }
    }
    let columns: Vec<usize> = (0..width).collect();
    Ok(filter_record_batch(&batch.project(&columns)?, &BooleanArray::from(keep))?)
}
