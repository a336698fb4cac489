//! Resolves what a reader wants against what the writer wrote, once for a file.
//!
//! An Iceberg field is `X`, or a union of null and `X` in either order. A field of another
//! shape is an error where it is wanted, and skipped where it is not.

use super::{AvroSchema, Cursor, Field, Kind, Node, NodeId};
use crate::error::{Error, Result};

/// Whether a value is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always, without a mark.
    Required,
    /// A union follows: null is this branch of two, the value the other one.
    Nullable { null_branch: u8 },
    /// Never: the type is null.
    Never,
}

/// A type and whether values of it may be null.
#[derive(Debug, Clone, Copy)]
pub struct Optional<'s> {
    pub presence: Presence,
    /// The type behind the union.
    pub node: &'s Node,
    pub id: NodeId,
}

impl AvroSchema {
    /// Takes a union of null and one other type apart.
    ///
    /// Errors: `Corrupt` for any other union.
    pub fn optional(&self, id: NodeId) -> Result<Optional<'_>> {
        let node = self.node(id)?;
        let (presence, id) = match &node.kind {
            Kind::Null => (Presence::Never, id),
            Kind::Union(branches) => {
                let is_null = |id: NodeId| self.node(id).map(|node| node.kind == Kind::Null);
                match branches.as_slice() {
                    [first, second] if is_null(*first)? => (Presence::Nullable { null_branch: 0 }, *second),
                    [first, second] if is_null(*second)? => (Presence::Nullable { null_branch: 1 }, *first),
                    _ => return Err(Error::corrupt("avro union is not of null and one other type")),
                }
            }
            _ => (Presence::Required, id),
        };
        let node = self.node(id)?;
        if presence != Presence::Never && matches!(node.kind, Kind::Null | Kind::Union(_)) {
            return Err(Error::corrupt("avro union holds null twice or another union"));
        }
        Ok(Optional { presence, node, id })
    }
}

impl Presence {
    /// Reads the mark: whether a value follows.
    #[inline]
    pub fn read(self, cursor: &mut Cursor<'_>) -> Result<bool> {
        match self {
            Self::Required => Ok(true),
            Self::Never => Ok(false),
            Self::Nullable { null_branch } => match cursor.long()? {
                index @ (0 | 1) => Ok(index != i64::from(null_branch)),
                index => Err(Error::corrupt(format!("avro union has no branch {index}"))),
            },
        }
    }
}

/// What a reader wants of a column, for messages.
fn mismatch(wanted: &str, found: &Node) -> Error {
    Error::corrupt(format!("avro type is {} where {wanted} is expected", found.kind.name()))
}

impl AvroSchema {
    fn wanted(&self, id: NodeId, wanted: &str, accepts: impl Fn(&Kind) -> bool) -> Result<Presence> {
        let Optional { presence, node, .. } = self.optional(id)?;
        if presence == Presence::Never || accepts(&node.kind) {
            Ok(presence)
        } else {
            Err(mismatch(wanted, node))
        }
    }

    /// An int or long, which lie the same way.
    pub fn integer(&self, id: NodeId) -> Result<Presence> {
        self.wanted(id, "int or long", |kind| matches!(kind, Kind::Int | Kind::Long))
    }

    /// A boolean.
    pub fn boolean(&self, id: NodeId) -> Result<Presence> {
        self.wanted(id, "boolean", |kind| *kind == Kind::Boolean)
    }

    /// Text.
    pub fn text(&self, id: NodeId) -> Result<Presence> {
        self.wanted(id, "string", |kind| *kind == Kind::String)
    }

    /// Bytes or text.
    pub fn binary(&self, id: NodeId) -> Result<Presence> {
        self.wanted(id, "bytes", |kind| matches!(kind, Kind::Bytes | Kind::String))
    }

    /// An array; also its items.
    pub fn list(&self, id: NodeId) -> Result<(Presence, NodeId)> {
        let Optional { presence, node, id } = self.optional(id)?;
        match node.kind {
            Kind::Array { items, .. } => Ok((presence, items)),
            Kind::Null => Ok((presence, id)),
            _ => Err(mismatch("array", node)),
        }
    }

    /// A record; also its fields.
    pub fn fields(&self, id: NodeId) -> Result<(Presence, &[Field])> {
        let Optional { presence, node, .. } = self.optional(id)?;
        match &node.kind {
            Kind::Record(fields) => Ok((presence, fields)),
            Kind::Null => Ok((presence, &[])),
            _ => Err(mismatch("record", node)),
        }
    }
}

impl Presence {
    /// An int or long.
    #[inline]
    pub fn integer(self, cursor: &mut Cursor<'_>) -> Result<Option<i64>> {
        Ok(if self.read(cursor)? { Some(cursor.long()?) } else { None })
    }

    /// A boolean.
    pub fn boolean(self, cursor: &mut Cursor<'_>) -> Result<Option<bool>> {
        Ok(if self.read(cursor)? { Some(cursor.boolean()?) } else { None })
    }

    /// Text.
    pub fn text<'a>(self, cursor: &mut Cursor<'a>) -> Result<Option<&'a str>> {
        Ok(if self.read(cursor)? { Some(cursor.string()?) } else { None })
    }

    /// Bytes.
    pub fn binary<'a>(self, cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>> {
        Ok(if self.read(cursor)? { Some(cursor.bytes()?) } else { None })
    }
}
