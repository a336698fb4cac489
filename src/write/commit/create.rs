//! New tables: the first metadata file, and the name that the catalog gives it (AT-12).
//!
//! Invariants: a table has its name only when its first metadata file is durable; what was written for a
//! table that surely did not come to be is deleted, nothing otherwise.

use std::sync::Arc;

use super::driver::{Driver, now_ms};
use super::known::Added;
use super::{Commits, finish, ready};
use crate::catalog::SwapOutcome;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::PATH_PROPERTIES;
use crate::iceberg::commit::{Change, Committed, Loaded};
use crate::iceberg::spec::{MetadataBuilder, MetadataCompression, NewTable, TableMetadata};
use crate::io::{Created, FileKind, PathMap, TableIo};
use crate::table::TableIdent;

/// A table that has no name yet.
#[derive(Debug)]
pub struct Creation {
    ident: TableIdent,
    io: TableIo,
    metadata: Arc<TableMetadata>,
    /// The metadata file, where it was written.
    location: String,
    /// The topmost folder that was made for it.
    made: Option<String>,
}

impl Creation {
    /// What the table's metadata will be.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.metadata
    }

    /// Access to the table's folder.
    pub fn io(&self) -> &TableIo {
        &self.io
    }
}

impl Commits {
    /// Writes the first metadata file of a table that is to have this name.
    ///
    /// Errors: what [`MetadataBuilder::new_table`] says; `AlreadyExists` for the name; `Unavailable`.
    pub async fn stage_table(&self, ident: &TableIdent, new: NewTable) -> Result<Creation> {
        let catalog = self.catalogs.writable(&ident.catalog)?;
        let journal = self.journal_of(&ident.catalog).await?;
        if catalog.pointer(ident).await?.is_some() {
            return Err(exists(ident));
        }
        {
            let lock = self.lock_of(ident);
            let _one_at_a_time = lock.lock().await;
            self.settle_while_it_can_be(ready(&journal)?, ident).await;
        }
        let metadata = MetadataBuilder::new_table(new, now_ms())?.build()?;
        let named = PATH_PROPERTIES
            .iter()
            .filter_map(|name| Some((*name, metadata.properties.get(*name)?)));
        let mut folders = vec![metadata.location.clone()];
        catalog.check_location(ident, &metadata.location).await?;
        for (property, folder) in named {
            catalog.check_location(ident, folder).await.context("property", || property)?;
            folders.push(folder.clone());
        }
        let io = TableIo::new(Arc::clone(&self.storage), PathMap::default(), folders)?;
        let io = io.for_table(&metadata.table_uuid.map(|uuid| uuid.to_string()).unwrap_or_default());
        let compression = MetadataCompression::of(&metadata)?;
        let id = uuid::Uuid::new_v4();
        let name = format!("{}/metadata/00000-{id}{}", metadata.location, compression.file_ending());
        let location = io.resolve(&name)?;
        let folder = location.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !io.list_files(folder).await?.is_empty() {
            let message = "a table lies there already: name another location, or register that table";
            return Err(Error::new(ErrorKind::AlreadyExists, message).with("location", &metadata.location));
        }
        let made = io.first_missing(folder).await?;
        let bytes = metadata.to_file_bytes(compression)?;
        match io.create(&location, FileKind::Metadata, bytes.into()).await? {
            Created::Ours => {}
            Created::Absent(error) => return Err(error),
            Created::Foreign => return Err(Error::internal("a metadata file of this name is there already").with("file", location)),
        }
        Ok(Creation {
            ident: ident.clone(),
            io,
            metadata: Arc::new(metadata),
            location,
            made,
        })
    }

    /// Gives a staged table its name.
    ///
    /// Errors: `AlreadyExists`, `NotFound` for the schema: then its metadata file is gone; `CommitStateUnknown`.
    pub async fn create_table(&self, creation: &Creation) -> Result<()> {
        let Creation { ident, location, .. } = creation;
        let catalog = self.catalogs.writable(&ident.catalog)?;
        let mut outcome = catalog.create_table(ident, location).await;
        if matches!(outcome, SwapOutcome::Unknown(_)) {
            outcome = catalog.resolve(ident, None, location).await;
        }
        match outcome {
            SwapOutcome::Done => Ok(()),
            unknown @ SwapOutcome::Unknown(_) => unknown.into_result().context("table", || ident),
            SwapOutcome::Conflict => {
                self.forget(creation).await;
                Err(exists(ident))
            }
            SwapOutcome::Failed(error) => {
                self.forget(creation).await;
                Err(error).context("table", || ident)
            }
        }
    }

    /// Gives a staged table its name together with its first snapshot, so that nobody sees it without.
    ///
    /// Errors: as [`Self::commit`] and [`Self::create_table`].
    pub async fn create_table_with(&self, creation: &Creation, change: Change) -> Result<Committed> {
        let ident = &creation.ident;
        let journal = self.journal_of(&ident.catalog).await?;
        let lock = self.lock_of(ident);
        let _one_at_a_time = lock.lock().await;
        let driver = Driver {
            catalogs: &self.catalogs,
            journal: ready(&journal)?,
            ident,
            io: creation.io.clone(),
            creates: true,
            added: Added::of_files(&change.added),
            unnamed: Some(Loaded {
                metadata: Arc::clone(&creation.metadata),
                location: creation.location.clone(),
            }),
        };
        let committed = finish(&driver, change).await;
        if committed.as_ref().is_err_and(|e| e.kind() != ErrorKind::CommitStateUnknown) {
            self.forget(creation).await;
        }
        committed
    }

    /// Deletes the metadata file of a table that did not come to be, and the folders that were made for it.
    pub async fn forget(&self, creation: &Creation) {
        let Creation { ident, io, location, .. } = creation;
        if let Err(error) = io.delete(location, FileKind::Metadata).await {
            tracing::warn!(table = %ident, %error, "the metadata file of a table that was not created could not be deleted");
        }
        let metadata = location.rsplit_once('/').map_or("", |(folder, _)| folder);
        let table = io.comparable(&creation.metadata.location);
        if let (Some(made), Ok(table)) = (&creation.made, table) {
            // Of a folder that was there before, only what this made in it.
            let folder = if made.starts_with(&format!("{table}/")) { metadata } else { &table };
            if let Err(error) = io.remove_empty_folders(folder, made).await {
                tracing::warn!(table = %ident, %error, "folders of a table that was not created could not be removed");
            }
        }
    }
}

fn exists(ident: &TableIdent) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("table \"{ident}\" exists already"))
}
