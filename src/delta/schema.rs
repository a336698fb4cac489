//! A table's schema (PROTOCOL.md, "Schema Serialization Format", "Column Mapping").
//!
//! Invariants: every struct field has an id that no other has; with column mapping it is the one of the metadata,
//! else one that is made here, in order of the schema. A column's `names` are the one name that files, statistics
//! and partition values know it by.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::table::{Column, DOC_KEY, TYPE_NAME_KEY, VARIANT};

/// Deepest nesting of types that is followed.
const MAX_DEPTH: usize = 100;
/// Ids that are made here beside those of the metadata begin here.
const FIRST_MADE: i32 = 1 << 30;

const MAPPING_ID: &str = "delta.columnMapping.id";
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";

/// How columns are mapped to those of files (table property `delta.columnMapping.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    None,
    Name,
    Id,
}

impl Mapping {
    /// Errors: `Unsupported` for a mode that is not known.
    pub(super) fn of(mode: Option<&str>) -> Result<Self> {
        match mode {
            None | Some("none") => Ok(Self::None),
            Some("name") => Ok(Self::Name),
            Some("id") => Ok(Self::Id),
            Some(other) => Err(Error::unsupported(format!("delta.columnMapping.mode is \"{other}\""))),
        }
    }
}

/// The columns of a schema in its JSON form.
///
/// Errors: `Corrupt` for what is no schema; `Unsupported` for a type that cannot be read, naming the column.
pub(super) fn columns(json: &str, mapping: Mapping) -> Result<Vec<Arc<Column>>> {
    let broken = |e: serde_json::Error| Error::corrupt("the table's schema is no JSON").with_source(e);
    let schema: Value = serde_json::from_str(json).map_err(broken)?;
    let mut reader = Reader {
        mapping,
        next: if mapping == Mapping::None { 1 } else { FIRST_MADE },
    };
    let columns = reader.fields(&schema, true, MAX_DEPTH)?;
    let mut seen = HashMap::new();
    check_ids(&columns, &mut seen)?;
    Ok(columns)
}

fn check_ids(columns: &[Arc<Column>], seen: &mut HashMap<i32, String>) -> Result<()> {
    for column in columns {
        let name = column.field.name();
        if let Some(other) = seen.insert(column.id, name.clone()) {
            let id = column.id;
            return Err(Error::corrupt(format!(
                "columns \"{other}\" and \"{name}\" of the schema have the same id {id}"
            )));
        }
        check_ids(&column.children, seen)?;
    }
    Ok(())
}

struct Reader {
    mapping: Mapping,
    next: i32,
}

impl Reader {
    fn made_id(&mut self) -> Result<i32> {
        let id = self.next;
        self.next = id.checked_add(1).ok_or_else(|| Error::corrupt("the schema has too many fields"))?;
        Ok(id)
    }

    fn fields(&mut self, of: &Value, top_level: bool, depth: usize) -> Result<Vec<Arc<Column>>> {
        let fields = of.get("fields").and_then(Value::as_array);
        let fields = fields.ok_or_else(|| Error::corrupt("a struct of the schema has no list of fields"))?;
        let read = fields.iter().map(|field| {
            let name = field.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| Error::corrupt("a field of the schema has no name"))?;
            let column = self.field(name, field, top_level, depth);
            column.map(Arc::new).map_err(|e| e.with("column", name))
        });
        read.collect()
    }

    fn field(&mut self, name: &str, of: &Value, top_level: bool, depth: usize) -> Result<Column> {
        let none = Map::new();
        let metadata = of.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let (id, physical) = match self.mapping {
            // A physical name that an earlier mode left behind means nothing.
            Mapping::None => (self.made_id()?, name),
            Mapping::Name | Mapping::Id => {
                let id = metadata
                    .get(MAPPING_ID)
                    .and_then(Value::as_i64)
                    .and_then(|id| i32::try_from(id).ok());
                let id = id.filter(|id| (1..FIRST_MADE).contains(id));
                let physical = metadata.get(PHYSICAL_NAME).and_then(Value::as_str);
                id.zip(physical).ok_or_else(|| {
                    Error::corrupt(format!(
                        "a column of a table with column mapping lacks {MAPPING_ID} or {PHYSICAL_NAME}"
                    ))
                })?
            }
        };
        let kind = of.get("type").ok_or_else(|| Error::corrupt("a field of the schema has no type"))?;
        let is_nullable = of.get("nullable").and_then(Value::as_bool).unwrap_or(true);
        let mut typed = self.typed(kind, depth)?;
        if let Some(text) = metadata.get("__CHAR_VARCHAR_TYPE_STRING").and_then(Value::as_str)
            && typed.data_type == DataType::Utf8
        {
            text.clone_into(&mut typed.text);
        }
        let is_variant = typed.text == VARIANT;
        let mut annotated = HashMap::new();
        if top_level || is_variant {
            annotated.insert(TYPE_NAME_KEY.to_owned(), typed.text);
        }
        if let Some(comment) = metadata.get("comment").and_then(Value::as_str).filter(|_| top_level) {
            annotated.insert(DOC_KEY.to_owned(), comment.to_owned());
        }
        // Rows of a void column are null, whatever is declared.
        let is_nullable = is_nullable || typed.data_type == DataType::Null;
        Ok(Column {
            id,
            field: Arc::new(Field::new(name, typed.data_type, is_nullable).with_metadata(annotated)),
            names: vec![physical.to_owned()],
            initial_default: None,
            children: typed.children,
        })
    }

    /// The element of a list, the key or value of a map.
    fn part(&mut self, name: &str, of: Option<&Value>, is_nullable: bool, depth: usize) -> Result<(Arc<Column>, String)> {
        let of = of.ok_or_else(|| Error::corrupt("a list or map of the schema lacks the type of what is in it"))?;
        let id = self.made_id()?;
        let typed = self.typed(of, depth)?;
        let mut field = Field::new(name, typed.data_type, is_nullable);
        if typed.text == VARIANT {
            field = field.with_metadata(HashMap::from([(TYPE_NAME_KEY.to_owned(), VARIANT.to_owned())]));
        }
        let column = Column {
            id,
            field: Arc::new(field),
            names: vec![name.to_owned()],
            initial_default: None,
            children: typed.children,
        };
        Ok((Arc::new(column), typed.text))
    }

    fn typed(&mut self, of: &Value, depth: usize) -> Result<Typed> {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::unsupported("the schema is nested too deeply"))?;
        if let Some(name) = of.as_str() {
            return Ok(Typed {
                data_type: primitive(name)?,
                text: if name == "null" { "void".to_owned() } else { name.to_owned() },
                children: Vec::new(),
            });
        }
        let contains_null = |key: &str| of.get(key).and_then(Value::as_bool).unwrap_or(true);
        match of.get("type").and_then(Value::as_str) {
            Some("struct") => {
                let children = self.fields(of, false, depth)?;
                let texts = of.get("fields").and_then(Value::as_array).into_iter().flatten();
                let texts: Vec<String> = texts
                    .zip(&children)
                    .map(|(json, column)| format!("{}: {}", column.field.name(), text(json.get("type"))))
                    .collect();
                Ok(Typed {
                    data_type: DataType::Struct(children.iter().map(in_parent).collect()),
                    text: format!("struct<{}>", texts.join(", ")),
                    children,
                })
            }
            Some("array") => {
                let (element, text) = self.part("element", of.get("elementType"), contains_null("containsNull"), depth)?;
                Ok(Typed {
                    data_type: DataType::List(in_parent(&element)),
                    text: format!("array<{text}>"),
                    children: vec![element],
                })
            }
            Some("map") => {
                let (key, key_text) = self.part("key", of.get("keyType"), false, depth)?;
                let (value, value_text) = self.part("value", of.get("valueType"), contains_null("valueContainsNull"), depth)?;
                let pair = DataType::Struct(Fields::from(vec![in_parent(&key), in_parent(&value)]));
                Ok(Typed {
                    data_type: DataType::Map(Arc::new(Field::new("key_value", pair, false)), false),
                    text: format!("map<{key_text}, {value_text}>"),
                    children: vec![key, value],
                })
            }
            Some(other) => Err(Error::unsupported(format!("columns of type \"{other}\" cannot be read"))),
            None => Err(Error::corrupt("a type of the schema is neither a name nor an object with a type")),
        }
    }
}

struct Typed {
    data_type: DataType,
    text: String,
    children: Vec<Arc<Column>>,
}

/// A nested field as it stands in its parent's type: only columns have metadata.
fn in_parent(child: &Arc<Column>) -> Arc<Field> {
    Arc::new(child.field.as_ref().clone().with_metadata(HashMap::new()))
}

/// A type as people write it.
fn text(of: Option<&Value>) -> String {
    let Some(of) = of else { return String::new() };
    if let Some(name) = of.as_str() {
        return name.to_owned();
    }
    let fields = || {
        let fields = of.get("fields").and_then(Value::as_array).into_iter().flatten();
        let fields = fields.map(|f| {
            format!(
                "{}: {}",
                f.get("name").and_then(Value::as_str).unwrap_or_default(),
                text(f.get("type"))
            )
        });
        fields.collect::<Vec<_>>().join(", ")
    };
    match of.get("type").and_then(Value::as_str) {
        Some("struct") => format!("struct<{}>", fields()),
        Some("array") => format!("array<{}>", text(of.get("elementType"))),
        Some("map") => format!("map<{}, {}>", text(of.get("keyType")), text(of.get("valueType"))),
        _ => String::new(),
    }
}

/// The arrow type of a primitive (PROTOCOL.md, "Primitive Types").
fn primitive(name: &str) -> Result<DataType> {
    Ok(match name {
        "string" => DataType::Utf8,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "void" | "null" => DataType::Null,
        // As JSON text (docs/adr/0009).
        "variant" => DataType::Utf8,
        other => match decimal(other) {
            Some(data_type) => data_type,
            None => return Err(Error::unsupported(format!("columns of type \"{other}\" cannot be read"))),
        },
    })
}

/// `decimal` or `decimal(precision,scale)`.
fn decimal(name: &str) -> Option<DataType> {
    let rest = name.strip_prefix("decimal")?;
    if rest.is_empty() {
        return Some(DataType::Decimal128(10, 0));
    }
    let (precision, scale) = rest.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let (precision, scale): (u8, i8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
    let is_valid = (1..=38).contains(&precision) && (0..=precision.cast_signed()).contains(&scale);
    is_valid.then_some(DataType::Decimal128(precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn one(kind: &str, metadata: &str, mapping: Mapping) -> Result<Column> {
        let json = format!(r#"{{"type":"struct","fields":[{{"name":"c","type":{kind},"nullable":true,"metadata":{metadata}}}]}}"#);
        columns(&json, mapping).map(|c| c[0].as_ref().clone())
    }

    #[test]
    fn types_have_their_names() {
        let nested = r#"{"type":"array","elementType":{"type":"struct","fields":[{"name":"a","type":"decimal(12,2)","nullable":false,"metadata":{}}]},"containsNull":false}"#;
        let column = one(nested, r#"{"comment":"why"}"#, Mapping::None).unwrap();
        assert_eq!(column.field.metadata()[TYPE_NAME_KEY], "array<struct<a: decimal(12,2)>>");
        assert_eq!(column.field.metadata()[DOC_KEY], "why");
        let a = Field::new("a", DataType::Decimal128(12, 2), false);
        let element = Field::new("element", DataType::Struct(vec![a].into()), false);
        assert_eq!(column.field.data_type(), &DataType::List(Arc::new(element)));
        for bad in [
            r#""interval day""#,
            r#""decimal(39,0)""#,
            r#""decimal(3,4)""#,
            r#"{"type":"udt","sqlType":"string"}"#,
        ] {
            assert_eq!(one(bad, "{}", Mapping::None).unwrap_err().kind(), ErrorKind::Unsupported, "{bad}");
        }
    }

    /// B076
    #[test]
    fn a_physical_name_that_is_left_over_means_nothing() {
        let metadata = r#"{"delta.columnMapping.id":7,"delta.columnMapping.physicalName":"zzz"}"#;
        assert_eq!(one(r#""long""#, metadata, Mapping::None).unwrap().names, ["c"]);
        let mapped = one(r#""long""#, metadata, Mapping::Name).unwrap();
        assert_eq!((mapped.id, mapped.names), (7, vec!["zzz".to_owned()]));
        assert_eq!(one(r#""long""#, "{}", Mapping::Id).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
