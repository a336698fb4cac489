//! CommandGetXdbcTypeInfo: one row per SQL type.
//!
//! Invariants: rows are sorted by data type, then name; names are those that columns carry as
//! `TYPE_NAME`; numbers are the protocol's `XdbcDataType`, `Nullable`, `Searchable` and
//! `XdbcDatetimeSubcode`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int32Array, ListBuilder, RecordBatch, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field};

use super::reference::XDBC_TYPE_INFO;
use crate::error::Result;

/// `NULLABILITY_NULLABLE`
const NULLABLE: i32 = 1;
/// `SEARCHABLE_BASIC`
const BASIC: i32 = 2;
/// `SEARCHABLE_FULL`
const FULL: i32 = 3;
/// `XDBC_DATETIME`
const DATETIME: i32 = 9;

/// A type.
struct Type {
    name: &'static str,
    data_type: i32,
    size: Option<i32>,
    quotes: Option<(&'static str, &'static str)>,
    params: &'static [&'static str],
    text: bool,
    /// Numbers: the radix of the size.
    radix: Option<i32>,
    /// Smallest and largest scale.
    scale: Option<(i32, i32)>,
    /// Date and time types: the subcode.
    subcode: Option<i32>,
}

const PLAIN: Type = Type {
    name: "",
    data_type: 0,
    size: None,
    quotes: None,
    params: &[],
    text: false,
    radix: None,
    scale: None,
    subcode: None,
};

/// Sorted by data type and name.
const TYPES: &[Type] = &[
    Type {
        name: "boolean",
        data_type: -7,
        size: Some(1),
        ..PLAIN
    },
    Type {
        name: "long",
        data_type: -5,
        size: Some(19),
        radix: Some(10),
        scale: Some((0, 0)),
        ..PLAIN
    },
    Type {
        name: "binary",
        data_type: -3,
        size: Some(65536),
        quotes: Some(("X'", "'")),
        ..PLAIN
    },
    Type {
        name: "fixed",
        data_type: -2,
        size: Some(65536),
        quotes: Some(("X'", "'")),
        params: &["length"],
        ..PLAIN
    },
    Type {
        name: "uuid",
        data_type: -2,
        size: Some(16),
        quotes: Some(("X'", "'")),
        ..PLAIN
    },
    Type {
        name: "decimal",
        data_type: 3,
        size: Some(38),
        params: &["precision", "scale"],
        radix: Some(10),
        scale: Some((0, 38)),
        ..PLAIN
    },
    Type {
        name: "int",
        data_type: 4,
        size: Some(10),
        radix: Some(10),
        scale: Some((0, 0)),
        ..PLAIN
    },
    Type {
        name: "float",
        data_type: 7,
        size: Some(24),
        radix: Some(2),
        ..PLAIN
    },
    Type {
        name: "double",
        data_type: 8,
        size: Some(53),
        radix: Some(2),
        ..PLAIN
    },
    Type {
        name: "string",
        data_type: 12,
        size: Some(65536),
        quotes: Some(("'", "'")),
        text: true,
        ..PLAIN
    },
    Type {
        name: "date",
        data_type: 91,
        size: Some(10),
        quotes: Some(("DATE '", "'")),
        subcode: Some(1),
        ..PLAIN
    },
    Type {
        name: "time",
        data_type: 92,
        size: Some(15),
        quotes: Some(("TIME '", "'")),
        scale: Some((6, 6)),
        subcode: Some(2),
        ..PLAIN
    },
    Type {
        name: "timestamp",
        data_type: 93,
        size: Some(26),
        quotes: Some(("TIMESTAMP '", "'")),
        scale: Some((6, 6)),
        subcode: Some(3),
        ..PLAIN
    },
    Type {
        name: "timestamp_ns",
        data_type: 93,
        size: Some(29),
        quotes: Some(("TIMESTAMP '", "'")),
        scale: Some((9, 9)),
        subcode: Some(3),
        ..PLAIN
    },
    Type {
        name: "timestamptz",
        data_type: 93,
        size: Some(32),
        quotes: Some(("TIMESTAMP '", "'")),
        scale: Some((6, 6)),
        subcode: Some(5),
        ..PLAIN
    },
    Type {
        name: "timestamptz_ns",
        data_type: 93,
        size: Some(35),
        quotes: Some(("TIMESTAMP '", "'")),
        scale: Some((9, 9)),
        subcode: Some(5),
        ..PLAIN
    },
];

/// The answer: all types, or those of one data type.
pub(super) fn xdbc_type_info(data_type: Option<i32>) -> Result<RecordBatch> {
    let types: Vec<&Type> = TYPES.iter().filter(|t| data_type.is_none_or(|d| d == t.data_type)).collect();
    let texts = |get: fn(&Type) -> Option<&'static str>| -> ArrayRef { Arc::new(types.iter().map(|t| get(t)).collect::<StringArray>()) };
    let ints = |get: fn(&Type) -> Option<i32>| -> ArrayRef { Arc::new(types.iter().map(|t| get(t)).collect::<Int32Array>()) };
    let bools = |get: fn(&Type) -> Option<bool>| -> ArrayRef { Arc::new(types.iter().map(|t| get(t)).collect::<BooleanArray>()) };
    let mut params = ListBuilder::new(StringBuilder::new()).with_field(Field::new("item", DataType::Utf8, false));
    for t in &types {
        for param in t.params {
            params.values().append_value(param);
        }
        params.append(!t.params.is_empty());
    }
    let columns = vec![
        texts(|t| Some(t.name)),
        ints(|t| Some(t.data_type)),
        ints(|t| t.size),
        texts(|t| t.quotes.map(|q| q.0)),
        texts(|t| t.quotes.map(|q| q.1)),
        Arc::new(params.finish()),
        ints(|_| Some(NULLABLE)),
        bools(|t| Some(t.text)),
        ints(|t| Some(if t.text { FULL } else { BASIC })),
        bools(|t| t.radix.map(|_| false)),
        bools(|_| Some(false)),
        bools(|t| t.radix.map(|_| false)),
        texts(|t| Some(t.name)),
        ints(|t| t.scale.map(|s| s.0)),
        ints(|t| t.scale.map(|s| s.1)),
        ints(|t| Some(if t.subcode.is_some() { DATETIME } else { t.data_type })),
        ints(|t| t.subcode),
        ints(|t| t.radix),
        ints(|_| None),
    ];
    Ok(RecordBatch::try_new(Arc::clone(&XDBC_TYPE_INFO), columns)?)
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn rows_are_sorted_and_complete() {
        let batch = xdbc_type_info(None).unwrap();
        let rows: Vec<(i32, &str)> = batch
            .column(1)
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .copied()
            .zip(batch.column(0).as_string::<i32>().iter().map(Option::unwrap))
            .collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert_eq!(rows, sorted);
        for name in ["decimal", "timestamp", "timestamptz", "boolean", "string", "uuid"] {
            assert!(rows.iter().any(|r| r.1 == name), "{name}");
        }
    }

    #[test]
    fn a_data_type_filters() {
        let batch = xdbc_type_info(Some(93)).unwrap();
        assert_eq!(
            batch.column(0).as_string::<i32>().iter().map(Option::unwrap).collect::<Vec<_>>(),
            ["timestamp", "timestamp_ns", "timestamptz", "timestamptz_ns"]
        );
        // Generic type and subcode: with time zone is 5.
        assert_eq!(batch.column(15).as_primitive::<Int32Type>().value(2), 9);
        assert_eq!(batch.column(16).as_primitive::<Int32Type>().value(2), 5);
        assert_eq!(xdbc_type_info(Some(1)).unwrap().num_rows(), 0);
    }
}
