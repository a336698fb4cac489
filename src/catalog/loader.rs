//! From a location to a table: the seam between catalogs and table formats.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::iceberg::TableLoader;
use crate::table::{Table, TableIdent, TableLocation};

/// Loads Iceberg tables for catalogs that know locations only.
#[async_trait]
pub trait LoadTable: Send + Sync + Debug {
    /// The table at its newest metadata.
    async fn load(&self, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>>;
    /// The table as one metadata file describes it; the file must lie where the table may read.
    async fn load_at(&self, ident: &TableIdent, location: &TableLocation, metadata_location: &str) -> Result<Arc<dyn Table>>;
}

#[async_trait]
impl LoadTable for TableLoader {
    async fn load(&self, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        Ok(Arc::new(self.newest(ident, location).await?))
    }

    async fn load_at(&self, ident: &TableIdent, location: &TableLocation, metadata_location: &str) -> Result<Arc<dyn Table>> {
        Ok(Arc::new(self.at(ident, location, metadata_location).await?))
    }
}
