//! Iceberg schemas as arrow schemas and as columns to be found in files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};

use super::literal_array::default_array;
use super::spec::{MappedField, NameMapping, NestedField, PrimitiveType, Schema, Type};
use crate::error::{Error, Result};
use crate::table::{Column, DOC_KEY, TYPE_NAME_KEY, VARIANT};

/// Longest value of a fixed type: each row takes so much memory, whatever is in it.
const MAX_FIXED: u32 = 16 << 10;

/// Names in files by field id, from a table's name mapping.
pub(super) type FileNames = HashMap<i32, Vec<String>>;

/// Flattens a name mapping.
pub(super) fn file_names(mapping: Option<&NameMapping>) -> FileNames {
    fn collect(fields: &[MappedField], into: &mut FileNames) {
        for field in fields {
            if let Some(id) = field.id {
                into.entry(id).or_default().extend(field.names.iter().cloned());
            }
            collect(&field.fields, into);
        }
    }
    let mut names = FileNames::new();
    collect(mapping.map_or(&[], |m| m.fields.as_slice()), &mut names);
    names
}

/// The columns of a schema.
///
/// Errors: `Unsupported` for a column of a type that cannot be read yet, naming it.
pub(super) fn columns(schema: &Schema, names: &FileNames) -> Result<Vec<Arc<Column>>> {
    schema
        .fields()
        .iter()
        .map(|f| column(f, names, true).map(Arc::new).map_err(|e| e.with("column", &f.name)))
        .collect()
}

/// The columns of a schema as batches have them that are read or written.
///
/// Errors: `Unsupported` for a column whose type has no arrow type here, naming it.
pub fn arrow_columns(schema: &Schema) -> Result<Vec<Arc<Column>>> {
    columns(schema, &FileNames::new())
}

/// The top-level column that leads to field `id`, cut down to the path to it: what an equality
/// delete needs of a row.
///
/// Errors: `Corrupt` when the field lies in a list or map.
pub(super) fn key_column(schema: &Schema, names: &FileNames, id: i32) -> Result<Option<Arc<Column>>> {
    let Some(field) = schema.field_by_id(id) else { return Ok(None) };
    if field.field_type == Type::Variant {
        return Err(Error::unsupported(format!(
            "equality delete on field {id}, a variant: variants cannot be compared"
        )));
    }
    let mut cut = column(field, names, false)?;
    let mut at = id;
    while let Some(parent_id) = schema.parent_of(at) {
        let parent = schema
            .field_by_id(parent_id)
            .ok_or_else(|| Error::internal("parent field is not in the schema"))?;
        if !matches!(parent.field_type, Type::Struct(_)) {
            return Err(Error::corrupt(format!(
                "equality delete on field {id}, which lies in a list or map"
            )));
        }
        let data_type = DataType::Struct(Fields::from(vec![Arc::clone(&cut.field)]));
        // A struct that a file lacks is its default, of which only the path is asked for.
        let default = column(parent, names, false)?.initial_default;
        let initial_default = default.map(|whole| cut_to(&whole, &data_type)).transpose()?;
        cut = Column {
            id: parent_id,
            field: Arc::new(Field::new(&parent.name, data_type, !parent.required)),
            names: names.get(&parent_id).cloned().unwrap_or_default(),
            initial_default,
            children: vec![Arc::new(cut)],
        };
        at = parent_id;
    }
    Ok(Some(Arc::new(cut)))
}

/// A struct's value with those fields alone that `to` has, at every depth.
fn cut_to(whole: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let (DataType::Struct(fields), Some(whole_struct)) = (to, whole.as_struct_opt()) else {
        return Ok(Arc::clone(whole));
    };
    let children = fields.iter().map(|field| {
        let child = whole_struct.column_by_name(field.name());
        let child = child.ok_or_else(|| Error::internal("a default lacks a field of its struct"))?;
        cut_to(child, field.data_type())
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        children,
        whole_struct.nulls().cloned(),
    )?))
}

fn column(field: &NestedField, names: &FileNames, top_level: bool) -> Result<Column> {
    let (data_type, children) = match &field.field_type {
        Type::Primitive(primitive) => (primitive_type(primitive)?, Vec::new()),
        Type::Struct(fields) => {
            let children = fields
                .fields
                .iter()
                .map(|f| column(f, names, false).map(Arc::new))
                .collect::<Result<Vec<_>>>()?;
            (DataType::Struct(children.iter().map(in_parent).collect()), children)
        }
        Type::List(list) => {
            let element = column(&list.element, names, false)?;
            let element = Arc::new(element);
            (DataType::List(in_parent(&element)), vec![element])
        }
        Type::Map(map) => {
            let (key, value) = (column(&map.key, names, false)?, column(&map.value, names, false)?);
            let key = Column {
                field: Arc::new(key.field.as_ref().clone().with_nullable(false)),
                ..key
            };
            let (key, value) = (Arc::new(key), Arc::new(value));
            let pair = DataType::Struct(Fields::from(vec![in_parent(&key), in_parent(&value)]));
            let entries = Arc::new(Field::new("key_value", pair, false));
            (DataType::Map(entries, false), vec![key, value])
        }
        // As JSON text (docs/adr/0009).
        Type::Variant => (DataType::Utf8, Vec::new()),
    };
    let initial_default = match &field.initial_default {
        None => None,
        Some(value) => Some(default_array(value, &field.field_type, &data_type, &children)?),
    };
    let mut arrow_field = Field::new(&field.name, data_type, !field.required);
    if field.field_type == Type::Variant {
        arrow_field = arrow_field.with_metadata(HashMap::from([(TYPE_NAME_KEY.to_owned(), VARIANT.to_owned())]));
    }
    if top_level {
        let mut metadata = HashMap::from([(TYPE_NAME_KEY.to_owned(), field.field_type.to_string())]);
        if let Some(doc) = &field.doc {
            metadata.insert(DOC_KEY.to_owned(), doc.clone());
        }
        if field.field_type == Type::Primitive(PrimitiveType::Uuid) {
            metadata.insert("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
        }
        arrow_field = arrow_field.with_metadata(metadata);
    }
    Ok(Column {
        id: field.id,
        field: Arc::new(arrow_field),
        names: names.get(&field.id).cloned().unwrap_or_default(),
        initial_default,
        children,
    })
}

/// A nested field as it stands in its parent's type: only columns have metadata.
fn in_parent(child: &Arc<Column>) -> Arc<Field> {
    Arc::new(child.field.as_ref().clone().with_metadata(HashMap::new()))
}

/// The arrow type of a primitive (interface.md 3, flight-sql.md 1.8).
pub(super) fn primitive_type(primitive: &PrimitiveType) -> Result<DataType> {
    let utc = || Some("UTC".into());
    Ok(match primitive {
        PrimitiveType::Boolean => DataType::Boolean,
        PrimitiveType::Int => DataType::Int32,
        PrimitiveType::Long => DataType::Int64,
        PrimitiveType::Float => DataType::Float32,
        PrimitiveType::Double => DataType::Float64,
        PrimitiveType::Decimal { precision, scale } => {
            let scale = i8::try_from(*scale).map_err(|_| Error::unsupported(format!("decimal scale {scale}")))?;
            DataType::Decimal128(*precision, scale)
        }
        PrimitiveType::Date => DataType::Date32,
        PrimitiveType::Time => DataType::Time64(TimeUnit::Microsecond),
        PrimitiveType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        PrimitiveType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        PrimitiveType::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        PrimitiveType::String => DataType::Utf8,
        PrimitiveType::Uuid => DataType::FixedSizeBinary(16),
        PrimitiveType::Fixed(length) => {
            let bounded = i32::try_from(*length).ok().filter(|_| *length <= MAX_FIXED);
            let wide = || {
                Error::unsupported(format!(
                    "fixed[{length}]: a column has at most {MAX_FIXED} bytes in each row, nulls included"
                ))
            };
            DataType::FixedSizeBinary(bounded.ok_or_else(wide)?)
        }
        PrimitiveType::Binary | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. } => DataType::Binary,
        PrimitiveType::Unknown => DataType::Null,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_declared_length_is_bounded() {
        assert_eq!(
            primitive_type(&PrimitiveType::Fixed(16_384)).unwrap(),
            DataType::FixedSizeBinary(16_384)
        );
        for length in [16_385, 2_000_000_000, u32::MAX] {
            let error = primitive_type(&PrimitiveType::Fixed(length)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }

    #[test]
    fn variants_are_text_under_their_own_name_and_no_keys() {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": [
            {"id": 1, "name": "v", "required": false, "type": "variant"},
            {"id": 2, "name": "s", "required": false, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "inner", "required": false, "type": "variant"}
            ]}}
        ]}))
        .unwrap();
        let columns = columns(&schema, &FileNames::new()).unwrap();
        assert_eq!(columns[0].field.data_type(), &DataType::Utf8);
        assert!(columns[0].is_variant() && columns[1].children[0].is_variant() && !columns[1].is_variant());
        assert_eq!(columns[1].field.metadata()[TYPE_NAME_KEY], "struct<inner: variant>");
        for id in [1, 3] {
            let error = key_column(&schema, &FileNames::new(), id).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        }
    }
}
