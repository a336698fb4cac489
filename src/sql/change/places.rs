//! The columns that say where rows lie, as they come out of a query.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use crate::error::{Error, Result};

fn lost() -> Error {
    Error::internal("a row does not say where it lies")
}

/// Stretches of rows that lie in one data file, in order, with the file's path.
///
/// Errors: `Internal` for a column that is no text, or has nulls.
pub(super) fn by_file(files: &ArrayRef) -> Result<Vec<(&str, Range<usize>)>> {
    if files.logical_null_count() > 0 {
        return Err(lost());
    }
    match files.data_type() {
        DataType::Utf8 => {
            let paths = files.as_string::<i32>();
            Ok(stretches(files.len(), |row| paths.value(row)))
        }
        DataType::Dictionary(..) => {
            let keys = files.as_dictionary_opt::<Int32Type>().ok_or_else(lost)?;
            let paths = keys.values().as_string_opt::<i32>().ok_or_else(lost)?;
            let mut found = Vec::new();
            // Several keys may stand for one path.
            for (key, range) in stretches(files.len(), |row| keys.keys().value(row)) {
                found.push((paths.value(usize::try_from(key).map_err(|_| lost())?), range));
            }
            Ok(found)
        }
        _ => Err(lost()),
    }
}

fn stretches<T: PartialEq + Copy>(rows: usize, value: impl Fn(usize) -> T) -> Vec<(T, Range<usize>)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < rows {
        let of = value(start);
        let mut end = start + 1;
        while end < rows && value(end) == of {
            end += 1;
        }
        found.push((of, start..end));
        start = end;
    }
    found
}

/// The positions of rows in their files.
///
/// Errors: `Internal` for a column of another type, or with nulls.
pub(super) fn positions(column: &ArrayRef) -> Result<&Int64Array> {
    column
        .as_primitive_opt::<Int64Type>()
        .filter(|positions| positions.null_count() == 0)
        .ok_or_else(lost)
}
