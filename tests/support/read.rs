//! The seam between tests and engine: SQL on one table, rows in canonical form.
//!
//! The table is named `t`. A test process has one runtime, one set of caches and one decode pool,
//! as a server has.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use sandur::cache::Caches;
use sandur::error::{Error, Result};
use sandur::iceberg::{TableLoader, TableLocation};
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext};
use sandur::table::{AsOf, Table, TableIdent};
use serde_json::Value;

use super::builder::TestTable;
use super::canonical::Rows;
use super::cases::Case;

/// Where a table lies.
#[derive(Debug, Clone)]
pub struct Target {
    /// Metadata file or folder.
    pub location: String,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
}

impl From<&TestTable> for Target {
    fn from(table: &TestTable) -> Self {
        Self::new(&table.metadata_file(), table.path_map())
    }
}

impl From<&Case> for Target {
    fn from(case: &Case) -> Self {
        let location = case.metadata_file().unwrap_or_else(|| case.table_dir());
        Self::new(&location, case.path_map())
    }
}

impl Target {
    fn new(location: &Path, path_map: Vec<(String, String)>) -> Self {
        Self {
            location: location.to_str().expect("paths are UTF-8").to_owned(),
            path_map,
        }
    }
}

/// All rows of the table's current snapshot.
pub fn rows(table: impl Into<Target>) -> Result<Vec<Vec<Value>>> {
    Ok(query(table, "SELECT * FROM t")?.rows)
}

/// The rows of a query; the table is named `t`.
pub fn query(table: impl Into<Target>, sql: &str) -> Result<Rows> {
    let process = process();
    process.runtime.block_on(process.query(&table.into(), sql))
}

/// What a server process has once.
struct Process {
    runtime: tokio::runtime::Runtime,
    loader: TableLoader,
    scan: Arc<ScanContext>,
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let caches = Arc::new(Caches::new(64 << 20, 64 << 20));
        let pool = Arc::new(DecodePool::new(2).expect("a pool"));
        let storage = Arc::new(Storage::default());
        Process {
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime"),
            loader: TableLoader::new(storage, Arc::clone(&caches), Arc::clone(&pool)),
            scan: Arc::new(ScanContext::new(caches, pool)),
        }
    })
}

impl Process {
    async fn query(&self, target: &Target, sql: &str) -> Result<Rows> {
        let location = TableLocation::from_path(&target.location, target.path_map.clone())?;
        let table = self.loader.load(&TableIdent::new("test", "default", "t"), &location).await?;
        let snapshot = table.snapshot(&AsOf::Latest).await?;
        let provider = LakeTableProvider::new(snapshot, Arc::clone(&self.scan));
        let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3).with_batch_size(1000));
        context.register_table("t", Arc::new(provider)).map_err(error)?;
        let frame = context.sql(sql).await.map_err(error)?;
        let names = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
        let batches = frame.collect().await.map_err(error)?;
        Ok(Rows::from_batches(names, &batches))
    }
}

/// The crate's own error, where the engine only carried it.
fn error(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::internal("the engine failed").with_source(other),
        },
        DataFusionError::Context(_, inner) => self::error(*inner),
        DataFusionError::ArrowError(inner, _) => Error::from(*inner),
        DataFusionError::Shared(inner) => match inner.as_ref() {
            DataFusionError::External(e) => match e.downcast_ref::<Error>() {
                Some(own) => own.share(),
                None => Error::internal(inner.to_string()),
            },
            other => Error::internal(other.to_string()),
        },
        other => Error::internal("the engine failed").with_source(other),
    }
}
