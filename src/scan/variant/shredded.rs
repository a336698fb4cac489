//! The shredded form of variants (Parquet `VariantShredding.md`): a group of `metadata`, `value`
//! and, where parts of the values have columns of their own, `typed_value`.
//!
//! Where a value and a typed value are both there, the value may only hold further fields of an
//! object; anything else is refused, since readers disagree on what it means.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericListArray, StringArray, StructArray};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};

use super::binary::{Metadata, Value};
use super::json::{MAX_DEPTH, Writer, too_deep};
use crate::error::{Error, Result};

/// The variants of a decoded group as JSON text; null where the group is null, the text `null`
/// where the variant is.
///
/// Errors: `Corrupt` for bytes that are no variant or shredded against the rules, `Unsupported`
/// for column types that variants are not shredded to.
pub(in crate::scan) fn to_json(group: &StructArray) -> Result<ArrayRef> {
    let metadata = group
        .column_by_name("metadata")
        .map(Bytes::new)
        .transpose()?
        .ok_or_else(|| Error::corrupt("a variant column has no metadata"))?;
    let node = Node::new(group, 0)?;
    let mut text: Vec<u8> = Vec::new();
    let mut offsets: Vec<i32> = Vec::with_capacity(group.len() + 1);
    offsets.push(0);
    for row in 0..group.len() {
        if group.is_valid(row) {
            let bytes = metadata.get(row).ok_or_else(|| Error::corrupt("a variant has no metadata"))?;
            let dictionary = Metadata::parse(bytes)?;
            if !node.write(&dictionary, row, &mut Writer::new(&mut text), 0)? {
                // A variant that is missing where there must be one is the null variant.
                text.extend_from_slice(b"null");
            }
        }
        let end = i32::try_from(text.len())
            .map_err(|_| Error::resource_exhausted("the variants of one batch are longer than 2 GiB as text: read fewer columns"))?;
        offsets.push(end);
    }
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(Arc::new(StringArray::try_new(
        offsets,
        Buffer::from_vec(text),
        group.nulls().cloned(),
    )?))
}

/// Whether a file's group looks like a variant: other groups are no variants at all.
pub(in crate::scan) fn is_variant_group(data_type: &DataType) -> bool {
    let DataType::Struct(fields) = data_type else { return false };
    let has = |name: &str| fields.iter().any(|f| f.name() == name);
    has("metadata") && (has("value") || has("typed_value"))
}

/// A binary column.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a ArrayRef);

impl<'a> Bytes<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self> {
        match array.data_type() {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(Self(array)),
            other => Err(Error::corrupt(format!("a part of a variant column has type {other}, not binary"))),
        }
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::Binary => Some(self.0.as_binary::<i32>().value(row)),
            DataType::LargeBinary => Some(self.0.as_binary::<i64>().value(row)),
            DataType::BinaryView => Some(self.0.as_binary_view().value(row)),
            _ => None,
        }
    }
}

/// A place in the shredded columns: a variant, an element of an array, or a field of an object.
struct Node<'a> {
    value: Option<Bytes<'a>>,
    typed: Option<Typed<'a>>,
}

enum Typed<'a> {
    Primitive(&'a ArrayRef),
    Object {
        group: &'a StructArray,
        /// Sorted by name.
        fields: Vec<(&'a str, &'a StructArray, Node<'a>)>,
    },
    List(&'a GenericListArray<i32>, Box<Node<'a>>),
    LargeList(&'a GenericListArray<i64>, Box<Node<'a>>),
}

impl<'a> Node<'a> {
    fn new(group: &'a StructArray, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let value = group.column_by_name("value").map(Bytes::new).transpose()?;
        let typed = group
            .column_by_name("typed_value")
            .map(|array| Typed::new(array, depth))
            .transpose()?;
        Ok(Self { value, typed })
    }

    /// Whether there is anything in a row.
    fn is_there(&self, row: usize) -> bool {
        self.value.is_some_and(|v| v.0.is_valid(row)) || self.typed.as_ref().is_some_and(|t| t.is_valid(row))
    }

    /// Writes the value of a row; false where there is none.
    fn write(&self, metadata: &Metadata<'_>, row: usize, out: &mut Writer<'_>, depth: usize) -> Result<bool> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let value = self.value.and_then(|v| v.get(row));
        let typed = self.typed.as_ref().filter(|t| t.is_valid(row));
        match (value, typed) {
            (None, None) => return Ok(false),
            (Some(bytes), None) => {
                out.value(metadata, bytes, bytes.len(), depth)?;
            }
            (rest, Some(Typed::Object { fields, .. })) => write_object(fields, rest, metadata, row, out, depth)?,
            (Some(_), Some(_)) => {
                return Err(Error::corrupt("a shredded variant has a value and a typed value that is no object"));
            }
            (None, Some(Typed::Primitive(array))) => primitive(array, row, out)?,
            (None, Some(Typed::List(list, element))) => {
                let (start, end) = (list.value_offsets().get(row), list.value_offsets().get(row + 1));
                let span = |v: Option<&i32>| v.and_then(|v| usize::try_from(*v).ok()).unwrap_or(0);
                write_list(element, span(start)..span(end), metadata, out, depth)?;
            }
            (None, Some(Typed::LargeList(list, element))) => {
                let (start, end) = (list.value_offsets().get(row), list.value_offsets().get(row + 1));
                let span = |v: Option<&i64>| v.and_then(|v| usize::try_from(*v).ok()).unwrap_or(0);
                write_list(element, span(start)..span(end), metadata, out, depth)?;
            }
        }
        Ok(true)
    }
}

impl<'a> Typed<'a> {
    fn new(array: &'a ArrayRef, depth: usize) -> Result<Self> {
        let element = |values: &'a ArrayRef| match values.as_struct_opt() {
            Some(group) => Node::new(group, depth + 1).map(Box::new),
            None => Err(Error::corrupt("the elements of a shredded variant are no groups")),
        };
        Ok(match array.data_type() {
            DataType::Struct(_) => {
                let group = array.as_struct();
                let mut fields = Vec::with_capacity(group.num_columns());
                for (field, column) in group.fields().iter().zip(group.columns()) {
                    let inner = column
                        .as_struct_opt()
                        .ok_or_else(|| Error::corrupt(format!("field `{}` of a shredded variant is no group", field.name())))?;
                    fields.push((field.name().as_str(), inner, Node::new(inner, depth + 1)?));
                }
                fields.sort_by_key(|(name, ..)| *name);
                Self::Object { group, fields }
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Self::List(list, element(list.values())?)
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                Self::LargeList(list, element(list.values())?)
            }
            DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Date32
            | DataType::Time64(TimeUnit::Microsecond)
            | DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::FixedSizeBinary(16) => Self::Primitive(array),
            other => return Err(Error::unsupported(format!("variants shredded to type {other} cannot be read"))),
        })
    }

    fn is_valid(&self, row: usize) -> bool {
        match self {
            Self::Primitive(array) => array.is_valid(row),
            Self::Object { group, .. } => group.is_valid(row),
            Self::List(list, _) => list.is_valid(row),
            Self::LargeList(list, _) => list.is_valid(row),
        }
    }
}

fn write_list(element: &Node<'_>, span: std::ops::Range<usize>, metadata: &Metadata<'_>, out: &mut Writer<'_>, depth: usize) -> Result<()> {
    out.raw("[");
    for (index, row) in span.enumerate() {
        out.comma(index > 0);
        if !element.write(metadata, row, out, depth + 1)? {
            out.raw("null");
        }
    }
    out.raw("]");
    Ok(())
}

/// The shredded fields, and those that `rest` holds beside them, in order of their names.
fn write_object(
    fields: &[(&str, &StructArray, Node<'_>)],
    rest: Option<&[u8]>,
    metadata: &Metadata<'_>,
    row: usize,
    out: &mut Writer<'_>,
    depth: usize,
) -> Result<()> {
    let mut others: Vec<(&str, &[u8])> = Vec::new();
    let mut budget = rest.map_or(0, <[u8]>::len);
    if let Some(bytes) = rest {
        let (Value::Object(object), _) = Value::parse(bytes)? else {
            return Err(Error::corrupt("a shredded variant has typed fields, and a value that is no object"));
        };
        for index in 0..object.count {
            let (name, bytes) = object.get(index, metadata)?;
            if fields.binary_search_by_key(&name, |(name, ..)| *name).is_ok() {
                return Err(Error::corrupt(format!("field `{name}` of a shredded variant is there twice")));
            }
            others.push((name, bytes));
        }
        others.sort_by_key(|(name, _)| *name);
    }
    out.raw("{");
    let mut others = others.into_iter().peekable();
    let mut written = false;
    for (name, group, node) in fields {
        if group.is_null(row) || !node.is_there(row) {
            continue;
        }
        while let Some((other, bytes)) = others.next_if(|(other, _)| other < name) {
            out.comma(std::mem::replace(&mut written, true));
            out.key(other);
            budget = out.value(metadata, bytes, budget, depth + 1)?;
        }
        out.comma(std::mem::replace(&mut written, true));
        out.key(name);
        node.write(metadata, row, out, depth + 1)?;
    }
    for (other, bytes) in others {
        out.comma(std::mem::replace(&mut written, true));
        out.key(other);
        budget = out.value(metadata, bytes, budget, depth + 1)?;
    }
    out.raw("}");
    Ok(())
}

/// A value of a column of its own.
fn primitive(array: &ArrayRef, row: usize, out: &mut Writer<'_>) -> Result<()> {
    let decimal = |unscaled: i128, scale: i8| match u8::try_from(scale) {
        Ok(scale) => Ok(Value::Decimal { unscaled, scale }),
        Err(_) => Err(Error::corrupt("a variant is shredded to a decimal of negative scale")),
    };
    let value = match array.data_type() {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Value::Integer(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Integer(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(_, scale) => decimal(array.as_primitive::<Decimal32Type>().value(row).into(), *scale)?,
        DataType::Decimal64(_, scale) => decimal(array.as_primitive::<Decimal64Type>().value(row).into(), *scale)?,
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)?,
        DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(TimeUnit::Microsecond) => Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
        DataType::Timestamp(unit, zone) => {
            let nanos = *unit == TimeUnit::Nanosecond;
            Value::Timestamp {
                value: if nanos {
                    array.as_primitive::<TimestampNanosecondType>().value(row)
                } else {
                    array.as_primitive::<TimestampMicrosecondType>().value(row)
                },
                nanos,
                zoned: zone.is_some(),
            }
        }
        DataType::Utf8 => Value::String(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::String(array.as_string::<i64>().value(row)),
        DataType::Binary => Value::Binary(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Value::Binary(array.as_binary::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => match array.as_fixed_size_binary().value(row).try_into() {
            Ok(bytes) => Value::Uuid(bytes),
            Err(_) => return Err(Error::corrupt("a UUID of a variant has not 16 bytes")),
        },
        other => return Err(Error::unsupported(format!("variants shredded to type {other} cannot be read"))),
    };
    out.primitive(&value)
}
