//! The SQL catalog against files of its own, of pyiceberg and of Iceberg Java.

mod changes;
mod crash;
mod layouts;
mod swaps;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use super::super::{LoadTable, SwapOutcome, WritableCatalog};
use super::SqlCatalog;
use super::database::Database;
use crate::config::{SqlCatalogConfig, TableFormat};
use crate::error::{Error, Result};
use crate::table::{Table, TableIdent, TableLocation};

/// Loads nothing, and says where it would have.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl LoadTable for Nowhere {
    async fn load(&self, _: TableFormat, _: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        Err(Error::internal(format!("would load {:?}", location.metadata_file)))
    }
    async fn load_at(&self, _: TableFormat, _: &TableIdent, location: &TableLocation, metadata: &str) -> Result<Arc<dyn Table>> {
        Err(Error::internal(format!("would load {metadata} below {}", location.root)))
    }
}

/// A folder with a catalog file and a warehouse.
struct Lake {
    dir: tempfile::TempDir,
}

impl Lake {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("catalog.db")
    }

    /// The catalog `iceberg`, which waits 200 ms for the locks of others.
    fn catalog(&self) -> SqlCatalog {
        open(&self.file(), &self.dir.path().join("wh"), Duration::from_millis(200))
    }

    /// A metadata file of table `s.t`, by its number.
    fn metadata(&self, number: u32) -> String {
        metadata(&self.dir.path().join("wh"), number)
    }

    /// The file as another program sees it.
    fn raw(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    /// The table `s.t` at metadata 0.
    async fn with_table(&self) -> SqlCatalog {
        let catalog = self.catalog();
        catalog.create_namespace("s", &[].into()).await.unwrap();
        done(catalog.create_table(&t(), &self.metadata(0)).await);
        catalog
    }
}

fn open(file: &Path, warehouse: &Path, busy: Duration) -> SqlCatalog {
    let config = SqlCatalogConfig {
        file: file.to_str().unwrap().to_owned(),
        warehouse: warehouse.to_str().unwrap().to_owned(),
        allowed_locations: Vec::new(),
        catalog_name: None,
    };
    SqlCatalog::over("iceberg", &config, Database::new(file.to_owned(), busy), Arc::new(Nowhere)).unwrap()
}

fn metadata(warehouse: &Path, number: u32) -> String {
    format!("file://{}/s/t/metadata/{number:05}-x.metadata.json", warehouse.display())
}

fn t() -> TableIdent {
    TableIdent::new("iceberg", "s", "t")
}

fn done(outcome: SwapOutcome) {
    outcome.into_result().unwrap();
}
