//! SHOW, DESCRIBE and `information_schema`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use sandur::error::ErrorKind;
use sandur::sql::Engine;
use sandur::table::{DOC_KEY, TYPE_NAME_KEY};

use crate::sql_support::{Memory, MemoryCatalog, batch, engine, query, rows};

fn lake() -> (Engine, Arc<MemoryCatalog>) {
    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    let metadata = [(TYPE_NAME_KEY, "decimal(9,2)"), (DOC_KEY, "what it costs")];
    let metadata = metadata.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("Price", DataType::Decimal128(9, 2), true).with_metadata(metadata),
    ]);
    let price = Decimal128Array::from(vec![1]).with_precision_and_scale(9, 2).unwrap();
    let orders = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(vec![1])), Arc::new(price)]);
    lake.commit("default", "Orders", orders.unwrap());
    lake.commit("it's", "x", batch(vec![("a", Arc::new(StringArray::from(vec!["b"])))]));
    lake.commit("it's", "broken", batch(vec![("a", Arc::new(StringArray::from(vec!["b"])))]));
    let other = MemoryCatalog::new("other", &memory);
    other.commit("s", "y", batch(vec![("a", Arc::new(StringArray::from(vec!["b"])))]));
    (engine(vec![Arc::clone(&lake), other], &memory), lake)
}

#[tokio::test]
async fn listings_load_no_table() {
    let (engine, lake) = lake();
    assert_eq!(rows(&engine, "SHOW CATALOGS").await, ["catalog_name", "lake", "other"]);
    assert_eq!(rows(&engine, "SHOW CATALOGS LIKE 'l%'").await, ["catalog_name", "lake"]);
    assert_eq!(
        rows(&engine, "SHOW SCHEMAS").await,
        ["catalog_name|schema_name", "lake|default", "lake|information_schema", "lake|it's"]
    );
    assert_eq!(rows(&engine, "SHOW SCHEMAS FROM OTHER LIKE 's'").await[1..], ["other|s"]);
    assert_eq!(
        rows(&engine, "SHOW TABLES").await,
        [
            "table_catalog|table_schema|table_name|table_type",
            "lake|default|Orders|BASE TABLE",
            "lake|it's|broken|BASE TABLE",
            "lake|it's|x|BASE TABLE",
            "other|s|y|BASE TABLE"
        ]
    );
    assert_eq!(
        rows(&engine, "SHOW TABLES FROM \"IT'S\" LIKE 'x'").await[1..],
        ["lake|it's|x|BASE TABLE"]
    );
    assert_eq!(rows(&engine, "SHOW TABLES IN other.S").await[1..], ["other|s|y|BASE TABLE"]);
    assert_eq!(
        rows(
            &engine,
            "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE Table_Schema = 'default'"
        )
        .await,
        ["table_name", "Orders"]
    );
    assert_eq!(
        rows(&engine, "SELECT count(*) FROM other.information_schema.schemata").await[1..],
        ["2"]
    );
    assert_eq!(rows(&engine, "SELECT * FROM information_schema.views").await.len(), 1);
    assert_eq!(lake.loads.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn columns_are_described_as_the_table_names_them() {
    let (engine, lake) = lake();
    let expected = [
        "column_name|data_type|is_nullable|comment",
        "id|long|NO|NULL",
        "Price|decimal(9,2)|YES|what it costs",
    ];
    assert_eq!(rows(&engine, "DESCRIBE ORDERS").await, expected);
    assert_eq!(rows(&engine, "DESC lake.default.\"Orders\"").await, expected);
    assert_eq!(
        rows(&engine, "SHOW COLUMNS FROM orders LIKE 'P%'").await[1..],
        ["lake|default|Orders|Price|decimal(9,2)|YES"]
    );
    let before = lake.loads.load(Ordering::Relaxed);
    assert_eq!(
        rows(
            &engine,
            "SELECT column_name, ordinal_position, numeric_precision FROM information_schema.columns \
             WHERE table_catalog = 'lake' AND table_schema = 'default' AND table_name = 'Orders'"
        )
        .await,
        ["column_name|ordinal_position|numeric_precision", "id|1|NULL", "Price|2|9"]
    );
    assert_eq!(lake.loads.load(Ordering::Relaxed) - before, 1, "the filters choose the table");
    assert_eq!(
        rows(
            &engine,
            "SELECT table_name, constraint_type FROM information_schema.table_constraints"
        )
        .await[1..],
        ["Orders|PRIMARY KEY"]
    );
}

#[tokio::test]
async fn a_broken_table_is_left_out_unless_asked_for() {
    let (engine, _) = lake();
    let all = rows(
        &engine,
        "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema = 'it''s'",
    )
    .await;
    assert_eq!(all, ["table_name", "x"]);
    for sql in [
        "SELECT * FROM information_schema.columns WHERE table_name = 'broken'",
        "DESCRIBE \"it's\".broken",
        "SELECT * FROM \"it's\".broken",
    ] {
        assert_eq!(query(&engine, sql).await.unwrap_err().kind(), ErrorKind::Corrupt, "{sql}");
    }
}

#[tokio::test]
async fn the_session_tells_about_itself() {
    let (engine, _) = lake();
    assert_eq!(
        rows(
            &engine,
            "SELECT version() AS v, current_catalog() AS c, current_schema() AS s, CURRENT_DATABASE() AS d"
        )
        .await,
        [
            "v|c|s|d".to_owned(),
            format!("Sandur {}|lake|default|lake", env!("CARGO_PKG_VERSION"))
        ]
    );
    assert_eq!(rows(&engine, "SELECT current_catalog").await[1..], ["lake"]);
}
