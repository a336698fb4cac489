//! Arrow arrays of metadata rows.
//!
//! Invariant: the arrow types are those of the declared columns; a value that does not fit is `Corrupt`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, MapArray, StringArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, TimeUnit};

use crate::error::{Error, Result};
use crate::iceberg::arrow_schema::primitive_type;
use crate::iceberg::spec::{Literal, PrimitiveType};

pub(super) fn longs(values: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int64Array>())
}

pub(super) fn ints(values: impl IntoIterator<Item = Option<i32>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Int32Array>())
}

pub(super) fn bools(values: impl IntoIterator<Item = Option<bool>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<BooleanArray>())
}

pub(super) fn texts<T: AsRef<str>>(values: impl IntoIterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<StringArray>())
}

pub(super) fn binaries<'a>(values: impl IntoIterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<BinaryArray>())
}

/// Times with zone from milliseconds.
pub(super) fn times(millis: impl IntoIterator<Item = Option<i64>>) -> ArrayRef {
    let micros = millis.into_iter().map(|ms| ms.map(|ms| ms.saturating_mul(1000)));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}

/// A count as its column has it. Counts were read from 63 bits.
pub(super) fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count in a column of 32 bits.
pub(super) fn small_count(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

fn mismatch(data_type: &DataType) -> Error {
    Error::internal(format!("a metadata column is declared as {data_type}"))
}

/// A struct without nulls of its own.
pub(super) fn structs(data_type: &DataType, children: Vec<ArrayRef>, rows: usize) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else {
        return Err(mismatch(data_type));
    };
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), children, None, rows)?))
}

fn offsets(lengths: &[Option<usize>]) -> (OffsetBuffer<i32>, Option<NullBuffer>) {
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|l| l.unwrap_or(0)));
    let nulls = lengths.iter().any(Option::is_none);
    let nulls = nulls.then(|| lengths.iter().map(Option::is_some).collect::<NullBuffer>());
    (offsets, nulls)
}

/// Maps from their lengths and all keys and values end to end.
pub(super) fn maps(data_type: &DataType, lengths: &[Option<usize>], keys: ArrayRef, values: ArrayRef) -> Result<ArrayRef> {
    let DataType::Map(entries, ordered) = data_type else {
        return Err(mismatch(data_type));
    };
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(mismatch(data_type));
    };
    let pairs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    let (offsets, nulls) = offsets(lengths);
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls, *ordered)?))
}

/// Lists from their lengths and all items end to end.
pub(super) fn lists(data_type: &DataType, lengths: &[Option<usize>], items: ArrayRef) -> Result<ArrayRef> {
    let DataType::List(element) = data_type else {
        return Err(mismatch(data_type));
    };
    let (offsets, nulls) = offsets(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, items, nulls)?))
}

fn each<'a, T>(values: &'a [Option<Literal>], primitive: &PrimitiveType, of: impl Fn(&'a Literal) -> Option<T>) -> Result<Vec<Option<T>>> {
    let one = |value: &'a Option<Literal>| match value {
        None => Ok(None),
        Some(literal) => match of(literal) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::corrupt(format!("the value {literal:?} is not of type {primitive}"))),
        },
    };
    values.iter().map(one).collect()
}

/// Values of a primitive type. Values of a type that it was promoted from are widened; of a fixed type
/// a value of another length (a bound that was cut) is null.
pub(super) fn literals(values: &[Option<Literal>], primitive: &PrimitiveType) -> Result<ArrayRef> {
    let data_type = primitive_type(primitive)?;
    let long = |literal: &Literal| match literal {
        Literal::Int(v) => Some(i64::from(*v)),
        Literal::Long(v) => Some(*v),
        _ => None,
    };
    let int = |literal: &Literal| match literal {
        Literal::Int(v) => Some(*v),
        _ => None,
    };
    Ok(match &data_type {
        DataType::Null => new_null_array(&data_type, values.len()),
        DataType::Boolean => Arc::new(BooleanArray::from(each(values, primitive, |v| match v {
            Literal::Boolean(v) => Some(*v),
            _ => None,
        })?)),
        DataType::Int32 => Arc::new(Int32Array::from(each(values, primitive, int)?)),
        DataType::Date32 => Arc::new(Date32Array::from(each(values, primitive, int)?)),
        DataType::Int64 => Arc::new(Int64Array::from(each(values, primitive, long)?)),
        DataType::Float32 => Arc::new(Float32Array::from(each(values, primitive, |v| match v {
            Literal::Float(v) => Some(*v),
            _ => None,
        })?)),
        DataType::Float64 => Arc::new(Float64Array::from(each(values, primitive, |v| match v {
            Literal::Float(v) => Some(f64::from(*v)),
            Literal::Double(v) => Some(*v),
            _ => None,
        })?)),
        DataType::Decimal128(precision, scale) => {
            let values = each(values, primitive, |v| match v {
                Literal::Decimal(v) => Some(*v),
                _ => None,
            })?;
            Arc::new(Decimal128Array::from(values).with_precision_and_scale(*precision, *scale)?)
        }
        DataType::Time64(_) => Arc::new(Time64MicrosecondArray::from(each(values, primitive, long)?)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(TimestampMicrosecondArray::from(each(values, primitive, long)?).with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Arc::new(TimestampNanosecondArray::from(each(values, primitive, long)?).with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => Arc::new(StringArray::from(each(values, primitive, |v| match v {
            Literal::String(v) => Some(v.as_str()),
            _ => None,
        })?)),
        DataType::Binary => Arc::new(BinaryArray::from(each(values, primitive, bytes)?)),
        DataType::FixedSizeBinary(length) => {
            let fits = |v: &&[u8]| i32::try_from(v.len()) == Ok(*length);
            let values = each(values, primitive, bytes)?;
            let values = values.into_iter().map(|v| v.filter(fits));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *length)?)
        }
        other => return Err(Error::internal(format!("values of type {other} have no arrays here"))),
    })
}

fn bytes(literal: &Literal) -> Option<&[u8]> {
    match literal {
        Literal::Binary(v) => Some(v),
        Literal::Uuid(v) => Some(v),
        _ => None,
    }
}
