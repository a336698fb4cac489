//! Hidden columns of a data file: constants of its task, physical positions, row lineage.
//!
//! Invariant: positions come from the mask that the rows were decoded with, never from counting
//! what came out. A reader of any file format takes part by handing out [`KeptRows`] of its unit
//! (a row group, a stripe, a block): the position of its first row, and which rows are kept.
//!
//! Row lineage (Iceberg spec "Row Lineage"): a value that is stored in the file counts, else the
//! row's id follows from the file's first one, and the sequence number is that of the file. A file
//! without a first row id has no lineage, as in the reference implementation.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};

use super::adapt::repeat;
use crate::error::{Error, Result};
use crate::table::{Column, FileScanTask, HiddenColumn};

/// The rows of a unit that are kept, in order.
#[derive(Debug, Clone)]
pub(super) struct KeptRows {
    /// Physical position of the unit's first row.
    first: u64,
    /// One bit a row; all are kept without it.
    keep: Option<BooleanBuffer>,
    /// Rows of the unit that were handed out or passed over.
    next: usize,
}

impl KeptRows {
    /// Rows from position `first` on, of which those are kept that `keep` has.
    pub(super) fn new(first: u64, keep: Option<BooleanBuffer>) -> Self {
        Self { first, keep, next: 0 }
    }

    /// The positions of the next `rows` kept rows.
    ///
    /// Errors: `Internal` when there are fewer.
    pub(super) fn take(&mut self, rows: usize) -> Result<Int64Array> {
        let first = i64::try_from(self.first).map_err(|_| Error::corrupt("a row position is out of range"))?;
        let position = |index: usize| first.saturating_add(i64::try_from(index).unwrap_or(i64::MAX));
        let Some(keep) = &self.keep else {
            let start = self.next;
            self.next = start.saturating_add(rows);
            return Ok(Int64Array::from_iter_values((start..self.next).map(position)));
        };
        let start = self.next.min(keep.len());
        let mut positions = Vec::with_capacity(rows);
        if rows > 0 {
            let rest = keep.slice(start, keep.len() - start);
            for index in rest.set_indices().take(rows) {
                positions.push(position(start + index));
                self.next = start + index + 1;
            }
        }
        if positions.len() != rows {
            return Err(Error::internal("more rows were decoded than are kept"));
        }
        Ok(positions.into())
    }
}

/// Where a hidden column's values come from.
#[derive(Debug, Clone)]
enum Source {
    Constant(ArrayRef),
    Position,
    /// The stored id, else this one plus the position.
    RowId(i64),
    /// The stored number, else this one.
    SequenceNumber(i64),
}

/// The hidden columns among those that are read from a file.
#[derive(Debug, Clone, Default)]
pub(super) struct HiddenReads(Vec<(usize, Source)>);

impl HiddenReads {
    /// Of the columns of a scan, for one file.
    pub(super) fn of(columns: &[Arc<Column>], task: &FileScanTask) -> Result<Self> {
        let mut reads = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if let Some(kind) = HiddenColumn::from_id(column.id) {
                reads.push((index, source(kind, column, task)?));
            }
        }
        Ok(Self(reads))
    }

    /// Puts the columns' values in their places. What is there was read from the file (null where
    /// it has no such column).
    ///
    /// Errors: `Unsupported` without `kept` where positions are needed.
    pub(super) fn fill(&self, arrays: &mut [ArrayRef], rows: usize, kept: Option<&mut KeptRows>) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let positions = match kept {
            Some(kept) if self.0.iter().any(|(_, source)| source.needs_position()) => Some(kept.take(rows)?),
            _ => None,
        };
        let position = || {
            let none = || Error::unsupported("row positions of files in this format cannot be given");
            positions.as_ref().ok_or_else(none)
        };
        for (index, source) in &self.0 {
            let slot = arrays
                .get_mut(*index)
                .ok_or_else(|| Error::internal("a hidden column is out of range"))?;
            *slot = match source {
                Source::Constant(value) => repeat(value, rows)?,
                Source::Position => Arc::new(position()?.clone()),
                Source::RowId(first) => {
                    let positions = position()?;
                    let overflows = || Error::corrupt("a row id is out of range");
                    coalesce(slot, |row| first.checked_add(positions.value(row)).ok_or_else(overflows))?
                }
                Source::SequenceNumber(number) => coalesce(slot, |_| Ok(*number))?,
            };
        }
        Ok(())
    }
}

impl Source {
    fn needs_position(&self) -> bool {
        matches!(self, Self::Position | Self::RowId(_))
    }
}

fn source(kind: HiddenColumn, column: &Column, task: &FileScanTask) -> Result<Source> {
    let origin = &task.origin;
    let null = || Source::Constant(new_null_array(column.field.data_type(), 1));
    Ok(match kind {
        HiddenColumn::File => {
            let path: ArrayRef = Arc::new(StringArray::from(vec![task.recorded_path.as_str()]));
            Source::Constant(cast(&path, column.field.data_type())?)
        }
        HiddenColumn::Position => Source::Position,
        HiddenColumn::SpecId => Source::Constant(Arc::new(Int32Array::from(vec![origin.spec_id]))),
        HiddenColumn::Partition => match &origin.partition {
            Some(partition) => Source::Constant(Arc::clone(partition)),
            None => return Err(Error::internal("partition values were not planned")),
        },
        HiddenColumn::RowId => match origin.first_row_id {
            Some(first) => Source::RowId(i64::try_from(first).map_err(|_| Error::corrupt("a row id is out of range"))?),
            None => null(),
        },
        HiddenColumn::LastUpdatedSequenceNumber | HiddenColumn::RowCommitVersion => match origin.first_row_id {
            Some(_) => Source::SequenceNumber(origin.sequence_number),
            None => null(),
        },
    })
}

/// The stored values, and where they are null those of `inherited`.
fn coalesce(stored: &ArrayRef, inherited: impl Fn(usize) -> Result<i64>) -> Result<ArrayRef> {
    if stored.data_type() != &DataType::Int64 {
        return Err(Error::internal("row lineage is no column of longs"));
    }
    if stored.null_count() == 0 {
        return Ok(Arc::clone(stored));
    }
    let stored = stored.as_primitive::<Int64Type>();
    let values = stored
        .iter()
        .enumerate()
        .map(|(row, value)| value.map_or_else(|| inherited(row), Ok));
    Ok(Arc::new(Int64Array::from(values.collect::<Result<Vec<i64>>>()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kept: &mut KeptRows, rows: usize) -> Vec<i64> {
        kept.take(rows).unwrap().values().to_vec()
    }

    #[test]
    fn positions_pass_over_rows_that_are_not_kept() {
        let keep = BooleanBuffer::from(vec![false, true, true, false, true, false, false, true]);
        let mut kept = KeptRows::new(100, Some(keep));
        assert_eq!(taken(&mut kept, 1), [101]);
        assert_eq!(taken(&mut kept, 0), Vec::<i64>::new());
        assert_eq!(taken(&mut kept, 2), [102, 104]);
        assert_eq!(taken(&mut kept, 1), [107]);
        assert!(kept.take(1).is_err());
        let mut all = KeptRows::new(7, None);
        assert_eq!((taken(&mut all, 2), taken(&mut all, 1)), (vec![7, 8], vec![9]));
    }

    #[test]
    fn stored_values_count_before_inherited_ones() {
        let stored: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None, Some(0), None]));
        let merged = coalesce(&stored, |row| Ok(10 + row as i64)).unwrap();
        assert_eq!(merged.as_primitive::<Int64Type>().values(), &[5, 11, 0, 13]);
    }
}
