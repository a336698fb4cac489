//! SQL type names (interface.md 3).
//!
//! Invariant: `timestamp` counts microseconds, as the tables do; the planner's own nanoseconds
//! cannot hold the year 9999.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{DataType as SqlType, TimezoneInfo};

use super::uuid_text::uuid_field;

/// Zone of types with zone.
pub(super) const ZONE: &str = "UTC";

/// Reads the type names that the planner does not know or reads otherwise.
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        if matches!(sql_type, SqlType::Uuid) {
            return Ok(Some(uuid_field("")));
        }
        Ok(arrow_type(sql_type).map(|t| Arc::new(Field::new("", t, true))))
    }
}

fn arrow_type(sql_type: &SqlType) -> Option<DataType> {
    let stamp = |unit, zoned: bool| Some(DataType::Timestamp(unit, zoned.then(|| Arc::from(ZONE))));
    match sql_type {
        SqlType::Timestamp(None, zone) => stamp(TimeUnit::Microsecond, matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone)),
        SqlType::TimestampNtz(None) => stamp(TimeUnit::Microsecond, false),
        SqlType::Custom(name, modifiers) if modifiers.is_empty() => match name.to_string().to_ascii_lowercase().as_str() {
            "long" => Some(DataType::Int64),
            "timestamp_ltz" => stamp(TimeUnit::Microsecond, true),
            "timestamp_ns" => stamp(TimeUnit::Nanosecond, false),
            "timestamptz_ns" => stamp(TimeUnit::Nanosecond, true),
            _ => None,
        },
        _ => None,
    }
}
