//! From the arrays that `orc-rust` decodes to those of the file's columns.
//!
//! Integers of every width and dates are decoded as 64 bits, because the encoding of runs has 64
//! bits whatever the type; timestamps as 128-bit nanoseconds, because ORC's range is wider than
//! arrow's; both are narrowed here, exactly or with an error. Blank padding of `char` is cut, as
//! ORC's own readers do.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, FixedSizeBinaryArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Field, Fields, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};

use super::tail::nanos_in;
use super::types::{Node, kind};
use crate::error::{Error, Result};

/// The type in the file that is decoded: its kind where it is replaced.
pub(super) fn decoded_kind(kind: i32) -> i32 {
    match kind {
        kind::SHORT | kind::INT | kind::DATE => kind::LONG,
        kind::VARCHAR | kind::CHAR => kind::STRING,
        other => other,
    }
}

/// The arrow type to ask `orc-rust` for.
pub(super) fn decoded_type(node: &Node) -> DataType {
    let child = |node: &Node| Arc::new(Field::new(node.field.name(), decoded_type(node), true));
    match (node.kind, node.children.as_slice()) {
        (kind::SHORT | kind::INT | kind::LONG | kind::DATE, _) => DataType::Int64,
        (kind::TIMESTAMP | kind::TIMESTAMP_INSTANT, _) => DataType::Decimal128(38, 9),
        (kind::BINARY, _) => DataType::Binary,
        (kind::STRUCT, children) => DataType::Struct(children.iter().map(child).collect::<Fields>()),
        (kind::LIST, [element]) => DataType::List(child(element)),
        (kind::MAP, [key, value]) => {
            let key = Field::new(key.field.name(), decoded_type(key), false);
            let entries = DataType::Struct(Fields::from(vec![Arc::new(key), child(value)]));
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        _ => node.field.data_type().clone(),
    }
}

/// The column's array from the decoded one.
pub(super) fn restore(array: &ArrayRef, node: &Node) -> Result<ArrayRef> {
    let wanted = node.field.data_type();
    Ok(match (wanted, node.children.as_slice()) {
        (DataType::Int16, _) => narrow::<Int16Type>(longs(array)?, |v| i16::try_from(v).ok())?,
        (DataType::Int32, _) => narrow::<Int32Type>(longs(array)?, |v| i32::try_from(v).ok())?,
        (DataType::Date32, _) => narrow::<Date32Type>(longs(array)?, |v| i32::try_from(v).ok())?,
        (DataType::Time64(TimeUnit::Microsecond), _) => Arc::new(longs(array)?.reinterpret_cast::<Time64MicrosecondType>()),
        (DataType::Timestamp(unit, zone), _) => timestamps(array, *unit, zone.as_ref())?,
        (DataType::FixedSizeBinary(size), _) => fixed(array, *size)?,
        (DataType::Decimal128(precision, _), _) => {
            let decimals: &Decimal128Array = array.as_primitive_opt().ok_or_else(|| unexpected(array))?;
            decimals
                .validate_decimal_precision(*precision)
                .map_err(|e| Error::corrupt("an orc decimal has more digits than its type").with_source(e))?;
            Arc::clone(array)
        }
        (DataType::Utf8, _) if node.kind == kind::CHAR => {
            let texts = array.as_string_opt::<i32>().ok_or_else(|| unexpected(array))?;
            Arc::new(
                texts
                    .iter()
                    .map(|text| text.map(|t| t.trim_end_matches(' ')))
                    .collect::<StringArray>(),
            )
        }
        (DataType::Struct(fields), children) => {
            let structs = array.as_struct_opt().ok_or_else(|| unexpected(array))?;
            let columns = structs.columns().iter().zip(children);
            let columns = columns.map(|(array, node)| restore(array, node)).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                structs.nulls().cloned(),
                structs.len(),
            )?)
        }
        (DataType::List(element), [child]) => {
            let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
            let values = restore(lists.values(), child)?;
            Arc::new(ListArray::try_new(
                Arc::clone(element),
                lists.offsets().clone(),
                values,
                lists.nulls().cloned(),
            )?)
        }
        (DataType::Map(entries, sorted), [key, value]) => {
            let maps = array.as_map_opt().ok_or_else(|| unexpected(array))?;
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(unexpected(array));
            };
            let columns = vec![restore(maps.keys(), key)?, restore(maps.values(), value)?];
            let pairs = StructArray::try_new(fields.clone(), columns, None)
                .map_err(|e| Error::corrupt("an orc map has a null key").with_source(e))?;
            Arc::new(MapArray::try_new(
                Arc::clone(entries),
                maps.offsets().clone(),
                pairs,
                maps.nulls().cloned(),
                *sorted,
            )?)
        }
        _ if array.data_type() == wanted => Arc::clone(array),
        _ => return Err(unexpected(array)),
    })
}

fn unexpected(array: &ArrayRef) -> Error {
    Error::internal(format!("orc column was decoded as {}", array.data_type()))
}

fn longs(array: &ArrayRef) -> Result<&PrimitiveArray<Int64Type>> {
    array.as_primitive_opt().ok_or_else(|| unexpected(array))
}

fn narrow<T: ArrowPrimitiveType>(array: &PrimitiveArray<Int64Type>, to: impl Fn(i64) -> Option<T::Native>) -> Result<ArrayRef> {
    let narrowed = array.try_unary::<_, T, Error>(|value| {
        to(value).ok_or_else(|| Error::corrupt(format!("orc value {value} does not fit its type {}", T::DATA_TYPE)))
    })?;
    Ok(Arc::new(narrowed))
}

/// Nanoseconds to the unit, rounded down as ORC's readers do.
fn timestamps(array: &ArrayRef, unit: TimeUnit, zone: Option<&Arc<str>>) -> Result<ArrayRef> {
    let nanos: &PrimitiveArray<Decimal128Type> = array.as_primitive_opt().ok_or_else(|| unexpected(array))?;
    let per_unit = nanos_in(unit);
    let count = |value: i128| {
        i64::try_from(value.div_euclid(per_unit))
            .map_err(|_| Error::corrupt(format!("orc timestamp of {value} nanoseconds does not fit its type")))
    };
    Ok(match unit {
        TimeUnit::Nanosecond => {
            let array = nanos.try_unary::<_, TimestampNanosecondType, Error>(count)?;
            Arc::new(array.with_timezone_opt(zone.cloned()))
        }
        TimeUnit::Microsecond => {
            let array = nanos.try_unary::<_, TimestampMicrosecondType, Error>(count)?;
            Arc::new(array.with_timezone_opt(zone.cloned()))
        }
        _ => return Err(unexpected(array)),
    })
}

fn fixed(array: &ArrayRef, size: i32) -> Result<ArrayRef> {
    let bytes = array.as_binary_opt::<i32>().ok_or_else(|| unexpected(array))?;
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.iter(), size)
        .map_err(|e| Error::corrupt(format!("an orc value has not the {size} bytes of its type")).with_source(e))?;
    Ok(Arc::new(fixed))
}
