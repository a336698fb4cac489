//! An Iceberg table and its snapshots as the engine sees them.

use std::any::Any;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema as ArrowSchema, SchemaRef};
use async_trait::async_trait;

use super::arrow_schema::{columns, file_names};
use super::hidden::hidden_field;
use super::loader::TableFiles;
use super::metadata_tables::metadata_table;
use super::plan::{matching, plan_scan};
use super::spec::{RefKind, Schema, Snapshot as IcebergSnapshotData, TableMetadata};
use super::time_travel::version;
use crate::error::{Error, Result, ResultExt};
use crate::io::TableIo;
use crate::table::{AsOf, Column, HiddenColumn, MetadataTable, PlanCounts, Reference, ScanPlan, ScanRequest, Snapshot, Table, TableIdent};

/// A table at one version of its metadata.
#[derive(Debug, Clone)]
pub struct IcebergTable {
    pub(super) ident: TableIdent,
    pub(super) files: Arc<TableFiles>,
    pub(super) metadata: Arc<TableMetadata>,
    pub(super) metadata_location: String,
}

impl IcebergTable {
    /// The table behind the trait.
    ///
    /// Errors: `Unsupported` for a table of another format.
    pub fn of(table: &dyn Table) -> Result<&Self> {
        let any: &dyn Any = table;
        any.downcast_ref().ok_or_else(|| {
            Error::unsupported(format!("this is for Iceberg tables, not for those of format {}", table.format()))
                .with("table", table.ident())
        })
    }

    /// The table's metadata.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.metadata
    }

    /// Access to the table's files.
    pub fn io(&self) -> &TableIo {
        &self.files.io
    }

    /// The metadata file this was loaded from.
    pub fn metadata_location(&self) -> &str {
        &self.metadata_location
    }

    /// The snapshot asked for, as its own type: branches and the newest one with the table's current
    /// schema, all else with the schema of the snapshot.
    pub fn snapshot_at(&self, at: &AsOf) -> Result<IcebergSnapshot> {
        let version = version(&self.metadata, at).context("table", || &self.ident)?;
        IcebergSnapshot::new(self, version.snapshot.cloned(), version.schema).context("table", || &self.ident)
    }
}

#[async_trait]
impl Table for IcebergTable {
    fn ident(&self) -> &TableIdent {
        &self.ident
    }

    fn format(&self) -> &'static str {
        "iceberg"
    }

    async fn snapshot(&self, at: &AsOf) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(self.snapshot_at(at)?))
    }

    fn references(&self) -> Vec<Reference> {
        let refs = self.metadata.refs.iter().map(|(name, to)| Reference {
            name: name.clone(),
            is_branch: to.kind == RefKind::Branch,
        });
        refs.collect()
    }

    fn metadata_table(&self, name: &str, at: &AsOf) -> Result<Arc<dyn MetadataTable>> {
        metadata_table(self, name, at).context("table", || &self.ident)
    }
}

/// One snapshot of an Iceberg table, read with one schema.
#[derive(Debug, Clone)]
pub struct IcebergSnapshot {
    table: IcebergTable,
    /// `None` for a table that was never written to.
    snapshot: Option<Arc<IcebergSnapshotData>>,
    columns: Vec<Arc<Column>>,
    schema: SchemaRef,
    identifiers: Vec<String>,
}

impl IcebergSnapshot {
    fn new(table: &IcebergTable, snapshot: Option<Arc<IcebergSnapshotData>>, schema: &Schema) -> Result<Self> {
        let mapping = table.metadata.name_mapping()?;
        let columns = columns(schema, &file_names(mapping.as_ref()))?;
        let arrow_schema = Arc::new(ArrowSchema::new(columns.iter().map(|c| Arc::clone(&c.field)).collect::<Vec<_>>()));
        let identifiers = schema
            .identifier_field_ids()
            .iter()
            .filter_map(|id| schema.full_name(*id))
            .collect();
        Ok(Self {
            table: table.clone(),
            snapshot,
            columns,
            schema: arrow_schema,
            identifiers,
        })
    }

    /// The table that this is a snapshot of.
    pub fn iceberg_table(&self) -> &IcebergTable {
        &self.table
    }

    /// The snapshot's entry in the metadata.
    pub fn entry(&self) -> Option<&Arc<IcebergSnapshotData>> {
        self.snapshot.as_ref()
    }
}

#[async_trait]
impl Snapshot for IcebergSnapshot {
    fn table(&self) -> &TableIdent {
        &self.table.ident
    }

    fn id(&self) -> Option<i64> {
        self.snapshot.as_ref().map(|s| s.snapshot_id)
    }

    fn metadata_location(&self) -> &str {
        &self.table.metadata_location
    }

    fn is_same(&self, other: &dyn Snapshot) -> bool {
        let any: &dyn Any = other;
        any.downcast_ref::<Self>().is_some_and(|other| {
            Arc::ptr_eq(&self.table.metadata, &other.table.metadata) && self.id() == other.id() && self.schema == other.schema
        })
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }

    fn hidden_column(&self, kind: HiddenColumn) -> Result<Option<FieldRef>> {
        hidden_field(&self.table.metadata, kind).context("table", || &self.table.ident)
    }

    fn identifier_columns(&self) -> Vec<String> {
        self.identifiers.clone()
    }

    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        match &self.snapshot {
            None => Ok(ScanPlan {
                tasks: Vec::new(),
                io: self.table.files.io.clone(),
                matching: matching(false),
                counts: PlanCounts::default(),
                proved: vec![true; request.misses.len()],
            }),
            Some(snapshot) => plan_scan(&self.table.files, &self.table.metadata, snapshot, &self.columns, request)
                .await
                .context("table", || &self.table.ident),
        }
    }
}
