//! Values of arrow arrays as literals, and literals as arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Int32Array, Int64Array, PrimitiveArray,
    StringArray, new_null_array,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::iceberg::spec::{Literal, PrimitiveType};

/// The values of an array of a primitive type.
#[derive(Debug)]
pub(super) enum Values<'a> {
    Boolean(&'a BooleanArray),
    Int(&'a [i32]),
    Long(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Decimal(&'a [i128]),
    String(&'a StringArray),
    Binary(&'a BinaryArray),
    Fixed(&'a FixedSizeBinaryArray),
    Uuid(&'a FixedSizeBinaryArray),
}

impl<'a> Values<'a> {
    /// Errors: `Internal` for an array of another type.
    pub(super) fn new(primitive: &PrimitiveType, array: &'a dyn Array) -> Result<Self> {
        fn of<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<&[T::Native]> {
            array.as_any().downcast_ref::<PrimitiveArray<T>>().map(|a| a.values().as_ref())
        }
        let values = match array.data_type() {
            DataType::Boolean => array.as_boolean_opt().map(Self::Boolean),
            DataType::Int32 => of::<Int32Type>(array).map(Self::Int),
            DataType::Date32 => of::<Date32Type>(array).map(Self::Int),
            DataType::Int64 => of::<Int64Type>(array).map(Self::Long),
            DataType::Time64(TimeUnit::Microsecond) => of::<Time64MicrosecondType>(array).map(Self::Long),
            DataType::Timestamp(TimeUnit::Microsecond, _) => of::<TimestampMicrosecondType>(array).map(Self::Long),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => of::<TimestampNanosecondType>(array).map(Self::Long),
            DataType::Float32 => of::<Float32Type>(array).map(Self::Float),
            DataType::Float64 => of::<Float64Type>(array).map(Self::Double),
            DataType::Decimal128(..) => of::<Decimal128Type>(array).map(Self::Decimal),
            DataType::Utf8 => array.as_string_opt().map(Self::String),
            DataType::Binary => array.as_binary_opt().map(Self::Binary),
            DataType::FixedSizeBinary(_) if *primitive == PrimitiveType::Uuid => array.as_fixed_size_binary_opt().map(Self::Uuid),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary_opt().map(Self::Fixed),
            _ => None,
        };
        values.ok_or_else(|| Error::internal(format!("values of type {primitive} in an array of {}", array.data_type())))
    }

    /// The value of a row that is not null.
    pub(super) fn literal(&self, row: usize) -> Option<Literal> {
        Some(match self {
            Self::Boolean(array) => Literal::Boolean(array.value(row)),
            Self::Int(values) => Literal::Int(*values.get(row)?),
            Self::Long(values) => Literal::Long(*values.get(row)?),
            Self::Float(values) => Literal::Float(*values.get(row)?),
            Self::Double(values) => Literal::Double(*values.get(row)?),
            Self::Decimal(values) => Literal::Decimal(*values.get(row)?),
            Self::String(array) => Literal::String(array.value(row).to_owned()),
            Self::Binary(array) => Literal::Binary(array.value(row).to_vec()),
            Self::Fixed(array) => Literal::Binary(array.value(row).to_vec()),
            Self::Uuid(array) => Literal::Uuid(array.value(row).try_into().ok()?),
        })
    }

    /// The bytes of a row of text or bytes.
    pub(super) fn bytes(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::String(array) => Some(array.value(row).as_bytes()),
            Self::Binary(array) => Some(array.value(row)),
            Self::Fixed(array) | Self::Uuid(array) => Some(array.value(row)),
            _ => None,
        }
    }
}

/// Results of a transform as an array that sorts as they do.
pub(super) fn array_of(values: &[Option<Literal>]) -> Result<ArrayRef> {
    macro_rules! all {
        ($variant:ident, $array:ty, $get:expr) => {{
            let values = values.iter().map(|value| match value {
                None => Ok(None),
                Some(Literal::$variant(v)) => Ok(Some($get(v))),
                Some(other) => Err(Error::internal(format!("{other:?} among values of another type"))),
            });
            Arc::new(values.collect::<Result<$array>>()?)
        }};
    }
    Ok(match values.iter().flatten().next() {
        None => new_null_array(&DataType::Int32, values.len()),
        Some(Literal::Int(_)) => all!(Int, Int32Array, |v: &i32| *v),
        Some(Literal::Long(_)) => all!(Long, Int64Array, |v: &i64| *v),
        Some(Literal::Decimal(_)) => all!(Decimal, Decimal128Array, |v: &i128| *v),
        Some(Literal::String(_)) => all!(String, StringArray, |v: &String| v.clone()),
        Some(Literal::Binary(_)) => all!(Binary, BinaryArray, |v: &Vec<u8>| v.clone()),
        Some(other) => return Err(Error::internal(format!("{other:?} is the result of no transform"))),
    })
}
