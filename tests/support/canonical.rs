//! The canonical form of rows, in which expectations are stated and compared.
//!
//! A row is a list of JSON values: integers as numbers (as strings from 2^53 on), decimals, dates
//! (`YYYY-MM-DD`), times and timestamps (`YYYY-MM-DDTHH:MM:SS.ffffff`, nine digits for
//! nanosecond types, `Z` behind zoned ones) as strings, binary as `hex:...`, NaN and the
//! infinities as strings, structs as objects, maps as lists of pairs sorted by key.
//!
//! The hash is over UTF-8 lines: the sorted column names, then one line per row with the columns
//! in that order, rows sorted as text. A line is what Python's `json.dumps(.., sort_keys=True)`
//! prints, since that is what wrote the expectations.

use std::fmt::Write;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{self as dt, DataType, Field, TimeUnit};
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// From here on integers are strings, because JSON readers may hold numbers as doubles.
const FIRST_INTEGER_AS_STRING: u64 = 1 << 53;

/// Rows in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The rows of some batches of one schema; `names` stand for the columns where there is no batch.
    pub fn from_batches(names: Vec<String>, batches: &[RecordBatch]) -> Self {
        let rows = batches.iter().flat_map(rows).collect();
        Self { columns: names, rows }
    }

    /// The same rows with each value as text.
    pub fn as_text(&self) -> Self {
        let text = |value: &Value| match value {
            Value::Null | Value::String(_) => value.clone(),
            other => Value::String(dumps(other)),
        };
        let rows = self.rows.iter().map(|row| row.iter().map(text).collect());
        Self {
            columns: self.columns.clone(),
            rows: rows.collect(),
        }
    }

    /// The hash of ORIGINS.md, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for line in self.lines() {
            hash.update(line.as_bytes());
            hash.update(b"\n");
        }
        hash.finalize().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// The hashed lines: header, then rows sorted as text.
    pub fn lines(&self) -> Vec<String> {
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        order.sort_by_key(|i| &self.columns[*i]);
        let header = Value::Array(order.iter().map(|i| Value::String(self.columns[*i].clone())).collect());
        let mut lines: Vec<String> = self.rows.iter().map(|row| dumps_list(order.iter().map(|i| &row[*i]))).collect();
        lines.sort();
        lines.insert(0, dumps(&header));
        lines
    }
}

/// One line per row with the columns in their own order, sorted: what tests compare.
pub fn sorted_lines(rows: &[Vec<Value>]) -> Vec<String> {
    let mut lines: Vec<String> = rows.iter().map(|row| dumps_list(row.iter())).collect();
    lines.sort();
    lines
}

/// The rows of a batch.
pub fn rows(batch: &RecordBatch) -> Vec<Vec<Value>> {
    let schema = batch.schema();
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(array, f)| (array, Logical::of(f)))
        .collect();
    (0..batch.num_rows())
        .map(|row| columns.iter().map(|(array, logical)| value(array, logical, row)).collect())
        .collect()
}

/// One value of an array in canonical form; the field's metadata says what the arrow type does not.
pub fn cell(array: &ArrayRef, field: &Field, row: usize) -> Value {
    value(array, &Logical::of(field), row)
}

/// A type as the table format names it, where the arrow type alone does not say (uuid, variant).
#[derive(Debug, Clone, Default, PartialEq)]
struct Logical {
    name: String,
    /// Of a struct in order of its fields, of a list its element, of a map key and value.
    children: Vec<Logical>,
}

impl Logical {
    fn of(field: &Field) -> Self {
        let metadata = field.metadata();
        if metadata.get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid") {
            return Self::parse("uuid");
        }
        match metadata.get(sandur::table::TYPE_NAME_KEY) {
            Some(text) => Self::parse(text),
            // a test's own batch names types field by field
            None => {
                let children = match field.data_type() {
                    DataType::List(inner) | DataType::LargeList(inner) | DataType::FixedSizeList(inner, _) => vec![Self::of(inner)],
                    DataType::Struct(fields) => fields.iter().map(|f| Self::of(f)).collect(),
                    DataType::Map(entries, _) => Self::of(entries).children,
                    _ => Vec::new(),
                };
                Self {
                    name: String::new(),
                    children,
                }
            }
        }
    }

    /// From text such as `map<date, struct<t: time, x: list<uuid>>>`.
    fn parse(text: &str) -> Self {
        let Some((name, inner)) = text.split_once('<') else {
            return Self {
                name: text.to_owned(),
                children: Vec::new(),
            };
        };
        let inner = inner.strip_suffix('>').unwrap_or(inner);
        let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
        for (i, c) in inner.char_indices() {
            match c {
                '<' | '(' => depth += 1,
                '>' | ')' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&inner[start..i]);
                    start = i + 1;
                }
                _ => {}
            }
        }
        parts.push(&inner[start..]);
        let child = |part: &str| match (name, part.split_once(": ")) {
            ("struct", Some((_, of))) => Self::parse(of.trim()),
            _ => Self::parse(part.trim()),
        };
        Self {
            name: name.to_owned(),
            children: parts.into_iter().map(child).collect(),
        }
    }

    fn child(&self, index: usize) -> Self {
        self.children.get(index).cloned().unwrap_or_default()
    }
}

fn value(array: &ArrayRef, logical: &Logical, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    macro_rules! number {
        ($t:ty) => {
            integer(i128::from(array.as_primitive::<$t>().value(row)))
        };
    }
    let text = |s: &str| Value::String(s.to_owned());
    let hex = |bytes: &[u8]| Value::String(binary(bytes, logical));
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int8 => number!(dt::Int8Type),
        DataType::Int16 => number!(dt::Int16Type),
        DataType::Int32 => number!(dt::Int32Type),
        DataType::Int64 => number!(dt::Int64Type),
        DataType::UInt8 => number!(dt::UInt8Type),
        DataType::UInt16 => number!(dt::UInt16Type),
        DataType::UInt32 => number!(dt::UInt32Type),
        DataType::UInt64 => number!(dt::UInt64Type),
        DataType::Float32 => float(f64::from(array.as_primitive::<dt::Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<dt::Float64Type>().value(row)),
        DataType::Decimal32(_, scale) => decimal(i128::from(array.as_primitive::<dt::Decimal32Type>().value(row)), *scale),
        DataType::Decimal64(_, scale) => decimal(i128::from(array.as_primitive::<dt::Decimal64Type>().value(row)), *scale),
        DataType::Decimal128(_, scale) => decimal(array.as_primitive::<dt::Decimal128Type>().value(row), *scale),
        DataType::Date32 => text(&date(i64::from(array.as_primitive::<dt::Date32Type>().value(row)))),
        DataType::Time64(TimeUnit::Microsecond) => text(&time(array.as_primitive::<dt::Time64MicrosecondType>().value(row), 6)),
        DataType::Time64(TimeUnit::Nanosecond) => text(&time(array.as_primitive::<dt::Time64NanosecondType>().value(row), 9)),
        DataType::Timestamp(unit, zone) => {
            let (value, digits) = match unit {
                TimeUnit::Second => (array.as_primitive::<dt::TimestampSecondType>().value(row) * 1_000_000, 6),
                TimeUnit::Millisecond => (array.as_primitive::<dt::TimestampMillisecondType>().value(row) * 1_000, 6),
                TimeUnit::Microsecond => (array.as_primitive::<dt::TimestampMicrosecondType>().value(row), 6),
                TimeUnit::Nanosecond => (array.as_primitive::<dt::TimestampNanosecondType>().value(row), 9),
            };
            Value::String(timestamp(value, digits, zone.is_some()))
        }
        DataType::Utf8 => string(array.as_string::<i32>().value(row), logical),
        DataType::LargeUtf8 => string(array.as_string::<i64>().value(row), logical),
        DataType::Utf8View => string(array.as_string_view().value(row), logical),
        DataType::Binary => hex(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => hex(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(row)),
        DataType::List(_) => list(&array.as_list::<i32>().value(row), logical),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row), logical),
        DataType::FixedSizeList(..) => list(&array.as_fixed_size_list().value(row), logical),
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns()).enumerate();
            Value::Object(
                columns
                    .map(|(i, (f, c))| (f.name().clone(), value(c, &logical.child(i), row)))
                    .collect(),
            )
        }
        DataType::Map(..) => {
            let entry = array.as_map().value(row);
            let side = |i: usize| (entry.column(i).clone(), logical.child(i));
            let sides = [side(0), side(1)];
            let pair = |i| Value::Array(sides.iter().map(|(array, of)| value(array, of, i)).collect());
            sorted_pairs((0..entry.len()).map(pair).collect())
        }
        DataType::Dictionary(_, values) => {
            let plain = arrow::compute::cast(array, values).expect("a dictionary casts to its values");
            value(&plain, logical, row)
        }
        other => panic!("no canonical form for arrow type {other}"),
    }
}

/// A map: pairs sorted by key, numbers as numbers and anything else as text.
pub fn sorted_pairs(mut pairs: Vec<Value>) -> Value {
    pairs.sort_by(|a, b| match (a[0].as_i64(), b[0].as_i64()) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => dumps(&a[0]).cmp(&dumps(&b[0])),
    });
    Value::Array(pairs)
}

fn list(elements: &ArrayRef, logical: &Logical) -> Value {
    let of = logical.child(0);
    Value::Array((0..elements.len()).map(|i| value(elements, &of, i)).collect())
}

/// An integer: a number below 2^53, else a string.
pub fn integer(value: i128) -> Value {
    if value.unsigned_abs() < u128::from(FIRST_INTEGER_AS_STRING) {
        Value::Number(Number::from(value as i64))
    } else {
        Value::String(value.to_string())
    }
}

/// A float or double: a number, or the names of what JSON has no number for.
pub fn float(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::String("NaN".to_owned()),
        None if value > 0.0 => Value::String("Infinity".to_owned()),
        None => Value::String("-Infinity".to_owned()),
    }
}

fn decimal(unscaled: i128, scale: i8) -> Value {
    let scale = usize::try_from(scale).expect("no negative scale");
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    Value::String(format!("{sign}{whole}{point}{fraction}"))
}

fn string(value: &str, logical: &Logical) -> Value {
    if logical.name == "variant" {
        return serde_json::from_str(value).expect("a variant is given as JSON");
    }
    Value::String(value.to_owned())
}

fn binary(bytes: &[u8], logical: &Logical) -> String {
    if bytes.len() == 16 && logical.name == "uuid" {
        return uuid::Uuid::from_slice(bytes).expect("16 bytes").to_string();
    }
    bytes.iter().fold("hex:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Days since 1970-01-01 as `YYYY-MM-DD` in the proleptic Gregorian calendar.
pub fn date(days: i64) -> String {
    // days counted from 0000-03-01, so that leap days end a year
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time of day; `digits` is 6 for microseconds, 9 for nanoseconds.
pub fn time(value: i64, digits: u32) -> String {
    let unit = 10_i64.pow(digits);
    let (seconds, fraction) = (value.div_euclid(unit), value.rem_euclid(unit));
    let width = digits as usize;
    format!(
        "{:02}:{:02}:{:02}.{fraction:0width$}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// A timestamp; `digits` is 6 for microseconds, 9 for nanoseconds.
pub fn timestamp(value: i64, digits: u32, zoned: bool) -> String {
    let day = 86_400 * 10_i64.pow(digits);
    let zone = if zoned { "Z" } else { "" };
    format!("{}T{}{zone}", date(value.div_euclid(day)), time(value.rem_euclid(day), digits))
}

/// What Python's `json.dumps(value, sort_keys=True)` prints.
pub fn dumps(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out);
    out
}

fn dumps_list<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    let mut out = String::from("[");
    for (i, value) in values.enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        print(value, &mut out);
    }
    out.push(']');
    out
}

fn print(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Value::Number(n) => print_number(n, out),
        Value::String(s) => print_string(s, out),
        Value::Array(list) => out.push_str(&dumps_list(list.iter())),
        Value::Object(fields) => print_object(fields, out),
    }
}

fn print_object(fields: &Map<String, Value>, out: &mut String) {
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort();
    out.push('{');
    for (i, name) in names.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        print_string(name, out);
        out.push_str(": ");
        print(&fields[name], out);
    }
    out.push('}');
}

fn print_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

fn print_number(number: &Number, out: &mut String) {
    let text = number.to_string();
    if !text.contains(['.', 'e', 'E']) {
        out.push_str(&text);
        return;
    }
    let value: f64 = text.parse().expect("a JSON number");
    out.push_str(&python_float(value));
}

/// `repr` of a finite float: the shortest digits that give it back, with an exponent below 1e-4 and from 1e16 on.
fn python_float(value: f64) -> String {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_print_as_python_prints_them() {
        // each pair as `repr` gives it
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (f64::from(f32::MAX), "3.4028234663852886e+38"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::from(0.1_f32), "0.10000000149011612"),
        ] {
            assert_eq!(python_float(value), text);
            assert_eq!(dumps(&float(value)), text);
        }
    }

    #[test]
    fn text_is_escaped_to_ascii() {
        assert_eq!(
            dumps(&json!("é\u{7f}\u{1f980}\n\u{1}\"\\")),
            r#""\u00e9\u007f\ud83e\udd80\n\u0001\"\\""#
        );
    }

    #[test]
    fn dates_follow_the_proleptic_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (-141_427, "1582-10-15"),
            (-719_162, "0001-01-01"),
            (2_932_896, "9999-12-31"),
        ] {
            assert_eq!(date(days), text);
        }
        assert_eq!(timestamp(-1, 6, true), "1969-12-31T23:59:59.999999Z");
        assert_eq!(timestamp(1, 9, false), "1970-01-01T00:00:00.000000001");
    }

    #[test]
    fn type_names_are_read_to_their_leaves() {
        let of = Logical::parse("map<date, struct<t: time, x: list<uuid>, d: decimal(9, 2)>>");
        assert_eq!(of.child(1).child(1).child(0).name, "uuid");
        assert_eq!(of.child(1).child(2).name, "decimal(9, 2)");
        assert_eq!(Logical::parse("uuid").name, "uuid");
    }

    #[test]
    fn decimals_keep_their_scale() {
        assert_eq!(decimal(-1, 18), json!("-0.000000000000000001"));
        assert_eq!(decimal(15, 1), json!("1.5"));
        assert_eq!(decimal(-999_999_999, 0), json!("-999999999"));
    }

    #[test]
    fn stated_rows_have_the_stated_hash() {
        let mut checked = 0;
        for case in super::super::cases::iceberg() {
            if let (Some(rows), Some(hash)) = (case.rows(), case.sha256()) {
                assert_eq!(rows.sha256(), hash, "{}", case.name);
                checked += 1;
            }
        }
        assert!(
            checked >= 100 || super::super::cases::dir().is_none(),
            "only {checked} cases state rows and hash"
        );
    }
}
