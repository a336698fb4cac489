//! Hostile statements end in an error or an answer, never in the end of the process (SE-31, T-15).

use std::sync::Arc;

use arrow::array::Int64Array;
use sandur::error::ErrorKind;
use sandur::sql::Engine;

use crate::sql_support::{Memory, MemoryCatalog, batch, engine, query, rows};

fn numbers() -> Engine {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    lake.commit(
        "default",
        "t",
        batch(vec![
            ("a", Arc::new(Int64Array::from((0..100).collect::<Vec<_>>()))),
            ("b", Arc::new(Int64Array::from((0..100).rev().collect::<Vec<_>>()))),
        ]),
    );
    engine(vec![lake], &memory)
}

fn chain(count: usize, op: &str, term: impl Fn(usize) -> String) -> String {
    let terms: Vec<_> = (0..count).map(term).collect();
    terms.join(op)
}

#[tokio::test]
async fn long_chains_of_equalities_work() {
    let engine = numbers();
    let ors = chain(10_000, " OR ", |i| format!("a = {}", i * 10));
    assert_eq!(rows(&engine, &format!("SELECT count(*) FROM t WHERE {ors}")).await[1], "10");
    let ands = chain(10_000, " AND ", |i| format!("a <> {}", i * 10));
    assert_eq!(rows(&engine, &format!("SELECT count(*) FROM t WHERE {ands}")).await[1], "90");
}

#[tokio::test]
async fn long_chains_of_other_terms_work_up_to_a_limit() {
    let engine = numbers();
    for (count, op, expected) in [(300, " OR ", "100"), (60, " AND ", "50")] {
        let terms = chain(count, op, |i| format!("a + {i} > b"));
        assert_eq!(rows(&engine, &format!("SELECT count(*) FROM t WHERE {terms}")).await[1], expected);
    }
    for op in [" OR ", " AND "] {
        let terms = chain(10_000, op, |i| format!("a > b + {i}"));
        let e = query(&engine, &format!("SELECT count(*) FROM t WHERE {terms}")).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    }
}

#[tokio::test]
async fn statements_beyond_the_bounds_are_refused() {
    let engine = numbers();
    let mut bomb = "WITH c0 AS (SELECT a FROM t)".to_owned();
    for i in 1..30 {
        bomb += &format!(", c{i} AS (SELECT x.a FROM c{0} x, c{0} y)", i - 1);
    }
    bomb += " SELECT count(*) FROM c29";
    let nested = |open: &str, inner: &str, close: &str, n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    for sql in [
        format!("SELECT {}", nested("(", "1", ")", 5_000)),
        nested("SELECT * FROM (", "SELECT 1", ") AS x", 1_000),
        format!("SELECT {}", nested("abs(", "1", ")", 3_000)),
        format!("SELECT {}", nested("CASE WHEN true THEN ", "1", " END", 2_000)),
        nested("WITH x AS (", "SELECT 1", ") SELECT * FROM x", 500),
        format!("SELECT {}1", "NOT ".repeat(5_000)),
        format!("SELECT {}", chain(2_000, " + ", |_| "1".to_owned())),
        format!("SELECT 1{}", " IS NULL".repeat(20_000)),
        format!("SELECT 1{}", "::int".repeat(20_000)),
        chain(5_000, " UNION ALL ", |_| "SELECT 1".to_owned()),
        format!("SELECT 1 FROM {}", chain(500, ", ", |i| format!("t AS t{i}"))),
        format!("SELECT {}", chain(90_000, "+", |_| "1".to_owned())),
        format!("SELECT '{}'", "x".repeat(2 << 20)),
        format!("SELECT * FROM t WHERE a IN ({})", chain(49_999 + 2, ",", |_| "1".to_owned())),
        format!("{}SELECT a FROM t{}", "SELECT a FROM t WHERE a IN (".repeat(20), ")".repeat(20)),
        format!(
            "SELECT count(*) FROM t WHERE {}",
            chain(40, " AND ", |_| format!("({})", chain(40, " AND ", |_| "a > b".to_owned())))
        ),
        bomb,
    ] {
        let e = query(&engine, &sql).await.unwrap_err();
        assert!(
            matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::ResourceExhausted),
            "{}: {e:?}",
            &sql[..sql.len().min(60)]
        );
    }
}

#[tokio::test]
async fn moderate_nesting_works() {
    let engine = numbers();
    let nested = |open: &str, inner: &str, close: &str, n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    assert_eq!(rows(&engine, &format!("SELECT {} AS x", nested("(", "1", ")", 60))).await[1], "1");
    assert_eq!(
        rows(&engine, &format!("SELECT {} AS x", chain(100, " + ", |_| "1".to_owned()))).await[1],
        "100"
    );
    assert_eq!(rows(&engine, &nested("SELECT * FROM (", "SELECT 1", ") AS x", 20)).await[1], "1");
    let unions = chain(150, " UNION ALL ", |i| format!("SELECT {i}"));
    assert_eq!(rows(&engine, &format!("SELECT count(*) FROM ({unions}) AS u")).await[1], "150");
    let list = chain(20_000, ",", |i| i.to_string());
    assert_eq!(
        rows(&engine, &format!("SELECT count(*) FROM t WHERE a IN ({list})")).await[1],
        "100"
    );
}

#[tokio::test]
async fn functions_that_make_much_out_of_little_have_a_budget() {
    let engine = numbers();
    for sql in [
        "SELECT repeat('x', 1500000000)",
        "SELECT repeat('x', 100000000) FROM t",
        "SELECT repeat('x', a * 100000000) FROM t",
        "SELECT lpad('x', 1000000000, 'y')",
        "SELECT rpad('x', 2000000000)",
        "SELECT length(rpad('x', a * 10000000)) FROM t",
        "SELECT array_repeat(1, 2000000000)",
        "SELECT array_repeat(repeat('x', 1000000), 100000)",
        "SELECT array_resize([1], 2000000000, 0)",
        "SELECT range(0, 1000000000)",
        "SELECT range(1000000000)",
        "SELECT generate_series(0, 9000000000000000000, 2)",
        "SELECT range(TIMESTAMP '1970-01-01', TIMESTAMP '2020-01-01', INTERVAL '1' MILLISECOND)",
        "SELECT generate_series(-9223372036854775807, 9223372036854775807)",
    ] {
        let e = query(&engine, sql).await.unwrap_err();
        assert!(
            matches!(e.kind(), ErrorKind::ResourceExhausted | ErrorKind::InvalidInput),
            "{sql}: {e:?}"
        );
    }
    for (sql, expected) in [
        ("SELECT repeat('ab', 3)", "ababab"),
        ("SELECT sum(length(repeat('x', a))) FROM t", "4950"),
        ("SELECT lpad('7', 3, '0') || rpad('x', 3, '-')", "007x--"),
        ("SELECT array_repeat(1, 3)", "[1, 1, 1]"),
        ("SELECT array_resize([1, 2], 3, 0)", "[1, 2, 0]"),
        ("SELECT range(3)", "[0, 1, 2]"),
        ("SELECT generate_series(1, 5, 2)", "[1, 3, 5]"),
        (
            "SELECT cardinality(range(DATE '2020-01-01', DATE '2021-01-01', INTERVAL '1' DAY))",
            "366",
        ),
        ("SELECT repeat(NULL, 3)", "NULL"),
        ("SELECT count(*) FROM range(0, 1000000)", "1000000"),
    ] {
        assert_eq!(rows(&engine, sql).await[1], expected, "{sql}");
    }
}
