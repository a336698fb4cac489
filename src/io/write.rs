//! Durable creation and deletion of a table's files (reliability-security.md 4.1: AT-1 to AT-4, 4.3).
//!
//! Invariants: a file that is there is never overwritten; a creation is reported only after the file's
//! bytes, its entry and new folders around it are synced; whatever the store answers, what is said about
//! the file was read back; nothing outside of the table's roots is touched, links out of them included.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::confine::real_path;
use super::table_io::{local_error, store_path};
use super::{FileKind, TableIo, normalise};
use crate::crash;
use crate::error::{Error, ErrorKind, Result, ResultExt};

/// What is known after a creation was sent.
#[derive(Debug)]
pub enum Created {
    /// The file is there, durable, with exactly these bytes.
    Ours,
    /// A file with other bytes has the name.
    Foreign,
    /// Nothing has the name: the creation failed for this reason and may be tried again.
    Absent(Error),
}

/// Where a write can be made to fail, in the order of a file's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteStep {
    /// Before a whole file is created.
    Create,
    /// After it was: an error here is an answer that got lost.
    Created,
    /// Before bytes of a stream are written.
    Part,
    /// Before a stream becomes a file.
    Finish,
    /// After it did: an error here is an answer that got lost.
    Finished,
    /// Before a file is deleted.
    Delete,
}

/// Faults that tests put between the program and its files.
pub trait WriteFaults: Send + Sync + Debug {
    /// Called at every step of every write; an error is what the step then gives. May also block, or
    /// end the process.
    fn at(&self, step: WriteStep, location: &str) -> Result<()>;
}

/// Removes the folders below that hold nothing. What fails stays.
fn remove_empty_below(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_empty_below(&entry.path());
        let _ = std::fs::remove_dir(entry.path());
    }
}

impl TableIo {
    /// Creates a file that must not be there yet. `location` is resolved; it should hold something that is
    /// unique to this call (a uuid in the name, a commit id in the bytes), since equal bytes count as ours.
    ///
    /// Errors: `PermissionDenied` outside of the roots, `InvalidInput` for a name that cannot be written: then
    /// nothing was sent. `CommitStateUnknown` when it cannot be told what became of the file.
    pub async fn create(&self, location: &str, kind: FileKind, bytes: Bytes) -> Result<Created> {
        let path = self.place(location).await?;
        if let Err(e) = self.fault(WriteStep::Create, kind, location) {
            return Ok(Created::Absent(e));
        }
        self.storage().counters().record_write(kind, 1, bytes.len() as u64);
        let options = PutOptions::from(PutMode::Create);
        let sent = self.storage().local().put_opts(&path, bytes.clone().into(), options).await;
        let sent = match sent {
            Ok(_) => self.fault(WriteStep::Created, kind, location),
            Err(e) => Err(write_error(e, location)),
        };
        match sent {
            Ok(()) => Ok(Created::Ours),
            Err(cause) => self.found(location, kind, &bytes, cause).await,
        }
    }

    /// Tells what has the name after a creation that was not plainly answered (AT-1).
    async fn found(&self, location: &str, kind: FileKind, bytes: &Bytes, cause: Error) -> Result<Created> {
        let unknown = |why: Error| {
            Error::new(
                ErrorKind::CommitStateUnknown,
                "a file may or may not have been written, and reading it back failed",
            )
            .with("file", location)
            .with_source(why)
        };
        let same = match self.size(location, kind).await {
            Ok(size) if size != bytes.len() as u64 => false,
            Ok(size) => self.read(location, kind, size).await.map_err(unknown)? == bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Created::Absent(cause)),
            Err(e) => return Err(unknown(e)),
        };
        if !same {
            return Ok(Created::Foreign);
        }
        // An earlier try may have ended between the file and its durability.
        let file = PathBuf::from(location);
        blocking(move || {
            std::fs::File::open(&file)?.sync_all()?;
            sync_folder_of(&file)
        })
        .await?
        .map_err(|e| unknown(local_error(e, location)))?;
        Ok(Created::Ours)
    }

    /// Deletes a file; false when it was not there. A link is deleted, never what it leads to.
    ///
    /// Errors: `PermissionDenied` outside of the roots, `Unavailable` when it may still be there.
    pub async fn delete(&self, location: &str, kind: FileKind) -> Result<bool> {
        let path = self.place(location).await?;
        self.fault(WriteStep::Delete, kind, location)?;
        self.storage().counters().record_write(kind, 1, 0);
        match self.storage().local().delete(&path).await {
            Ok(()) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(write_error(e, location)),
        }
    }

    /// The topmost folder, of this one and those around it, that is not there yet. `folder` is an absolute path.
    ///
    /// Errors: `Unavailable`.
    pub async fn first_missing(&self, folder: &str) -> Result<Option<String>> {
        let named = PathBuf::from(folder);
        let missing = blocking(move || {
            let is_missing = |folder: &&Path| matches!(folder.symlink_metadata(), Err(e) if e.kind() == std::io::ErrorKind::NotFound);
            Ok(named.ancestors().take_while(is_missing).last().map(Path::to_path_buf))
        });
        let missing = missing.await?.map_err(|e| local_error(e, folder))?;
        Ok(missing.and_then(|missing| missing.to_str().map(str::to_owned)))
    }

    /// Removes the folders below `folder` that hold nothing, then it and those around it up to `top`. No file is
    /// touched, and a folder with something in it stays.
    pub async fn remove_empty_folders(&self, folder: &str, top: &str) -> Result<()> {
        let (folder, top) = (PathBuf::from(folder), PathBuf::from(top));
        blocking(move || {
            remove_empty_below(&folder);
            let around = folder.ancestors().take_while(|around| around.starts_with(&top));
            for around in around {
                if std::fs::remove_dir(around).is_err() {
                    break;
                }
            }
            Ok(())
        })
        .await?
        .map_err(|e| local_error(e, "a folder"))
    }

    /// The store's path of something that may be written: a resolved location whose folder, links
    /// followed and whether it exists or not, lies below a root.
    pub(super) async fn place(&self, location: &str) -> Result<StorePath> {
        self.check_root(location).context("file", || location)?;
        if normalise(location)? != location || location.ends_with('/') || is_staged_name(location) {
            return Err(Error::invalid("not a name that a file can be written under").with("file", location.escape_debug()));
        }
        let named = PathBuf::from(location);
        let real = blocking(move || match (named.parent(), named.file_name()) {
            (Some(folder), Some(name)) => Ok(real_path(folder)?.join(name)),
            _ => Err(std::io::Error::other("it has no folder")),
        })
        .await?
        .map_err(|e| local_error(e, location))?;
        let real = real
            .to_str()
            .ok_or_else(|| Error::unsupported("file name is not UTF-8").with("file", location))?;
        self.check_root(real).context("file", || location)?;
        store_path(location)
    }

    pub(super) fn fault(&self, step: WriteStep, kind: FileKind, location: &str) -> Result<()> {
        crash::point(format_args!("{step:?}-{kind:?}"));
        match self.storage().faults() {
            Some(faults) => faults.at(step, location),
            None => Ok(()),
        }
    }
}

/// Names that end in `#` and digits are those of files that are still being written; listings leave them out.
pub(super) fn is_staged_name(location: &str) -> bool {
    let name = location.rsplit('/').next().unwrap_or_default();
    name.split_once('#')
        .is_some_and(|(_, rest)| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Runs file work on a thread that may block.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::internal("a blocking task failed").with_source(e))
}

/// Makes the entries of a file's folder durable.
pub(super) fn sync_folder_of(file: &Path) -> std::io::Result<()> {
    match file.parent() {
        Some(folder) => std::fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates the folders of a file, each durable before the next.
pub(super) fn create_folder_of(file: &Path) -> std::io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    let missing: Vec<&Path> = folder.ancestors().take_while(|f| !f.exists()).collect();
    for folder in missing.into_iter().rev() {
        match std::fs::create_dir(folder) {
            Ok(()) => sync_folder_of(folder)?,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn write_error(e: object_store::Error, location: &str) -> Error {
    match e {
        object_store::Error::AlreadyExists { .. } => Error::new(ErrorKind::AlreadyExists, "file is there already").with("file", location),
        object_store::Error::PermissionDenied { .. } => Error::permission_denied("may not write file").with("file", location),
        other => Error::unavailable("cannot write file").with("file", location).with_source(other),
    }
}
