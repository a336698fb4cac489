//! An engine over tables in memory, for tests of the SQL layer alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::datasource::{MemTable, TableProvider};
use futures::TryStreamExt;
use sandur::catalog::{Catalog, Catalogs};
use sandur::config::Config;
use sandur::error::{Error, Result};
use sandur::sql::{Defaults, Engine, Planned, TableProviders, from_datafusion};
use sandur::table::{AsOf, Column, ScanPlan, ScanRequest, Snapshot, Table, TableIdent};

/// Every version of every table, by metadata location.
#[derive(Debug, Default)]
pub struct Memory {
    batches: Mutex<HashMap<String, RecordBatch>>,
}

impl TableProviders for Memory {
    fn provider(self: Arc<Self>, snapshot: Arc<dyn Snapshot>) -> Result<Arc<dyn TableProvider>> {
        let batches = self.batches.lock().unwrap();
        let batch = batches.get(snapshot.metadata_location()).unwrap();
        // By position: the snapshot's columns may be spelled otherwise.
        let batch = RecordBatch::try_new(Arc::clone(snapshot.schema()), batch.columns().to_vec())?;
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(from_datafusion)?;
        Ok(Arc::new(table))
    }
}

/// A catalog whose tables are lists of versions.
#[derive(Debug)]
pub struct MemoryCatalog {
    name: String,
    memory: Arc<Memory>,
    tables: Mutex<BTreeMap<(String, String), Vec<SchemaRef>>>,
    pub loads: AtomicUsize,
}

impl MemoryCatalog {
    pub fn new(name: &str, memory: &Arc<Memory>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            memory: Arc::clone(memory),
            tables: Mutex::default(),
            loads: AtomicUsize::new(0),
        })
    }

    /// Adds a version to a table.
    pub fn commit(&self, schema: &str, table: &str, batch: RecordBatch) {
        let mut tables = self.tables.lock().unwrap();
        let versions = tables.entry((schema.to_owned(), table.to_owned())).or_default();
        versions.push(batch.schema());
        let location = format!("{}/{schema}/{table}/v{}", self.name, versions.len());
        self.memory.batches.lock().unwrap().insert(location, batch);
    }

    fn load(&self, ident: &TableIdent, version: Option<usize>) -> Result<Arc<dyn Table>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        let tables = self.tables.lock().unwrap();
        let versions = tables.get(&(ident.schema.clone(), ident.table.clone()));
        let versions = versions.ok_or_else(|| Error::not_found("no such table"))?;
        if ident.table == "broken" {
            return Err(Error::corrupt("metadata is damaged"));
        }
        let version = version.unwrap_or(versions.len());
        let schema = Arc::clone(versions.get(version - 1).ok_or_else(|| Error::not_found("no such version"))?);
        Ok(Arc::new(MemoryTable(Arc::new(MemorySnapshot {
            ident: ident.clone(),
            version,
            location: format!("{}/{}/{}/v{version}", self.name, ident.schema, ident.table),
            columns: columns(&schema),
            schema,
        }))))
    }
}

fn columns(schema: &SchemaRef) -> Vec<Arc<Column>> {
    let column = |(id, field): (usize, &Arc<Field>)| {
        Arc::new(Column {
            id: id as i32,
            field: Arc::clone(field),
            names: Vec::new(),
            initial_default: None,
            children: Vec::new(),
        })
    };
    schema.fields().iter().enumerate().map(column).collect()
}

#[async_trait]
impl Catalog for MemoryCatalog {
    fn name(&self) -> &str {
        &self.name
    }
    async fn list_schemas(&self) -> Result<Vec<String>> {
        let mut schemas: Vec<_> = self.tables.lock().unwrap().keys().map(|(s, _)| s.clone()).collect();
        schemas.dedup();
        Ok(schemas)
    }
    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        let tables = self.tables.lock().unwrap();
        let inside = tables.keys().filter(|(s, _)| s == schema);
        Ok(inside.map(|(s, t)| TableIdent::new(&self.name, s, t)).collect())
    }
    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        self.load(ident, None)
    }
    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        let version = metadata_location.rsplit('v').next().and_then(|v| v.parse().ok());
        self.load(ident, version)
    }
}

#[derive(Debug)]
struct MemoryTable(Arc<MemorySnapshot>);

#[async_trait]
impl Table for MemoryTable {
    fn ident(&self) -> &TableIdent {
        &self.0.ident
    }
    fn format(&self) -> &'static str {
        "memory"
    }
    async fn snapshot(&self, at: &AsOf) -> Result<Arc<dyn Snapshot>> {
        match at {
            AsOf::Latest => Ok(Arc::clone(&self.0) as _),
            AsOf::Version(v) if Some(*v) == self.0.id() => Ok(Arc::clone(&self.0) as _),
            other => Err(Error::not_found(format!("no {other:?}"))),
        }
    }
}

#[derive(Debug)]
struct MemorySnapshot {
    ident: TableIdent,
    version: usize,
    location: String,
    schema: SchemaRef,
    columns: Vec<Arc<Column>>,
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn table(&self) -> &TableIdent {
        &self.ident
    }
    fn id(&self) -> Option<i64> {
        Some(self.version as i64)
    }
    fn metadata_location(&self) -> &str {
        &self.location
    }
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }
    fn identifier_columns(&self) -> Vec<String> {
        self.schema
            .fields()
            .iter()
            .filter(|f| f.name() == "id")
            .map(|f| f.name().clone())
            .collect()
    }
    async fn plan_scan(&self, _: &ScanRequest) -> Result<ScanPlan> {
        Err(Error::internal("tables in memory have no files"))
    }
}

/// A batch from names and arrays.
pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns.iter().map(|(n, a)| Field::new(*n, a.data_type().clone(), true)).collect();
    let rows = RecordBatchOptions::new().with_row_count(Some(columns.first().map_or(0, |(_, a)| a.len())));
    let arrays = columns.into_iter().map(|(_, a)| a).collect();
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &rows).unwrap()
}

/// An engine over catalogs.
pub fn engine(catalogs: Vec<Arc<MemoryCatalog>>, memory: &Arc<Memory>) -> Engine {
    let list = catalogs.into_iter().map(|c| c as Arc<dyn Catalog>).collect();
    Engine::new(&Config::default(), Arc::new(Catalogs::new(list)), Arc::clone(memory) as _).unwrap()
}

/// Plans and runs a statement, with the session's defaults of a new connection.
pub async fn query(engine: &Engine, sql: &str) -> Result<RecordBatch> {
    let planned = engine.plan(sql, &Defaults::default()).await?;
    collect(engine, &planned, None).await
}

/// Runs a planned statement to one batch.
pub async fn collect(engine: &Engine, planned: &Planned, parameters: Option<&RecordBatch>) -> Result<RecordBatch> {
    let stream = engine.run(&planned.statement, parameters).await?;
    assert_eq!(stream.schema(), planned.schema, "the stream has the planned schema");
    let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(from_datafusion)?;
    Ok(arrow::compute::concat_batches(&planned.schema, &batches)?)
}

/// A result as lines of `|`-separated texts, header first.
pub fn lines(batch: &RecordBatch) -> Vec<String> {
    let header = batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    let mut lines = vec![header.join("|")];
    for row in 0..batch.num_rows() {
        let cells = batch.columns().iter().map(|c| match c.data_type() {
            DataType::Null => "NULL".to_owned(),
            _ if c.is_null(row) => "NULL".to_owned(),
            _ => arrow::util::display::array_value_to_string(c, row).unwrap(),
        });
        lines.push(cells.collect::<Vec<_>>().join("|"));
    }
    lines
}

/// Runs a statement and gives its lines; panics on an error.
pub async fn rows(engine: &Engine, sql: &str) -> Vec<String> {
    match query(engine, sql).await {
        Ok(batch) => lines(&batch),
        Err(e) => panic!("{sql}: {e:?}"),
    }
}
