//! Casts outside of the plan: of bound values, of results, of rows that are written.
//!
//! Invariant: a value that does not fit is an error, never null.

use arrow::array::{Array, ArrayRef};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// The values in another type.
pub(super) fn strict(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(values, to, &options)
}

/// The values in another type where that cuts nothing off numbers, times and dates; `None` where it does.
pub(super) fn lossless(values: &ArrayRef, to: &DataType) -> Result<Option<ArrayRef>, ArrowError> {
    let from = values.data_type();
    let cast = strict(values, to)?;
    let is_number = |of: &DataType| of.is_numeric() || of.is_temporal();
    if !is_number(from) || !is_number(to) {
        return Ok(Some(cast));
    }
    // What is cut off is missing on the way back.
    let back = strict(&cast, from)?;
    let same = not_distinct(&back, values)?.true_count() == values.len();
    Ok(same.then_some(cast))
}
