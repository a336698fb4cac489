//! Tables that tell about a table (interface.md 4, "metadata tables").
//!
//! Invariant: the schema is known without reading a file of the table.

use std::fmt::Debug;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;

use crate::error::Result;

/// Names of metadata tables, in lower case. Not every format has every one.
pub const METADATA_TABLES: &[&str] = &[
    "snapshots",
    "history",
    "refs",
    "files",
    "data_files",
    "delete_files",
    "entries",
    "manifests",
    "partitions",
    "metadata_log_entries",
    "properties",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "all_entries",
    "all_manifests",
    "health",
    "detail",
    "create_statement",
];

/// A branch or tag of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    /// A tag otherwise.
    pub is_branch: bool,
}

/// One metadata table of one version of a table.
#[async_trait]
pub trait MetadataTable: Send + Sync + Debug {
    /// Where the table's version was read from, as for a snapshot.
    fn metadata_location(&self) -> &str;
    /// The schema of all columns.
    fn schema(&self) -> &SchemaRef;
    /// All rows of the columns at `wanted`, indices into [`Self::schema`], in that order. Batches
    /// have the projected schema.
    ///
    /// Errors: what reading the table's metadata says, naming the file.
    async fn rows(&self, wanted: &[usize]) -> Result<Vec<RecordBatch>>;
}
