//! Single values and their two serial forms (spec appendix D): binary for bounds, JSON
//! for defaults. The forms stand in `value_bytes` and `value_json`.

use std::cmp::Ordering;

/// One non-null primitive value. The variant follows the storage, not the logical type:
/// the type that belongs to it comes from the schema.
#[derive(Debug, Clone)]
pub enum Literal {
    Boolean(bool),
    /// int, date
    Int(i32),
    /// long, time, timestamp and timestamptz of either unit
    Long(i64),
    Float(f32),
    Double(f64),
    /// Unscaled value; precision and scale come from the type.
    Decimal(i128),
    String(String),
    Uuid([u8; 16]),
    /// fixed, binary, geometry, geography
    Binary(Vec<u8>),
    /// Default of a struct (v3): only the empty struct `{}` is legal; nested defaults stand on the fields.
    EmptyStruct,
}

impl Literal {
    /// The order of values of one type, NaN aside: -0.0 stands before 0.0, text and bytes are compared byte
    /// by byte. Values of different types count as equal.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Long(a), Self::Long(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Double(a), Self::Double(b)) => a.total_cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Uuid(a), Self::Uuid(b)) => a.cmp(b),
            (Self::Binary(a), Self::Binary(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// Bit equality: NaN equals itself, -0.0 differs from 0.0 (as partition values and keys compare in Iceberg Java).
impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Uuid(a), Self::Uuid(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::EmptyStruct, Self::EmptyStruct) => true,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl std::hash::Hash for Literal {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Boolean(v) => v.hash(state),
            Self::Int(v) => v.hash(state),
            Self::Long(v) => v.hash(state),
            Self::Float(v) => v.to_bits().hash(state),
            Self::Double(v) => v.to_bits().hash(state),
            Self::Decimal(v) => v.hash(state),
            Self::String(v) => v.hash(state),
            Self::Uuid(v) => v.hash(state),
            Self::Binary(v) => v.hash(state),
            Self::EmptyStruct => {}
        }
    }
}

#[cfg(test)]
#[path = "values_tests.rs"]
mod tests;
