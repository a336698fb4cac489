//! SQL over real Iceberg tables in a folder: names, pins, files of the process's one scan.

use std::path::Path;
use std::sync::Arc;

use sandur::cache::Caches;
use sandur::catalog::Catalogs;
use sandur::config::{CatalogConfig, Config};
use sandur::error::ErrorKind;
use sandur::iceberg::TableLoader;
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::ScanContext;
use sandur::sql::{Defaults, Engine};
use serde_json::json;

use crate::sql_support::{collect, lines, query, rows};
use crate::support::builder::{DataFile, EqualityDeletes, PositionDeletes, Schema, TableBuilder, TestTable, Type, optional, required};

async fn engine(path: &Path) -> Engine {
    let (storage, caches) = (Arc::new(Storage::default()), Arc::new(Caches::new(8 << 20, 8 << 20)));
    let pool = Arc::new(DecodePool::new(2).unwrap());
    let loader = TableLoader::new(Arc::clone(&storage), Arc::clone(&caches), Arc::clone(&pool));
    let mut config = Config::default();
    let path = path.to_str().unwrap().to_owned();
    config.catalogs.insert("lake".to_owned(), CatalogConfig::Directory { path });
    let catalogs = Catalogs::from_config(&config, &storage, Arc::new(loader)).await.unwrap();
    Engine::new(&config, Arc::new(catalogs), Arc::new(ScanContext::new(caches, pool))).unwrap()
}

fn orders(path: &Path) -> TestTable {
    let point = Type::fields([optional(11, "X", Type::Int), optional(12, "y", Type::Int)]);
    let schema = Schema::new([
        required(1, "Id", Type::Long).doc("the key"),
        optional(2, "A B", Type::String),
        optional(3, "a.b", Type::Int),
        optional(4, "P", point),
    ]);
    let mut table = TableBuilder::new(path, schema.identified_by([1])).create();
    table.append(
        DataFile::named("one")
            .rows(json!([[1, "a", 10, {"X": 1, "y": 2}], [2, "b", 20, {"X": 3, "y": 4}], [3, "c", 30, {"X": 5, "y": 6}]])),
    );
    table.delete_positions(PositionDeletes::named("p").rows("one", [0]));
    table
}

#[tokio::test]
async fn names_work_on_stored_tables_with_deletes() {
    let dir = tempfile::tempdir().unwrap();
    orders(&dir.path().join("Orders"));
    let schema = Schema::new([required(1, "ID", Type::Long), optional(2, "Note", Type::String)]);
    let mut notes = TableBuilder::new(dir.path().join("Sales/notes"), schema).create();
    notes.append(DataFile::named("n").rows(json!([[2, "x"], [3, "y"], [4, "z"]])));
    notes.delete_keys(EqualityDeletes::named("e", [1]).rows(json!([[3]])));

    let engine = engine(dir.path()).await;
    assert_eq!(
        rows(&engine, "SELECT id, \"a b\", `A.B`, p.x, P.Y FROM ORDERS ORDER BY ID").await,
        ["Id|A B|a.b|Orders.P[X]|Orders.P[y]", "2|b|20|3|4", "3|c|30|5|6"]
    );
    // the tables spell the key differently, and it comes back as each spells it
    assert_eq!(
        rows(&engine, "SELECT o.id, n.id, n.note FROM orders o JOIN sales.NOTES n USING (id)").await[1..],
        ["2|2|x"]
    );
    assert_eq!(
        rows(&engine, "SELECT n.*, o.iD FROM orders o JOIN sales.notes n ON n.Id = o.Id").await,
        ["ID|Note|Id", "2|x|2"]
    );
    assert_eq!(
        rows(&engine, "SELECT count(*) FROM orders WHERE ID > 0 AND \"A B\" = 'b'").await[1],
        "1"
    );
    assert_eq!(
        rows(&engine, "DESCRIBE orders").await[1..3],
        ["Id|long|NO|the key", "A B|string|YES|NULL"]
    );
    assert_eq!(
        rows(&engine, "SELECT table_schema, table_name FROM information_schema.table_constraints").await[1..],
        ["default|Orders"]
    );
}

#[tokio::test]
async fn a_planned_statement_reads_the_snapshot_it_was_planned_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut table = orders(&dir.path().join("Orders"));
    let engine = engine(dir.path()).await;
    let sql = "SELECT count(*), (SELECT max(id) FROM orders) FROM orders";
    let planned = engine.plan(sql, &Defaults::default()).await.unwrap();
    table.append(DataFile::named("two").rows(json!([[9, "z", 90, null]])));
    assert_eq!(lines(&collect(&engine, &planned, None).await.unwrap())[1], "2|3");
    assert_eq!(rows(&engine, sql).await[1], "3|9");
    // a pin that no such file backs
    let mut forged = planned.clone();
    forged.statement.pins[0].metadata_location = "/etc/passwd".to_owned();
    let e = collect(&engine, &forged, None).await.unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound), "{e:?}");
}

#[tokio::test]
async fn nothing_but_the_catalog_s_tables_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    orders(&dir.path().join("lake/Orders"));
    orders(&dir.path().join("outside"));
    let engine = engine(&dir.path().join("lake")).await;
    for name in [
        "\"../outside\"",
        "default.\"../outside\"",
        "\"..\".outside",
        "\"Orders/metadata\"",
        "\".\".\"Orders\"",
    ] {
        let e = query(&engine, &format!("SELECT * FROM {name}")).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound, "{name}: {e}");
    }
}
