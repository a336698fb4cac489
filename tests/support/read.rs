//! The seam between tests and engine: SQL on one table, rows in canonical form.
//!
//! The table is served as `test.default.t` by a catalog of single tables, the way a configuration
//! file would do it. A test process has one runtime, one set of caches and one decode pool, as a
//! server has; each query has an engine of its own.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::TryStreamExt;
use sandur::cache::Caches;
use sandur::catalog::Catalogs;
use sandur::config::{CatalogConfig, Config, TableConfig, TableFormat};
use sandur::error::Result;
use sandur::iceberg::TableLoader;
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::{ScanContext, ScanCounters};
use sandur::sql::{Defaults, Engine, from_datafusion};
use sandur::table::Pruning;
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
    Reader::open(table)?.query(sql)
}

/// An engine that serves one table as `t`, for many queries.
pub struct Reader {
    engine: Engine,
    scan: Arc<ScanContext>,
}

impl Reader {
    /// Serves the table over the process's caches and pool.
    pub fn open(table: impl Into<Target>) -> Result<Self> {
        Self::over(table, Arc::clone(&process().scan))
    }

    /// The same with these switches, and counters of its own.
    pub fn pruning(table: impl Into<Target>, pruning: Pruning) -> Result<Self> {
        let shared = &process().scan;
        let scan = ScanContext::new(Arc::clone(&shared.caches), Arc::clone(&shared.pool)).with_pruning(pruning);
        Self::over(table, Arc::new(scan))
    }

    fn over(table: impl Into<Target>, scan: Arc<ScanContext>) -> Result<Self> {
        let process = process();
        let engine = process.runtime.block_on(process.engine(&table.into(), &scan))?;
        Ok(Self { engine, scan })
    }

    /// What its scans skipped and read.
    pub fn counters(&self) -> &ScanCounters {
        &self.scan.counters
    }

    /// The rows of a query.
    pub fn query(&self, sql: &str) -> Result<Rows> {
        process().runtime.block_on(run(&self.engine, sql, None))
    }

    /// The batches of a query.
    pub fn batches(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let (_, batches) = process().runtime.block_on(run_batches(&self.engine, sql, None))?;
        Ok(batches)
    }

    /// The rows of a query with bound values.
    pub fn bound(&self, sql: &str, values: &RecordBatch) -> Result<Rows> {
        process().runtime.block_on(run(&self.engine, sql, Some(values)))
    }
}

/// The rows of a query with bound values: one column per placeholder, one row per execution.
pub fn bound(table: impl Into<Target>, sql: &str, values: &RecordBatch) -> Result<Rows> {
    Reader::open(table)?.bound(sql, values)
}

/// What a server process has once.
struct Process {
    runtime: tokio::runtime::Runtime,
    storage: Arc<Storage>,
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
            storage: Arc::clone(&storage),
            loader: TableLoader::new(storage, Arc::clone(&caches), Arc::clone(&pool)),
            scan: Arc::new(ScanContext::new(caches, pool)),
        }
    })
}

impl Process {
    async fn engine(&self, target: &Target, scan: &Arc<ScanContext>) -> Result<Engine> {
        let table = TableConfig {
            name: "default.t".to_owned(),
            format: TableFormat::Iceberg,
            location: target.location.clone(),
            path_map: target.path_map.clone(),
            read_only: true,
        };
        let mut config = Config::default();
        config.limits.memory = Some(256 << 20);
        config
            .catalogs
            .insert("test".to_owned(), CatalogConfig::Tables { tables: vec![table] });
        let catalogs = Catalogs::from_config(&config, &self.storage, Arc::new(self.loader.clone())).await?;
        Engine::new(&config, Arc::new(catalogs), Arc::clone(scan) as _)
    }
}

/// Runs something on the process's runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    process().runtime.block_on(work)
}

async fn run(engine: &Engine, sql: &str, values: Option<&RecordBatch>) -> Result<Rows> {
    let (schema, batches) = run_batches(engine, sql, values).await?;
    let names = schema.fields().iter().map(|f| f.name().clone()).collect();
    Ok(Rows::from_batches(names, &batches))
}

async fn run_batches(engine: &Engine, sql: &str, values: Option<&RecordBatch>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let defaults = Defaults {
        catalog: Some("test".to_owned()),
        schema: Some("default".to_owned()),
        ..Defaults::default()
    };
    let planned = engine.plan(sql, &defaults).await?;
    let stream = engine.run(&planned.statement, values).await?;
    let schema = stream.schema();
    assert_eq!(schema, planned.schema, "the stream has the schema that was planned");
    let batches = stream.try_collect::<Vec<_>>().await.map_err(from_datafusion)?;
    Ok((schema, batches))
}
