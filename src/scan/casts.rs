//! Which file types may be read as which table types.
//!
//! The list is closed: promotions of the table formats and other spellings of the same values.
//! Anything else is an error, since a helpful cast would give rows that nobody wrote.

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};

use crate::error::{Error, Result};

/// True when a column of type `file` holds values of type `table`, exactly.
pub(super) fn may_read_as(file: &DataType, table: &DataType) -> bool {
    use DataType as T;
    if file == table {
        return true;
    }
    match (file, table) {
        // promotions, and other writers' spellings of the same integers; a value that does not fit is an error
        (T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16, T::Int8 | T::Int16 | T::Int32 | T::Int64) => true,
        (T::UInt32 | T::UInt64 | T::Int64, T::Int64) | (T::UInt32, T::Int32) => true,
        (T::Float16 | T::Float32, T::Float32 | T::Float64) => true,
        (T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s), T::Decimal128(to_p, to_s)) => {
            s <= to_s && i16::from(*p) - i16::from(*s) <= i16::from(*to_p) - i16::from(*to_s)
        }
        // Delta's type widening: every value has one of the wider type that is equal
        (T::Int8 | T::Int16 | T::Int32, T::Float64) => true,
        (T::Int8 | T::Int16 | T::Int32 | T::Int64, T::Decimal128(_, _)) => true,
        (T::Date32, T::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, None)) => true,
        // units and zones: Parquet's isAdjustedToUTC flag is often missing, the table's type decides
        (T::Timestamp(_, _), T::Timestamp(_, _)) => true,
        (T::Time32(_) | T::Time64(_), T::Time64(_)) => true,
        // text and bytes
        (T::Binary | T::LargeBinary | T::LargeUtf8 | T::Utf8View | T::BinaryView, T::Utf8) => true,
        (T::Utf8 | T::LargeBinary | T::BinaryView, T::Binary) => true,
        (T::FixedSizeBinary(_), T::Binary) => true,
        // a column that was never written
        (T::Null, _) => true,
        _ => false,
    }
}

/// Casts, exactly: a value that does not fit is an error.
pub(super) fn cast_exact(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType as T;
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let array = match (array.data_type(), to) {
        // Relabel the zone without moving the instant: the stored number counts from the epoch in UTC either way.
        (T::Timestamp(unit, Some(_)), T::Timestamp(_, None)) => {
            cast_with_options(array, &T::Timestamp(*unit, Some("+00:00".into())), &options)?
        }
        _ => array.clone(),
    };
    cast_with_options(&array, to, &options)
        .map_err(|e| Error::corrupt(format!("a value of type {} does not fit the column's type {to}", array.data_type())).with_source(e))
}
