//! How the parts are put together: the one place of the program that names a concrete table format.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalogs, LoadTable, TableLocation};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::iceberg::spec::TableMetadata;
use crate::io::Storage;
use crate::sql::Engine;
use crate::table::{Table, TableIdent};

/// The catalogs of a configuration.
///
/// Errors: as [`Catalogs::from_config`].
pub(super) async fn catalogs(config: &Config, storage: &Arc<Storage>) -> Result<Catalogs> {
    Catalogs::from_config(config, storage, Arc::new(NoLoader)).await
}

/// The metadata that a table was loaded with.
///
/// Errors: `Unsupported` for a table of another format than Iceberg.
pub(super) fn iceberg_metadata(table: &dyn Table) -> Result<Arc<TableMetadata>> {
    Err(Error::unsupported("loading tables is not wired yet").with("table", table.ident()))
}

/// The engine over `catalogs`.
///
/// Errors: `ResourceExhausted` when its pools cannot be set up.
pub(super) fn engine(_config: &Config, _catalogs: Arc<Catalogs>, _storage: &Arc<Storage>) -> Result<Engine> {
    Err(Error::unsupported("the engine is not wired yet"))
}

/// Serves connections of `listener` until `shutdown`, then until the last stream has ended.
pub(super) async fn serve(_listener: TcpListener, _engine: Arc<Engine>, _shutdown: CancellationToken) -> Result<()> {
    Err(Error::unsupported("the server is not wired yet"))
}

#[derive(Debug)]
struct NoLoader;

#[async_trait]
impl LoadTable for NoLoader {
    async fn load(&self, _: &TableIdent, location: &TableLocation) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported("loading tables is not wired yet").with("location", &location.root))
    }

    async fn load_at(&self, _: &TableIdent, _: &TableLocation, metadata_location: &str) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported("loading tables is not wired yet").with("file", metadata_location))
    }
}
