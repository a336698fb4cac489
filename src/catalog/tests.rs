//! Folders, single tables and locations as catalogs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::*;
use crate::config::{CatalogConfig, Config, TableConfig, TableFormat};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Storage;
use crate::table::{Table, TableIdent, TableLocation};

/// Refuses to load, and remembers what it was asked for.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<(TableFormat, TableIdent, TableLocation, Option<String>)>>);

#[async_trait]
impl LoadTable for Recorder {
    async fn load(&self, format: TableFormat, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        self.0.lock().unwrap().push((format, ident.clone(), location.clone(), None));
        Err(Error::internal("recorded"))
    }
    async fn load_at(&self, format: TableFormat, ident: &TableIdent, location: &TableLocation, metadata: &str) -> Result<Arc<dyn Table>> {
        self.0
            .lock()
            .unwrap()
            .push((format, ident.clone(), location.clone(), Some(metadata.to_owned())));
        Err(Error::internal("recorded"))
    }
}

fn iceberg(root: &Path, table: &str) {
    let metadata = root.join(table).join("metadata");
    std::fs::create_dir_all(&metadata).unwrap();
    std::fs::write(metadata.join("v1.metadata.json"), "{}").unwrap();
}

fn delta(root: &Path, table: &str) {
    let log = root.join(table).join("_delta_log");
    std::fs::create_dir_all(&log).unwrap();
    std::fs::write(log.join("00000000000000000000.json"), "{}").unwrap();
}

async fn catalogs(list: &[(&str, CatalogConfig)], loader: &Arc<Recorder>) -> Result<Catalogs> {
    let config = Config {
        catalogs: list.iter().map(|(n, c)| ((*n).to_owned(), c.clone())).collect::<BTreeMap<_, _>>(),
        ..Config::default()
    };
    Catalogs::from_config(&config, &Arc::new(Storage::default()), Arc::clone(loader) as _).await
}

fn directory(path: &Path) -> CatalogConfig {
    CatalogConfig::Directory {
        path: path.to_str().unwrap().to_owned(),
    }
}

fn entry(name: &str, format: TableFormat, location: &str) -> TableConfig {
    TableConfig {
        name: name.to_owned(),
        format,
        location: location.to_owned(),
        path_map: vec![("s3://old/x/".to_owned(), "/data/x".to_owned())],
        read_only: true,
    }
}

async fn names(catalog: &Arc<dyn Catalog>, schema: &str) -> Vec<String> {
    let tables = catalog.list_tables(schema).await.unwrap();
    tables.into_iter().map(|t| t.table).collect()
}

#[tokio::test]
async fn a_folder_is_schemas_and_tables() {
    let dir = tempfile::tempdir().unwrap();
    iceberg(dir.path(), "orders");
    delta(dir.path(), "inventory");
    iceberg(dir.path(), "sales/Items");
    delta(dir.path(), "sales/log");
    iceberg(dir.path(), "_hidden");
    std::fs::create_dir_all(dir.path().join("empty/nothing")).unwrap();
    std::fs::create_dir_all(dir.path().join("plain/metadata")).unwrap();
    let loader = Arc::new(Recorder::default());
    let all = catalogs(&[("lake", directory(dir.path()))], &loader).await.unwrap();
    let lake = all.catalog(None).unwrap();
    assert_eq!(lake.list_schemas().await.unwrap(), ["default", "empty", "plain", "sales"]);
    assert_eq!(names(lake, "default").await, ["inventory", "orders"]);
    assert_eq!(names(lake, "sales").await, ["Items", "log"]);
    assert_eq!(names(lake, "empty").await, Vec::<String>::new());
    assert_eq!(names(lake, "orders").await, Vec::<String>::new());
    assert_eq!(names(lake, "../x").await, Vec::<String>::new());
    assert!(loader.0.lock().unwrap().is_empty(), "listing loads nothing");

    let found = all.find_table(None, Some("SALES"), "items").await.unwrap();
    assert_eq!(found, TableIdent::new("lake", "sales", "Items"));
    assert_eq!(all.table(&found).await.unwrap_err().kind(), ErrorKind::Internal);
    let (_, _, location, _) = loader.0.lock().unwrap().pop().unwrap();
    assert_eq!(location.root, dir.path().join("sales/Items").to_str().unwrap());

    let log = all.find_table(Some("LAKE"), Some("sales"), "log").await.unwrap();
    assert!(all.table(&log).await.unwrap_err().to_string().contains("lake.sales.log"));
    let (format, _, location, _) = loader.0.lock().unwrap().pop().unwrap();
    assert_eq!(
        (format, location.root.as_str()),
        (TableFormat::Delta, dir.path().join("sales/log").to_str().unwrap())
    );
    for (schema, table) in [
        ("default", "nope"),
        ("sales", "_hidden"),
        ("..", "x"),
        ("default", "../lake"),
        ("default", "a\0b"),
        ("orders", "metadata"),
    ] {
        let e = all.find_table(None, Some(schema), table).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound, "{schema}.{table}: {e}");
        let e = all.table(&TableIdent::new("lake", schema, table)).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound, "{schema}.{table}: {e}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn links_out_of_the_root_are_not_followed() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    iceberg(outside.path(), "secret");
    iceberg(dir.path(), "sales/items");
    std::os::unix::fs::symlink(outside.path().join("secret"), dir.path().join("leak")).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("schema")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("sales/items"), dir.path().join("inside")).unwrap();
    let all = catalogs(&[("lake", directory(dir.path()))], &Arc::default()).await.unwrap();
    let lake = all.catalog(None).unwrap();
    assert_eq!(lake.list_schemas().await.unwrap(), ["default", "sales"]);
    assert_eq!(names(lake, "default").await, ["inside"]);
    assert_eq!(names(lake, "schema").await, Vec::<String>::new());
    for (schema, table) in [("default", "leak"), ("schema", "secret")] {
        let e = all.table(&TableIdent::new("lake", schema, table)).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{e}");
    }
}

#[tokio::test]
async fn names_that_differ_by_case_alone_must_be_written_exactly() {
    let tables = ["a.Orders", "a.orders", "b.Items"];
    let tables = tables.map(|n| entry(n, TableFormat::Iceberg, "/data/x")).to_vec();
    let all = catalogs(&[("c", CatalogConfig::Tables { tables })], &Arc::default()).await.unwrap();
    assert_eq!(all.find_table(None, Some("A"), "orders").await.unwrap().table, "orders");
    assert_eq!(all.find_table(None, Some("a"), "Orders").await.unwrap().table, "Orders");
    assert_eq!(all.find_table(None, Some("B"), "ITEMS").await.unwrap().to_string(), "c.b.Items");
    let e = all.find_table(None, Some("a"), "ORDERS").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("\"Orders\"") && e.to_string().contains("\"orders\""), "{e}");
    let e = all.find_table(Some("d"), None, "x").await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn single_tables_keep_their_location_and_map() {
    let tables = vec![
        entry("default.t", TableFormat::Iceberg, "/data/t/metadata/00003-x.metadata.json"),
        entry("a.b.u", TableFormat::Iceberg, "file:///data/../data/./u/"),
        entry("d", TableFormat::Delta, "/data/d"),
    ];
    let loader = Arc::new(Recorder::default());
    let all = catalogs(&[("c", CatalogConfig::Tables { tables })], &loader).await;
    // `..` in a URI is refused, in a plain path it is worked out
    assert_eq!(all.unwrap_err().kind(), ErrorKind::InvalidInput);
    let tables = vec![
        entry("default.t", TableFormat::Iceberg, "/data/t/metadata/00003-x.metadata.json"),
        entry("a.b.u", TableFormat::Iceberg, "/data/../data/./u/"),
        entry("d", TableFormat::Delta, "/data/d"),
    ];
    let all = catalogs(&[("c", CatalogConfig::Tables { tables })], &loader).await.unwrap();
    let c = all.catalog(None).unwrap();
    assert_eq!(c.list_schemas().await.unwrap(), ["a.b", "default"]);
    assert_eq!(names(c, "default").await, ["d", "t"]);
    all.table(&TableIdent::new("c", "default", "t")).await.unwrap_err();
    let (_, _, location, _) = loader.0.lock().unwrap().pop().unwrap();
    assert_eq!(location.root, "/data/t");
    assert_eq!(location.metadata_file.as_deref(), Some("/data/t/metadata/00003-x.metadata.json"));
    assert_eq!(location.path_map, [("s3://old/x/".to_owned(), "/data/x".to_owned())]);
    let u = all.find_table(None, Some("A.B"), "U").await.unwrap();
    all.table_at(&u, "/data/u/metadata/v7.metadata.json").await.unwrap_err();
    let (_, ident, location, at) = loader.0.lock().unwrap().pop().unwrap();
    assert_eq!((ident, location.root.as_str(), location.metadata_file), (u, "/data/u", None));
    assert_eq!(at.as_deref(), Some("/data/u/metadata/v7.metadata.json"));
    let d = all.find_table(None, None, "d").await.unwrap();
    all.table(&d).await.unwrap_err();
    let (format, _, location, _) = loader.0.lock().unwrap().pop().unwrap();
    assert_eq!((format, location.root.as_str()), (TableFormat::Delta, "/data/d"));
}

#[tokio::test]
async fn bad_configurations_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    iceberg(dir.path(), "t");
    let twice = ["x.t", "x.t"].map(|n| entry(n, TableFormat::Iceberg, "/d")).to_vec();
    for bad in [
        directory(&dir.path().join("t")),
        CatalogConfig::Tables { tables: twice },
        CatalogConfig::Tables {
            tables: vec![entry("x.", TableFormat::Iceberg, "/d")],
        },
        CatalogConfig::Tables {
            tables: vec![entry("x.t", TableFormat::Iceberg, "")],
        },
    ] {
        let e = catalogs(&[("c", bad)], &Arc::default()).await.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    }
}

#[tokio::test]
async fn serve_locations_become_the_files_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Arc::new(Storage::default());
    let at = |p: &str| dir.path().join(p).to_str().unwrap().to_owned();
    iceberg(dir.path(), "lake/orders");
    delta(dir.path(), "lake/sales/log");
    iceberg(dir.path(), "other/orders");
    std::fs::create_dir_all(dir.path().join("nothing")).unwrap();

    let one = files_catalog(&storage, &[at("lake")]).await.unwrap();
    assert!(matches!(one, CatalogConfig::Directory { path } if path == at("lake")));
    let CatalogConfig::Tables { tables } = files_catalog(&storage, &[at("lake/orders")]).await.unwrap() else {
        panic!("not tables");
    };
    assert_eq!(
        (tables[0].name.as_str(), &tables[0].location),
        ("default.orders", &at("lake/orders"))
    );
    let metadata = at("lake/orders/metadata/v1.metadata.json");
    let CatalogConfig::Tables { tables } = files_catalog(&storage, &[metadata.clone(), at("lake/sales")]).await.unwrap() else {
        panic!("not tables");
    };
    let got: Vec<_> = tables.iter().map(|t| (t.name.as_str(), t.location.clone(), t.format)).collect();
    assert_eq!(
        got,
        [
            ("default.log", at("lake/sales/log"), TableFormat::Delta),
            ("default.orders", metadata, TableFormat::Iceberg)
        ]
    );
    let e = files_catalog(&storage, &[at("lake/orders"), at("other/orders")]).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    let e = files_catalog(&storage, &[at("nothing")]).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    let e = files_catalog(&storage, &[at("missing")]).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
}
