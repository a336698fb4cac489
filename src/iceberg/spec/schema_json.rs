//! JSON form of types, fields and schemas (spec appendix C, "Schemas").
//!
//! A default that does not parse is an error, never silently none: rows written before the
//! field was added would read wrong values.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::json::{Obj, excerpt};
use super::schema::too_deep;
use super::{ListType, Literal, MAX_TYPE_DEPTH, MapType, NestedField, PrimitiveType, Schema, StructType, Type};
use crate::error::{Error, Result, ResultExt};

impl Type {
    /// Reads a type: a string, or an object for struct, list and map. Errors: `Unsupported`
    /// for an unknown type, `Corrupt` for a broken one.
    pub fn from_json(value: &Value) -> Result<Self> {
        type_from_json(value, 0)
    }

    /// The JSON form. Errors only where a default does not fit its field's type.
    pub fn to_json(&self) -> Result<Value> {
        Ok(match self {
            Self::Primitive(_) | Self::Variant => Value::String(self.to_string()),
            Self::Struct(fields) => fields.to_json()?,
            Self::List(list) => json!({
                "type": "list",
                "element-id": list.element.id,
                "element": list.element.field_type.to_json()?,
                "element-required": list.element.required,
            }),
            Self::Map(map) => json!({
                "type": "map",
                "key-id": map.key.id,
                "key": map.key.field_type.to_json()?,
                "value-id": map.value.id,
                "value": map.value.field_type.to_json()?,
                "value-required": map.value.required,
            }),
        })
    }
}

impl StructType {
    /// The JSON form. Errors only where a default does not fit its field's type.
    pub fn to_json(&self) -> Result<Value> {
        Ok(json!({ "type": "struct", "fields": fields_to_json(self)? }))
    }
}

impl Schema {
    /// Reads a schema; a `schema-id` that is absent (v1) is 0. Errors as for
    /// [`Type::from_json`] and [`Schema::new`].
    pub fn from_json(value: &Value) -> Result<Self> {
        let obj = Obj::new(value, "schema")?;
        let schema_id = obj.opt_i32("schema-id")?.unwrap_or(0);
        let Type::Struct(root) = Type::from_json(value).context("schema", || schema_id)? else {
            return Err(Error::corrupt("schema is not a struct").with("schema", schema_id));
        };
        let identifier_field_ids = obj.opt_ints("identifier-field-ids")?.unwrap_or_default();
        Self::new(schema_id, root, identifier_field_ids)
    }

    /// The JSON form. Errors only where a default does not fit its field's type.
    pub fn to_json(&self) -> Result<Value> {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("struct"));
        schema.insert("schema-id".to_owned(), json!(self.schema_id()));
        if !self.identifier_field_ids().is_empty() {
            schema.insert("identifier-field-ids".to_owned(), json!(self.identifier_field_ids()));
        }
        schema.insert("fields".to_owned(), fields_to_json(self.root())?);
        Ok(Value::Object(schema))
    }
}

fn type_from_json(value: &Value, depth: usize) -> Result<Type> {
    if depth > MAX_TYPE_DEPTH {
        return Err(too_deep());
    }
    if let Value::String(name) = value {
        return Type::from_name(name);
    }
    let obj = Obj::new(value, "type")?;
    match obj.str("type")? {
        "struct" => {
            let fields = obj.array("fields")?.iter().map(|field| field_from_json(field, depth).map(Arc::new));
            Ok(Type::Struct(StructType {
                fields: fields.collect::<Result<_>>()?,
            }))
        }
        "list" => Ok(Type::List(ListType {
            element: inner_field(&obj, "element", depth)?,
        })),
        "map" => Ok(Type::Map(MapType {
            key: inner_field(&obj, "key", depth)?,
            value: inner_field(&obj, "value", depth)?,
        })),
        other => Err(Error::unsupported(format!("type `{}` is not supported", super::json::clip(other)))),
    }
}

fn field_from_json(value: &Value, depth: usize) -> Result<NestedField> {
    let obj = Obj::new(value, "field")?;
    let name = obj.str("name")?;
    let field = || -> Result<NestedField> {
        let field_type = type_from_json(obj.need("type")?, depth + 1)?;
        let required = obj.bool("required")?;
        if required && field_type == Type::Primitive(PrimitiveType::Unknown) {
            return Err(Error::corrupt("a field of type unknown cannot be required"));
        }
        Ok(NestedField {
            id: obj.i32("id")?,
            name: name.to_owned(),
            required,
            doc: obj.opt_str("doc")?.map(str::to_owned),
            initial_default: default_from_json(&obj, "initial-default", &field_type)?,
            write_default: default_from_json(&obj, "write-default", &field_type)?,
            field_type,
        })
    };
    field().context("field", || name)
}

/// Element, key or value of a list or map; map keys are always required.
fn inner_field(obj: &Obj<'_>, name: &str, depth: usize) -> Result<Arc<NestedField>> {
    let field_type = type_from_json(obj.need(name)?, depth + 1)?;
    let required = name == "key" || obj.bool(&format!("{name}-required"))?;
    Ok(Arc::new(NestedField {
        id: obj.i32(&format!("{name}-id"))?,
        name: name.to_owned(),
        required,
        field_type,
        doc: None,
        initial_default: None,
        write_default: None,
    }))
}

fn default_from_json(obj: &Obj<'_>, key: &'static str, field_type: &Type) -> Result<Option<Literal>> {
    let Some(value) = obj.get(key) else { return Ok(None) };
    let null_only = matches!(
        field_type,
        Type::Variant | Type::Primitive(PrimitiveType::Unknown | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. })
    );
    if null_only {
        return Err(Error::corrupt(format!(
            "`{key}` of a field of type {field_type} must be null, not {}",
            excerpt(value)
        )));
    }
    Literal::from_json(field_type, value).map(Some).context("default", || key)
}

fn fields_to_json(fields: &StructType) -> Result<Value> {
    fields
        .fields
        .iter()
        .map(|field| field_to_json(field))
        .collect::<Result<Vec<Value>>>()
        .map(Value::Array)
}

fn field_to_json(field: &NestedField) -> Result<Value> {
    let mut obj = Map::new();
    obj.insert("id".to_owned(), json!(field.id));
    obj.insert("name".to_owned(), json!(field.name));
    obj.insert("required".to_owned(), json!(field.required));
    obj.insert("type".to_owned(), field.field_type.to_json()?);
    if let Some(doc) = &field.doc {
        obj.insert("doc".to_owned(), json!(doc));
    }
    for (key, default) in [("initial-default", &field.initial_default), ("write-default", &field.write_default)] {
        if let Some(default) = default {
            let value = default.to_json(&field.field_type).context("field", || &field.name)?;
            obj.insert(key.to_owned(), value);
        }
    }
    Ok(Value::Object(obj))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn nested() -> Value {
        json!({
            "type": "struct", "schema-id": 3, "identifier-field-ids": [1],
            "fields": [
                {"id": 1, "name": "id", "required": true, "type": "uuid",
                 "initial-default": "0db3e2a8-9d1d-42b9-aa7b-74ebe558dceb", "write-default": "ec5911be-b0a7-458c-8438-c9a3e53cffae"},
                {"id": 2, "name": "tags", "required": false, "doc": "labels",
                 "type": {"type": "list", "element-id": 4, "element": "string", "element-required": true}},
                {"id": 3, "name": "places", "required": false,
                 "type": {"type": "map", "key-id": 5, "key": "string", "value-id": 6, "value-required": false,
                          "value": {"type": "struct", "fields": [{"id": 7, "name": "x", "required": false, "type": "double"}]}}}
            ]
        })
    }

    #[test]
    fn a_nested_schema_reads_indexes_and_comes_back() {
        let schema = Schema::from_json(&nested()).unwrap();
        assert_eq!(schema.to_json().unwrap(), nested());
        assert_eq!(schema.schema_id(), 3);
        assert_eq!(schema.identifier_field_ids(), [1]);
        assert_eq!(schema.field_by_id(7).unwrap().name, "x");
        assert!(schema.field_by_id(5).unwrap().required);
        assert_eq!(schema.full_name(7).unwrap(), "places.value.x");
        assert_eq!(schema.full_name(4).unwrap(), "tags.element");
        assert_eq!(schema.full_name(1).unwrap(), "id");
        assert_eq!(schema.full_name(99), None);
        assert_eq!(
            (schema.parent_of(7), schema.parent_of(6), schema.parent_of(3)),
            (Some(6), Some(3), None)
        );
        let expected = Literal::Uuid(*uuid::uuid!("0db3e2a8-9d1d-42b9-aa7b-74ebe558dceb").as_bytes());
        assert_eq!(schema.field_by_id(1).unwrap().initial_default, Some(expected));
        assert_eq!(
            Type::Struct(schema.root().clone()).to_string(),
            "struct<id: uuid, tags: list<string>, places: map<string, struct<x: double>>>"
        );
    }

    fn one_field(field: &Value) -> Result<Schema> {
        Schema::from_json(&json!({"type": "struct", "fields": [field]}))
    }

    #[test]
    fn a_default_that_does_not_parse_is_an_error_that_names_the_field() {
        let field = json!({"id": 1, "name": "ts", "required": false, "type": "timestamp_ns", "initial-default": "yesterday"});
        let error = one_field(&field).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().contains("field: ts") && error.to_string().contains("initial-default"),
            "{error}"
        );
    }

    #[test]
    fn only_null_defaults_for_variant_geo_and_unknown() {
        for name in ["variant", "unknown", "geometry", "geography"] {
            let field = |default: Value| json!({"id": 1, "name": "v", "required": false, "type": name, "write-default": default});
            assert_eq!(
                one_field(&field(json!("POINT (30 10)"))).unwrap_err().kind(),
                ErrorKind::Corrupt,
                "{name}"
            );
            assert_eq!(one_field(&field(Value::Null)).unwrap().fields()[0].write_default, None, "{name}");
        }
    }

    #[test]
    fn a_struct_defaults_to_the_empty_struct_only() {
        let inner = json!({"type": "struct", "fields": [{"id": 2, "name": "x", "required": false, "type": "int", "initial-default": 0}]});
        let field = |default: Value| json!({"id": 1, "name": "point", "required": false, "type": inner, "initial-default": default});
        assert_eq!(
            one_field(&field(json!({}))).unwrap().fields()[0].initial_default,
            Some(Literal::EmptyStruct)
        );
        assert!(one_field(&field(json!({"2": 1}))).is_err());
    }

    #[test]
    fn duplicate_ids_and_names_are_refused() {
        let schema = |fields: Value| {
            Schema::from_json(&json!({"type": "struct", "fields": fields}))
                .map(|_| ())
                .map_err(|e| e.message().to_owned())
        };
        let column = |id: i32, name: &str| json!({"id": id, "name": name, "required": false, "type": "int"});
        assert_eq!(
            schema(json!([column(1, "a"), column(1, "b")])),
            Err("schema 0 uses field id 1 twice".to_owned())
        );
        assert_eq!(
            schema(json!([column(1, "a"), column(2, "a")])),
            Err("schema 0 has two fields named `a`".to_owned())
        );
        assert_eq!(schema(json!([column(1, "a"), column(2, "A")])), Ok(()));
    }

    #[test]
    fn nesting_is_bounded() {
        let nest = |levels: i32| {
            let lists = (0..levels).fold(
                json!("int"),
                |inner, i| json!({"type": "list", "element-id": i + 2, "element": inner, "element-required": true}),
            );
            one_field(&json!({"id": 1, "name": "deep", "required": false, "type": lists}))
        };
        assert!(nest(63).is_ok());
        assert!(nest(64).unwrap_err().message().contains("nested deeper"));
        assert!(nest(1000).is_err());
    }

    #[test]
    fn broken_fields_are_refused() {
        for field in [
            json!({"name": "a", "required": false, "type": "int"}),
            json!({"id": 1, "required": false, "type": "int"}),
            json!({"id": 1, "name": "a", "type": "int"}),
            json!({"id": 1, "name": "a", "required": false}),
            json!({"id": 1, "name": "a", "required": true, "type": "unknown"}),
            json!({"id": 1, "name": "a", "required": false, "type": {"type": "list", "element": "int", "element-required": false}}),
            json!({"id": 1, "name": "a", "required": false, "type": 5}),
            json!("a"),
        ] {
            assert_eq!(one_field(&field).unwrap_err().kind(), ErrorKind::Corrupt, "{field}");
        }
        let error = one_field(&json!({"id": 1, "name": "a", "required": false, "type": {"type": "tuple"}})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(Schema::from_json(&json!({"fields": []})).is_err());
        assert!(Schema::from_json(&json!({"type": "list", "element-id": 1, "element": "int", "element-required": true})).is_err());
    }
}
