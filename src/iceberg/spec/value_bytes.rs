//! Binary form of single values (spec appendix D, "Binary single-value serialization").
//!
//! Bounds carry no type and are not rewritten when a column is promoted, so decoding infers
//! the type at writing time from the length (spec "Schema Evolution"): 4 bytes of a long are
//! an int, of a double a float, of a timestamp without zone a date. Bounds of fixed columns
//! may be cut, so their length is not checked.

use super::{Literal, PrimitiveType};
use crate::error::{Error, Result};

const MICROS_PER_DAY: i64 = 86_400_000_000;
const NANOS_PER_DAY: i64 = 86_400_000_000_000;

impl Literal {
    /// Reads a value of a type, or of a type that promotes to it. Errors: `Corrupt` for a length
    /// that the type cannot have, text that is not UTF-8, or a date beyond the promoted type's
    /// range; `Unsupported` for type unknown, which has no values.
    pub fn from_bytes(primitive: &PrimitiveType, bytes: &[u8]) -> Result<Self> {
        if *primitive == PrimitiveType::Unknown {
            return Err(Error::unsupported("type unknown has no binary values"));
        }
        decode(primitive, bytes).ok_or_else(|| Error::corrupt(format!("{} bytes do not hold a value of type {primitive}", bytes.len())))
    }

    /// The binary form of a value of this type. Errors: `InvalidInput` where the value is not
    /// one of the type.
    pub fn to_bytes(&self, primitive: &PrimitiveType) -> Result<Vec<u8>> {
        encode(primitive, self).ok_or_else(|| Error::invalid(format!("value {self:?} has no binary form as {primitive}")))
    }
}

fn decode(primitive: &PrimitiveType, bytes: &[u8]) -> Option<Literal> {
    Some(match primitive {
        PrimitiveType::Boolean => match bytes {
            [byte] => Literal::Boolean(*byte != 0),
            _ => return None,
        },
        PrimitiveType::Int | PrimitiveType::Date => Literal::Int(int(bytes)?),
        PrimitiveType::Long => match bytes.len() {
            4 => Literal::Long(i64::from(int(bytes)?)),
            _ => Literal::Long(long(bytes)?),
        },
        PrimitiveType::Timestamp => date_or_long(bytes, MICROS_PER_DAY)?,
        PrimitiveType::TimestampNs => date_or_long(bytes, NANOS_PER_DAY)?,
        PrimitiveType::Time | PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs => Literal::Long(long(bytes)?),
        PrimitiveType::Float => Literal::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
        PrimitiveType::Double => match bytes.len() {
            4 => Literal::Double(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
            _ => Literal::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        },
        PrimitiveType::Decimal { .. } => Literal::Decimal(big_endian(bytes)?),
        PrimitiveType::String => Literal::String(std::str::from_utf8(bytes).ok()?.to_owned()),
        PrimitiveType::Uuid => Literal::Uuid(bytes.try_into().ok()?),
        PrimitiveType::Fixed(_) | PrimitiveType::Binary | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. } => {
            Literal::Binary(bytes.to_vec())
        }
        PrimitiveType::Unknown => return None,
    })
}

fn encode(primitive: &PrimitiveType, literal: &Literal) -> Option<Vec<u8>> {
    Some(match (primitive, literal) {
        (PrimitiveType::Boolean, Literal::Boolean(v)) => vec![u8::from(*v)],
        (PrimitiveType::Int | PrimitiveType::Date, Literal::Int(v)) => v.to_le_bytes().to_vec(),
        (
            PrimitiveType::Long
            | PrimitiveType::Time
            | PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs,
            Literal::Long(v),
        ) => v.to_le_bytes().to_vec(),
        (PrimitiveType::Float, Literal::Float(v)) => v.to_le_bytes().to_vec(),
        (PrimitiveType::Double, Literal::Double(v)) => v.to_le_bytes().to_vec(),
        (PrimitiveType::Decimal { .. }, Literal::Decimal(v)) => minimal_big_endian(*v),
        (PrimitiveType::String, Literal::String(v)) => v.as_bytes().to_vec(),
        (PrimitiveType::Uuid, Literal::Uuid(v)) => v.to_vec(),
        (PrimitiveType::Fixed(length), Literal::Binary(v)) if u32::try_from(v.len()) == Ok(*length) => v.clone(),
        (PrimitiveType::Binary | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }, Literal::Binary(v)) => v.clone(),
        _ => return None,
    })
}

fn int(bytes: &[u8]) -> Option<i32> {
    bytes.try_into().ok().map(i32::from_le_bytes)
}

fn long(bytes: &[u8]) -> Option<i64> {
    bytes.try_into().ok().map(i64::from_le_bytes)
}

/// A timestamp, or the date that was promoted to one: its midnight.
fn date_or_long(bytes: &[u8], units_per_day: i64) -> Option<Literal> {
    match bytes.len() {
        4 => i64::from(int(bytes)?).checked_mul(units_per_day).map(Literal::Long),
        _ => long(bytes).map(Literal::Long),
    }
}

/// Two's complement of any width whose value fits 16 bytes.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let sign: u8 = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let surplus = bytes.len().saturating_sub(16);
    let (padding, value) = bytes.split_at(surplus);
    let mut wide = [sign; 16];
    wide.get_mut(16 - value.len()..)?.copy_from_slice(value);
    let fits = padding.iter().all(|b| *b == sign) && (wide[0] & 0x80) == (sign & 0x80);
    fits.then(|| i128::from_be_bytes(wide))
}

/// Two's complement in the fewest bytes, at least one.
pub(super) fn minimal_big_endian(value: i128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let sign_bits = if value < 0 { value.leading_ones() } else { value.leading_zeros() };
    // One sign bit has to stay.
    let skip = usize::try_from(sign_bits.saturating_sub(1) / 8).unwrap_or(0).min(15);
    bytes.get(skip..).unwrap_or_default().to_vec()
}
