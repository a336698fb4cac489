//! Reading the files of one table; `write` and `writer` have the other direction.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path as StorePath;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::confine::real_path;
use super::path_map::strip_segments;
use super::write::is_staged_name;
use super::{FileKind, IoCounters, PathMap, WriteFaults, normalise};
use crate::error::{Error, ErrorKind, Result, ResultExt};

/// The stores of the process, shared by all tables. Only local files until object stores are built.
#[derive(Debug)]
pub struct Storage {
    local: Arc<LocalFileSystem>,
    counters: IoCounters,
    faults: Option<Arc<dyn WriteFaults>>,
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            // Off by default there: a file could be named by a commit and be gone after a power cut (AT-3).
            local: Arc::new(LocalFileSystem::new().with_fsync(true)),
            counters: IoCounters::default(),
            faults: None,
        }
    }
}

impl Storage {
    /// What was read and written so far.
    pub fn counters(&self) -> &IoCounters {
        &self.counters
    }

    /// The same stores with faults in every write, for tests.
    #[must_use]
    pub fn with_faults(mut self, faults: Arc<dyn WriteFaults>) -> Self {
        self.faults = Some(faults);
        self
    }

    pub(super) fn local(&self) -> &LocalFileSystem {
        &self.local
    }

    pub(super) fn faults(&self) -> Option<&Arc<dyn WriteFaults>> {
        self.faults.as_ref()
    }
}

/// A file by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// When it was last changed, in milliseconds since the epoch.
    pub modified_ms: i64,
}

/// Access to one table's files: its path map and the roots it may read and write below.
#[derive(Debug, Clone)]
pub struct TableIo {
    storage: Arc<Storage>,
    map: Arc<PathMap>,
    roots: Arc<[String]>,
    /// Which table the files belong to, beyond their names.
    identity: Arc<str>,
}

impl TableIo {
    /// `roots`: folders that the table may read from (its location and configured extras); the
    /// targets of the path map are added. All are normalised; local ones are also resolved
    /// through symbolic links, so a link out of a root is refused when it is opened.
    pub fn new(storage: Arc<Storage>, map: PathMap, roots: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut all = Vec::new();
        for root in roots.into_iter().chain(map.targets().map(str::to_owned).collect::<Vec<_>>()) {
            let root = normalise(&root)?;
            if let Ok(real) = real_path(Path::new(root.trim_end_matches('/')))
                && let Some(real) = real.to_str()
                && real != root.trim_end_matches('/')
            {
                all.push(real.to_owned());
            }
            all.push(root);
        }
        Ok(Self {
            storage,
            map: Arc::new(map),
            roots: all.into(),
            identity: "".into(),
        })
    }

    /// The process-wide stores and counters.
    pub fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The same access for the table of this identity (Iceberg: its uuid).
    #[must_use]
    pub fn for_table(mut self, identity: &str) -> Self {
        self.identity = identity.into();
        self
    }

    /// Part of the key of what is cached of this table's files. It names the table, since a table
    /// that was dropped and made again may give the old names to new files, and the path map,
    /// since what holds resolved names holds for one map only.
    pub fn cache_scope(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.identity.hash(&mut hasher);
        self.map.hash(&mut hasher);
        hasher.finish()
    }

    /// Tells apart what one location held at different times, for files that may be replaced.
    pub async fn stamp(&self, location: &str, kind: FileKind) -> Result<u64> {
        let meta = self.head(location, kind).await?;
        let mut hasher = std::hash::DefaultHasher::new();
        (meta.size, meta.last_modified, meta.e_tag).hash(&mut hasher);
        Ok(hasher.finish())
    }

    /// The location that a recorded path stands for: normalised, mapped, below an allowed root.
    ///
    /// Errors: `PermissionDenied` outside of the roots, `Unsupported` for a scheme that is not built.
    pub fn resolve(&self, recorded: &str) -> Result<String> {
        let location = self
            .map
            .apply(recorded)
            .map_err(|e| Error::corrupt(e.message()).with("path", recorded.escape_debug()))?;
        if let Some((scheme, _)) = location.split_once("://") {
            return Err(Error::unsupported(format!(
                "{scheme}:// locations cannot be read yet: map the prefix to a local folder with path_map"
            ))
            .with("path", recorded));
        }
        self.check_root(&location)?;
        Ok(location)
    }

    /// Mapped and normalised, without the check of scheme and root: for comparing names only.
    pub fn comparable(&self, recorded: &str) -> Result<String> {
        self.map
            .apply(recorded)
            .map_err(|e| Error::corrupt(e.message()).with("path", recorded.escape_debug()))
    }

    pub(super) fn check_root(&self, location: &str) -> Result<()> {
        if self
            .roots
            .iter()
            .any(|root| strip_segments(location, root).is_some_and(|rest| !rest.is_empty()))
        {
            return Ok(());
        }
        Err(Error::permission_denied(
            "a file lies outside of the table's allowed folders: move it, or add a path_map rule for its prefix",
        ))
    }

    /// Size of a file in bytes.
    pub async fn size(&self, location: &str, kind: FileKind) -> Result<u64> {
        Ok(self.head(location, kind).await?.size)
    }

    async fn head(&self, location: &str, kind: FileKind) -> Result<ObjectMeta> {
        let path = self.open(location).await?;
        self.storage.counters.record(kind, 1, 0);
        self.storage.local.head(&path).await.map_err(|e| store_error(e, location))
    }

    /// A whole file of at most `limit` bytes.
    pub async fn read(&self, location: &str, kind: FileKind, limit: u64) -> Result<Bytes> {
        let size = self.size(location, kind).await?;
        if size > limit {
            return Err(
                Error::resource_exhausted(format!("file of {size} bytes is larger than the limit of {limit}")).with("file", location),
            );
        }
        let path = self.open(location).await?;
        self.storage.counters.record(kind, 1, size);
        let got = self.storage.local.get(&path).await.map_err(|e| store_error(e, location))?;
        got.bytes().await.map_err(|e| store_error(e, location))
    }

    /// Byte ranges of a file, each checked against `size` by the caller or short reads become errors.
    pub async fn read_ranges(&self, location: &str, kind: FileKind, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.open(location).await?;
        let bytes = ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum();
        self.storage.counters.record(kind, ranges.len() as u64, bytes);
        let parts = self
            .storage
            .local
            .get_ranges(&path, ranges)
            .await
            .map_err(|e| store_error(e, location))?;
        for (range, part) in ranges.iter().zip(&parts) {
            if part.len() as u64 != range.end - range.start {
                return Err(Error::corrupt("file is shorter than its own offsets say").with("file", location));
            }
        }
        Ok(parts)
    }

    /// Size and time of a file.
    pub async fn stat(&self, location: &str, kind: FileKind) -> Result<FileStat> {
        let meta = self.head(location, kind).await?;
        Ok(FileStat {
            name: location.rsplit('/').next().unwrap_or_default().to_owned(),
            size: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
        })
    }

    /// The files directly below a folder whose names come after `after`, in order of name, with size and time.
    pub async fn list_stats(&self, folder: &str, after: &str) -> Result<Vec<FileStat>> {
        let folder = normalise(folder)?;
        self.check_root(&folder).context("folder", || folder.clone())?;
        let (path, after) = (PathBuf::from(&folder), after.to_owned());
        self.storage.counters.record(FileKind::Metadata, 1, 0);
        let listed = tokio::task::spawn_blocking(move || {
            let (mut names, _) = names_in(&path)?;
            names.retain(|name| *name > after);
            names.sort_unstable();
            let stat = |name: String| {
                let meta = std::fs::metadata(path.join(&name))?;
                let since = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Ok(FileStat {
                    size: meta.len(),
                    modified_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                    name,
                })
            };
            names.into_iter().map(stat).collect::<std::io::Result<Vec<_>>>()
        });
        let listed = listed.await.map_err(|e| Error::internal("a blocking task failed").with_source(e))?;
        listed.map_err(|e| local_error(e, &folder))
    }

    /// Names of the files directly below a folder (not recursive).
    pub async fn list_files(&self, folder: &str) -> Result<Vec<String>> {
        Ok(self.list(folder).await?.0)
    }

    /// Names of the folders directly below a folder.
    pub async fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        Ok(self.list(folder).await?.1)
    }

    /// Names alone: asking for the size and time of each file would take longer than all the rest.
    async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>)> {
        let folder = normalise(folder)?;
        let path = PathBuf::from(&folder);
        self.storage.counters.record(FileKind::Metadata, 1, 0);
        let listed = tokio::task::spawn_blocking(move || names_in(&path)).await;
        let listed = listed.map_err(|e| Error::internal("a blocking task failed").with_source(e))?;
        let (mut files, mut folders) = listed.map_err(|e| local_error(e, &folder))?;
        files.sort();
        folders.sort();
        Ok((files, folders))
    }

    /// Checks the real path (symbolic links followed) and gives the store's path.
    async fn open(&self, location: &str) -> Result<StorePath> {
        self.check_root(location).context("file", || location)?;
        let named = PathBuf::from(location);
        let real = tokio::task::spawn_blocking(move || {
            let real = std::fs::canonicalize(named)?;
            // A pipe or a device would block the read for ever.
            if !std::fs::metadata(&real)?.is_file() {
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no regular file"));
            }
            Ok(real)
        })
        .await
        .map_err(|e| Error::internal("a blocking task failed").with_source(e))?
        .map_err(|e| local_error(e, location))?;
        let real = real
            .to_str()
            .ok_or_else(|| Error::unsupported("file name is not UTF-8").with("file", location))?;
        self.check_root(real).context("file", || location)?;
        store_path(location)
    }
}

/// Names of files and folders; none where there is no such folder. What is being written is left out.
fn names_in(folder: &Path) -> std::io::Result<(Vec<String>, Vec<String>)> {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => return Ok((files, folders)),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        // No file of a table has such a name.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let mut kind = entry.file_type()?;
        if kind.is_symlink() {
            match std::fs::metadata(entry.path()) {
                Ok(target) => kind = target.file_type(),
                // It leads nowhere.
                Err(_) => continue,
            }
        }
        if kind.is_dir() {
            folders.push(name);
        } else if kind.is_file() && !is_staged_name(&name) {
            files.push(name);
        }
    }
    Ok((files, folders))
}

pub(super) fn store_path(location: &str) -> Result<StorePath> {
    StorePath::parse(location.trim_start_matches('/'))
        .map_err(|e| Error::invalid("not a usable path").with("path", location).with_source(e))
}

pub(super) fn local_error(e: std::io::Error, location: &str) -> Error {
    let kind = match e.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        // Trying again does not make it a file.
        std::io::ErrorKind::InvalidInput => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    let message = if kind == ErrorKind::NotFound {
        "file does not exist"
    } else {
        "cannot open file"
    };
    Error::new(kind, message).with("file", location).with_source(e)
}

fn store_error(e: object_store::Error, location: &str) -> Error {
    match e {
        object_store::Error::NotFound { .. } => Error::not_found("file does not exist").with("file", location),
        object_store::Error::PermissionDenied { .. } => Error::permission_denied("may not read file").with("file", location),
        other => Error::unavailable("cannot read file").with("file", location).with_source(other),
    }
}
