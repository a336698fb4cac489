//! Names match without regard to case, and mean one snapshot (interface.md 3).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray, StructArray};
use arrow::datatypes::{DataType, Field};
use sandur::error::ErrorKind;
use sandur::sql::{Defaults, Engine};

use crate::sql_support::{Memory, MemoryCatalog, batch, collect, engine, lines, query, rows};

fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn lake() -> (Engine, Arc<MemoryCatalog>) {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("Lake", &memory);
    let point = StructArray::from(vec![
        (
            Arc::new(Field::new("X", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![10, 20])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("id", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![7, 8])) as ArrayRef,
        ),
    ]);
    lake.commit(
        "default",
        "Orders",
        batch(vec![
            ("Id", ints(&[1, 2])),
            ("A B", ints(&[3, 4])),
            ("a.b", ints(&[5, 6])),
            ("größe", ints(&[7, 8])),
            ("select", ints(&[9, 9])),
            ("q\"uote", ints(&[0, 0])),
        ]),
    );
    lake.commit(
        "default",
        "items",
        batch(vec![("id", ints(&[2, 3])), ("Name", Arc::new(StringArray::from(vec!["b", "c"])))]),
    );
    lake.commit("default", "points", batch(vec![("P", Arc::new(point)), ("ID", ints(&[1, 2]))]));
    lake.commit(
        "default",
        "twins",
        batch(vec![("id", ints(&[1])), ("ID", ints(&[2])), ("x", ints(&[3]))]),
    );
    lake.commit("sales.eu", "T", batch(vec![("v", ints(&[1]))]));
    lake.commit("default", "case", batch(vec![("v", ints(&[1]))]));
    lake.commit("default", "Case", batch(vec![("v", ints(&[2]))]));
    let other = MemoryCatalog::new("other", &memory);
    other.commit("S", "u", batch(vec![("v", ints(&[5]))]));
    (engine(vec![Arc::clone(&lake), other], &memory), lake)
}

#[tokio::test]
async fn columns_match_whatever_their_case() {
    let (engine, _) = lake();
    assert_eq!(
        rows(&engine, "SELECT * FROM orders ORDER BY ID").await,
        ["Id|A B|a.b|größe|select|q\"uote", "1|3|5|7|9|0", "2|4|6|8|9|0"]
    );
    assert_eq!(
        rows(
            &engine,
            "select ID, \"iD\" as x, \"a b\", `A.B`, GRÖßE, \"SELECT\", o.\"Q\"\"UOTE\" from \"ORDERS\" as O where o.id > 1 and O.\"A B\" = 4"
        )
        .await,
        ["Id|x|A B|a.b|größe|select|q\"uote", "2|2|4|6|8|9|0"]
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT ORDERS.Id, sum(`a.B`) FROM Orders GROUP BY orders.ID HAVING SUM(\"a.b\") > 5"
        )
        .await,
        ["Id|sum(Orders.a.b)", "2|6"]
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT \"a.b\" AS \"a.b\" FROM (SELECT * FROM orders) AS s WHERE \"a.b\" = 5"
        )
        .await,
        ["a.b", "5"]
    );
}

#[tokio::test]
async fn aliases_keep_the_spelling_they_were_given() {
    let (engine, _) = lake();
    assert_eq!(rows(&engine, "SELECT Id AS ID FROM orders ORDER BY id LIMIT 1").await, ["ID", "1"]);
    assert_eq!(
        rows(
            &engine,
            "WITH Cte AS (SELECT Id AS Key FROM orders) SELECT KEY, cte.key AS kEY2 FROM CTE ORDER BY key LIMIT 1"
        )
        .await,
        ["Key|kEY2", "1|1"]
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT *, \"Id\" + 1 AS NAME FROM (SELECT Id, \"A B\" FROM orders) ORDER BY 1 LIMIT 1"
        )
        .await,
        ["Id|A B|NAME", "1|3|2"]
    );
    assert_eq!(
        rows(&engine, "SELECT 1 AS Foo UNION ALL SELECT 2 ORDER BY FOO").await,
        ["Foo", "1", "2"]
    );
}

#[tokio::test]
async fn tables_that_spell_a_column_differently_can_be_joined() {
    let (engine, _) = lake();
    assert_eq!(
        rows(&engine, "SELECT o.ID, i.ID, i.name FROM orders o JOIN items i ON o.id = i.Id").await,
        ["Id|id|Name", "2|2|b"]
    );
    assert_eq!(
        rows(&engine, "SELECT name, \"A B\" FROM ORDERS JOIN ITEMS USING (ID)").await,
        ["Name|A B", "b|4"]
    );
    assert_eq!(
        rows(&engine, "SELECT i.* FROM items i, orders o WHERE o.ID = i.ID").await,
        ["id|Name", "2|b"]
    );
    assert_eq!(
        rows(
            &engine,
            "SELECT p.ID, p.P.x, P.p.X + 1 FROM points AS p JOIN orders o ON o.id = p.id WHERE p.p.X = 10"
        )
        .await[1..],
        ["1|10|11".to_owned()]
    );
}

#[tokio::test]
async fn names_that_differ_by_case_alone_are_written_exactly() {
    let (engine, _) = lake();
    assert_eq!(rows(&engine, "SELECT * FROM twins").await, ["id|ID|x", "1|2|3"]);
    assert_eq!(rows(&engine, "SELECT \"ID\", \"id\", X FROM TWINS").await, ["ID|id|x", "2|1|3"]);
    let e = query(&engine, "SELECT Id FROM twins").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("\"id\"") && e.to_string().contains("\"ID\""), "{e}");
    assert_eq!(rows(&engine, "SELECT * FROM \"case\"").await, ["v", "1"]);
    assert_eq!(rows(&engine, "SELECT * FROM default.\"Case\"").await, ["v", "2"]);
    assert_eq!(rows(&engine, "SELECT a.v, b.v FROM \"case\" a, \"Case\" b").await, ["v|v", "1|2"]);
    let e = query(&engine, "SELECT * FROM \"CASE\"").await.unwrap_err();
    assert!(e.to_string().contains("\"case\"") && e.to_string().contains("\"Case\""), "{e}");
}

#[tokio::test]
async fn names_of_one_two_and_three_parts() {
    let (engine, _) = lake();
    assert_eq!(rows(&engine, "SELECT v FROM LAKE.\"Sales.EU\".t").await, ["v", "1"]);
    assert_eq!(rows(&engine, "SELECT t.v FROM \"sales.eu\".T").await, ["v", "1"]);
    assert_eq!(rows(&engine, "SELECT v FROM other.s.U").await, ["v", "5"]);
    for qualified in ["u.v", "s.u.v", "other.S.U.V"] {
        assert_eq!(rows(&engine, &format!("SELECT {qualified} FROM other.s.u")).await, ["v", "5"]);
    }
    assert_eq!(query(&engine, "SELECT * FROM s.u").await.unwrap_err().kind(), ErrorKind::NotFound);
    let defaults = Defaults {
        catalog: Some("OTHER".to_owned()),
        schema: Some("s".to_owned()),
        ..Defaults::default()
    };
    let planned = engine
        .plan("SELECT v, current_catalog(), current_schema() FROM U", &defaults)
        .await
        .unwrap();
    let got = collect(&engine, &planned, None).await.unwrap();
    assert_eq!(lines(&got)[1], "5|other|s");
    assert_eq!(planned.statement.pins[0].table.to_string(), "other.S.u");
    let planned = engine.plan("SELECT * FROM s.u, lake.default.items", &defaults).await.unwrap();
    assert_eq!(planned.statement.pins.len(), 2);
}

#[tokio::test]
async fn a_with_query_hides_a_table() {
    let (engine, lake) = lake();
    assert_eq!(
        rows(&engine, "WITH Items AS (SELECT 42 AS id) SELECT * FROM items").await,
        ["id", "42"]
    );
    assert_eq!(lake.loads.load(Ordering::Relaxed), 0);
    assert_eq!(
        rows(&engine, "WITH items AS (SELECT id FROM items WHERE id = 3) SELECT * FROM ITEMS").await,
        ["id", "3"]
    );
}

#[tokio::test]
async fn a_statement_sees_one_snapshot_of_each_table() {
    let (engine, lake) = lake();
    let planned = engine
        .plan(
            "SELECT count(*) FROM items a, ITEMS b, lake.default.\"items\" c",
            &Defaults::default(),
        )
        .await
        .unwrap();
    assert_eq!(lake.loads.load(Ordering::Relaxed), 1);
    assert_eq!(planned.statement.pins.len(), 1);
    assert_eq!(planned.statement.pins[0].snapshot_id, Some(1));
    lake.commit(
        "default",
        "items",
        batch(vec![("id", ints(&[1])), ("Name", Arc::new(StringArray::from(vec!["z"])))]),
    );
    let got = collect(&engine, &planned, None).await.unwrap();
    assert_eq!(lines(&got)[1], "8", "the pinned version has two rows");
    assert_eq!(rows(&engine, "SELECT count(*) FROM items").await[1], "1");
}
