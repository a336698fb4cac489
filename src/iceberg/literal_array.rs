//! Single values as arrow arrays of one row: partition constants and defaults.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, StringArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, TimeUnit};

use super::arrow_schema::primitive_type;
use super::spec::{Literal, PrimitiveType, Type};
use crate::error::{Error, Result};
use crate::table::Column;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// A value of a primitive type; null for `None`. Values of a type that the column was promoted from are widened.
pub(super) fn literal_array(value: Option<&Literal>, primitive: &PrimitiveType) -> Result<ArrayRef> {
    let data_type = primitive_type(primitive)?;
    let Some(value) = value else {
        return Ok(new_null_array(&data_type, 1));
    };
    let long = |value: &Literal| match value {
        Literal::Int(v) => Some(i64::from(*v)),
        Literal::Long(v) => Some(*v),
        _ => None,
    };
    let array: Option<ArrayRef> = match (&data_type, value) {
        (DataType::Boolean, Literal::Boolean(v)) => Some(Arc::new(BooleanArray::from(vec![*v]))),
        (DataType::Int32, Literal::Int(v)) => Some(Arc::new(Int32Array::from(vec![*v]))),
        (DataType::Date32, Literal::Int(v)) => Some(Arc::new(Date32Array::from(vec![*v]))),
        (DataType::Int64, v) => long(v).map(|v| Arc::new(Int64Array::from(vec![v])) as ArrayRef),
        (DataType::Float32, Literal::Float(v)) => Some(Arc::new(Float32Array::from(vec![*v]))),
        (DataType::Float64, Literal::Float(v)) => Some(Arc::new(Float64Array::from(vec![f64::from(*v)]))),
        (DataType::Float64, Literal::Double(v)) => Some(Arc::new(Float64Array::from(vec![*v]))),
        (DataType::Decimal128(p, s), Literal::Decimal(v)) => {
            Some(Arc::new(Decimal128Array::from(vec![*v]).with_precision_and_scale(*p, *s)?))
        }
        (DataType::Time64(_), v) => long(v).map(|v| Arc::new(Time64MicrosecondArray::from(vec![v])) as ArrayRef),
        (DataType::Timestamp(TimeUnit::Microsecond, zone), Literal::Long(v)) => {
            Some(Arc::new(TimestampMicrosecondArray::from(vec![*v]).with_timezone_opt(zone.clone())))
        }
        // A date that was promoted (v3).
        (DataType::Timestamp(TimeUnit::Microsecond, None), Literal::Int(days)) => i64::from(*days)
            .checked_mul(MICROS_OF_DAY)
            .map(|micros| Arc::new(TimestampMicrosecondArray::from(vec![micros])) as ArrayRef),
        (DataType::Timestamp(TimeUnit::Nanosecond, None), Literal::Int(days)) => i64::from(*days)
            .checked_mul(1000 * MICROS_OF_DAY)
            .map(|nanos| Arc::new(TimestampNanosecondArray::from(vec![nanos])) as ArrayRef),
        (DataType::Timestamp(TimeUnit::Nanosecond, zone), Literal::Long(v)) => {
            Some(Arc::new(TimestampNanosecondArray::from(vec![*v]).with_timezone_opt(zone.clone())))
        }
        (DataType::Utf8, Literal::String(v)) => Some(Arc::new(StringArray::from(vec![v.as_str()]))),
        (DataType::FixedSizeBinary(16), Literal::Uuid(v)) => Some(fixed(v, 16)?),
        (DataType::FixedSizeBinary(n), Literal::Binary(v)) if i32::try_from(v.len()) == Ok(*n) => Some(fixed(v, *n)?),
        (DataType::Binary, Literal::Binary(v)) => Some(Arc::new(BinaryArray::from(vec![v.as_slice()]))),
        _ => None,
    };
    array.ok_or_else(|| Error::corrupt(format!("the value {value:?} is not of type {}", Type::Primitive(primitive.clone()))))
}

/// A default of a column of type `data_type` with these children. A struct's default is the empty
/// struct: its fields take their own defaults, else null.
///
/// Errors: `Corrupt` for a value that is not of the type, and for a required field without default.
pub(super) fn default_array(value: &Literal, field_type: &Type, data_type: &DataType, children: &[Arc<Column>]) -> Result<ArrayRef> {
    match (field_type, value, data_type) {
        (Type::Primitive(primitive), value, _) => literal_array(Some(value), primitive),
        (Type::Struct(_), Literal::EmptyStruct, DataType::Struct(fields)) => {
            let arrays = children.iter().map(|child| match &child.initial_default {
                Some(array) => Ok(Arc::clone(array)),
                None if child.field.is_nullable() => Ok(new_null_array(child.field.data_type(), 1)),
                None => Err(Error::corrupt(format!(
                    "a struct's default lacks a value of its required field `{}`",
                    child.field.name()
                ))),
            });
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, None, 1)?))
        }
        _ => Err(Error::corrupt(format!("a default {value:?} is not allowed for type {field_type}"))),
    }
}

fn fixed(bytes: &[u8], length: i32) -> Result<ArrayRef> {
    Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some(bytes)].into_iter(),
        length,
    )?))
}
