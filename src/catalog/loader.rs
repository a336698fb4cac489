//! From a location to a table: the seam between catalogs and table formats.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use crate::config::TableFormat;
use crate::delta::DeltaLoader;
use crate::error::{Error, Result};
use crate::iceberg::TableLoader;
use crate::table::{Table, TableIdent, TableLocation};

/// Loads tables for catalogs that know locations only.
#[async_trait]
pub trait LoadTable: Send + Sync + Debug {
    /// The table at its newest metadata.
    async fn load(&self, format: TableFormat, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>>;
    /// The table as one metadata file describes it; the file must lie where the table may read.
    async fn load_at(
        &self,
        format: TableFormat,
        ident: &TableIdent,
        location: &TableLocation,
        metadata_location: &str,
    ) -> Result<Arc<dyn Table>>;
}

/// Loads tables of every format.
#[derive(Debug, Clone)]
pub struct TableLoaders {
    pub iceberg: TableLoader,
    pub delta: DeltaLoader,
}

#[async_trait]
impl LoadTable for TableLoaders {
    async fn load(&self, format: TableFormat, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        match format {
            TableFormat::Iceberg => self.iceberg.load(format, ident, location).await,
            TableFormat::Delta => Ok(Arc::new(self.delta.newest(ident, location).await?)),
        }
    }

    async fn load_at(
        &self,
        format: TableFormat,
        ident: &TableIdent,
        location: &TableLocation,
        metadata_location: &str,
    ) -> Result<Arc<dyn Table>> {
        match format {
            TableFormat::Iceberg => self.iceberg.load_at(format, ident, location, metadata_location).await,
            TableFormat::Delta => Ok(Arc::new(self.delta.at(ident, location, metadata_location).await?)),
        }
    }
}

/// Loads Iceberg tables alone.
#[async_trait]
impl LoadTable for TableLoader {
    async fn load(&self, format: TableFormat, ident: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        iceberg_only(format, ident)?;
        Ok(Arc::new(self.newest(ident, location).await?))
    }

    async fn load_at(
        &self,
        format: TableFormat,
        ident: &TableIdent,
        location: &TableLocation,
        metadata_location: &str,
    ) -> Result<Arc<dyn Table>> {
        iceberg_only(format, ident)?;
        Ok(Arc::new(self.at(ident, location, metadata_location).await?))
    }
}

fn iceberg_only(format: TableFormat, ident: &TableIdent) -> Result<()> {
    match format {
        TableFormat::Iceberg => Ok(()),
        TableFormat::Delta => Err(Error::unsupported("tables of Delta Lake are not loaded here").with("table", ident)),
    }
}
