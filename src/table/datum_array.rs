//! From arrow values to the domain that predicates compare in.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};

use super::Datum;

impl Datum {
    /// The value in one row; `None` for null and for types whose values do not compare.
    pub fn at(array: &ArrayRef, row: usize) -> Option<Self> {
        use DataType as T;
        if row >= array.len() || array.is_null(row) {
            return None;
        }
        let number = |v: i64| Self::Number(i128::from(v));
        Some(match array.data_type() {
            T::Boolean => Self::Boolean(array.as_boolean().value(row)),
            T::Int8 => number(i64::from(array.as_primitive::<Int8Type>().value(row))),
            T::Int16 => number(i64::from(array.as_primitive::<Int16Type>().value(row))),
            T::Int32 => number(i64::from(array.as_primitive::<Int32Type>().value(row))),
            T::Date32 => number(i64::from(array.as_primitive::<Date32Type>().value(row))),
            T::Int64 => number(array.as_primitive::<Int64Type>().value(row)),
            T::Time64(TimeUnit::Microsecond) => number(array.as_primitive::<Time64MicrosecondType>().value(row)),
            T::Timestamp(TimeUnit::Microsecond, _) => number(array.as_primitive::<TimestampMicrosecondType>().value(row)),
            T::Timestamp(TimeUnit::Nanosecond, _) => number(array.as_primitive::<TimestampNanosecondType>().value(row)),
            T::Decimal128(_, _) => Self::Number(array.as_primitive::<Decimal128Type>().value(row)),
            T::Float32 => Self::Float(f64::from(array.as_primitive::<Float32Type>().value(row))),
            T::Float64 => Self::Float(array.as_primitive::<Float64Type>().value(row)),
            T::Utf8 => Self::Bytes(array.as_string::<i32>().value(row).as_bytes().to_vec()),
            T::Binary => Self::Bytes(array.as_binary::<i32>().value(row).to_vec()),
            T::FixedSizeBinary(_) => Self::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
            _ => return None,
        })
    }
}
