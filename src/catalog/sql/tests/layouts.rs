//! Files that others made, in both layouts.

use super::*;
use crate::catalog::{Catalog, Pointer, SwapOutcome};
use crate::error::ErrorKind;

/// What pyiceberg 0.12.0 leaves after creating two namespaces and a table and appending once
/// (`.dump` of the file, the folder replaced).
const PYICEBERG: &str = include_str!("pyiceberg_0_12.sql");

/// What Iceberg Java's JdbcCatalog leaves: `jdbc.schema-version` not set, then V1 with a view.
const JAVA_V0: &str = include_str!("iceberg_java_v0.sql");
const JAVA_V1: &str = include_str!("iceberg_java_v1.sql");

fn lake(dump: &str) -> Lake {
    let lake = Lake::new();
    let wh = lake.dir.path().join("wh");
    let sql = dump.replace("/WAREHOUSE", wh.to_str().unwrap());
    lake.raw().execute_batch(&sql).unwrap();
    lake
}

async fn names(catalog: &SqlCatalog, schema: &str) -> Vec<String> {
    let tables = catalog.list_tables(schema).await.unwrap();
    tables.into_iter().map(|t| t.table).collect()
}

fn dump(lake: &Lake, sql: &str) -> Vec<String> {
    let raw = lake.raw();
    let mut statement = raw.prepare(sql).unwrap();
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_file_of_pyiceberg_is_read_and_changed() {
    let lake = lake(PYICEBERG);
    let catalog = lake.catalog();
    assert_eq!(catalog.list_schemas().await.unwrap(), ["a", "a.b"]);
    assert_eq!(names(&catalog, "a.b").await, ["t"]);
    assert_eq!(names(&catalog, "a").await, Vec::<String>::new());
    assert_eq!(
        catalog.namespace_properties("a.b").await.unwrap(),
        [("k".to_owned(), "v".to_owned())].into()
    );
    assert_eq!(catalog.namespace_properties("a").await.unwrap(), [].into());
    let found = catalog.find_table("A.B", "T").await.unwrap().unwrap();
    assert_eq!(found, TableIdent::new("iceberg", "a.b", "t"));
    let pointer = catalog.pointer(&found).await.unwrap().unwrap();
    assert!(pointer.location.contains("/metadata/00001-") && pointer.previous.as_ref().unwrap().contains("/metadata/00000-"));
    let loaded = catalog.load_table(&found).await.unwrap_err();
    assert!(
        loaded.to_string().contains(pointer.location.strip_prefix("file://").unwrap()),
        "{loaded}"
    );

    let new = pointer.location.replace("00001-", "00002-");
    done(catalog.swap(&found, &pointer.location, &new).await);
    assert_eq!(
        catalog.pointer(&found).await.unwrap().unwrap(),
        Pointer {
            location: new,
            previous: Some(pointer.location)
        }
    );
    let mode = "SELECT journal_mode FROM pragma_journal_mode";
    assert_eq!(dump(&lake, mode), ["delete"], "a file that was there keeps its mode");
}

#[tokio::test]
async fn a_file_of_java_without_types_stays_without() {
    let lake = lake(JAVA_V0);
    let catalog = lake.catalog();
    assert_eq!(catalog.list_schemas().await.unwrap(), ["n1", "n1.n2"]);
    assert_eq!(names(&catalog, "n1.n2").await, ["orders"]);
    let orders = TableIdent::new("iceberg", "n1.n2", "orders");
    let base = catalog.pointer(&orders).await.unwrap().unwrap().location;
    let new = base.replace("00000-", "00001-");
    done(catalog.swap(&orders, &base, &new).await);
    let added = TableIdent::new("iceberg", "n1", "added");
    done(catalog.create_table(&added, &new.replace("orders", "added")).await);
    catalog
        .rename_table(&added, &TableIdent::new("iceberg", "n1.n2", "added"))
        .await
        .unwrap();
    assert_eq!(names(&catalog, "n1.n2").await, ["added", "orders"]);
    assert_eq!(catalog.drop_table(&orders).await.unwrap(), new);
    assert_eq!(names(&catalog, "n1.n2").await, ["added"]);
    let columns = dump(&lake, "SELECT name FROM pragma_table_info('iceberg_tables')");
    assert_eq!(columns.len(), 5, "{columns:?}");

    // Another program adds the column: the rows from before have no type and stay tables, also in the swap.
    lake.raw()
        .execute_batch("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
        .unwrap();
    assert_eq!(names(&catalog, "n1.n2").await, ["added"]);
    let added = TableIdent::new("iceberg", "n1.n2", "added");
    let base = catalog.pointer(&added).await.unwrap().unwrap().location;
    done(catalog.swap(&added, &base, &base.replace("00001-", "00002-")).await);
    done(catalog.create_table(&orders, &new).await);
    let kinds = dump(
        &lake,
        "SELECT coalesce(iceberg_type, 'none') FROM iceberg_tables ORDER BY table_name",
    );
    assert_eq!(kinds, ["none", "TABLE"]);
}

#[tokio::test]
async fn views_of_java_are_left_alone() {
    let lake = lake(JAVA_V1);
    let catalog = lake.catalog();
    assert_eq!(names(&catalog, "n1").await, ["orders"]);
    let view = TableIdent::new("iceberg", "n1", "v");
    assert_eq!(catalog.find_table("n1", "v").await.unwrap(), None);
    assert_eq!(catalog.pointer(&view).await.unwrap(), None);
    assert_eq!(catalog.drop_table(&view).await.unwrap_err().kind(), ErrorKind::NotFound);
    let orders = TableIdent::new("iceberg", "n1", "orders");
    let location = catalog.pointer(&orders).await.unwrap().unwrap().location;
    let SwapOutcome::Failed(e) = catalog.create_table(&view, &location).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    assert!(e.to_string().contains("view"), "{e}");
    assert_eq!(
        catalog.rename_table(&orders, &view).await.unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    let SwapOutcome::Failed(e) = catalog.swap(&view, &location, &location.replace("00000", "00009")).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::NotFound);
    catalog.drop_table(&orders).await.unwrap();
    assert_eq!(catalog.drop_namespace("n1").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(dump(&lake, "SELECT table_name FROM iceberg_tables"), ["v"]);
}

#[tokio::test]
async fn a_file_that_is_not_there_has_no_tables_until_something_is_created() {
    let lake = Lake::new();
    let catalog = lake.catalog();
    assert_eq!(catalog.list_schemas().await.unwrap(), Vec::<String>::new());
    assert_eq!(catalog.find_table("s", "t").await.unwrap(), None);
    assert_eq!(catalog.load_table(&t()).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(catalog.namespace_properties("s").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!lake.file().exists(), "reading creates nothing");
    catalog.create_namespace("s", &[].into()).await.unwrap();
    let settings = "SELECT journal_mode FROM pragma_journal_mode";
    assert_eq!(dump(&lake, settings), ["wal"]);
    let columns = dump(&lake, "SELECT name FROM pragma_table_info('iceberg_tables')");
    assert_eq!(columns.last().unwrap(), "iceberg_type");
    assert_eq!(dump(&lake, "SELECT property_key FROM iceberg_namespace_properties"), ["exists"]);
}

#[tokio::test]
async fn a_file_of_something_else_is_refused() {
    for (sql, says) in [
        ("CREATE TABLE iceberg_tables (id INT)", "catalog_name"),
        (
            "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location);
             CREATE TABLE iceberg_namespace_properties (catalog_name, namespace)",
            "property_key",
        ),
    ] {
        let lake = lake(sql);
        let e = lake.catalog().list_schemas().await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt);
        assert!(e.to_string().contains(says) && e.to_string().contains("catalog.db"), "{e}");
    }
    let lake = Lake::new();
    std::fs::write(
        lake.file(),
        "this is no database, and long enough to be read as a header of one".repeat(20),
    )
    .unwrap();
    assert_eq!(lake.catalog().list_schemas().await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(lake.catalog().claim().await.unwrap_err().kind(), ErrorKind::Corrupt);
    // rows of other catalogs in one file
    let lake = self::lake(PYICEBERG);
    lake.raw()
        .execute_batch("UPDATE iceberg_tables SET catalog_name = 'other'")
        .unwrap();
    assert_eq!(names(&lake.catalog(), "a.b").await, Vec::<String>::new());
    // null locations, as a broken program may leave them
    lake.raw()
        .execute_batch("UPDATE iceberg_tables SET catalog_name = 'iceberg', metadata_location = NULL")
        .unwrap();
    let e = lake
        .catalog()
        .load_table(&TableIdent::new("iceberg", "a.b", "t"))
        .await
        .unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn a_replaced_file_is_noticed() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    assert_eq!(names(&catalog, "s").await, ["t"]);
    for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm"] {
        let _ = std::fs::remove_file(lake.dir.path().join(name));
    }
    assert_eq!(names(&catalog, "s").await, Vec::<String>::new());
    let SwapOutcome::Failed(e) = catalog.swap(&t(), &lake.metadata(0), &lake.metadata(1)).await else {
        panic!("a commit went into a file that is gone")
    };
    assert!(e.to_string().contains("gone"), "{e}");
}

#[tokio::test]
async fn tables_outside_of_the_warehouse_are_refused_by_name() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    let SwapOutcome::Failed(e) = catalog.swap(&t(), &lake.metadata(0), "/etc/x/metadata/v2.metadata.json").await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    let SwapOutcome::Failed(e) = catalog
        .create_table(&TableIdent::new("iceberg", "s", "u"), "/etc/x/metadata/v2.metadata.json")
        .await
    else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    let set = "UPDATE iceberg_tables SET metadata_location = '/etc/x/metadata/v2.metadata.json'";
    lake.raw().execute_batch(set).unwrap();
    let e = catalog.load_table(&t()).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    assert!(e.to_string().contains("iceberg.s.t") && !e.to_string().contains("/etc"), "{e}");
    let e = catalog.load_table_at(&t(), &lake.metadata(0)).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
}
