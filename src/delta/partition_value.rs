//! Partition values: text in the log, typed values in the table (PROTOCOL.md, "Partition Value Serialization").
//!
//! An empty text is null for every type, as is a value that is not there.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};

use crate::error::{Error, Result};
use crate::table::Column;

/// The values of one partition column, one for each file.
///
/// Errors: `Corrupt` for a text that is no value of the type.
pub(super) fn typed(texts: Vec<Option<&str>>, column: &Column) -> Result<ArrayRef> {
    let texts: StringArray = texts.into_iter().map(|text| text.filter(|t| !t.is_empty())).collect();
    let texts: ArrayRef = Arc::new(texts);
    // What is no value became null.
    let check = |texts: &ArrayRef, values: &ArrayRef| {
        let lost = (0..texts.len()).find(|row| texts.is_valid(*row) && values.is_null(*row));
        let Some(row) = lost else { return Ok(()) };
        let (name, data_type) = (column.field.name(), column.field.data_type());
        let text = texts.as_string::<i32>().value(row).escape_debug();
        Err(Error::corrupt(format!(
            "partition value \"{text}\" of column \"{name}\" is no {data_type}"
        )))
    };
    match column.field.data_type() {
        DataType::Utf8 => Ok(texts),
        DataType::Binary => {
            let bytes = texts.as_string::<i32>().iter().map(|text| text.map(str::as_bytes));
            Ok(Arc::new(bytes.collect::<BinaryArray>()))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = timestamps(&texts)?;
            check(&texts, &micros)?;
            let micros = micros.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(micros.with_timezone_opt(zone.clone())))
        }
        to => {
            let cast = match to.is_decimal() {
                true => {
                    let plain = texts.as_string::<i32>().iter().map(|text| text.map(plain_number));
                    lenient(&(Arc::new(plain.collect::<StringArray>()) as ArrayRef), to)?
                }
                false => lenient(&texts, to)?,
            };
            check(&texts, &cast)?;
            Ok(cast)
        }
    }
}

/// A decimal number without an exponent, as which Java writes small ones: `1.5E-7` is `0.00000015`. Other texts stay.
fn plain_number(text: &str) -> Cow<'_, str> {
    let plain = || {
        let (mantissa, exponent) = text.split_once(['e', 'E'])?;
        let exponent: i32 = exponent.parse().ok().filter(|e| (-MOST_DIGITS..=MOST_DIGITS).contains(e))?;
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = [whole, fraction].concat();
        if all.is_empty() || !all.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let zeros = "0".repeat(usize::try_from(MOST_DIGITS).ok()?);
        // The point lies behind so many of the digits; zeros stand on both sides of them.
        let point = zeros.len().checked_add_signed(isize::try_from(exponent).ok()?)? + whole.len();
        let padded = [zeros.as_str(), &all, &zeros].concat();
        let (before, after) = padded.split_at_checked(point)?;
        let before = before.trim_start_matches('0');
        let before = if before.is_empty() { "0" } else { before };
        Some(format!("{sign}{before}.{}", after.trim_end_matches('0')))
    };
    plain().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Digits of the longest decimal, and more than any exponent of one.
const MOST_DIGITS: i32 = 80;

/// Microseconds since the epoch of texts like `2024-01-01 00:00:00[.ffffff]`, which are taken as UTC, or with a
/// zone; null for what is no timestamp.
pub(super) fn timestamps(texts: &ArrayRef) -> Result<ArrayRef> {
    let utc = lenient(texts, &DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())))?;
    let utc = utc.as_primitive::<TimestampMicrosecondType>().clone();
    Ok(Arc::new(utc.with_timezone_opt(None::<&str>)))
}

/// The texts as values of a type; null for what is none.
pub(super) fn lenient(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    Ok(cast_with_options(texts, to, &options)?)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Date32Type, Decimal128Type, Field, Int8Type};

    use super::*;

    fn column(data_type: DataType) -> Column {
        Column {
            id: 1,
            field: Arc::new(Field::new("p", data_type, true)),
            names: vec!["p".to_owned()],
            initial_default: None,
            children: Vec::new(),
        }
    }

    fn one(text: &str, data_type: DataType) -> Result<ArrayRef> {
        typed(vec![Some(text)], &column(data_type))
    }

    /// B083
    #[test]
    fn an_empty_text_is_null() {
        for data_type in [DataType::Utf8, DataType::Binary, DataType::Int64, DataType::Date32] {
            let array = typed(vec![Some(""), None], &column(data_type)).unwrap();
            assert_eq!(array.null_count(), 2);
        }
    }

    #[test]
    fn texts_become_values() {
        assert_eq!(
            one("2024-02-29", DataType::Date32).unwrap().as_primitive::<Date32Type>().value(0),
            19_782
        );
        assert_eq!(one("-128", DataType::Int8).unwrap().as_primitive::<Int8Type>().value(0), -128);
        let decimal = one("-12.30", DataType::Decimal128(5, 2)).unwrap();
        assert_eq!(decimal.as_primitive::<Decimal128Type>().value(0), -1230);
        // As Java writes decimals whose first digit is far behind the point.
        for (text, unscaled) in [
            ("0E-10", 0),
            ("1E-8", 100),
            ("-1.5E-7", -1_500),
            ("15E+2", 15_000_000_000_000),
            ("12.5e0", 125_000_000_000),
        ] {
            let decimal = one(text, DataType::Decimal128(20, 10)).unwrap();
            assert_eq!(decimal.as_primitive::<Decimal128Type>().value(0), unscaled, "{text}");
        }
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for text in [
            "1970-01-01 00:00:01.5",
            "1970-01-01T00:00:01.500000Z",
            "1970-01-01 01:00:01.5+01:00",
        ] {
            let array = one(text, utc.clone()).unwrap();
            assert_eq!(array.as_primitive::<TimestampMicrosecondType>().value(0), 1_500_000, "{text}");
        }
        assert_eq!(one("a b%20", DataType::Utf8).unwrap().as_string::<i32>().value(0), "a b%20");
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for (text, data_type) in [
            ("300", DataType::Int8),
            ("x", DataType::Int64),
            ("2024-02-30", DataType::Date32),
            ("maybe", DataType::Boolean),
            ("1E", DataType::Decimal128(9, 2)),
            ("E1", DataType::Decimal128(9, 2)),
            ("1E99", DataType::Decimal128(9, 2)),
            ("1E2000000000", DataType::Decimal128(9, 2)),
            ("1-2E1", DataType::Decimal128(9, 2)),
        ] {
            let error = one(text, data_type).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
