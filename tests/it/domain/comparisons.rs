//! Comparisons mean what they mean in SQL, wherever they stand.

use serde_json::json;

use super::answers;
use crate::support::builder::{DataFile, Schema, TableBuilder, TestTable, Type, optional};

/// id, b, d: (1, true, 0.0), (2, false, -0.0), (3, NULL, 1.0).
fn zeros() -> TestTable {
    let schema = Schema::new([
        optional(1, "id", Type::Int),
        optional(2, "b", Type::Boolean),
        optional(3, "d", Type::Double),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([[1, true, 0.0], [2, false, -0.0], [3, null, 1.0]])));
    table
}

#[test]
fn what_follows_is_distinct_from_stands_by_itself() {
    let table = zeros();
    for (sql, rows) in [
        ("SELECT id FROM t WHERE b IS DISTINCT FROM true AND id = 3", json!([[3]])),
        ("SELECT id FROM t WHERE b IS DISTINCT FROM true OR id = 1", json!([[1], [2], [3]])),
        ("SELECT id FROM t WHERE b IS NOT DISTINCT FROM true AND id > 1", json!([])),
        ("SELECT id FROM t WHERE d IS NOT DISTINCT FROM 1.0 OR id = 2", json!([[2], [3]])),
        ("SELECT id FROM t WHERE NOT b IS DISTINCT FROM NULL OR id = 1", json!([[1], [3]])),
        ("SELECT id FROM t WHERE id IS DISTINCT FROM 1 + 1 AND b IS NULL", json!([[3]])),
        (
            "SELECT x.id, y.id FROM t x JOIN t y ON x.b IS NOT DISTINCT FROM y.b AND x.id = 1",
            json!([[1, 1]]),
        ),
        (
            "SELECT count(*) FILTER (WHERE b IS DISTINCT FROM true AND id = 2) FROM t",
            json!([[1]]),
        ),
        (
            "SELECT id, CASE WHEN b IS DISTINCT FROM false THEN 'other' ELSE 'same' END FROM t",
            json!([[1, "other"], [2, "same"], [3, "other"]]),
        ),
    ] {
        answers(&table, sql, rows);
    }
}

#[test]
fn the_two_zeros_are_one_number_everywhere() {
    let table = zeros();
    for (sql, rows) in [
        ("SELECT id FROM t WHERE d = 0", json!([[1], [2]])),
        ("SELECT id FROM t WHERE d IN (SELECT d FROM t WHERE id = 1)", json!([[1], [2]])),
        (
            "SELECT a.id, b.id FROM t a JOIN t b ON a.d = b.d WHERE a.id < 3 AND b.id = 1",
            json!([[1, 1], [2, 1]]),
        ),
        ("SELECT id, count(*) OVER (PARTITION BY d) FROM t", json!([[1, 2], [2, 2], [3, 1]])),
        ("SELECT id, rank() OVER (ORDER BY d) FROM t", json!([[1, 1], [2, 1], [3, 3]])),
        ("SELECT id FROM t ORDER BY d DESC, id DESC LIMIT 2", json!([[3], [2]])),
        ("SELECT id FROM t ORDER BY d, id LIMIT 1", json!([[1]])),
        ("SELECT count(DISTINCT d), count(DISTINCT id) FROM t WHERE id < 3", json!([[1, 2]])),
        ("SELECT count(*) FROM (SELECT DISTINCT d FROM t)", json!([[2]])),
        ("SELECT id FROM t WHERE NULLIF(d, 0.0) IS NULL", json!([[1], [2]])),
        ("SELECT id FROM t WHERE CASE d WHEN 0.0 THEN true ELSE false END", json!([[1], [2]])),
        (
            "SELECT id FROM t WHERE CASE d WHEN -0.0 THEN true ELSE false END",
            json!([[1], [2]]),
        ),
        ("SELECT id FROM t WHERE (d, id) = (0.0, 2)", json!([[2]])),
    ] {
        answers(&table, sql, rows);
    }
}

#[test]
fn nan_is_one_value_of_either_sign() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "id", Type::Int), optional(2, "d", Type::Double)])).create();
    table.append(DataFile::named("F").rows(json!([[1, "NaN"], [2, "-NaN"], [3, 1.0]])));
    for (sql, rows) in [
        ("SELECT id FROM t WHERE d = 'NaN'::double", json!([[1], [2]])),
        ("SELECT id FROM t ORDER BY d, id LIMIT 1", json!([[3]])),
        ("SELECT count(DISTINCT d) FROM t", json!([[2]])),
        ("SELECT count(*) FROM t GROUP BY d", json!([[1], [2]])),
    ] {
        answers(&table, sql, rows);
    }
}

/// The processor's own NaN has a sign, that of the file has none here.
#[test]
fn nan_that_is_computed_is_the_nan_of_a_file() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "id", Type::Int), optional(2, "d", Type::Double)])).create();
    table.append(DataFile::named("F").rows(json!([[1, "NaN"], [2, 0.0], [3, 1.0]])));
    for (sql, rows) in [
        ("SELECT id FROM t WHERE d / d = 'NaN'::double", json!([[1], [2]])),
        ("SELECT id FROM t WHERE 0e0 / d > 5.0", json!([[1], [2]])),
        ("SELECT id FROM t WHERE -d = 'NaN'::double", json!([[1]])),
        ("SELECT id FROM t WHERE CAST('-NaN' AS double) = d", json!([[1]])),
        (
            "SELECT id FROM (SELECT id, 0e0 / d AS q FROM t) WHERE q IN (SELECT d FROM t WHERE id = 1)",
            json!([[1], [2]]),
        ),
        (
            "SELECT a.id, b.id FROM t a JOIN t b ON a.d / a.d = b.d WHERE b.id = 1",
            json!([[1, 1], [2, 1]]),
        ),
    ] {
        answers(&table, sql, rows);
    }
}

#[test]
fn row_values_compare_with_row_values_only() {
    let table = zeros();
    for condition in [
        "(id, b) = struct(1, true)",
        "(id, b) IN ((1, true), struct(1, true))",
        "(id, b) IN (SELECT (id, b) FROM t)",
        "(id, b) IN (SELECT id, b FROM t)",
        "(id, b) = ANY (SELECT (id, b) FROM t)",
        "(id, b) BETWEEN (1, true) AND struct(2, true)",
        "(id, b) IS DISTINCT FROM struct(1, true)",
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition}");
        let error = crate::support::read::query(&table, &sql).map(|r| r.rows.len()).unwrap_err();
        assert!(error.to_string().contains("row value"), "{sql}: {error}");
    }
}

#[test]
fn row_values_compare_part_by_part() {
    let table = zeros();
    for (sql, rows) in [
        ("SELECT id FROM t WHERE (b, id) < (false, 0)", json!([])),
        ("SELECT id FROM t WHERE (b, id) <= (true, 9)", json!([[1], [2]])),
        ("SELECT id FROM t WHERE (b, id) >= (false, 2)", json!([[1], [2]])),
        ("SELECT id FROM t WHERE (id, b) > (2, true)", json!([[3]])),
        ("SELECT id FROM t WHERE (b, id) = (true, 1)", json!([[1]])),
        // unknown where the other part is equal, else different
        ("SELECT id FROM t WHERE (b, id) <> (true, 3)", json!([[1], [2]])),
        ("SELECT id FROM t WHERE (b, id) IN ((true, 1), (false, 1), (NULL, 3))", json!([[1]])),
        ("SELECT id FROM t WHERE (b, id) NOT IN ((true, 1), (false, 4))", json!([[2], [3]])),
        ("SELECT id FROM t WHERE (b, id) NOT IN ((true, 1), (false, 3))", json!([[2]])),
        ("SELECT id FROM t WHERE (b, id) IS NOT DISTINCT FROM (NULL, 3)", json!([[3]])),
        ("SELECT id FROM t WHERE (id, d) BETWEEN (1, 0.5) AND (3, 1.0)", json!([[2], [3]])),
    ] {
        answers(&table, sql, rows);
    }
}

/// Copies of parts are bounded, and so is the copying of left sides.
#[test]
fn comparisons_that_would_grow_are_refused() {
    let table = zeros();
    let wide = vec!["id + 1"; 2_000].join(" + ");
    let items = vec!["(1, 2)"; 1_000].join(", ");
    let sql = format!("SELECT id FROM t WHERE ({wide}, id) IN ({items})");
    let error = crate::support::read::query(&table, &sql).map(|r| r.rows.len()).unwrap_err();
    assert!(error.to_string().contains("too many expressions"), "{error}");
    let chain = " IS DISTINCT FROM true IS NULL".repeat(5_000);
    let error = crate::support::read::query(&table, &format!("SELECT id FROM t WHERE b{chain}")).map(|r| r.rows.len());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("parentheses"), "{error}");
    answers(
        &table,
        "SELECT id FROM t WHERE (b IS DISTINCT FROM true) IS DISTINCT FROM false",
        json!([[2], [3]]),
    );
}

#[test]
fn times_and_dates_compare_with_literals_of_other_units() {
    let schema = Schema::new([
        optional(1, "tm", Type::Time),
        optional(2, "dt", Type::Date),
        optional(3, "ts", Type::Timestamp),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([
        ["12:00:00.000000", "9999-12-31", "9999-12-31T00:00:00.000000"],
        ["23:59:59.999999", "2024-06-01", "2024-06-01T08:00:00.000000"],
    ])));
    for (condition, count) in [
        ("tm = TIME '12:00:00'", 1),
        ("NOT (tm = TIME '12:00:00')", 1),
        ("tm BETWEEN TIME '12:00:00' AND TIME '23:59:59'", 1),
        ("tm IN (TIME '12:00:00', TIME '23:59:59.999999')", 2),
        ("dt < TIMESTAMP '2024-06-01 00:00:01'", 1),
        ("dt <> TIMESTAMP '2300-01-01 00:00:00'", 2),
        ("dt = ts", 1),
        ("ts > dt", 1),
        ("dt IN (TIMESTAMP '2024-06-01 00:00:00')", 1),
        ("dt BETWEEN TIMESTAMP '2024-06-01 00:00:00' AND TIMESTAMP '9999-12-31 00:00:00'", 2),
        ("ts BETWEEN dt AND dt", 1),
        ("dt > TIMESTAMP '2024-05-31 23:59:59.123456789'", 2),
    ] {
        answers(&table, &format!("SELECT count(*) FROM t WHERE {condition}"), json!([[count]]));
    }
    answers(&table, "SELECT count(*) FROM t a JOIN t b ON a.dt = b.ts", json!([[1]]));
}
