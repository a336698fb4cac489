//! JSON form of single values (spec appendix D, "JSON single-value serialization").
//!
//! What a type's form does not allow is an error: a decimal of another scale, an int beyond
//! its width, a zoned text for a type without zone, more fractional digits than the unit has.

use serde_json::{Number, Value, json};

use super::json::excerpt;
use super::{Literal, PrimitiveType, Type, civil};
use crate::error::{Error, Result};

impl Literal {
    /// Reads a non-null value of a type. Errors: `Corrupt` where it does not fit the type,
    /// `Unsupported` for lists, maps, geometry and geography.
    pub fn from_json(value_type: &Type, value: &Value) -> Result<Self> {
        let parsed = match value_type {
            Type::Primitive(PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. })
            | Type::List(_)
            | Type::Map(_)
            | Type::Variant => {
                return Err(Error::unsupported(format!("a single value of type {value_type} is not supported")));
            }
            Type::Primitive(primitive) => parse(primitive, value),
            Type::Struct(_) => value.as_object().filter(|members| members.is_empty()).map(|_| Self::EmptyStruct),
        };
        parsed.ok_or_else(|| Error::corrupt(format!("{} is not a value of type {value_type}", excerpt(value))))
    }

    /// The JSON form of a value of this type. Errors: `InvalidInput` where the value is not one
    /// of the type or has no form (NaN, infinity, types without JSON form).
    pub fn to_json(&self, value_type: &Type) -> Result<Value> {
        let formatted = match value_type {
            Type::Primitive(primitive) => format(primitive, self),
            Type::Struct(_) if *self == Self::EmptyStruct => Some(json!({})),
            _ => None,
        };
        formatted.ok_or_else(|| Error::invalid(format!("value {self:?} has no JSON form as {value_type}")))
    }
}

fn parse(primitive: &PrimitiveType, value: &Value) -> Option<Literal> {
    Some(match primitive {
        PrimitiveType::Boolean => Literal::Boolean(value.as_bool()?),
        PrimitiveType::Int => Literal::Int(i32::try_from(value.as_i64()?).ok()?),
        PrimitiveType::Long => Literal::Long(value.as_i64()?),
        // Straight from the digits: by way of a double, a float could be rounded twice.
        PrimitiveType::Float => Literal::Float(value.as_number()?.to_string().parse().ok().filter(|v: &f32| v.is_finite())?),
        PrimitiveType::Double => Literal::Double(value.as_number()?.to_string().parse().ok().filter(|v: &f64| v.is_finite())?),
        PrimitiveType::Decimal { precision, scale } => Literal::Decimal(parse_decimal(value.as_str()?, *precision, *scale)?),
        PrimitiveType::Date => Literal::Int(civil::parse_date(value.as_str()?)?),
        PrimitiveType::Time => Literal::Long(civil::parse_time(value.as_str()?, 6)?),
        PrimitiveType::Timestamp => Literal::Long(civil::parse_timestamp(value.as_str()?, 6)?),
        PrimitiveType::Timestamptz => Literal::Long(civil::parse_timestamptz(value.as_str()?, 6)?),
        PrimitiveType::TimestampNs => Literal::Long(civil::parse_timestamp(value.as_str()?, 9)?),
        PrimitiveType::TimestamptzNs => Literal::Long(civil::parse_timestamptz(value.as_str()?, 9)?),
        PrimitiveType::String => Literal::String(value.as_str()?.to_owned()),
        PrimitiveType::Uuid => {
            let hyphenated = value.as_str().filter(|text| text.len() == 36)?;
            Literal::Uuid(uuid::Uuid::try_parse(hyphenated).ok()?.into_bytes())
        }
        PrimitiveType::Fixed(length) => {
            let bytes = parse_hex(value.as_str()?)?;
            Literal::Binary(Some(bytes).filter(|b| u32::try_from(b.len()) == Ok(*length))?)
        }
        PrimitiveType::Binary => Literal::Binary(parse_hex(value.as_str()?)?),
        PrimitiveType::Unknown | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. } => return None,
    })
}

fn format(primitive: &PrimitiveType, literal: &Literal) -> Option<Value> {
    Some(match (primitive, literal) {
        (PrimitiveType::Boolean, Literal::Boolean(v)) => json!(v),
        (PrimitiveType::Int, Literal::Int(v)) => json!(v),
        (PrimitiveType::Long, Literal::Long(v)) => json!(v),
        // The shortest digits that read back to the same value, of the float and not of its double.
        (PrimitiveType::Float, Literal::Float(v)) => number(&format!("{v:?}"))?,
        (PrimitiveType::Double, Literal::Double(v)) => number(&format!("{v:?}"))?,
        (PrimitiveType::Decimal { precision, scale }, Literal::Decimal(v)) if fits(*v, *precision) => json!(format_decimal(*v, *scale)),
        (PrimitiveType::Date, Literal::Int(v)) => json!(civil::format_date(*v)),
        (PrimitiveType::Time, Literal::Long(v)) => json!(civil::format_time(*v, 6)?),
        (PrimitiveType::Timestamp, Literal::Long(v)) => json!(civil::format_timestamp(*v, 6)?),
        (PrimitiveType::Timestamptz, Literal::Long(v)) => json!(civil::format_timestamptz(*v, 6)?),
        (PrimitiveType::TimestampNs, Literal::Long(v)) => json!(civil::format_timestamp(*v, 9)?),
        (PrimitiveType::TimestamptzNs, Literal::Long(v)) => json!(civil::format_timestamptz(*v, 9)?),
        (PrimitiveType::String, Literal::String(v)) => json!(v),
        (PrimitiveType::Uuid, Literal::Uuid(v)) => json!(uuid::Uuid::from_bytes(*v).hyphenated().to_string()),
        (PrimitiveType::Fixed(length), Literal::Binary(v)) if u32::try_from(v.len()) == Ok(*length) => json!(format_hex(v)),
        (PrimitiveType::Binary, Literal::Binary(v)) => json!(format_hex(v)),
        _ => return None,
    })
}

/// A JSON number of these digits; `NaN` and `inf` are none.
fn number(digits: &str) -> Option<Value> {
    serde_json::from_str::<Number>(digits).ok().map(Value::Number)
}

/// The unscaled value of `14.20` or `1.42E+1`, if its scale is the type's and it fits the precision.
fn parse_decimal(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, mantissa.get(1..)?),
        b'+' => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if i64::try_from(fraction.len()).ok()? - i64::from(exponent) != i64::from(scale) {
        return None;
    }
    let magnitude: i128 = digits.parse().ok()?;
    let value = if negative { -magnitude } else { magnitude };
    fits(value, precision).then_some(value)
}

fn fits(unscaled: i128, precision: u8) -> bool {
    let bound = 10_u128.checked_pow(u32::from(precision));
    bound.is_none_or(|bound| unscaled.unsigned_abs() < bound)
}

fn format_decimal(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let sign = if unscaled < 0 { "-" } else { "" };
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let nibble = |b: u8| char::from(b).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

fn format_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
