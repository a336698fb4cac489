//! Iceberg types and nested fields (spec "Schemas and Data Types").
//!
//! A type name that is not known is an error when a schema is parsed, never skipped. Types
//! that come from foreign bytes nest at most [`MAX_TYPE_DEPTH`] levels, so recursion over
//! them is safe.

use std::sync::Arc;

use super::Literal;

/// Levels of struct, list and map inside each other that a schema may have.
pub const MAX_TYPE_DEPTH: usize = 64;

/// A primitive type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    Boolean,
    /// 32-bit signed.
    Int,
    /// 64-bit signed.
    Long,
    Float,
    Double,
    /// Precision 1..=38, scale 0..=precision.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Days from 1970-01-01.
    Date,
    /// Microseconds from midnight.
    Time,
    /// Microseconds, no zone.
    Timestamp,
    /// Microseconds, UTC.
    Timestamptz,
    /// Nanoseconds, no zone (v3).
    TimestampNs,
    /// Nanoseconds, UTC (v3).
    TimestamptzNs,
    String,
    Uuid,
    /// Exactly so many bytes.
    Fixed(u32),
    Binary,
    /// Always null, not stored in files (v3).
    Unknown,
    /// WKB (v3); the coordinate reference system as written in the type.
    Geometry {
        crs: String,
    },
    /// WKB (v3).
    Geography {
        crs: String,
        algorithm: String,
    },
}

/// Any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Primitive(PrimitiveType),
    Struct(StructType),
    List(ListType),
    Map(MapType),
    /// Semi-structured value (v3).
    Variant,
}

/// A struct: fields in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StructType {
    pub fields: Vec<Arc<NestedField>>,
}

/// A list; `element` is named `element`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListType {
    pub element: Arc<NestedField>,
}

/// A map; `key` is always required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapType {
    pub key: Arc<NestedField>,
    pub value: Arc<NestedField>,
}

/// A field of a struct, or the element, key or value of a list or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedField {
    pub id: i32,
    pub name: String,
    pub required: bool,
    pub field_type: Type,
    pub doc: Option<String>,
    /// What rows read that were written before the field was added (v3).
    pub initial_default: Option<Literal>,
    /// What a writer fills in that does not give the field (v3).
    pub write_default: Option<Literal>,
}

impl Type {
    /// The primitive inside, if this is one.
    pub fn as_primitive(&self) -> Option<&PrimitiveType> {
        match self {
            Self::Primitive(p) => Some(p),
            _ => None,
        }
    }

    /// The struct inside, if this is one.
    pub fn as_struct(&self) -> Option<&StructType> {
        match self {
            Self::Struct(s) => Some(s),
            _ => None,
        }
    }
}
