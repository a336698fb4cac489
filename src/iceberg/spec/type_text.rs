//! Names of types (spec appendix C, "Schemas"): parsing and printing of the string forms.
//!
//! Names are read without regard to case and with optional blanks around parameters, and
//! printed in the canonical form. A name that is not known is an error of its own kind.

use std::fmt;
use std::str::FromStr;

use super::json::clip;
use super::{PrimitiveType, StructType, Type};
use crate::error::{Error, Result};

/// Reference system of geometry and geography where the type names none.
const DEFAULT_CRS: &str = "OGC:CRS84";
const EDGE_ALGORITHMS: [&str; 5] = ["spherical", "vincenty", "thomas", "andoyer", "karney"];

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timestamptz => "timestamptz",
            Self::TimestampNs => "timestamp_ns",
            Self::TimestamptzNs => "timestamptz_ns",
            Self::String => "string",
            Self::Uuid => "uuid",
            Self::Fixed(length) => return write!(f, "fixed[{length}]"),
            Self::Binary => "binary",
            Self::Unknown => "unknown",
            Self::Geometry { crs } => return write!(f, "geometry({crs})"),
            Self::Geography { crs, algorithm } => return write!(f, "geography({crs}, {algorithm})"),
        };
        f.write_str(name)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => primitive.fmt(f),
            Self::Variant => f.write_str("variant"),
            Self::Struct(fields) => fields.fmt(f),
            Self::List(list) => write!(f, "list<{}>", list.element.field_type),
            Self::Map(map) => write!(f, "map<{}, {}>", map.key.field_type, map.value.field_type),
        }
    }
}

impl fmt::Display for StructType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct<")?;
        for (i, field) in self.fields.iter().enumerate() {
            write!(f, "{}{}: {}", if i == 0 { "" } else { ", " }, field.name, field.field_type)?;
        }
        f.write_str(">")
    }
}

/// Reads the string form of a primitive type. Errors: `Unsupported` for a name, parameter or
/// edge algorithm that is not known, `Corrupt` for parameters that break the type's own rules.
impl FromStr for PrimitiveType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        let (name, parameters) = split_parameters(trimmed);
        let name = name.trim_end().to_ascii_lowercase();
        let unknown = || Error::unsupported(format!("type `{}` is not supported", clip(text)));
        let Some((open, inner)) = parameters else {
            return simple(&name).ok_or_else(unknown);
        };
        match (name.as_str(), open) {
            ("decimal", '(') => decimal(text, inner),
            ("fixed", '[') => match inner.trim().parse::<i32>().ok().and_then(|length| u32::try_from(length).ok()) {
                Some(length) => Ok(Self::Fixed(length)),
                None => Err(Error::corrupt(format!("type `{}` has no valid length", clip(text)))),
            },
            ("geometry", '(') => Ok(Self::Geometry { crs: crs(text, inner)? }),
            ("geography", '(') => geography(text, inner),
            _ => Err(unknown()),
        }
    }
}

impl Type {
    /// Reads the string form of a primitive type or `variant`. Errors as for [`PrimitiveType`].
    pub fn from_name(text: &str) -> Result<Self> {
        if text.trim().eq_ignore_ascii_case("variant") {
            return Ok(Self::Variant);
        }
        text.parse().map(Self::Primitive)
    }
}

/// `name(inner)` or `name[inner]` taken apart, with the opening bracket.
fn split_parameters(text: &str) -> (&str, Option<(char, &str)>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((name, rest)) = text.split_once(open)
            && let Some(inner) = rest.strip_suffix(close)
        {
            return (name, Some((open, inner)));
        }
    }
    (text, None)
}

fn simple(name: &str) -> Option<PrimitiveType> {
    Some(match name {
        "boolean" => PrimitiveType::Boolean,
        "int" => PrimitiveType::Int,
        "long" => PrimitiveType::Long,
        "float" => PrimitiveType::Float,
        "double" => PrimitiveType::Double,
        "date" => PrimitiveType::Date,
        "time" => PrimitiveType::Time,
        "timestamp" => PrimitiveType::Timestamp,
        "timestamptz" => PrimitiveType::Timestamptz,
        "timestamp_ns" => PrimitiveType::TimestampNs,
        "timestamptz_ns" => PrimitiveType::TimestamptzNs,
        "string" => PrimitiveType::String,
        "uuid" => PrimitiveType::Uuid,
        "binary" => PrimitiveType::Binary,
        "unknown" => PrimitiveType::Unknown,
        "geometry" => PrimitiveType::Geometry {
            crs: DEFAULT_CRS.to_owned(),
        },
        "geography" => PrimitiveType::Geography {
            crs: DEFAULT_CRS.to_owned(),
            algorithm: EDGE_ALGORITHMS[0].to_owned(),
        },
        _ => return None,
    })
}

fn decimal(text: &str, inner: &str) -> Result<PrimitiveType> {
    let numbers = inner.split_once(',').and_then(|(precision, scale)| {
        let precision = precision.trim().parse::<u8>().ok()?;
        let scale = scale.trim().parse::<u8>().ok()?;
        Some((precision, scale))
    });
    match numbers {
        Some((precision, scale)) if (1..=38).contains(&precision) && scale <= precision => Ok(PrimitiveType::Decimal { precision, scale }),
        _ => Err(Error::corrupt(format!(
            "type `{}` must have a precision of 1 to 38 and a scale within it",
            clip(text)
        ))),
    }
}

fn crs(text: &str, inner: &str) -> Result<String> {
    match inner.trim() {
        "" => Err(Error::corrupt(format!(
            "type `{}` has an empty coordinate reference system",
            clip(text)
        ))),
        crs => Ok(crs.to_owned()),
    }
}

fn geography(text: &str, inner: &str) -> Result<PrimitiveType> {
    let (crs_text, algorithm) = inner.split_once(',').unwrap_or((inner, EDGE_ALGORITHMS[0]));
    let algorithm = algorithm.trim().to_ascii_lowercase();
    if !EDGE_ALGORITHMS.contains(&algorithm.as_str()) {
        return Err(Error::unsupported(format!(
            "edge algorithm `{}` of a geography type is not supported",
            clip(&algorithm)
        )));
    }
    Ok(PrimitiveType::Geography {
        crs: crs(text, crs_text)?,
        algorithm,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn canonical_names_come_back() {
        for name in [
            "boolean",
            "int",
            "long",
            "float",
            "double",
            "decimal(12,2)",
            "decimal(38,38)",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "timestamp_ns",
            "timestamptz_ns",
            "string",
            "uuid",
            "fixed[16]",
            "binary",
            "unknown",
            "variant",
            "geometry(srid:4326)",
            "geography(srid:4326, karney)",
        ] {
            assert_eq!(Type::from_name(name).unwrap().to_string(), name);
        }
    }

    #[test]
    fn blanks_case_and_omitted_parameters_are_accepted() {
        for (text, canonical) in [
            ("decimal( 9 , 2 )", "decimal(9,2)"),
            ("decimal(9, 2)", "decimal(9,2)"),
            ("DECIMAL(9,2)", "decimal(9,2)"),
            ("fixed[ 3 ]", "fixed[3]"),
            (" Long ", "long"),
            ("geometry", "geometry(OGC:CRS84)"),
            ("Geometry( EPSG:4326 )", "geometry(EPSG:4326)"),
            ("geography", "geography(OGC:CRS84, spherical)"),
            ("geography(OGC:CRS84)", "geography(OGC:CRS84, spherical)"),
            ("geography(OGC:CRS84,Vincenty )", "geography(OGC:CRS84, vincenty)"),
        ] {
            assert_eq!(Type::from_name(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn unknown_names_are_unsupported_and_named() {
        for name in [
            "tinyint",
            "interval",
            "decimal",
            "string(3)",
            "fixed(3)",
            "int[3]",
            "geography(a, loxodrome)",
            "",
            "map",
            "fixed[3",
        ] {
            let error = Type::from_name(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{name}");
        }
        assert_eq!(
            Type::from_name("interval").unwrap_err().message(),
            "type `interval` is not supported"
        );
    }

    #[test]
    fn impossible_parameters_are_corrupt() {
        for name in [
            "decimal(39,2)",
            "decimal(0,0)",
            "decimal(3,4)",
            "decimal(9)",
            "decimal(9,-1)",
            "fixed[-1]",
            "fixed[99999999999]",
            "geometry( )",
        ] {
            assert_eq!(Type::from_name(name).unwrap_err().kind(), ErrorKind::Corrupt, "{name}");
        }
    }
}
