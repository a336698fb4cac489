//! A snapshot that shows other columns than its own: spelled otherwise, or with hidden ones.
//!
//! Scans find columns by field id or by their names in files, so the spelling does not matter to them.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;

use crate::error::Result;
use crate::table::{Column, HiddenColumn, ScanPlan, ScanRequest, Snapshot, TableIdent};

/// `inner` under `schema`, to which `columns` are parallel.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) inner: Arc<dyn Snapshot>,
    pub(super) schema: SchemaRef,
    pub(super) columns: Vec<Arc<Column>>,
}

#[async_trait]
impl Snapshot for Shown {
    fn table(&self) -> &TableIdent {
        self.inner.table()
    }
    fn id(&self) -> Option<i64> {
        self.inner.id()
    }
    fn metadata_location(&self) -> &str {
        self.inner.metadata_location()
    }
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }
    fn hidden_column(&self, kind: HiddenColumn) -> Result<Option<FieldRef>> {
        self.inner.hidden_column(kind)
    }
    fn hidden_names(&self, kind: HiddenColumn) -> Vec<String> {
        self.inner.hidden_names(kind)
    }
    fn identifier_columns(&self) -> Vec<String> {
        self.inner.identifier_columns()
    }
    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        self.inner.plan_scan(request).await
    }
}
