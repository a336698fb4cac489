//! From the rows that a statement deletes to what that means for each data file: it goes as a whole, or some of
//! its rows do.
//!
//! Invariants: every row is one of a data file of the snapshot that was read, and lies in it; rows that were
//! deleted before are not counted; a file goes as a whole only if no row of it would be left.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bitmap::RowSet;
use crate::error::{Error, Result};
use crate::iceberg::commit::{RemovedFile, VectorRows};
use crate::iceberg::{DeletePlan, DeleteTarget};
use crate::scan::{ScanContext, deleted_rows};

/// Rows to delete, by the data file's path as the metadata spells it.
pub type RowsByFile = HashMap<String, RowSet>;

/// A data file of which some rows stay.
#[derive(Debug, Clone)]
pub struct PartlyDeleted {
    pub target: DeleteTarget,
    /// What is deleted now.
    pub rows: Arc<RowSet>,
    /// What was deleted before by vector or position delete files.
    pub base: Arc<RowSet>,
}

/// What a delete does to the data files of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct RowDelete {
    /// Data files without rows that stay.
    pub whole: Vec<DeleteTarget>,
    pub partly: Vec<PartlyDeleted>,
    /// Rows that are deleted.
    pub count: u64,
}

impl RowDelete {
    /// Every row of every file of the plan; `None` where only reading tells how many these are.
    pub fn all(plan: &DeletePlan) -> Option<Self> {
        let known = plan.targets.iter().map(|target| target.task.known_rows());
        Some(Self {
            count: known.sum::<Option<u64>>()?,
            whole: plan.targets.clone(),
            partly: Vec::new(),
        })
    }

    /// These rows. `is_all` where metadata proves that every row of every file is meant.
    ///
    /// Errors: `InvalidInput` for rows of a file that the plan does not have, or that the file does not have; those
    /// of reading deletes.
    pub async fn of(plan: &DeletePlan, mut rows: RowsByFile, is_all: bool, context: &Arc<ScanContext>) -> Result<Self> {
        let mut delete = Self::default();
        for target in &plan.targets {
            let Some(mut rows) = rows.remove(&target.task.recorded_path).filter(|rows| !rows.is_empty()) else {
                // What is left of it was deleted before.
                if is_all {
                    delete.whole.push(target.clone());
                }
                continue;
            };
            let unknown = || Error::corrupt("nothing tells how many rows a data file has").with("file", &target.task.recorded_path);
            let record_count = target.task.record_count.ok_or_else(unknown)?;
            if let Some(last) = rows.max().filter(|last| *last >= record_count) {
                let message = format!("row {last} is to be deleted of a data file of {record_count} rows");
                return Err(Error::invalid(message).with("file", &target.task.recorded_path));
            }
            let base = deleted_rows(&plan.scan.io, context, &target.task).await?;
            let base = base.unwrap_or_default();
            rows.remove_all(&base);
            delete.count += rows.len();
            if rows.is_empty() && !is_all {
                continue;
            }
            if is_all || rows.len() + base.len() >= record_count {
                delete.whole.push(target.clone());
                continue;
            }
            delete.partly.push(PartlyDeleted {
                target: target.clone(),
                rows: Arc::new(rows),
                base,
            });
        }
        match rows.into_iter().find(|(_, rows)| !rows.is_empty()) {
            Some((path, _)) => {
                Err(Error::invalid("rows are to be deleted of a data file that the snapshot does not have").with("file", path))
            }
            None => Ok(delete),
        }
    }

    /// Whether nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.partly.is_empty()
    }

    /// What goes with the files that go as a whole: they, their vectors and what deletes rows of them alone.
    pub fn removed(&self) -> impl Iterator<Item = RemovedFile> {
        self.whole.iter().flat_map(|target| {
            let data_file = RemovedFile::data_file(&target.data_file.file_path);
            let deletes = target.vector.iter().chain(&target.scoped).cloned();
            std::iter::once(data_file).chain(deletes)
        })
    }
}

impl PartlyDeleted {
    /// For a vector of the file's deleted rows.
    pub fn vector_rows(&self) -> VectorRows {
        let of = &self.target.data_file;
        VectorRows {
            data_file: of.file_path.clone(),
            spec_id: of.spec_id,
            partition: Arc::clone(&of.partition),
            record_count: of.record_count,
            rows: Arc::clone(&self.rows),
            base: Arc::clone(&self.base),
            vector: self.target.vector.clone(),
            folded: self.target.scoped.clone(),
        }
    }
}
