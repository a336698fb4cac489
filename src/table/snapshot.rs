//! Tables and snapshots as traits; each format implements them.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;

use super::{AsOf, Column, HiddenColumn, MetadataTable, Reference, ScanPlan, ScanRequest, TableIdent};
use crate::error::{Error, Result};

/// Key of arrow field metadata: the column's type as its format names it (`timestamptz`, `decimal(12,2)`).
pub const TYPE_NAME_KEY: &str = "sandur.type";
/// Key of arrow field metadata: the column's comment.
pub const DOC_KEY: &str = "sandur.doc";

/// A table of a catalog. Loading one reads its newest metadata; the object itself is a view of it.
/// [`Any`] lets a caller that knows the format reach the type behind the trait.
#[async_trait]
pub trait Table: Any + Send + Sync + Debug {
    /// The table's name.
    fn ident(&self) -> &TableIdent;
    /// `iceberg` or `delta`.
    fn format(&self) -> &'static str;
    /// The snapshot asked for. [`AsOf::Latest`] of a table without snapshots gives an empty snapshot.
    ///
    /// Errors: `NotFound` for a version that is not there, never another snapshot instead.
    async fn snapshot(&self, at: &AsOf) -> Result<Arc<dyn Snapshot>>;
    /// Branches and tags, in order of name.
    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }
    /// The metadata table of a name of [`super::METADATA_TABLES`]. Loads nothing but the table's schema.
    ///
    /// Errors: `Unsupported` for a table that the format does not have, or that has no versions and was
    /// asked for one; `NotFound` for a version that is not there.
    fn metadata_table(&self, name: &str, at: &AsOf) -> Result<Arc<dyn MetadataTable>> {
        let _ = at;
        Err(
            Error::unsupported(format!("metadata table {name} is not built for tables of format {}", self.format()))
                .with("table", self.ident()),
        )
    }
}

/// One immutable version of a table.
#[async_trait]
pub trait Snapshot: Any + Send + Sync + Debug {
    /// The table's name.
    fn table(&self) -> &TableIdent;
    /// Snapshot id or version; `None` for a table that was never written to.
    fn id(&self) -> Option<i64>;
    /// Where this version was read from (metadata file), with [`Self::id`] enough to read it again.
    fn metadata_location(&self) -> &str;
    /// Whether both are the same version, made from metadata that was read once: what was planned on one holds
    /// for the other, even if a file was replaced under its name between.
    fn is_same(&self, _other: &dyn Snapshot) -> bool {
        false
    }
    /// Arrow schema of the table at this version. Field metadata has [`TYPE_NAME_KEY`] and [`DOC_KEY`].
    fn schema(&self) -> &SchemaRef;
    /// The same columns with what is needed to find them in files; parallel to [`Self::schema`].
    fn columns(&self) -> &[Arc<Column>];
    /// The hidden column of a kind; `None` where the format has none.
    ///
    /// Errors: `Unsupported` where this table's cannot be given.
    fn hidden_column(&self, _kind: HiddenColumn) -> Result<Option<FieldRef>> {
        Ok(None)
    }
    /// Names of a hidden column in data files that keep it, where they are known by names.
    fn hidden_names(&self, _kind: HiddenColumn) -> Vec<String> {
        Vec::new()
    }
    /// Names of the columns that identify a row, if declared (Iceberg identifier fields).
    fn identifier_columns(&self) -> Vec<String>;
    /// The files to read and what is deleted in them.
    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan>;
}
