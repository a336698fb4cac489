//! Forms of SQL that the engine underneath reads otherwise than the standard, or not at all.

use std::sync::Arc;

use arrow::array::{BooleanArray, Int64Array, StringArray};
use sandur::catalog::{Catalog, Catalogs};
use sandur::config::Config;
use sandur::sql::Engine;

use crate::sql_support::{Memory, MemoryCatalog, batch, rows};

/// x, b, s: (1, true, 'A_%'), (1, NULL, 'A\B'), (1, false, NULL), (2, true, 'AxB').
fn engine() -> Engine {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    lake.commit(
        "default",
        "t",
        batch(vec![
            ("x", Arc::new(Int64Array::from(vec![1, 1, 1, 2]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
            ("s", Arc::new(StringArray::from(vec![Some("A_%"), Some("A\\B"), None, Some("AxB")]))),
        ]),
    );
    let config = Config::default();
    Engine::new(&config, Arc::new(Catalogs::new(vec![lake as Arc<dyn Catalog>])), memory).unwrap()
}

async fn answers(sql: &str, expected: &[&str]) {
    let mut found = rows(&engine(), sql).await.split_off(1);
    found.sort();
    assert_eq!(found, expected, "{sql}");
}

#[tokio::test]
async fn all_keeps_the_number_of_equal_rows() {
    answers("SELECT x FROM t EXCEPT ALL SELECT 1", &["1", "1", "2"]).await;
    answers("SELECT x FROM t EXCEPT ALL (SELECT 1 UNION ALL SELECT 1)", &["1", "2"]).await;
    answers("SELECT x FROM t INTERSECT ALL SELECT 1", &["1"]).await;
    answers("SELECT x FROM t INTERSECT ALL (VALUES (1), (1), (3))", &["1", "1"]).await;
    answers("SELECT b FROM t EXCEPT ALL SELECT NULL", &["false", "true", "true"]).await;
    answers("SELECT DISTINCT x FROM t EXCEPT ALL SELECT 1", &["2"]).await;
    answers("SELECT x FROM t EXCEPT SELECT 2", &["1"]).await;
    answers("SELECT x FROM t INTERSECT SELECT x FROM t", &["1", "2"]).await;
    answers("SELECT x FROM t EXCEPT ALL SELECT x FROM t", &[]).await;
    answers("SELECT count(*) FROM (SELECT x, b FROM t INTERSECT ALL SELECT x, b FROM t)", &["4"]).await;
    answers("SELECT x FROM t LEFT ANTI JOIN (SELECT 1 AS y) ON x = y", &["2"]).await;
}

#[tokio::test]
async fn tests_of_a_truth_value_stand_anywhere() {
    answers("SELECT DISTINCT (x > 1) IS TRUE FROM t", &["false", "true"]).await;
    answers(
        "SELECT count(*) FILTER (WHERE b IS TRUE), sum(x) FILTER (WHERE b IS NOT TRUE) FROM t",
        &["2|2"],
    )
    .await;
    answers(
        "SELECT g, count(*) FROM (SELECT b IS UNKNOWN AS g FROM t) GROUP BY g",
        &["false|3", "true|1"],
    )
    .await;
    answers("SELECT count(*) FROM t WHERE b IS NOT FALSE", &["3"]).await;
    answers("SELECT count(*) FROM t WHERE b IS FALSE OR b IS NOT UNKNOWN", &["3"]).await;
}

#[tokio::test]
async fn casts_of_one_column_stand_side_by_side() {
    answers("SELECT cast(x AS int), cast(x AS double) FROM t WHERE x = 2", &["2|2.0"]).await;
    answers("SELECT x, x::varchar, 1::bigint, 1::varchar FROM t WHERE x = 2", &["2|2|1|1"]).await;
    answers("SELECT (SELECT count(*) FROM t), (SELECT max(x) FROM t)", &["4|2"]).await;
    let names = rows(&engine(), "SELECT x, cast(x AS varchar) FROM t").await;
    assert_eq!(names[0], "x|CAST(x AS VARCHAR)");
}

#[tokio::test]
async fn rows_are_fetched_first() {
    answers("SELECT x FROM t ORDER BY x DESC FETCH FIRST 2 ROWS ONLY", &["1", "2"]).await;
    answers("SELECT x FROM t ORDER BY x DESC OFFSET 3 ROWS FETCH NEXT ROW ONLY", &["1"]).await;
}

#[tokio::test]
async fn patterns_have_an_escape_character_of_choice() {
    answers("SELECT s FROM t WHERE s LIKE 'A!_!%' ESCAPE '!'", &["A_%"]).await;
    answers("SELECT s FROM t WHERE s LIKE 'A_B' ESCAPE '!'", &["A\\B", "AxB"]).await;
    answers("SELECT s FROM t WHERE s LIKE 'A\\B' ESCAPE '!'", &["A\\B"]).await;
    answers("SELECT s FROM t WHERE s LIKE 'A\\_%' ESCAPE '\\'", &["A_%"]).await;
    answers("SELECT s FROM t WHERE s NOT LIKE 'a!_%' ESCAPE '!'", &["A\\B", "A_%", "AxB"]).await;
    answers("SELECT s FROM t WHERE s ILIKE 'a!_%' ESCAPE '!'", &["A_%"]).await;
}
