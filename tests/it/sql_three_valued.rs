//! `IN (SELECT ..)` where it is not a condition of its own, and lists of literals that meet.

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
    ("NOT (s IN ((SELECT s FROM u WHERE s = 'a')) AND s LIKE 'z%')", "1 3"),
    ("(s NOT IN ((SELECT s FROM u WHERE s = 'a'))) IS NULL", "2"),
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

/// k = 1, NULL, 5, 9 for ids 1 to 4, j = 1, 2, 9, NULL.
const LISTS: &[(&str, &str)] = &[
    ("NOT (k IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8))", "1 3 4"),
    ("NOT (k IN (1, 2) AND k IN (5, 6))", "1 3 4"),
    ("k NOT IN (1, 2) OR k NOT IN (5, 6)", "1 3 4"),
    ("k NOT IN (1, 2, 3, 4) OR k NOT IN (5, 6, 7, 8)", "1 3 4"),
    ("NOT (k IN (1, 2, 3, 4) AND k NOT IN (1, 2, 3, 4, 5))", "1 3 4"),
    ("NOT (k NOT IN (1, 2, 3, 4) AND k IN (1, 2, 3))", "1 3 4"),
    ("(k IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)) IS NULL", "2"),
    ("NOT (k IN (1, 2, 3, NULL) AND k IN (5, 6, 7, 8))", "1 4"),
    ("k IN (1, NULL) AND k NOT IN (NULL)", ""),
    ("NOT ((k = 1 OR k = 2) AND (k = 5 OR k = 6))", "1 3 4"),
    (
        "NOT ((k = 1 OR k = 2 OR k = 3 OR k = 4) AND (k = 5 OR k = 6 OR k = 7 OR k = 8))",
        "1 3 4",
    ),
    ("(id > 0 AND k NOT IN (1, 2)) OR (id > 0 AND k NOT IN (5, 6))", "1 3 4"),
    ("NOT (k + 0 IN (1, 2, 3, 4) AND k + 0 IN (5, 6, 7, 8))", "1 3 4"),
    ("k IN (j, 5, 6, 7) AND k IN (id, 50, 60, 70)", "1"),
    ("k IN (j, 5) AND k IN (id, 5)", "1 3"),
    ("k IN (1, 2, 3, 4) AND k IN (1, 5, 6, 7)", "1"),
    ("k IN (1, 2) OR k IN (5, 6)", "1 3"),
    ("k NOT IN (1, 2) AND k NOT IN (5, 6)", "4"),
    (
        "id IN (SELECT id FROM (SELECT id, k IN (1, 2, 3, 4) AS p, k IN (5, 6, 7, 8) AS q FROM s.l) x WHERE NOT (p AND q))",
        "1 3 4",
    ),
    (
        "id IN (SELECT id FROM (SELECT id, k AS x, k AS y FROM s.l) z WHERE NOT (x IN (1, 2) AND y IN (5, 6)))",
        "1 3 4",
    ),
];

/// What the engine makes lists of. Each is false but for row 2, where it is unknown.
const MADE_LISTS: &[&str] = &[
    "(s LIKE 'a' OR s LIKE 'b') AND s IN ('c', 'd')",
    "(s LIKE 'a' OR s LIKE 'b') AND (s LIKE 'c' OR s LIKE 'd')",
    "(s ~ '^a$' OR s ~ '^b$') AND s IN ('c', 'd')",
    "NOT (k <> 1 AND k <> 2) AND k IN (5, 6)",
    "NOT (k <> 1 AND k <> 2) AND NOT (k <> 5 AND k <> 6)",
    "(k BETWEEN 1 AND 1 OR k BETWEEN 2 AND 2) AND k IN (5, 6)",
    "((k >= 1 AND k <= 1) OR k = 2) AND k IN (5, 6)",
    "array_has([1, 2, 3, 4], k) AND array_has([5, 6, 7, 8], k)",
    "array_has([1, 2, 3, 4], k) AND k IN (5, 6, 7, 8)",
    "(k * 1) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "(k / 1) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "(k | 0) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "-(-k) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "CAST(k AS INT) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "coalesce(k) IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8)",
    "CASE WHEN k = 1 THEN true ELSE k = 2 END AND k IN (5, 6, 7, 8)",
    "CASE WHEN k > 0 THEN k END IN (1, 2, 3, 4) AND CASE WHEN k > 0 THEN k END IN (5, 6, 7, 8)",
    "CASE k WHEN 1 THEN 10 WHEN 5 THEN 20 WHEN 9 THEN 30 END IN (10, 11) AND CASE k WHEN 1 THEN 10 WHEN 5 THEN 20 WHEN 9 THEN 30 END IN (20, 21)",
    "(NOT (k > 1)) IN (TRUE) AND (NOT (k > 1)) IN (FALSE)",
    "(SELECT max(m.k) FROM s.l m WHERE m.id = l.id) IN (1, 2, 3, 4) AND (SELECT max(m.k) FROM s.l m WHERE m.id = l.id) IN (5, 6, 7, 8)",
    "(k ^ k) = 1",
    "k = 1 AND k = 5",
    "k = 1 AND k <> 1",
    "k > 5 AND k < 3",
];

#[tokio::test]
async fn lists_that_the_engine_makes_keep_what_is_unknown() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.l (id BIGINT, k BIGINT, s STRING)").await;
    w.run("INSERT INTO s.l VALUES (1, 1, 'a'), (2, NULL, NULL), (3, 5, 'b'), (4, 9, 'c')")
        .await;
    for condition in MADE_LISTS {
        for (asked, expected) in [
            (condition.to_string(), ""),
            (format!("NOT ({condition})"), "1 3 4"),
            (format!("({condition}) IS NULL"), "2"),
            (
                format!("id IN (SELECT id FROM (SELECT id, {condition} AS p FROM s.l) q WHERE NOT p)"),
                "1 3 4",
            ),
        ] {
            let rows = w.rows(&format!("SELECT id FROM s.l WHERE {asked} ORDER BY id")).await;
            assert_eq!(rows[1..].join(" "), expected, "{asked}");
        }
    }
    assert_eq!(
        w.run("DELETE FROM s.l WHERE NOT ((s LIKE 'a' OR s LIKE 'b') AND (s LIKE 'c' OR s LIKE 'd'))")
            .await
            .rows,
        3
    );
}

#[tokio::test]
async fn lists_that_meet_keep_what_is_unknown() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.l (id BIGINT, k BIGINT, j INT)").await;
    w.run("INSERT INTO s.l VALUES (1, 1, 1), (2, NULL, 2), (3, 5, 9), (4, 9, NULL)")
        .await;
    for (condition, expected) in LISTS {
        let rows = w.rows(&format!("SELECT id FROM s.l WHERE {condition} ORDER BY id")).await;
        assert_eq!(rows[1..].join(" "), *expected, "{condition}");
    }
    assert_eq!(
        w.run("DELETE FROM s.l WHERE NOT (k IN (1, 2, 3, 4) AND k IN (5, 6, 7, 8))")
            .await
            .rows,
        3
    );
    assert_eq!(w.rows("SELECT id FROM s.l").await[1..].join(" "), "2");
}

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
        "(SELECT count(*) FROM s.u WHERE u.s = t.s GROUP BY u.s) IS NULL",
        "id IN (SELECT a.id FROM s.t a JOIN s.t b ON a.id = b.id AND NOT (a.s IN (SELECT s FROM s.u)))",
    ] {
        let (kind, text) = w.refused(&format!("DELETE FROM s.t WHERE {condition}")).await;
        assert_eq!(kind, sandur::error::ErrorKind::Unsupported, "{condition}: {text}");
    }
    // What a query does not give stays.
    let done = w.run("DELETE FROM s.t WHERE NOT (s IN (SELECT s FROM s.u)) OR id = 9").await;
    assert_eq!(done.rows, 1);
    assert_eq!(w.rows("SELECT id FROM s.t ORDER BY id").await[1..].join(" "), "1 2");
}
