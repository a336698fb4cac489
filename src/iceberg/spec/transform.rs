//! Partition and sort transforms (spec "Partition Transforms"): names and result types.
//!
//! An unknown transform reads fine and never prunes.

use std::fmt;
use std::str::FromStr;

use super::json::clip;
use super::{PrimitiveType, Type};
use crate::error::{Error, Result};

/// A transform of a source value to a partition value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    Identity,
    /// murmur3 of the value, modulo the number.
    Bucket(u32),
    /// Width.
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    /// Always null.
    Void,
    /// Kept as written.
    Unknown(String),
}

impl Transform {
    /// The type of the partition value for a source of this type. `None` where the transform
    /// does not take the type, for an unknown transform, and for void of a type that is not
    /// primitive; the partition field keeps its position all the same.
    pub fn result_type(&self, source: &Type) -> Option<PrimitiveType> {
        use PrimitiveType as P;
        let source = source.as_primitive()?;
        let takes = match self {
            Self::Identity => !matches!(source, P::Geometry { .. } | P::Geography { .. }),
            Self::Bucket(_) => !matches!(
                source,
                P::Boolean | P::Float | P::Double | P::Unknown | P::Geometry { .. } | P::Geography { .. }
            ),
            Self::Truncate(_) => matches!(source, P::Int | P::Long | P::Decimal { .. } | P::String | P::Binary),
            Self::Year | Self::Month | Self::Day => *source == P::Date || is_timestamp(source),
            Self::Hour => is_timestamp(source),
            Self::Void => true,
            Self::Unknown(_) => false,
        };
        takes.then(|| match self {
            Self::Bucket(_) | Self::Year | Self::Month | Self::Hour => P::Int,
            Self::Day => P::Date,
            _ => source.clone(),
        })
    }
}

fn is_timestamp(source: &PrimitiveType) -> bool {
    use PrimitiveType as P;
    matches!(source, P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs)
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Bucket(count) => write!(f, "bucket[{count}]"),
            Self::Truncate(width) => write!(f, "truncate[{width}]"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Day => f.write_str("day"),
            Self::Hour => f.write_str("hour"),
            Self::Void => f.write_str("void"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// Reads the name of a transform, without regard to case. A name that is not known is kept;
/// the only error (`Corrupt`) is a bucket count or width outside of 1 to 2^31 - 1.
impl FromStr for Transform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if let Some((name, rest)) = text.split_once('[')
            && let Some(number) = rest.strip_suffix(']')
        {
            let build: fn(u32) -> Self = match name.trim().to_ascii_lowercase().as_str() {
                "bucket" => Self::Bucket,
                "truncate" => Self::Truncate,
                _ => return Ok(Self::Unknown(text.to_owned())),
            };
            let number = number.trim().parse::<u32>().ok().filter(|n| (1..=0x7fff_ffff).contains(n));
            return number
                .map(build)
                .ok_or_else(|| Error::corrupt(format!("transform `{}` needs a positive int", clip(text))));
        }
        Ok(match text.to_ascii_lowercase().as_str() {
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "void" => Self::Void,
            _ => Self::Unknown(text.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Transform {
        text.parse().unwrap()
    }

    #[test]
    fn names_come_back_and_unknown_ones_are_kept() {
        for name in [
            "identity",
            "bucket[16]",
            "truncate[4]",
            "year",
            "month",
            "day",
            "hour",
            "void",
            "zorder",
            "bucketV2[4]",
            "bucket",
        ] {
            assert_eq!(parse(name).to_string(), name);
        }
        assert_eq!(parse("Bucket[ 16 ]"), Transform::Bucket(16));
        assert_eq!(parse("VOID"), Transform::Void);
        assert_eq!(parse("bucketV2[4]"), Transform::Unknown("bucketV2[4]".to_owned()));
    }

    #[test]
    fn widths_must_be_positive_ints() {
        for text in ["bucket[0]", "truncate[-1]", "bucket[2147483648]", "bucket[x]", "truncate[]"] {
            assert!(text.parse::<Transform>().is_err(), "{text}");
        }
    }

    #[test]
    fn result_types_of_the_spec() {
        for (transform, source, result) in [
            ("identity", "string", Some("string")),
            ("identity", "geometry", None),
            ("identity", "variant", None),
            ("bucket[4]", "uuid", Some("int")),
            ("bucket[4]", "double", None),
            ("truncate[4]", "decimal(9,2)", Some("decimal(9,2)")),
            ("truncate[4]", "date", None),
            ("year", "timestamptz_ns", Some("int")),
            ("month", "date", Some("int")),
            ("day", "timestamp", Some("date")),
            ("day", "date", Some("date")),
            ("hour", "date", None),
            ("hour", "timestamp_ns", Some("int")),
            ("void", "double", Some("double")),
            ("zorder", "int", None),
        ] {
            let result = result.map(|name| name.parse::<PrimitiveType>().unwrap());
            assert_eq!(
                parse(transform).result_type(&Type::from_name(source).unwrap()),
                result,
                "{transform} {source}"
            );
        }
    }
}
