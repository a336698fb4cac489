//! Types of new columns: SQL type names and types of a query's result as Iceberg types (interface.md 3).
//!
//! Invariant: a type that Iceberg does not have is refused by name, never taken for a near one; ids are those
//! of the request, counted up, and mean nothing beyond it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, TimezoneInfo};

use crate::error::{Error, Result};
use crate::iceberg::spec::{ListType, MapType, NestedField, PrimitiveType as P, StructType, Type};
use crate::table::TYPE_NAME_KEY;

/// Precision and scale of `DECIMAL` alone, as Spark has it.
const DECIMAL: (u8, u8) = (10, 0);
const MAX_PRECISION: u64 = 38;

/// Gives fields their ids.
#[derive(Debug)]
pub(super) struct Ids {
    last: i32,
    /// Moments in nanoseconds, as `now()` gives them, have a type.
    has_nanoseconds: bool,
}

impl Ids {
    /// Of a table of a format version.
    pub(super) fn new(format_version: u8) -> Self {
        Self {
            last: 0,
            has_nanoseconds: format_version > 2,
        }
    }

    /// A field with the next id.
    pub(super) fn field(&mut self, name: &str, required: bool, field_type: Type) -> NestedField {
        self.last = self.last.saturating_add(1);
        NestedField {
            id: self.last,
            name: name.to_owned(),
            required,
            field_type,
            doc: None,
            initial_default: None,
            write_default: None,
        }
    }

    /// The type of a name.
    ///
    /// Errors: `InvalidInput`, `Unsupported`.
    pub(super) fn of_sql(&mut self, sql: &SqlType) -> Result<Type> {
        if let Some(primitive) = primitive(sql)? {
            return Ok(Type::Primitive(primitive));
        }
        Ok(match sql {
            SqlType::Array(
                ArrayElemTypeDef::AngleBracket(element)
                | ArrayElemTypeDef::SquareBracket(element, None)
                | ArrayElemTypeDef::Parenthesis(element),
            ) => {
                let element = self.of_sql(element)?;
                self.list(element, false)
            }
            SqlType::Map(key, value) => {
                let (key, value) = (self.of_sql(key)?, self.of_sql(value)?);
                self.map(key, value, false)
            }
            SqlType::Struct(fields, _) => {
                let fields = fields.iter().map(|field| {
                    let name = field.field_name.as_ref();
                    let name = name.ok_or_else(|| Error::invalid(format!("a field of {sql} has no name")))?;
                    let of = self.of_sql(&field.field_type)?;
                    Ok(Arc::new(self.field(&name.value, false, of)))
                });
                Type::Struct(StructType {
                    fields: fields.collect::<Result<_>>()?,
                })
            }
            SqlType::Custom(name, modifiers) if modifiers.is_empty() && name.to_string().eq_ignore_ascii_case("variant") => Type::Variant,
            other => return Err(Error::unsupported(format!("a column cannot have the type {other}"))),
        })
    }

    /// The type of a column of a query.
    ///
    /// Errors: `Unsupported` for what Iceberg has no type for.
    pub(super) fn of_result(&mut self, field: &Field) -> Result<Type> {
        match field.metadata().get(TYPE_NAME_KEY).map(String::as_str) {
            Some("uuid") => return Ok(Type::Primitive(P::Uuid)),
            Some("variant") => return Ok(Type::Variant),
            _ => {}
        }
        Ok(match field.data_type() {
            DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
                let of = self.of_result(element)?;
                self.list(of, !element.is_nullable())
            }
            DataType::Map(entries, _) => {
                let DataType::Struct(pair) = entries.data_type() else {
                    return Err(Error::internal("a map without entries"));
                };
                let [key, value] = pair.as_ref() else {
                    return Err(Error::internal("a map without keys and values"));
                };
                let required = !value.is_nullable();
                let (key, value) = (self.of_result(key)?, self.of_result(value)?);
                self.map(key, value, required)
            }
            DataType::Struct(fields) => {
                let fields = fields.iter().map(|field| {
                    let of = self.of_result(field)?;
                    Ok(Arc::new(self.field(field.name(), !field.is_nullable(), of)))
                });
                Type::Struct(StructType {
                    fields: fields.collect::<Result<_>>()?,
                })
            }
            other => Type::Primitive(self.known(primitive_of_result(other)?)),
        })
    }

    /// The type that the format version has for it: digits that it has not are cut off, as in a cast.
    fn known(&self, of: P) -> P {
        match of {
            P::TimestampNs if !self.has_nanoseconds => P::Timestamp,
            P::TimestamptzNs if !self.has_nanoseconds => P::Timestamptz,
            other => other,
        }
    }

    fn list(&mut self, element: Type, required: bool) -> Type {
        Type::List(ListType {
            element: Arc::new(self.field("element", required, element)),
        })
    }

    fn map(&mut self, key: Type, value: Type, required: bool) -> Type {
        Type::Map(MapType {
            key: Arc::new(self.field("key", true, key)),
            value: Arc::new(self.field("value", required, value)),
        })
    }
}

fn primitive(sql: &SqlType) -> Result<Option<P>> {
    use SqlType as S;
    Ok(Some(match sql {
        S::Boolean | S::Bool => P::Boolean,
        S::TinyInt(_) | S::SmallInt(_) | S::Int2(_) | S::Int(_) | S::Integer(_) | S::Int4(_) | S::Int32 | S::Int16 => P::Int,
        S::BigInt(_) | S::Int8(_) | S::Int64 => P::Long,
        S::Real | S::Float4 | S::Float32 => P::Float,
        // FLOAT is Spark's and Trino's REAL; with a precision as in the standard.
        S::Float(ExactNumberInfo::None) => P::Float,
        S::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => P::Float,
        S::Float(ExactNumberInfo::Precision(bits)) if *bits <= 53 => P::Double,
        S::Double(_) | S::DoublePrecision | S::Float8 | S::Float64 => P::Double,
        S::Decimal(number) | S::Numeric(number) | S::Dec(number) => decimal(number)?,
        S::Date => P::Date,
        S::Time(None | Some(6), TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => P::Time,
        S::Timestamp(precision, zone) => {
            let zoned = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
            match (precision, zoned) {
                (None | Some(6), false) => P::Timestamp,
                (None | Some(6), true) => P::Timestamptz,
                (Some(9), false) => P::TimestampNs,
                (Some(9), true) => P::TimestamptzNs,
                (Some(other), _) => return Err(Error::unsupported(format!("TIMESTAMP({other}): timestamps have 6 or 9 digits"))),
            }
        }
        S::TimestampNtz(None | Some(6)) => P::Timestamp,
        S::TimestampNtz(Some(9)) => P::TimestampNs,
        S::Text | S::String(None) | S::Varchar(None) | S::CharacterVarying(None) => P::String,
        // Iceberg has no bound on text; as Spark and Trino do, the length is not kept.
        S::Varchar(Some(_)) | S::CharacterVarying(Some(_)) | S::String(Some(_)) => P::String,
        S::Uuid => P::Uuid,
        S::Binary(None) | S::Varbinary(None) | S::Bytea | S::Blob(None) | S::Bytes(None) => P::Binary,
        S::Custom(name, modifiers) => return custom(&name.to_string().to_ascii_lowercase(), modifiers),
        _ => return Ok(None),
    }))
}

fn custom(name: &str, modifiers: &[String]) -> Result<Option<P>> {
    let plain = match name {
        "long" => P::Long,
        "timestamp_ltz" => P::Timestamptz,
        "timestamp_ns" => P::TimestampNs,
        "timestamptz_ns" => P::TimestamptzNs,
        "fixed" => {
            let [length] = modifiers else {
                return Err(Error::invalid("FIXED takes a length in bytes: FIXED(16)"));
            };
            let length = length
                .parse::<u32>()
                .ok()
                .filter(|length| (1..=i32::MAX.unsigned_abs()).contains(length));
            return length
                .map(|length| Some(P::Fixed(length)))
                .ok_or_else(|| Error::invalid("FIXED takes a length in bytes: FIXED(16)"));
        }
        "unknown" => P::Unknown,
        _ => return Ok(None),
    };
    match modifiers {
        [] => Ok(Some(plain)),
        _ => Err(Error::invalid(format!("the type {name} takes no arguments"))),
    }
}

fn decimal(number: &ExactNumberInfo) -> Result<P> {
    let (precision, scale) = match number {
        ExactNumberInfo::None => (u64::from(DECIMAL.0), i64::from(DECIMAL.1)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let fits = (1..=MAX_PRECISION).contains(&precision);
    match (u8::try_from(precision), u8::try_from(scale)) {
        (Ok(precision), Ok(scale)) if fits && scale <= precision => Ok(P::Decimal { precision, scale }),
        _ => Err(Error::invalid(format!(
            "DECIMAL({precision}, {scale}): the precision is 1 to 38, the scale 0 to the precision"
        ))),
    }
}

fn primitive_of_result(of: &DataType) -> Result<P> {
    use DataType as D;
    let zoned = |zone: &Option<Arc<str>>| zone.is_some();
    Ok(match of {
        D::Boolean => P::Boolean,
        D::Int8 | D::Int16 | D::Int32 | D::UInt8 | D::UInt16 => P::Int,
        D::Int64 | D::UInt32 => P::Long,
        D::Float16 | D::Float32 => P::Float,
        D::Float64 => P::Double,
        D::UInt64 => P::Decimal { precision: 20, scale: 0 },
        D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) => match u8::try_from(*s) {
            Ok(scale) if scale <= *p => P::Decimal { precision: *p, scale },
            _ => return Err(Error::unsupported(format!("Iceberg has no decimal({p}, {s}); cast the column"))),
        },
        D::Date32 | D::Date64 => P::Date,
        D::Time32(_) | D::Time64(TimeUnit::Microsecond) => P::Time,
        D::Timestamp(TimeUnit::Nanosecond, zone) if zoned(zone) => P::TimestamptzNs,
        D::Timestamp(TimeUnit::Nanosecond, _) => P::TimestampNs,
        D::Timestamp(_, zone) if zoned(zone) => P::Timestamptz,
        D::Timestamp(..) => P::Timestamp,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => P::String,
        D::Binary | D::LargeBinary | D::BinaryView => P::Binary,
        D::FixedSizeBinary(length) => P::Fixed(length.unsigned_abs()),
        D::Dictionary(_, value) => return primitive_of_result(value),
        D::Null => return Err(Error::unsupported("a column of nothing but NULL has no type; cast it")),
        other => return Err(Error::unsupported(format!("Iceberg has no type for {other}; cast the column"))),
    })
}
