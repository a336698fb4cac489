//! Joins whose sides have columns of one name, and joins that take NULL for a value.
//!
//! Expected rows are worked out by hand from the two tables.

use crate::sql_changes::Warehouse;

async fn tables() -> Warehouse {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    for name in ["x", "y", "c"] {
        w.run(&format!(
            "CREATE TABLE s.{name} (id BIGINT, a BIGINT, n BIGINT, b BIGINT, s STRING)"
        ))
        .await;
    }
    for name in ["x", "c"] {
        w.run(&format!(
            "INSERT INTO s.{name} VALUES (1, 1, 1, 1, 'a'), (2, NULL, 2, 5, 'b'), (3, 5, 0, NULL, 'b'), (4, NULL, 0, NULL, NULL)"
        ))
        .await;
    }
    w.run("INSERT INTO s.y VALUES (1, 1, 1, NULL, 'b'), (2, NULL, 2, 5, NULL), (3, 7, 2, 2, 'a'), (4, NULL, 3, NULL, 'c')")
        .await;
    w
}

async fn pairs(w: &Warehouse, from: &str) -> String {
    let sql = format!(
        "SELECT concat_ws('-', coalesce(CAST(x.id AS STRING), '?'), coalesce(CAST(y.id AS STRING), '?')) AS p FROM {from} ORDER BY p"
    );
    w.rows(&sql).await[1..].join(" ")
}

#[tokio::test]
async fn conditions_above_a_join_keep_to_the_side_that_they_are_about() {
    let w = tables().await;
    for (from, expected) in [
        (
            "s.x RIGHT JOIN s.y ON x.a = y.a WHERE (y.b >= 3 AND x.b > 0) OR y.s <> 'a'",
            "1-1 ?-4",
        ),
        (
            "s.x FULL JOIN s.y ON x.a = y.a WHERE (y.b >= 3 AND x.b > 0) OR y.s <> 'a'",
            "1-1 ?-4",
        ),
        (
            "s.y LEFT JOIN s.x ON x.a = y.a WHERE (y.b >= 3 AND x.b > 0) OR y.s <> 'a'",
            "1-1 ?-4",
        ),
        (
            "s.x RIGHT JOIN s.y ON x.a = y.n WHERE coalesce(x.b, y.b) IS NOT DISTINCT FROM y.b AND (y.a > 1) IS NOT TRUE",
            "?-2 ?-4",
        ),
    ] {
        assert_eq!(pairs(&w, from).await, expected, "{from}");
    }
    let deleted = w
        .run("DELETE FROM s.c USING s.x RIGHT JOIN s.y ON x.a = y.n WHERE c.id = 2 AND y.id = 2 AND ((y.b >= 3 AND x.b > 0) OR y.s <> 'a')")
        .await;
    assert_eq!(deleted.rows, 0);
}

#[tokio::test]
async fn null_equals_null_only_where_the_statement_says_so() {
    let w = tables().await;
    for (from, expected) in [
        ("s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a", "1-1 2-2 2-4 4-2 4-4"),
        ("s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a WHERE x.b = y.b", "2-2"),
        ("s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a WHERE x.a = y.a", "1-1"),
        ("s.x LEFT JOIN s.y ON x.a IS NOT DISTINCT FROM y.a WHERE x.b = y.b", "2-2"),
        ("s.x LEFT JOIN s.y ON x.a IS NOT DISTINCT FROM y.a AND x.b = y.b", "1-? 2-2 3-? 4-?"),
        ("s.x JOIN s.y ON x.b IS NOT DISTINCT FROM y.b AND x.n = y.n", "2-2"),
        ("s.x JOIN s.y ON x.s IS NOT DISTINCT FROM y.s WHERE x.id <> y.id", "1-3 2-1 3-1 4-2"),
        (
            "s.y z, s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a WHERE z.id = x.id",
            "1-1 2-2 2-4 4-2 4-4",
        ),
        (
            "s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a JOIN s.c ON c.id = x.id WHERE x.b = y.b",
            "2-2",
        ),
        ("s.x, s.y WHERE x.a IS NOT DISTINCT FROM y.a AND x.b = y.b", "2-2"),
    ] {
        assert_eq!(pairs(&w, from).await, expected, "{from}");
    }
    let deleted = w
        .run("DELETE FROM s.c USING s.x JOIN s.y ON x.a IS NOT DISTINCT FROM y.a WHERE x.b = y.b AND c.id = x.id")
        .await;
    assert_eq!(deleted.rows, 1);
    assert_eq!(w.rows("SELECT id FROM s.c ORDER BY id").await[1..], ["1", "3", "4"]);
}
