//! Loading deletes: vectors and position deletes to sets of rows, equality deletes to sets of keys.

mod equality;
mod positions;
mod vector;

pub(super) use equality::KeySet;

use std::sync::Arc;

use crate::bitmap::RowSet;
use crate::error::{Error, Result};
use crate::io::TableIo;
use crate::table::{ColumnMatching, FileScanTask};

use super::ScanContext;

/// The rows of a data file that its vector or position deletes remove; `None` when there are none.
///
/// Errors: those of reading delete files; `Corrupt` for a vector of rows that the file does not have.
pub async fn deleted_rows(io: &TableIo, context: &Arc<ScanContext>, task: &FileScanTask) -> Result<Option<Arc<RowSet>>> {
    if let Some(only) = &task.deletes.only {
        let count = task
            .record_count
            .ok_or_else(|| Error::corrupt("nothing tells how many rows the file has"))?;
        let mut all = RowSet::new();
        all.insert_range(0..count);
        all.remove_all(vector::load(io, context, only).await?.as_ref());
        if let Some(vector) = &task.deletes.vector {
            all.union_with(vector::load(io, context, vector).await?.as_ref());
        }
        return Ok(Some(Arc::new(all)));
    }
    if let Some(vector) = &task.deletes.vector {
        let rows = vector::load(io, context, vector).await?;
        if let (Some(last), Some(count)) = (rows.max(), task.record_count)
            && last >= count
        {
            return Err(
                Error::corrupt(format!("deletion vector deletes row {last} of a file of {count} rows"))
                    .with("file", &vector.location)
                    .with("data_file", &task.location),
            );
        }
        return Ok(Some(rows));
    }
    let mut union: Option<Arc<RowSet>> = None;
    for file in &task.deletes.positions {
        for rows in positions::load(io, context, file, task).await? {
            union = Some(match union {
                None => rows,
                Some(mut so_far) => {
                    Arc::make_mut(&mut so_far).union_with(&rows);
                    so_far
                }
            });
        }
    }
    Ok(union)
}

/// The key sets that apply to a data file, with the age that a key must exceed.
pub(super) async fn key_sets(
    io: &TableIo,
    context: &Arc<ScanContext>,
    task: &FileScanTask,
    matching: ColumnMatching,
) -> Result<Vec<(Arc<KeySet>, i64)>> {
    let mut sets = Vec::with_capacity(task.deletes.equality.len());
    for deletes in &task.deletes.equality {
        let set = equality::load(io, context, &deletes.set, matching).await?;
        sets.push((set, deletes.data_sequence_number));
    }
    Ok(sets)
}
