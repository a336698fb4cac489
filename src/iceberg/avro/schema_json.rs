//! Parses the JSON form of Avro schemas.
//!
//! Names are looked up with Avro's namespace rules but not checked for legal characters:
//! writers use column names with dots. A name defined twice means its last definition.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{AvroSchema, Field, Kind, Logical, MAX_DEPTH, Node, NodeId};
use crate::error::{Error, Result};

/// Most fields a record may have.
const MAX_FIELDS: usize = 10_000;

impl AvroSchema {
    /// Parses a schema.
    ///
    /// Errors: `Corrupt` for JSON that is no Avro schema, one that nests deeper than
    /// [`MAX_DEPTH`] or has a record of more than 10,000 fields.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let value: Value = serde_json::from_slice(json).map_err(|e| Error::corrupt("avro schema is not json").with_source(e))?;
        let mut parser = Parser::default();
        let root = parser.parse(&value, "", 0)?;
        Ok(Self { nodes: parser.nodes, root })
    }
}

#[derive(Default)]
struct Parser {
    nodes: Vec<Node>,
    names: HashMap<String, NodeId>,
}

fn bad(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("bad avro schema: {what}"))
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// An Iceberg id; an id that is no 32-bit number is an error, not a missing id.
fn id(object: &Map<String, Value>, key: &str) -> Result<Option<i32>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .and_then(|id| i32::try_from(id).ok())
            .map(Some)
            .ok_or_else(|| bad(format_args!("{key} is {value}"))),
    }
}

fn number(object: &Map<String, Value>, key: &str) -> Option<u32> {
    object.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok())
}

fn primitive(name: &str) -> Option<Kind> {
    Some(match name {
        "null" => Kind::Null,
        "boolean" => Kind::Boolean,
        "int" => Kind::Int,
        "long" => Kind::Long,
        "float" => Kind::Float,
        "double" => Kind::Double,
        "bytes" => Kind::Bytes,
        "string" => Kind::String,
        _ => return None,
    })
}

fn logical(object: &Map<String, Value>, kind: &Kind) -> Option<Logical> {
    let utc = object.get("adjust-to-utc").and_then(Value::as_bool).unwrap_or(false);
    match (text(object, "logicalType")?, kind) {
        ("decimal", Kind::Bytes | Kind::Fixed(_)) => {
            let precision = number(object, "precision").filter(|p| (1..=38).contains(p))?;
            let scale = number(object, "scale").unwrap_or(0);
            (scale <= precision).then_some(Logical::Decimal { precision, scale })
        }
        ("uuid", Kind::Fixed(16) | Kind::String) => Some(Logical::Uuid),
        ("date", Kind::Int) => Some(Logical::Date),
        ("time-millis", Kind::Int) => Some(Logical::TimeMillis),
        ("time-micros", Kind::Long) => Some(Logical::TimeMicros),
        ("timestamp-millis", Kind::Long) => Some(Logical::TimestampMillis { utc }),
        ("timestamp-micros", Kind::Long) => Some(Logical::TimestampMicros { utc }),
        ("timestamp-nanos", Kind::Long) => Some(Logical::TimestampNanos { utc }),
        ("local-timestamp-millis", Kind::Long) => Some(Logical::TimestampMillis { utc: false }),
        ("local-timestamp-micros", Kind::Long) => Some(Logical::TimestampMicros { utc: false }),
        ("local-timestamp-nanos", Kind::Long) => Some(Logical::TimestampNanos { utc: false }),
        ("map", Kind::Array { .. }) => Some(Logical::Map),
        _ => None,
    }
}

/// The full name of a definition and the namespace that holds inside of it.
fn full_name(object: &Map<String, Value>, namespace: &str) -> Option<(String, String)> {
    let name = text(object, "name")?;
    if let Some((space, _)) = name.rsplit_once('.') {
        return Some((name.to_owned(), space.to_owned()));
    }
    let space = text(object, "namespace").unwrap_or(namespace);
    let full = if space.is_empty() {
        name.to_owned()
    } else {
        format!("{space}.{name}")
    };
    Some((full, space.to_owned()))
}

impl Parser {
    fn push(&mut self, kind: Kind, logical: Option<Logical>) -> Result<NodeId> {
        let id = NodeId(u32::try_from(self.nodes.len()).map_err(|_| bad("too many types"))?);
        self.nodes.push(Node {
            occupies: !matches!(kind, Kind::Null | Kind::Fixed(0)),
            walk: Vec::new(),
            kind,
            logical,
        });
        Ok(id)
    }

    fn occupies(&self, NodeId(index): NodeId) -> bool {
        self.nodes.get(index as usize).is_none_or(|node| node.occupies)
    }

    fn parse(&mut self, value: &Value, namespace: &str, depth: usize) -> Result<NodeId> {
        if depth > MAX_DEPTH {
            return Err(bad(format_args!("nests deeper than {MAX_DEPTH}")));
        }
        match value {
            Value::String(name) => self.named(name, namespace),
            Value::Array(branches) => {
                let branches = branches
                    .iter()
                    .map(|branch| self.parse(branch, namespace, depth + 1))
                    .collect::<Result<Vec<_>>>()?;
                self.push(Kind::Union(branches), None)
            }
            Value::Object(object) => self.object(object, namespace, depth),
            other => Err(bad(format_args!("{other} is not a type"))),
        }
    }

    fn named(&mut self, name: &str, namespace: &str) -> Result<NodeId> {
        if let Some(kind) = primitive(name) {
            return self.push(kind, None);
        }
        let local = if name.contains('.') || namespace.is_empty() {
            None
        } else {
            self.names.get(&format!("{namespace}.{name}"))
        };
        local
            .or_else(|| self.names.get(name))
            .copied()
            .ok_or_else(|| bad(format_args!("type \"{name}\" is not defined")))
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str, depth: usize) -> Result<NodeId> {
        let type_name = match object.get("type") {
            Some(Value::String(name)) => name.as_str(),
            Some(nested) => return self.parse(nested, namespace, depth + 1),
            None => return Err(bad("a type has no \"type\"")),
        };
        let kind = match type_name {
            "record" | "error" => return self.record(object, namespace, depth),
            "enum" => {
                let symbols = object
                    .get("symbols")
                    .and_then(Value::as_array)
                    .ok_or_else(|| bad("an enum has no symbols"))?;
                Kind::Enum(symbols.len())
            }
            "fixed" => {
                let size = number(object, "size").ok_or_else(|| bad("a fixed has no size"))?;
                Kind::Fixed(size as usize)
            }
            "array" => {
                let items = object.get("items").ok_or_else(|| bad("an array has no items"))?;
                Kind::Array {
                    items: self.parse(items, namespace, depth + 1)?,
                    element_id: id(object, "element-id")?,
                }
            }
            "map" => {
                let values = object.get("values").ok_or_else(|| bad("a map has no values"))?;
                Kind::Map {
                    values: self.parse(values, namespace, depth + 1)?,
                    key_id: id(object, "key-id")?,
                    value_id: id(object, "value-id")?,
                }
            }
            other => match primitive(other) {
                Some(kind) => kind,
                None => return self.named(other, namespace),
            },
        };
        let logical = logical(object, &kind);
        let is_named = matches!(kind, Kind::Enum(_) | Kind::Fixed(_));
        let node = self.push(kind, logical)?;
        if is_named && let Some((name, _)) = full_name(object, namespace) {
            self.names.insert(name, node);
        }
        Ok(node)
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str, depth: usize) -> Result<NodeId> {
        // The node exists before its fields, so that they can refer to it. Until then it counts
        // as taking bytes.
        let node = self.push(Kind::Record(Vec::new()), None)?;
        let mut inner = namespace.to_owned();
        if let Some((name, space)) = full_name(object, namespace) {
            self.names.insert(name, node);
            inner = space;
        }
        let json = object
            .get("fields")
            .and_then(Value::as_array)
            .ok_or_else(|| bad("a record has no fields"))?;
        if json.len() > MAX_FIELDS {
            return Err(bad(format_args!("a record has {} fields, more than {MAX_FIELDS}", json.len())));
        }
        let mut fields = Vec::with_capacity(json.len());
        for field in json {
            let field = field.as_object().ok_or_else(|| bad("a field is not an object"))?;
            let field_type = field.get("type").ok_or_else(|| bad("a field has no type"))?;
            fields.push(Field {
                name: text(field, "name").unwrap_or_default().to_owned(),
                id: id(field, "field-id")?,
                node: self.parse(field_type, &inner, depth + 1)?,
            });
        }
        let walk: Vec<NodeId> = fields.iter().map(|f| f.node).filter(|node| self.occupies(*node)).collect();
        if let Some(slot) = self.nodes.get_mut(node.0 as usize) {
            slot.occupies = !walk.is_empty();
            slot.walk = walk;
            slot.kind = Kind::Record(fields);
        }
        Ok(node)
    }
}
