//! Opening tables by name and place.

use std::sync::Arc;

use super::log::{Log, Shared};
use super::table::DeltaTable;
use crate::cache::Caches;
use crate::error::{Error, Result, ResultExt};
use crate::io::Storage;
use crate::table::{TableIdent, TableLocation};

/// Loads Delta tables; one per process.
#[derive(Debug, Clone)]
pub struct DeltaLoader {
    shared: Arc<Shared>,
}

impl DeltaLoader {
    /// Errors: `Internal` where threads cannot be started.
    pub fn new(storage: Arc<Storage>, caches: Arc<Caches>) -> Result<Self> {
        let shared = Shared::new(storage, caches)?;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The table at its newest version.
    ///
    /// Errors: `NotFound` without a log; `Unsupported` for a protocol version, feature or type that is not known, naming
    /// it; `Corrupt` for a log that breaks the protocol.
    pub async fn newest(&self, ident: &TableIdent, location: &TableLocation) -> Result<DeltaTable> {
        let log = self.log(location)?;
        let version = log.newest().await.context("table", || ident)?;
        Ok(DeltaTable::new(ident.clone(), log, version))
    }

    /// The table at the version whose commit file, below its log, has this location.
    ///
    /// Errors: as [`Self::newest`]; `PermissionDenied` for a file of another table.
    pub async fn at(&self, ident: &TableIdent, location: &TableLocation, commit: &str) -> Result<DeltaTable> {
        let log = self.log(location)?;
        let other = || Error::permission_denied("the commit does not belong to the table").with("file", commit);
        let number = log.number_of(commit).ok_or_else(other)?;
        let version = log.version(number).await.context("table", || ident)?;
        Ok(DeltaTable::new(ident.clone(), log, version))
    }

    fn log(&self, location: &TableLocation) -> Result<Log> {
        Log::new(&self.shared, location)
    }
}
