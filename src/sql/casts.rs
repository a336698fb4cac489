//! Casts outside of the plan: of bound values, of results, of rows that are written.
//!
//! Invariant: a value that does not fit is an error, never null.

use arrow::array::{Array, ArrayRef};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Fields};
use arrow::error::ArrowError;

/// The values in another type.
pub(super) fn strict(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(values, to, &options)
}

/// Whether `agree` holds for all that two nested types are made of: fields of structs by their names (each once, none
/// more or less), elements, keys and values. `None` for types that are not nested alike.
pub(super) fn parts_agree(from: &DataType, to: &DataType, agree: fn(&DataType, &DataType) -> bool) -> Option<bool> {
    use DataType as D;
    match (from, to) {
        (D::Struct(from), D::Struct(to)) => Some(
            from.len() == to.len()
                && to
                    .iter()
                    .all(|to| the_field(from, to.name()).is_some_and(|from| agree(from.data_type(), to.data_type()))),
        ),
        (D::List(from) | D::LargeList(from) | D::FixedSizeList(from, _), D::List(to)) => Some(agree(from.data_type(), to.data_type())),
        (D::Map(from, _), D::Map(to, _)) => match (from.data_type(), to.data_type()) {
            // Keys and values have other names with every writer.
            (D::Struct(from), D::Struct(to)) => {
                let mut each = from.iter().zip(to);
                Some(from.len() == to.len() && each.all(|(from, to)| agree(from.data_type(), to.data_type())))
            }
            _ => Some(false),
        },
        _ => None,
    }
}

/// The one field of a name.
fn the_field<'a>(fields: &'a Fields, name: &str) -> Option<&'a FieldRef> {
    let mut named = fields.iter().filter(|field| field.name() == name);
    named.next().filter(|_| named.next().is_none())
}

/// Whether structs have the same fields, however deep they lie. Others are cast by position, which nobody means.
pub(super) fn have_same_fields(from: &DataType, to: &DataType) -> bool {
    parts_agree(from, to, have_same_fields).unwrap_or(true)
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
