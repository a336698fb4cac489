//! Types and schemas of built tables, their JSON in table metadata and their arrow form in files
//! (spec "Schemas and Data Types", appendix C).
//!
//! Field ids are given by the test, never assigned, so that a test shows which column is which.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema, SchemaRef, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use serde_json::{Value, json};

use super::values;

/// An Iceberg type.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    /// Precision, scale.
    Decimal(u8, i8),
    Date,
    Time,
    Timestamp,
    Timestamptz,
    TimestampNs,
    TimestamptzNs,
    String,
    Uuid,
    Fixed(i32),
    Binary,
    /// Always null, in no file.
    Unknown,
    Struct(Vec<Field>),
    List(Box<Field>),
    Map(Box<Field>, Box<Field>),
}

/// A column, struct field, list element, map key or map value.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub id: i32,
    pub name: String,
    pub required: bool,
    pub field_type: Type,
    pub doc: Option<String>,
    /// In canonical form.
    pub initial_default: Option<Value>,
    /// In canonical form.
    pub write_default: Option<Value>,
}

/// A required field.
pub fn required(id: i32, name: &str, field_type: Type) -> Field {
    Field {
        required: true,
        ..optional(id, name, field_type)
    }
}

/// An optional field.
pub fn optional(id: i32, name: &str, field_type: Type) -> Field {
    Field {
        id,
        name: name.to_owned(),
        required: false,
        field_type,
        doc: None,
        initial_default: None,
        write_default: None,
    }
}

impl Field {
    /// Sets `initial-default` and `write-default` (v3), in canonical form.
    #[must_use]
    pub fn default_value(mut self, value: Value) -> Self {
        self.initial_default = Some(value.clone());
        self.write_default = Some(value);
        self
    }

    /// Sets the comment.
    #[must_use]
    pub fn doc(mut self, text: &str) -> Self {
        self.doc = Some(text.to_owned());
        self
    }

    fn json(&self) -> Value {
        let mut out = json!({"id": self.id, "name": self.name, "required": self.required, "type": self.field_type.json()});
        if let Some(doc) = &self.doc {
            out["doc"] = json!(doc);
        }
        for (key, value) in [("initial-default", &self.initial_default), ("write-default", &self.write_default)] {
            if let Some(value) = value {
                out[key] = values::default_json(&self.field_type, value);
            }
        }
        out
    }

    /// The arrow field; with `ids`, field ids go into the file.
    pub fn arrow(&self, ids: bool) -> ArrowField {
        let mut metadata = HashMap::new();
        if ids {
            metadata.insert(PARQUET_FIELD_ID_META_KEY.to_owned(), self.id.to_string());
        }
        if self.field_type == Type::Uuid {
            metadata.insert("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
        }
        ArrowField::new(&self.name, self.field_type.arrow(ids), !self.required).with_metadata(metadata)
    }
}

impl Type {
    /// A list of optional elements.
    pub fn list(element_id: i32, element: Type) -> Self {
        Self::List(Box::new(optional(element_id, "element", element)))
    }

    /// A list of required elements.
    pub fn list_of_required(element_id: i32, element: Type) -> Self {
        Self::List(Box::new(required(element_id, "element", element)))
    }

    /// A map with optional values.
    pub fn map(key_id: i32, key: Type, value_id: i32, value: Type) -> Self {
        Self::Map(Box::new(required(key_id, "key", key)), Box::new(optional(value_id, "value", value)))
    }

    /// A struct.
    pub fn fields(fields: impl IntoIterator<Item = Field>) -> Self {
        Self::Struct(fields.into_iter().collect())
    }

    /// The type as table metadata has it.
    pub fn json(&self) -> Value {
        match self {
            Self::Struct(fields) => json!({"type": "struct", "fields": fields.iter().map(Field::json).collect::<Vec<_>>()}),
            Self::List(e) => json!({
                "type": "list", "element-id": e.id, "element-required": e.required, "element": e.field_type.json(),
            }),
            Self::Map(k, v) => json!({
                "type": "map", "key-id": k.id, "key": k.field_type.json(),
                "value-id": v.id, "value-required": v.required, "value": v.field_type.json(),
            }),
            Self::Decimal(p, s) => json!(format!("decimal({p}, {s})")),
            Self::Fixed(n) => json!(format!("fixed[{n}]")),
            other => json!(match other {
                Self::Boolean => "boolean",
                Self::Int => "int",
                Self::Long => "long",
                Self::Float => "float",
                Self::Double => "double",
                Self::Date => "date",
                Self::Time => "time",
                Self::Timestamp => "timestamp",
                Self::Timestamptz => "timestamptz",
                Self::TimestampNs => "timestamp_ns",
                Self::TimestamptzNs => "timestamptz_ns",
                Self::String => "string",
                Self::Uuid => "uuid",
                Self::Binary => "binary",
                _ => "unknown",
            }),
        }
    }

    /// The arrow type in data files.
    pub fn arrow(&self, ids: bool) -> DataType {
        let utc = || Some(Arc::from("UTC"));
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int => DataType::Int32,
            Self::Long => DataType::Int64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal(p, s) => DataType::Decimal128(*p, *s),
            Self::Date => DataType::Date32,
            Self::Time => DataType::Time64(TimeUnit::Microsecond),
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, utc()),
            Self::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
            Self::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
            Self::String => DataType::Utf8,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Fixed(n) => DataType::FixedSizeBinary(*n),
            Self::Binary => DataType::Binary,
            Self::Unknown => DataType::Null,
            Self::Struct(fields) => DataType::Struct(arrow_fields(fields, ids)),
            Self::List(e) => DataType::List(Arc::new(e.arrow(ids))),
            Self::Map(k, v) => {
                let pair = DataType::Struct(Fields::from(vec![k.arrow(ids), v.arrow(ids)]));
                DataType::Map(Arc::new(ArrowField::new("key_value", pair, false)), false)
            }
        }
    }

    /// Fields directly inside.
    pub fn children(&self) -> Vec<&Field> {
        match self {
            Self::Struct(fields) => fields.iter().collect(),
            Self::List(e) => vec![e],
            Self::Map(k, v) => vec![k, v],
            _ => Vec::new(),
        }
    }

    fn children_mut(&mut self) -> Vec<&mut Field> {
        match self {
            Self::Struct(fields) => fields.iter_mut().collect(),
            Self::List(e) => vec![e],
            Self::Map(k, v) => vec![k, v],
            _ => Vec::new(),
        }
    }
}

fn arrow_fields(fields: &[Field], ids: bool) -> Fields {
    // a column of type unknown is in no file
    fields
        .iter()
        .filter(|f| f.field_type != Type::Unknown)
        .map(|f| f.arrow(ids))
        .collect()
}

/// A schema of a table or of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// Set by the table when the schema becomes one of its own.
    pub id: i32,
    pub fields: Vec<Field>,
    pub identifier_ids: Vec<i32>,
}

impl Schema {
    /// A schema of these columns.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Self {
        Self {
            id: 0,
            fields: fields.into_iter().collect(),
            identifier_ids: Vec::new(),
        }
    }

    /// Adds a column at the end.
    #[must_use]
    pub fn add(mut self, field: Field) -> Self {
        self.fields.push(field);
        self
    }

    /// Adds a field at the end of a struct that lies at a dotted path.
    #[must_use]
    pub fn add_to(mut self, path: &str, field: Field) -> Self {
        match &mut self.at(path).field_type {
            Type::Struct(fields) => fields.push(field),
            other => panic!("{path} is no struct but {other:?}"),
        }
        self
    }

    /// Drops a column or nested field by dotted path.
    #[must_use]
    pub fn drop(mut self, path: &str) -> Self {
        let (parent, name) = match path.rsplit_once('.') {
            Some((parent, name)) => (Some(parent), name),
            None => (None, path),
        };
        let fields = match parent {
            None => &mut self.fields,
            Some(parent) => match &mut self.at(parent).field_type {
                Type::Struct(fields) => fields,
                other => panic!("{parent} is no struct but {other:?}"),
            },
        };
        let before = fields.len();
        fields.retain(|f| f.name != name);
        assert_eq!(fields.len() + 1, before, "no field {path}");
        self
    }

    /// Renames a column or nested field.
    #[must_use]
    pub fn rename(mut self, path: &str, name: &str) -> Self {
        self.at(path).name = name.to_owned();
        self
    }

    /// Gives a column or nested field another type.
    #[must_use]
    pub fn promote(mut self, path: &str, to: Type) -> Self {
        self.at(path).field_type = to;
        self
    }

    /// Puts the columns into this order.
    #[must_use]
    pub fn reorder<const N: usize>(mut self, names: [&str; N]) -> Self {
        assert_eq!(names.len(), self.fields.len(), "every column must be named");
        self.fields
            .sort_by_key(|f| names.iter().position(|n| *n == f.name).expect("a name of the schema"));
        self
    }

    /// Declares identifier fields.
    #[must_use]
    pub fn identified_by<const N: usize>(mut self, ids: [i32; N]) -> Self {
        self.identifier_ids = ids.to_vec();
        self
    }

    /// The same fields, of which only those with these ids, with the structs around them.
    pub fn select(&self, ids: &[i32]) -> Self {
        fn keep(fields: &[Field], ids: &[i32]) -> Vec<Field> {
            let mut kept = Vec::new();
            for field in fields {
                if ids.contains(&field.id) {
                    kept.push(field.clone());
                } else if let Type::Struct(inner) = &field.field_type {
                    let inner = keep(inner, ids);
                    if !inner.is_empty() {
                        let mut field = field.clone();
                        field.field_type = Type::Struct(inner);
                        kept.push(field);
                    }
                }
            }
            kept
        }
        Self::new(keep(&self.fields, ids))
    }

    /// The field with this id, at any depth.
    pub fn find(&self, id: i32) -> Option<&Field> {
        fn search(fields: Vec<&Field>, id: i32) -> Option<&Field> {
            fields
                .into_iter()
                .find_map(|f| if f.id == id { Some(f) } else { search(f.field_type.children(), id) })
        }
        search(self.fields.iter().collect(), id)
    }

    /// Column names.
    pub fn names(&self) -> Vec<String> {
        self.fields.iter().map(|f| f.name.clone()).collect()
    }

    /// The highest id.
    pub fn last_id(&self) -> i32 {
        fn highest(fields: Vec<&Field>) -> i32 {
            fields
                .into_iter()
                .map(|f| f.id.max(highest(f.field_type.children())))
                .max()
                .unwrap_or(0)
        }
        highest(self.fields.iter().collect())
    }

    /// The schema as table metadata has it.
    pub fn json(&self) -> Value {
        let mut out = Type::Struct(self.fields.clone()).json();
        out["schema-id"] = json!(self.id);
        if !self.identifier_ids.is_empty() {
            out["identifier-field-ids"] = json!(self.identifier_ids);
        }
        out
    }

    /// The arrow schema of a file with these columns.
    pub fn arrow(&self, ids: bool) -> SchemaRef {
        Arc::new(ArrowSchema::new(arrow_fields(&self.fields, ids)))
    }

    fn at(&mut self, path: &str) -> &mut Field {
        let mut fields: Vec<&mut Field> = self.fields.iter_mut().collect();
        let mut segments = path.split('.').peekable();
        while let Some(segment) = segments.next() {
            let field = fields
                .into_iter()
                .find(|f| f.name == segment)
                .unwrap_or_else(|| panic!("no field {path}"));
            if segments.peek().is_none() {
                return field;
            }
            fields = field.field_type.children_mut();
        }
        unreachable!("a path has a last segment")
    }
}
