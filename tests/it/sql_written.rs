//! Conditions that the engine would put more simply and otherwise: regular expressions, the two zeros, decimals beside doubles.
//!
//! What stands behind each is what PostgreSQL's rules give by hand.

use crate::sql_changes::Warehouse;

/// s = 'a\b', NULL, 'ab', '\', 'c'.
const MATCHES: &[(&str, &str)] = &[
    (r"s ~ '.*'", "1 3 4 5"),
    (r"(s ~ '.*') IS NULL", "2"),
    (r"(s ~ '.*') IS FALSE", ""),
    (r"NOT coalesce(s ~ '.*', true)", ""),
    (r"(s !~ '.*') IS NULL", "2"),
    (r"regexp_like(s, '.*') = false", ""),
    (r"s ~ 'a\\b'", "1"),
    (r"s !~ 'a\\b'", "3 4 5"),
    (r"regexp_like(s, 'a\\b')", "1"),
    (r"regexp_like(s, 'A\\B', 'i')", "1"),
    (r"s ~* 'A\\B'", "1"),
    (r"s !~* 'A\\B'", "3 4 5"),
    (r"s ~ '^a\\b$'", "1"),
    (r"s ~ '\\'", "1 4"),
    (r"s ~ 'ab|\\'", "1 3 4"),
    (r"s ~ '^(ab|c)$' AND s ~ '^(d|e)$'", ""),
    (r"(s ~ '^(ab|c)$' AND s ~ '^(d|e)$') IS NULL", "2"),
    (r"s ~ concat('a', '\\', 'b')", "1"),
    (r"s ~ NULL", ""),
    (r"(s ~ NULL) IS NULL", "1 2 3 4 5"),
    (r"s ~ ''", "1 3 4 5"),
];

/// f = 0.0, NULL, -0.0, 5.0.
const ZEROS: &[(&str, &str)] = &[
    ("f = 0.0 AND f = CAST('-0.0' AS DOUBLE)", "1 3"),
    ("f = 0.0 AND f = -0.0", "1 3"),
    ("f = 0.0 AND f <> CAST('-0.0' AS DOUBLE)", ""),
    ("f = CAST('-0.0' AS DOUBLE) AND f <> 0", ""),
    ("f = 0.0 OR f = 5.0 OR f = 6.0 OR f = 7.0 OR f = 8.0", "1 3 4"),
    ("f = -0.0 OR f = 5.0 OR f = 6.0 OR f = 7.0 OR f = 8.0", "1 3 4"),
    ("f = 0 OR f = 6 OR f = 7 OR f = 8 OR f = 9", "1 3"),
    ("NOT (f = 0.0 OR f = 6.0 OR f = 7.0 OR f = 8.0 OR f = 9.0)", "4"),
    ("f IN (-0.0, 6.0, 7.0, 8.0, 9.0) AND f = 0.0", "1 3"),
    ("f BETWEEN 0.0 AND -0.0", "1 3"),
    ("f <> 0.0 * -1", "4"),
];

/// d DECIMAL(10, 2) and f DOUBLE: (0, 1e-20), (1, 1), (1, the double after 1), (2, 1e30), (NULL, NaN).
const DOUBLES: &[(&str, &str)] = &[
    ("d = f", "2"),
    ("d <> f", "1 3 4"),
    ("d < f", "1 3 4"),
    ("f > d", "1 3 4"),
    ("d IN (f, f + 1)", "2"),
    ("f IN (d)", "2"),
    ("f BETWEEN d AND d", "2"),
    ("d BETWEEN f AND f", "2"),
    ("(d = f) IS NULL", "5"),
    ("d IS NOT DISTINCT FROM f", "2"),
    ("d = 1", "2 3"),
    ("d < 1e30", "1 2 3 4"),
    ("id IN (SELECT x.id FROM s.d x JOIN s.d y ON x.d = y.f)", "2 3"),
];

async fn check(w: &Warehouse, table: &str, conditions: &[(&str, &str)]) {
    for (condition, expected) in conditions {
        let rows = w.rows(&format!("SELECT id FROM {table} WHERE {condition} ORDER BY id")).await;
        assert_eq!(rows[1..].join(" "), *expected, "{condition}");
    }
}

#[tokio::test]
async fn regular_expressions_mean_what_is_written() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.r (id BIGINT, s STRING)").await;
    w.run(r"INSERT INTO s.r VALUES (1, 'a\b'), (2, NULL), (3, 'ab'), (4, '\'), (5, 'c')")
        .await;
    check(&w, "s.r", MATCHES).await;
    assert_eq!(w.run(r"DELETE FROM s.r WHERE s ~ 'a\\b'").await.rows, 1);
    assert_eq!(w.rows("SELECT id FROM s.r ORDER BY id").await[1..].join(" "), "2 3 4 5");
}

#[tokio::test]
async fn the_two_zeros_are_one_number_wherever_they_meet() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.z (id BIGINT, f DOUBLE)").await;
    w.run("INSERT INTO s.z VALUES (1, 0.0), (2, NULL), (3, CAST('-0.0' AS DOUBLE)), (4, 5.0)")
        .await;
    check(&w, "s.z", ZEROS).await;
    assert_eq!(w.run("DELETE FROM s.z WHERE f = 0.0 AND f <> CAST('-0.0' AS DOUBLE)").await.rows, 0);
}

#[tokio::test]
async fn a_decimal_beside_a_double_is_compared_as_one() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.d (id BIGINT, d DECIMAL(10, 2), f DOUBLE)").await;
    w.run("INSERT INTO s.d VALUES (1, 0, 1e-20), (2, 1, 1), (3, 1, 1.0000000000000002), (4, 2, 1e30), (5, NULL, CAST('NaN' AS DOUBLE))")
        .await;
    check(&w, "s.d", DOUBLES).await;
    assert_eq!(w.run("DELETE FROM s.d WHERE d = f").await.rows, 1);
}
