//! The rules of row-level deletes and of reading a table, end to end: tables from the builder,
//! rows from SQL. A test states the rows that are right by hand; the builder's model must
//! agree with them, so that a wrong expectation is found before the engine is blamed.
//!
//! Tests that retell a report of `known-faults.md` name its number.

mod comparisons;
mod equality;
mod examples;
mod formats;
mod hidden;
mod metadata_tables;
mod positions;
mod replaced;
mod schemas;
mod tables;
mod travel;
mod types;
mod vectors;

use sandur::error::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::support::builder::{Schema, TestTable, Type, optional, required};
use crate::support::canonical::sorted_lines;
use crate::support::read;

/// A table of one column `id long`.
fn ids() -> Schema {
    Schema::new([required(1, "id", Type::Long)])
}

/// A table of `id long` and `data string`.
fn id_data() -> Schema {
    Schema::new([required(1, "id", Type::Long), optional(2, "data", Type::String)])
}

/// Rows of one column from numbers.
fn column(values: impl IntoIterator<Item = i64>) -> Value {
    values.into_iter().map(|v| json!([v])).collect()
}

fn listed(rows: Value) -> Vec<Vec<Value>> {
    match rows {
        Value::Array(rows) => rows.into_iter().map(|r| r.as_array().expect("a row").clone()).collect(),
        other => panic!("{other} is no list of rows"),
    }
}

/// The table's rows are these, in any order.
#[track_caller]
fn shows(table: &TestTable, rows: Value) {
    let expected = sorted_lines(&listed(rows));
    assert_eq!(sorted_lines(&table.rows()), expected, "the model disagrees with the test");
    table.note_rows(&expected);
    let read = read::rows(table).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(sorted_lines(&read), expected);
}

/// The rows of a query on `t` are these, in any order.
#[track_caller]
fn answers(table: &TestTable, sql: &str, rows: Value) {
    let read = read::query(table, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(sorted_lines(&read.rows), sorted_lines(&listed(rows)), "{sql}");
}

/// Reading the table fails with this kind and a message that has these words.
#[track_caller]
fn refuses(table: &TestTable, kind: ErrorKind, words: &[&str]) -> Error {
    let error = match read::rows(table) {
        Err(error) => error,
        Ok(rows) => panic!("read {} rows of a table that must be refused", rows.len()),
    };
    assert_eq!(error.kind(), kind, "{error:?}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
    error
}
