//! Partition values: text in the log, typed values in the table (PROTOCOL.md, "Partition Value Serialization").
//!
//! An empty text is null for every type, as is a value that is not there.

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
            let cast = lenient(&texts, to)?;
            check(&texts, &cast)?;
            Ok(cast)
        }
    }
}

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
        ] {
            let error = one(text, data_type).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
