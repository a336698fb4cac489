//! How the parts are put together: which catalogs, stores and table format the program has.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cache::Caches;
use crate::catalog::{Catalogs, TableLoaders};
use crate::config::{Config, PruningConfig};
use crate::delta::DeltaLoader;
use crate::error::Result;
use crate::iceberg::TableLoader;
use crate::io::Storage;
use crate::runtime::DecodePool;
use crate::scan::ScanContext;
use crate::sql::{Engine, Writing};
use crate::table::Pruning;
use crate::write::commit::Commits;

/// What reading tables needs, once per process.
#[derive(Debug)]
pub(super) struct Parts {
    /// The stores.
    pub(super) storage: Arc<Storage>,
    caches: Arc<Caches>,
    pool: Arc<DecodePool>,
}

impl Parts {
    /// Sets up stores, caches and the decode pool, which has a thread per core.
    ///
    /// Errors: `ResourceExhausted` when the threads cannot be started.
    pub(super) fn new(config: &Config) -> Result<Self> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        Ok(Self {
            storage: Arc::new(Storage::default()),
            caches: Arc::new(Caches::new(config.cache.metadata, config.cache.deletes)),
            pool: Arc::new(DecodePool::new(threads)?),
        })
    }

    /// The catalogs of a configuration.
    ///
    /// Errors: as [`Catalogs::from_config`].
    pub(super) async fn catalogs(&self, config: &Config) -> Result<Catalogs> {
        let loaders = TableLoaders {
            iceberg: TableLoader::new(Arc::clone(&self.storage), Arc::clone(&self.caches), Arc::clone(&self.pool)),
            delta: DeltaLoader::new(Arc::clone(&self.storage), Arc::clone(&self.caches))?,
        };
        Catalogs::from_config(config, &self.storage, Arc::new(loaders)).await
    }

    /// The engine over `catalogs`.
    ///
    /// Errors: `ResourceExhausted` when its pools cannot be set up.
    pub(super) fn engine(&self, config: &Config, catalogs: Arc<Catalogs>) -> Result<Engine> {
        let context = ScanContext::new(Arc::clone(&self.caches), Arc::clone(&self.pool)).with_pruning(pruning(&config.pruning));
        let context = Arc::new(context);
        let writing = Writing {
            commits: Arc::new(Commits::new(Arc::clone(&catalogs), Arc::clone(&self.storage))),
            pool: Arc::clone(&self.pool),
            scan: Arc::clone(&context),
        };
        Engine::with_writing(config, catalogs, context, Some(writing))
    }
}

fn pruning(config: &PruningConfig) -> Pruning {
    let mut pruning = Pruning::off();
    pruning.manifests = config.manifests;
    pruning.partitions = config.partitions;
    pruning.metrics = config.metrics;
    pruning.row_groups = config.row_groups;
    pruning.pages = config.pages;
    pruning.bloom = config.bloom;
    pruning.residuals = config.residuals;
    pruning
}

/// Serves connections of `listener` until `shutdown`, then until the last stream has ended.
pub(super) async fn serve(listener: TcpListener, engine: Arc<Engine>, shutdown: CancellationToken) -> Result<()> {
    crate::server::serve(listener, engine, shutdown.cancelled_owned()).await
}
