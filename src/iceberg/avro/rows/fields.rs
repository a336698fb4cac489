//! The columns of an Avro schema in arrow types, with field ids in the field metadata.
//!
//! What an Iceberg writer never writes (an enum, a union of more than null and one type) becomes
//! a type that nothing can be read as, so that it is refused where it is wanted and passed where
//! it is not. Leaves are counted as in [`leaf_count`].

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit, UnionFields, UnionMode};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::super::{AvroSchema, Field as AvroField, Kind, Logical, MAX_DEPTH, NodeId, Presence};
use crate::error::{Error, Result};

/// Most fields of a file with all nested ones: named types can be used many times.
const MAX_NODES: usize = 100_000;
/// Longest `fixed` that is read.
const MAX_FIXED: usize = 16 << 20;

/// The file's columns.
///
/// Errors: `Corrupt` for values that are no records, `Unsupported` for a recursive type.
pub fn file_fields(schema: &AvroSchema) -> Result<Fields> {
    let Some(fields) = schema.record(schema.root())? else {
        return Err(Error::corrupt("the values of the avro file are no records"));
    };
    let mut converter = Converter { schema, nodes: 0 };
    fields.iter().map(|f| converter.field(f, 1)).collect()
}

/// Leaf columns below an arrow type; a struct without fields has one, which tells its nulls.
pub(super) fn leaf_count(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| leaf_count(f.data_type())).sum(),
        DataType::List(f) | DataType::Map(f, _) => leaf_count(f.data_type()),
        _ => 1,
    }
}

/// A type that no column can be read as.
fn unreadable() -> DataType {
    DataType::Union(UnionFields::empty(), UnionMode::Sparse)
}

/// Key and value of a record that stands for a map entry.
pub(super) fn map_entry(schema: &AvroSchema, items: NodeId) -> Result<Option<(&AvroField, &AvroField)>> {
    Ok(match schema.record(items)? {
        Some([key, value]) => Some((key, value)),
        _ => None,
    })
}

struct Converter<'s> {
    schema: &'s AvroSchema,
    nodes: usize,
}

impl Converter<'_> {
    fn field(&mut self, field: &AvroField, depth: usize) -> Result<FieldRef> {
        Ok(named(&field.name, field.id, self.data_type(field.node, depth)?, true))
    }

    fn data_type(&mut self, id: NodeId, depth: usize) -> Result<DataType> {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(Error::unsupported(
                "the avro file has a recursive or too deeply nested type, which no table has",
            ));
        }
        let Ok(optional) = self.schema.optional(id) else {
            return Ok(unreadable());
        };
        if optional.presence == Presence::Never {
            return Ok(DataType::Null);
        }
        let zone = |utc: bool| utc.then(|| Arc::from("UTC"));
        Ok(match (&optional.node.kind, optional.node.logical) {
            (Kind::Boolean, _) => DataType::Boolean,
            (Kind::Int, Some(Logical::Date)) => DataType::Date32,
            (Kind::Int, Some(Logical::TimeMillis)) => DataType::Time32(TimeUnit::Millisecond),
            (Kind::Int, _) => DataType::Int32,
            (Kind::Long, Some(Logical::TimeMicros)) => DataType::Time64(TimeUnit::Microsecond),
            (Kind::Long, Some(Logical::TimestampMillis { utc })) => DataType::Timestamp(TimeUnit::Millisecond, zone(utc)),
            (Kind::Long, Some(Logical::TimestampMicros { utc })) => DataType::Timestamp(TimeUnit::Microsecond, zone(utc)),
            (Kind::Long, Some(Logical::TimestampNanos { utc })) => DataType::Timestamp(TimeUnit::Nanosecond, zone(utc)),
            (Kind::Long, _) => DataType::Int64,
            (Kind::Float, _) => DataType::Float32,
            (Kind::Double, _) => DataType::Float64,
            (Kind::Bytes | Kind::Fixed(_), Some(Logical::Decimal { precision, scale })) => {
                match (u8::try_from(precision), i8::try_from(scale)) {
                    (Ok(precision), Ok(scale)) => DataType::Decimal128(precision, scale),
                    _ => unreadable(),
                }
            }
            (Kind::Bytes, _) => DataType::Binary,
            (Kind::String, _) => DataType::Utf8,
            (Kind::Fixed(size), _) if (1..=MAX_FIXED).contains(size) => DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)),
            (Kind::Array { items, .. }, Some(Logical::Map)) => match map_entry(self.schema, *items)? {
                Some((key, value)) => {
                    let key = named("key", key.id, self.data_type(key.node, depth + 1)?, false);
                    let value = named("value", value.id, self.data_type(value.node, depth + 1)?, true);
                    map(key, value)
                }
                None => unreadable(),
            },
            (Kind::Array { items, element_id }, _) => {
                DataType::List(named("element", *element_id, self.data_type(*items, depth + 1)?, true))
            }
            (Kind::Map { values, key_id, value_id }, _) => {
                let value = named("value", *value_id, self.data_type(*values, depth + 1)?, true);
                map(named("key", *key_id, DataType::Utf8, false), value)
            }
            (Kind::Record(fields), _) if fields.is_empty() => DataType::Struct(Fields::from(vec![Field::new("", DataType::Null, true)])),
            (Kind::Record(fields), _) => DataType::Struct(fields.iter().map(|f| self.field(f, depth + 1)).collect::<Result<Fields>>()?),
            (Kind::Null | Kind::Fixed(_) | Kind::Enum(_) | Kind::Union(_), _) => unreadable(),
        })
    }
}

fn named(name: &str, id: Option<i32>, data_type: DataType, nullable: bool) -> FieldRef {
    let metadata = id.map(|id| (PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string()));
    Arc::new(Field::new(name, data_type, nullable).with_metadata(HashMap::from_iter(metadata)))
}

fn map(key: FieldRef, value: FieldRef) -> DataType {
    let entries = DataType::Struct(Fields::from(vec![key, value]));
    DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
}
