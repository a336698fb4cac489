//! `IN (SELECT ..)` where it is not a condition of its own.

use crate::sql_changes::Warehouse;

/// t = (1, 'a'), (2, NULL), (3, 'c'); u = 'a', 'b'; n = 'a', NULL; e is empty. What stands behind each is what
/// PostgreSQL's rules give by hand: IN is NULL where nothing is equal and something is NULL.
const CONDITIONS: &[(&str, &str)] = &[
    ("NOT (s IN (SELECT s FROM u) AND s LIKE 'z%')", "1 3"),
    ("NOT (s IN (SELECT s FROM u)) OR id = 9", "3"),
    ("(s IN (SELECT s FROM u)) IS NULL", "2"),
    ("(s IN (SELECT s FROM u)) IS NOT TRUE", "2 3"),
    ("s NOT IN (SELECT s FROM n) OR id = 1", "1"),
    ("s NOT IN (SELECT s FROM u) OR id = 1", "1 3"),
    ("s NOT IN (SELECT s FROM e) OR id = 9", "1 2 3"),
    ("NOT (s IN (SELECT s FROM e) OR id = 9)", "1 2 3"),
    ("(s IN (SELECT s FROM e)) IS NULL", ""),
    ("s IN (SELECT s FROM n) OR id = 3", "1 3"),
    (
        "CASE WHEN s IN (SELECT s FROM n) THEN 1 WHEN s NOT IN (SELECT s FROM n) THEN 2 ELSE 3 END = 3",
        "2 3",
    ),
    ("(s IN (SELECT s FROM u)) = (id = 1)", "1 3"),
    ("NOT (upper(s) IN (SELECT upper(s) FROM u) OR false)", "3"),
    ("NOT (s IN (SELECT u.s FROM u WHERE u.s <> t.s) OR false)", "1 2 3"),
    // The left side is no column.
    ("'z' NOT IN (SELECT s FROM n)", ""),
    ("'z' NOT IN (SELECT s FROM u)", "1 2 3"),
    ("NULL NOT IN (SELECT s FROM u)", ""),
    ("NOT (NULL IN (SELECT s FROM u))", ""),
    ("NULL NOT IN (SELECT s FROM e)", "1 2 3"),
    // Other rows for each row: none for 1, the NULL of n for 2, both for 3.
    ("'c' NOT IN (SELECT n.s FROM n WHERE n.k < t.id)", "1"),
    ("t.s NOT IN (SELECT n.s FROM n WHERE n.k < t.id)", "1"),
    ("t.s NOT IN (SELECT u.s FROM u WHERE u.s = t.s)", "2 3"),
    // An aggregate over no rows is a row.
    ("NOT EXISTS (SELECT max(u.s) FROM u WHERE u.s = t.s)", ""),
    ("EXISTS (SELECT count(*) FROM u WHERE u.s = t.s)", "1 2 3"),
    ("t.s NOT IN (SELECT max(u.s) FROM u WHERE u.s = t.s)", ""),
    ("t.s IN (SELECT max(u.s) FROM u WHERE u.s = t.s) OR id = 3", "1 3"),
    ("(t.id IN (SELECT count(*) FROM u WHERE u.s = t.s)) IS NOT TRUE", "2 3"),
    ("t.s NOT IN (SELECT max(u.s) FROM u WHERE u.s = t.s) OR id = 9", ""),
];

#[tokio::test]
async fn a_condition_that_is_unknown_is_not_taken_for_false() {
    let w = Warehouse::new().await;
    for statement in [
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (id BIGINT, s STRING)",
        "CREATE TABLE s.u (s STRING)",
        "CREATE TABLE s.n (s STRING, k BIGINT)",
        "CREATE TABLE s.e (s STRING)",
        "INSERT INTO s.t VALUES (1, 'a'), (2, NULL), (3, 'c')",
        "INSERT INTO s.u VALUES ('a'), ('b')",
        "INSERT INTO s.n VALUES ('a', 2), (NULL, 1)",
    ] {
        w.run(statement).await;
    }
    for (condition, expected) in CONDITIONS {
        let condition = condition
            .replace("FROM u", "FROM s.u")
            .replace("FROM n", "FROM s.n")
            .replace("FROM e", "FROM s.e");
        let rows = w.rows(&format!("SELECT id FROM s.t WHERE {condition} ORDER BY id")).await;
        assert_eq!(rows[1..].join(" "), *expected, "{condition}");
    }
    // What the engine would take out of a subquery and forget is refused.
    for condition in [
        "NOT EXISTS (SELECT 1 FROM s.u WHERE u.s = t.s OFFSET 1)",
        "(SELECT count(*) FROM s.u WHERE u.s = t.s HAVING count(*) > 1) IS NULL",
        "EXISTS (SELECT count(*) FROM s.u WHERE u.s = t.s HAVING count(*) > 1)",
    ] {
        let (kind, text) = w.refused(&format!("DELETE FROM s.t WHERE {condition}")).await;
        assert_eq!(kind, sandur::error::ErrorKind::Unsupported, "{condition}: {text}");
    }
    // What a query does not give stays.
    let done = w.run("DELETE FROM s.t WHERE NOT (s IN (SELECT s FROM s.u)) OR id = 9").await;
    assert_eq!(done.rows, 1);
    assert_eq!(w.rows("SELECT id FROM s.t ORDER BY id").await[1..].join(" "), "1 2");
}
