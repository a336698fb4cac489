//! Avro schemas with the field ids of Iceberg.
//!
//! A schema is a flat list of nodes that name each other by index, so references to named
//! types cost nothing and recursive types are finite. `occupies` of a node tells whether its
//! values take any bytes; what takes none is never walked through, which bounds the work of
//! skipping by the bytes skipped.

use super::{Cursor, MAX_DEPTH};
use crate::error::{Error, Result};

/// Index of a node in its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(pub(super) u32);

/// A type and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub kind: Kind,
    /// Logical type; unknown ones are ignored, as Avro demands.
    pub logical: Option<Logical>,
    /// Whether values take bytes. `null`, `fixed(0)` and records of nothing else take none.
    pub(super) occupies: bool,
    /// Of a record, the fields that take bytes.
    pub(super) walk: Vec<NodeId>,
}

/// How values lie in the file.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    /// So many bytes.
    Fixed(usize),
    /// Number of symbols.
    Enum(usize),
    Array {
        items: NodeId,
        element_id: Option<i32>,
    },
    Map {
        values: NodeId,
        key_id: Option<i32>,
        value_id: Option<i32>,
    },
    Union(Vec<NodeId>),
    Record(Vec<Field>),
}

/// Logical types that Iceberg files use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    Decimal {
        precision: u32,
        scale: u32,
    },
    Uuid,
    Date,
    TimeMillis,
    TimeMicros,
    /// `utc` by the property `adjust-to-utc`, absent means false.
    TimestampMillis {
        utc: bool,
    },
    TimestampMicros {
        utc: bool,
    },
    TimestampNanos {
        utc: bool,
    },
    /// An array of records of key and value.
    Map,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    /// Iceberg's field id.
    pub id: Option<i32>,
    pub node: NodeId,
}

/// A writer schema.
#[derive(Debug, Clone, PartialEq)]
pub struct AvroSchema {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

impl Kind {
    /// Avro's name of the type, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Fixed(_) => "fixed",
            Self::Enum(_) => "enum",
            Self::Array { .. } => "array",
            Self::Map { .. } => "map",
            Self::Union(_) => "union",
            Self::Record(_) => "record",
        }
    }
}

impl AvroSchema {
    /// The node of the values in the file.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// A node. Ids come from this schema, so the error is never seen.
    pub fn node(&self, id: NodeId) -> Result<&Node> {
        self.nodes
            .get(id.0 as usize)
            .ok_or_else(|| Error::internal("avro node of another schema"))
    }

    /// The fields if the node is a record.
    pub fn record(&self, id: NodeId) -> Result<Option<&[Field]>> {
        Ok(match &self.node(id)?.kind {
            Kind::Record(fields) => Some(fields),
            _ => None,
        })
    }

    /// Whether any record field below `id` (not through arrays and maps) has the field id; finite for recursive types.
    pub fn contains_field(&self, id: NodeId, field_id: i32) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut queue = vec![id];
        while let Some(NodeId(index)) = queue.pop() {
            let index = index as usize;
            let Some(node) = self.nodes.get(index) else { continue };
            if std::mem::replace(&mut seen[index], true) {
                continue;
            }
            match &node.kind {
                Kind::Union(branches) => queue.extend(branches),
                Kind::Record(fields) => {
                    if fields.iter().any(|f| f.id == Some(field_id)) {
                        return true;
                    }
                    queue.extend(fields.iter().map(|f| f.node));
                }
                _ => {}
            }
        }
        false
    }

    /// Moves the cursor past one value.
    pub fn skip(&self, id: NodeId, cursor: &mut Cursor<'_>) -> Result<()> {
        self.skip_at(id, cursor, 0)
    }

    fn skip_at(&self, id: NodeId, cursor: &mut Cursor<'_>, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(Error::corrupt(format!("avro value nests deeper than {MAX_DEPTH}")));
        }
        let node = self.node(id)?;
        match &node.kind {
            Kind::Null => Ok(()),
            Kind::Boolean => cursor.boolean().map(drop),
            Kind::Int | Kind::Enum(_) => cursor.int().map(drop),
            Kind::Long => cursor.long().map(drop),
            Kind::Float => cursor.take(4).map(drop),
            Kind::Double => cursor.take(8).map(drop),
            Kind::Bytes | Kind::String => cursor.bytes().map(drop),
            Kind::Fixed(size) => cursor.take(*size).map(drop),
            Kind::Array { items, .. } => {
                let occupies = self.node(*items)?.occupies;
                cursor.skip_blocks(occupies, |cursor| self.skip_at(*items, cursor, depth + 1))
            }
            Kind::Map { values, .. } => {
                let occupies = self.node(*values)?.occupies;
                cursor.skip_blocks(true, |cursor| {
                    cursor.bytes()?;
                    if occupies {
                        self.skip_at(*values, cursor, depth + 1)
                    } else {
                        Ok(())
                    }
                })
            }
            Kind::Union(branches) => {
                let branch = cursor.branch(branches)?;
                if self.node(branch)?.occupies {
                    self.skip_at(branch, cursor, depth + 1)
                } else {
                    Ok(())
                }
            }
            Kind::Record(_) => node.walk.iter().try_for_each(|field| self.skip_at(*field, cursor, depth + 1)),
        }
    }
}
