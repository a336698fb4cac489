//! Values: from the canonical form that tests write to arrow arrays, to bounds and to defaults
//! (spec appendix D).
//!
//! Tests give every value as the JSON of [`crate::support::canonical`]. A value that does not fit
//! its type is an error of the test and panics.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{self as a, ArrayRef, RecordBatch, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Fields};
use serde_json::{Value, json};

use super::types::{Field, Schema, Type};

/// A primitive value.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    Bool(bool),
    /// int, date
    Int(i32),
    /// long, time, timestamps
    Long(i64),
    Float(f32),
    Double(f64),
    /// Unscaled.
    Decimal(i128),
    Text(String),
    /// uuid, fixed, binary
    Bytes(Vec<u8>),
}

impl Scalar {
    /// The value of a primitive type; `None` for null.
    pub fn new(of: &Type, value: &Value) -> Option<Self> {
        if value.is_null() {
            return None;
        }
        let text = || value.as_str().unwrap_or_else(|| panic!("{value} is no string, as {of:?} needs"));
        Some(match of {
            Type::Boolean => Self::Bool(value.as_bool().expect("a boolean")),
            Type::Int => Self::Int(i32::try_from(integer(value)).expect("an int")),
            Type::Long => Self::Long(integer(value)),
            Type::Float => Self::Float(double(value) as f32),
            Type::Double => Self::Double(double(value)),
            Type::Decimal(_, scale) => Self::Decimal(unscaled(text(), *scale)),
            Type::Date => Self::Int(i32::try_from(days(text())).expect("a date of 32 bits")),
            Type::Time => Self::Long(time_of_day(text(), 6)),
            Type::Timestamp | Type::Timestamptz => Self::Long(instant(text(), 6)),
            Type::TimestampNs | Type::TimestamptzNs => Self::Long(instant(text(), 9)),
            Type::String => Self::Text(text().to_owned()),
            Type::Uuid => Self::Bytes(uuid::Uuid::parse_str(text()).expect("a uuid").as_bytes().to_vec()),
            Type::Fixed(_) | Type::Binary => Self::Bytes(bytes(text())),
            other => panic!("{other:?} is no primitive type"),
        })
    }

    /// The binary form of bounds.
    pub fn binary(&self) -> Vec<u8> {
        match self {
            Self::Bool(v) => vec![u8::from(*v)],
            Self::Int(v) => v.to_le_bytes().to_vec(),
            Self::Long(v) => v.to_le_bytes().to_vec(),
            Self::Float(v) => v.to_le_bytes().to_vec(),
            Self::Double(v) => v.to_le_bytes().to_vec(),
            Self::Decimal(v) => shortest_big_endian(*v),
            Self::Text(v) => v.as_bytes().to_vec(),
            Self::Bytes(v) => v.clone(),
        }
    }

    /// True for the values that never count for bounds.
    pub fn is_nan(&self) -> bool {
        matches!(self, Self::Float(v) if v.is_nan()) || matches!(self, Self::Double(v) if v.is_nan())
    }

    /// The order of bounds; values of one type without NaN.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(x), Self::Bool(y)) => x.cmp(y),
            (Self::Int(x), Self::Int(y)) => x.cmp(y),
            (Self::Long(x), Self::Long(y)) => x.cmp(y),
            (Self::Float(x), Self::Float(y)) => x.total_cmp(y),
            (Self::Double(x), Self::Double(y)) => x.total_cmp(y),
            (Self::Decimal(x), Self::Decimal(y)) => x.cmp(y),
            (Self::Text(x), Self::Text(y)) => x.cmp(y),
            (Self::Bytes(x), Self::Bytes(y)) => x.cmp(y),
            (x, y) => panic!("{x:?} and {y:?} are of different types"),
        }
    }
}

/// A default as schemas state it (appendix D, JSON single-value form).
pub fn default_json(of: &Type, value: &Value) -> Value {
    match (of, value) {
        (_, Value::Null) => Value::Null,
        (Type::Long, Value::String(digits)) => json!(digits.parse::<i64>().expect("a long")),
        (Type::Timestamptz | Type::TimestamptzNs, Value::String(text)) => {
            json!(format!("{}+00:00", text.trim_end_matches('Z')))
        }
        (Type::Fixed(_) | Type::Binary, Value::String(text)) => json!(text.trim_start_matches("hex:")),
        (_, other) => other.clone(),
    }
}

/// Rows (lists in column order) as a batch of the schema's arrow form.
pub fn batch(schema: &Schema, rows: &[Vec<Value>], ids: bool) -> RecordBatch {
    for row in rows {
        assert_eq!(
            row.len(),
            schema.fields.len(),
            "a row of {:?} has one value per column: {row:?}",
            schema.names()
        );
    }
    let columns = schema
        .fields
        .iter()
        .enumerate()
        .filter(|(_, f)| f.field_type != Type::Unknown)
        .map(|(i, field)| {
            let cells: Vec<&Value> = rows.iter().map(|r| &r[i]).collect();
            array(&field.field_type, &cells, ids)
        });
    let options = a::RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.arrow(ids), columns.collect(), &options).expect("cells fit the schema")
}

/// Cells as an array of the type's arrow form.
pub fn array(of: &Type, cells: &[&Value], ids: bool) -> ArrayRef {
    let nulls = NullBuffer::from_iter(cells.iter().map(|c| !c.is_null()));
    match of {
        Type::Struct(fields) => struct_array(fields, cells, nulls, ids),
        Type::List(element) => {
            let items: Vec<&[Value]> = cells.iter().map(|c| items(c)).collect();
            let flat: Vec<&Value> = items.iter().flat_map(|i| i.iter()).collect();
            let offsets = OffsetBuffer::from_lengths(items.iter().map(|i| i.len()));
            let values = array(&element.field_type, &flat, ids);
            Arc::new(a::ListArray::new(Arc::new(element.arrow(ids)), offsets, values, Some(nulls)))
        }
        Type::Map(key, value) => {
            let pairs: Vec<&[Value]> = cells.iter().map(|c| items(c)).collect();
            let offsets = OffsetBuffer::from_lengths(pairs.iter().map(|p| p.len()));
            let side = |i: usize| pairs.iter().flat_map(|p| p.iter()).map(|pair| &pair[i]).collect::<Vec<_>>();
            let keys = array(&key.field_type, &side(0), ids);
            let values = array(&value.field_type, &side(1), ids);
            let DataType::Map(entries, _) = of.arrow(ids) else {
                unreachable!("a map")
            };
            let pair = Fields::from(vec![key.arrow(ids), value.arrow(ids)]);
            let flat = StructArray::new(pair, vec![keys, values], None);
            Arc::new(a::MapArray::new(entries, offsets, flat, Some(nulls), false))
        }
        primitive => primitive_array(primitive, cells),
    }
}

fn struct_array(fields: &[Field], cells: &[&Value], nulls: NullBuffer, ids: bool) -> ArrayRef {
    let columns = fields.iter().map(|field| {
        let inner: Vec<&Value> = cells.iter().map(|c| c.get(&field.name).unwrap_or(&Value::Null)).collect();
        // below a null struct a required field needs some value
        let filler = filler(&field.field_type);
        let inner: Vec<&Value> = inner
            .iter()
            .zip(cells)
            .map(|(value, parent)| if field.required && parent.is_null() { &filler } else { *value })
            .collect();
        array(&field.field_type, &inner, ids)
    });
    let columns: Vec<ArrayRef> = columns.collect();
    let arrow = fields.iter().map(|f| f.arrow(ids)).collect();
    Arc::new(StructArray::new(arrow, columns, Some(nulls)))
}

fn primitive_array(of: &Type, cells: &[&Value]) -> ArrayRef {
    let scalars: Vec<Option<Scalar>> = cells.iter().map(|c| Scalar::new(of, c)).collect();
    macro_rules! column {
        ($array:ty, $variant:ident) => {{
            let values = scalars.iter().map(|s| match s {
                Some(Scalar::$variant(v)) => Some(v.clone()),
                _ => None,
            });
            values.collect::<$array>()
        }};
    }
    match of {
        Type::Boolean => Arc::new(column!(a::BooleanArray, Bool)),
        Type::Int => Arc::new(column!(a::Int32Array, Int)),
        Type::Date => Arc::new(column!(a::Date32Array, Int)),
        Type::Long => Arc::new(column!(a::Int64Array, Long)),
        Type::Time => Arc::new(column!(a::Time64MicrosecondArray, Long)),
        Type::Timestamp => Arc::new(column!(a::TimestampMicrosecondArray, Long)),
        Type::Timestamptz => Arc::new(column!(a::TimestampMicrosecondArray, Long).with_timezone("UTC")),
        Type::TimestampNs => Arc::new(column!(a::TimestampNanosecondArray, Long)),
        Type::TimestamptzNs => Arc::new(column!(a::TimestampNanosecondArray, Long).with_timezone("UTC")),
        Type::Float => Arc::new(column!(a::Float32Array, Float)),
        Type::Double => Arc::new(column!(a::Float64Array, Double)),
        Type::Decimal(p, s) => {
            let plain = column!(a::Decimal128Array, Decimal);
            Arc::new(plain.with_precision_and_scale(*p, *s).expect("a decimal that fits"))
        }
        Type::String => Arc::new(column!(a::StringArray, Text)),
        Type::Binary => {
            let values = scalars.iter().map(|s| match s {
                Some(Scalar::Bytes(v)) => Some(v.as_slice()),
                _ => None,
            });
            Arc::new(values.collect::<a::BinaryArray>())
        }
        Type::Uuid | Type::Fixed(_) => {
            let width = if let Type::Fixed(n) = of { *n } else { 16 };
            let values = scalars.iter().map(|s| match s {
                Some(Scalar::Bytes(v)) => Some(v.as_slice()),
                _ => None,
            });
            Arc::new(a::FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width).expect("values of that width"))
        }
        other => panic!("{other:?} is no primitive type"),
    }
}

/// Some value of a type, for places that are under a null and yet must be filled.
fn filler(of: &Type) -> Value {
    match of {
        Type::Boolean => json!(false),
        Type::Int | Type::Long | Type::Float | Type::Double => json!(0),
        Type::Decimal(..) => json!("0"),
        Type::Date => json!("1970-01-01"),
        Type::Time => json!("00:00:00"),
        Type::Timestamp | Type::Timestamptz | Type::TimestampNs | Type::TimestamptzNs => json!("1970-01-01T00:00:00"),
        Type::String => json!(""),
        Type::Uuid => json!(uuid::Uuid::nil().to_string()),
        Type::Fixed(n) => json!(format!("hex:{}", "00".repeat(usize::try_from(*n).expect("a width")))),
        Type::Binary => json!("hex:"),
        Type::Unknown => Value::Null,
        Type::Struct(_) => json!({}),
        Type::List(_) | Type::Map(..) => json!([]),
    }
}

fn items(cell: &Value) -> &[Value] {
    match cell {
        Value::Null => &[],
        Value::Array(items) => items,
        other => panic!("{other} is no list"),
    }
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::String(digits) => digits.parse().expect("an integer"),
        other => other.as_i64().unwrap_or_else(|| panic!("{other} is no integer")),
    }
}

fn double(value: &Value) -> f64 {
    match value {
        // also "NaN", "Infinity" and "-Infinity"
        Value::String(name) => name.parse().expect("a float"),
        other => other.to_string().parse().unwrap_or_else(|_| panic!("{other} is no float")),
    }
}

fn unscaled(text: &str, scale: i8) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let scale = usize::try_from(scale).expect("no negative scale");
    assert!(fraction.len() <= scale, "{text} has more than {scale} digits behind the point");
    format!("{whole}{fraction:0<scale$}").parse().expect("a decimal")
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
pub fn days(text: &str) -> i64 {
    let (sign, body) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let parts: Vec<i64> = body.split('-').map(|p| p.parse().expect("a date")).collect();
    let [year, month, day] = parts[..] else {
        panic!("{text} is no date")
    };
    let year = sign * year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn time_of_day(text: &str, digits: usize) -> i64 {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let parts: Vec<i64> = clock.split(':').map(|p| p.parse().expect("a time")).collect();
    let [hours, minutes, seconds] = parts[..] else {
        panic!("{text} is no time")
    };
    let fraction: i64 = format!("{fraction:0<digits$}").parse().expect("a fraction");
    let unit = 10_i64.pow(u32::try_from(digits).expect("6 or 9"));
    ((hours * 60 + minutes) * 60 + seconds) * unit + fraction
}

fn instant(text: &str, digits: usize) -> i64 {
    let (date, time) = text.trim_end_matches('Z').split_once('T').expect("a date and a time");
    let day = 86_400 * 10_i64.pow(u32::try_from(digits).expect("6 or 9"));
    days(date) * day + time_of_day(time, digits)
}

fn bytes(text: &str) -> Vec<u8> {
    let digits = text
        .strip_prefix("hex:")
        .unwrap_or_else(|| panic!("{text} does not start with hex:"));
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal digits"))
        .collect()
}

fn shortest_big_endian(value: i128) -> Vec<u8> {
    let full = value.to_be_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    let mut start = 0;
    while start < 15 && full[start] == sign && (full[start + 1] & 0x80) == (sign & 0x80) {
        start += 1;
    }
    full[start..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::canonical;

    #[test]
    fn bounds_have_the_binary_form_of_appendix_d() {
        for (of, value, expected) in [
            (Type::Int, json!(34), vec![34, 0, 0, 0]),
            (Type::Long, json!("-1"), vec![0xff; 8]),
            (Type::Date, json!("1969-12-31"), vec![0xff; 4]),
            (Type::Decimal(9, 2), json!("14.20"), vec![0x05, 0x8c]),
            (Type::Decimal(9, 2), json!("-0.01"), vec![0xff]),
            (Type::Decimal(9, 2), json!("1.28"), vec![0x00, 0x80]),
            (Type::Boolean, json!(true), vec![1]),
            (Type::String, json!("é"), vec![0xc3, 0xa9]),
            (Type::Double, json!(1.0), vec![0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        ] {
            assert_eq!(Scalar::new(&of, &value).unwrap().binary(), expected, "{of:?} {value}");
        }
    }

    #[test]
    fn every_type_goes_through_arrow_and_back() {
        let nested = Type::fields([
            optional_field(40, "x", Type::Int),
            optional_field(41, "y", Type::list(42, Type::String)),
        ]);
        let cases = [
            (Type::Boolean, json!(true)),
            (Type::Int, json!(-7)),
            (Type::Long, json!("9223372036854775807")),
            (Type::Float, json!("NaN")),
            (Type::Double, json!(-0.0)),
            (Type::Decimal(38, 18), json!("-0.000000000000000001")),
            (Type::Date, json!("1582-10-15")),
            (Type::Time, json!("23:59:59.999999")),
            (Type::Timestamp, json!("0001-01-01T00:00:00.000000")),
            (Type::Timestamptz, json!("1969-12-31T23:59:59.999999Z")),
            (Type::TimestampNs, json!("1970-01-01T00:00:00.000000001")),
            (Type::String, json!("é🦀")),
            (Type::Uuid, json!("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
            (Type::Fixed(3), json!("hex:00ff80")),
            (Type::Binary, json!("hex:")),
            (Type::list(30, Type::Date), json!(["2024-02-29", null])),
            (Type::map(31, Type::String, 32, Type::Int), json!([["a", 1], ["b", null]])),
            (nested, json!({"x": 1, "y": ["q"]})),
        ];
        for (of, value) in cases {
            let schema = Schema::new([optional_field(1, "c", of)]);
            let rows = vec![vec![value], vec![Value::Null]];
            let batch = batch(&schema, &rows, true);
            assert_eq!(canonical::sorted_lines(&canonical::rows(&batch)), canonical::sorted_lines(&rows));
        }
    }

    fn optional_field(id: i32, name: &str, of: Type) -> Field {
        super::super::types::optional(id, name, of)
    }
}
