//! Parameters: types that are announced, values that are bound.

use std::sync::Arc;

use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::array::{NullArray, TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray};
use arrow::datatypes::{DataType, Schema, TimeUnit};
use sandur::error::ErrorKind;
use sandur::sql::{Defaults, Engine};

use crate::sql_support::{Memory, MemoryCatalog, batch, collect, engine, lines};

fn table() -> Engine {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    let decimals = Decimal128Array::from(vec![150, 250, 350]).with_precision_and_scale(9, 2).unwrap();
    lake.commit(
        "default",
        "t",
        batch(vec![
            ("id", Arc::new(Int32Array::from(vec![1, 2, 3]))),
            ("name", Arc::new(StringArray::from(vec![Some("a"), Some("it's"), None]))),
            ("price", Arc::new(decimals)),
            ("day", Arc::new(Date32Array::from(vec![0, 1, 2]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1_001, 2_000_000]))),
        ]),
    );
    engine(vec![lake], &memory)
}

async fn types(engine: &Engine, sql: &str) -> Vec<(String, DataType)> {
    let planned = engine.plan(sql, &Defaults::default()).await.unwrap();
    planned.parameters.into_iter().map(|p| (p.name, p.data_type)).collect()
}

async fn bound(engine: &Engine, sql: &str, values: Vec<ArrayRef>) -> Result<Vec<String>, sandur::error::Error> {
    let planned = engine.plan(sql, &Defaults::default()).await?;
    let names: Vec<String> = (0..values.len()).map(|i| format!("c{i}")).collect();
    let batch = batch(names.iter().map(String::as_str).zip(values).collect());
    Ok(lines(&collect(engine, &planned, Some(&batch)).await?)[1..].to_vec())
}

#[tokio::test]
async fn each_placeholder_has_one_concrete_type() {
    let engine = table();
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    assert_eq!(
        types(
            &engine,
            "SELECT ? FROM t WHERE id = ? AND name LIKE ? AND price > ? AND day BETWEEN ? AND ? AND at < ? LIMIT ?"
        )
        .await,
        [
            ("1".to_owned(), DataType::Utf8),
            ("2".to_owned(), DataType::Int64),
            ("3".to_owned(), DataType::Utf8),
            ("4".to_owned(), DataType::Decimal128(9, 2)),
            ("5".to_owned(), DataType::Date32),
            ("6".to_owned(), DataType::Date32),
            ("7".to_owned(), millis),
            ("8".to_owned(), DataType::Int64),
        ]
    );
    assert_eq!(
        types(&engine, "SELECT * FROM t WHERE id IN ($2, $1) OR name = $3").await,
        [
            ("1".to_owned(), DataType::Int64),
            ("2".to_owned(), DataType::Int64),
            ("3".to_owned(), DataType::Utf8)
        ]
    );
    assert_eq!(
        types(&engine, "SELECT * FROM t WHERE name = $who AND id > $Low AND id < $Low + 10").await,
        [("who".to_owned(), DataType::Utf8), ("Low".to_owned(), DataType::Int64)]
    );
    // nothing says what it is but the function
    assert_eq!(types(&engine, "SELECT abs(?)").await.len(), 1);
    assert_eq!(types(&engine, "SELECT CAST(? AS DATE)").await[0].1, DataType::Date32);
    assert_eq!(types(&engine, "SELECT 1").await, []);
}

#[tokio::test]
async fn values_are_bound_by_position_and_by_name() {
    let engine = table();
    let two: ArrayRef = Arc::new(Int64Array::from(vec![2]));
    assert_eq!(
        bound(&engine, "SELECT id FROM t WHERE id = ?", vec![Arc::clone(&two)])
            .await
            .unwrap(),
        ["2"]
    );
    let name: ArrayRef = Arc::new(StringArray::from(vec!["it's"]));
    assert_eq!(
        bound(&engine, "SELECT $2, id FROM t WHERE name = $1", vec![name, Arc::clone(&two)])
            .await
            .unwrap(),
        ["2|2"]
    );
    let planned = engine
        .plan("SELECT id FROM t WHERE id >= $low AND id <= $high", &Defaults::default())
        .await
        .unwrap();
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let named = batch(vec![("high", Arc::clone(&two)), ("$low", one)]);
    assert_eq!(lines(&collect(&engine, &planned, Some(&named)).await.unwrap())[1..], ["1", "2"]);
}

#[tokio::test]
async fn values_are_compared_and_not_rounded() {
    let engine = table();
    let one = |v: ArrayRef| vec![v];
    let ids = |sql: &'static str, v: ArrayRef| bound(&engine, sql, one(v));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["2"]));
    assert_eq!(ids("SELECT id FROM t WHERE id = ?", text).await.unwrap(), ["2"]);
    let fraction: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
    assert_eq!(ids("SELECT id FROM t WHERE id > ?", fraction).await.unwrap(), ["2", "3"]);
    let large: ArrayRef = Arc::new(Int64Array::from(vec![5_000_000_000]));
    assert_eq!(ids("SELECT id FROM t WHERE id < ?", large).await.unwrap().len(), 3);
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1_001]));
    assert_eq!(ids("SELECT id FROM t WHERE at = ?", micros).await.unwrap(), ["2"]);
    let millis: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![2_000]));
    assert_eq!(ids("SELECT id FROM t WHERE at = ?", millis).await.unwrap(), ["3"]);
    let fine: ArrayRef = Arc::new(Decimal128Array::from(vec![2_500_001]).with_precision_and_scale(20, 6).unwrap());
    assert_eq!(ids("SELECT id FROM t WHERE price < ?", fine).await.unwrap(), ["1", "2"]);
    let null: ArrayRef = Arc::new(NullArray::new(1));
    assert_eq!(ids("SELECT count(*) FROM t WHERE name = ?", null).await.unwrap(), ["0"]);
    let null: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    assert_eq!(
        ids("SELECT id FROM t WHERE name IS NOT DISTINCT FROM ?", null).await.unwrap(),
        ["3"]
    );
    let quote: ArrayRef = Arc::new(StringArray::from(vec!["it's' OR 1=1 --"]));
    assert_eq!(ids("SELECT count(*) FROM t WHERE name = ?", quote).await.unwrap(), ["0"]);
}

#[tokio::test]
async fn rows_are_executed_one_after_another() {
    let engine = table();
    let three: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 9, 1]));
    assert_eq!(
        bound(&engine, "SELECT id, name FROM t WHERE id = ?", vec![three]).await.unwrap(),
        ["3|NULL", "1|a", "1|a"]
    );
    let none: ArrayRef = Arc::new(Int64Array::from(Vec::<i64>::new()));
    assert_eq!(
        bound(&engine, "SELECT id FROM t WHERE id = ?", vec![none]).await.unwrap(),
        Vec::<String>::new()
    );
    // the result has the planned type whatever was bound
    let number: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    assert_eq!(bound(&engine, "SELECT ?", vec![number]).await.unwrap(), ["7"]);
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_refused() {
    let engine = table();
    let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let word = || Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    for (sql, values) in [
        ("SELECT ?, ?", vec![number()]),
        ("SELECT ?", vec![number(), number()]),
        ("SELECT ?", vec![]),
        ("SELECT 1", vec![number()]),
        ("SELECT id FROM t WHERE id = ?", vec![word()]),
        ("SELECT id FROM t WHERE at = ?", vec![word()]),
        ("SELECT id FROM t WHERE at = ?", vec![number()]),
        ("SELECT id FROM t LIMIT ?", vec![word()]),
        ("SELECT ?, $1", vec![number()]),
        ("DESCRIBE t WHERE ?", vec![number()]),
    ] {
        let e = bound(&engine, sql, values).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{sql}: {e}");
    }
    let planned = engine.plan("SELECT ?", &Defaults::default()).await.unwrap();
    assert_eq!(collect(&engine, &planned, None).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let planned = engine.plan("SELECT 1 AS one", &Defaults::default()).await.unwrap();
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert_eq!(lines(&collect(&engine, &planned, Some(&nothing)).await.unwrap()), ["one", "1"]);
}

#[tokio::test]
async fn a_result_is_never_cut_to_what_was_announced() {
    let engine = table();
    let half = || vec![Arc::new(Float64Array::from(vec![0.5])) as ArrayRef];
    let error = bound(&engine, "SELECT id + ? FROM t WHERE id = 1", half()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("CAST(? AS DOUBLE)"), "{error}");
    assert_eq!(
        bound(&engine, "SELECT id + CAST(? AS DOUBLE) FROM t WHERE id = 1", half())
            .await
            .unwrap(),
        ["1.5"]
    );
    let whole = vec![Arc::new(Float64Array::from(vec![2.0])) as ArrayRef];
    assert_eq!(bound(&engine, "SELECT id + ? FROM t WHERE id = 1", whole).await.unwrap(), ["3"]);
    let fine = Decimal128Array::from(vec![4]).with_precision_and_scale(10, 4).unwrap();
    assert!(bound(&engine, "SELECT price + ? FROM t", vec![Arc::new(fine)]).await.is_err());
}

#[tokio::test]
async fn nanoseconds_are_not_cut_when_microseconds_are_compared_with_them() {
    let engine = table();
    let nanos = |v| vec![Arc::new(TimestampNanosecondArray::from(vec![v])) as ArrayRef];
    let count = "SELECT count(*) FROM t WHERE at";
    assert_eq!(bound(&engine, &format!("{count} = ?"), nanos(1_001_000)).await.unwrap(), ["1"]);
    assert_eq!(bound(&engine, &format!("{count} = ?"), nanos(1_001_001)).await.unwrap(), ["0"]);
    assert_eq!(bound(&engine, &format!("{count} < ?"), nanos(1_001_001)).await.unwrap(), ["2"]);
    assert_eq!(bound(&engine, &format!("{count} IN (?)"), nanos(1)).await.unwrap(), ["0"]);
    assert_eq!(
        bound(&engine, &format!("{count} BETWEEN ? AND '2000-01-01'"), nanos(1))
            .await
            .unwrap(),
        ["2"]
    );
    for (sql, rows) in [
        ("= arrow_cast('1970-01-01T00:00:00.000000001', 'Timestamp(ns)')", "0"),
        ("< to_timestamp_nanos('1970-01-01T00:00:00.000000001')", "1"),
        ("= to_timestamp_nanos('1970-01-01T00:00:00.001001')", "1"),
    ] {
        assert_eq!(
            bound(&engine, &format!("{count} {sql}"), Vec::new()).await.unwrap(),
            [rows],
            "{sql}"
        );
    }
    // A zone on one side alone is UTC on the other.
    let zoned = "SELECT count(*) FROM t WHERE arrow_cast(at, 'Timestamp(us, \"UTC\")')";
    for (count, zone) in [(count, "Z"), (zoned, ""), (zoned, "Z"), (zoned, "+00:00")] {
        for (op, rows) in [
            ("=", "0"),
            ("<>", "3"),
            ("<", "2"),
            ("<=", "2"),
            (">", "1"),
            (">=", "1"),
            ("IN", "0"),
        ] {
            let literal = format!("(TIMESTAMP '1970-01-01T00:00:00.001001500{zone}')");
            let sql = format!("{count} {op} {literal}");
            assert_eq!(bound(&engine, &sql, Vec::new()).await.unwrap(), [rows], "{sql}");
        }
    }
}
