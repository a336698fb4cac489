//! From a location to a table: the seam between catalogs and table formats.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::table::{Table, TableIdent};

/// Where a table lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableLocation {
    /// The table's folder, absolute.
    pub root: String,
    /// The metadata file to read; `None` asks for the newest below the root.
    pub metadata_file: Option<String>,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
}

/// Loads Iceberg tables for catalogs that know locations only.
#[async_trait]
pub trait LoadTable: Send + Sync + Debug {
    /// The table at its newest metadata.
    async fn load(&self, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>>;
    /// The table as one metadata file describes it; the file must lie where the table may read.
    async fn load_at(&self, ident: &TableIdent, location: &TableLocation, metadata_location: &str) -> Result<Arc<dyn Table>>;
}
