//! One table's log, and keeping what was read of it.
//!
//! A table that is asked for again costs two looks at names: its newest commit's file is still the same, and there is
//! no next one. Where there is, only what is newer is read. Versions and lists of files lie in the cache; what is
//! remembered beside it is which version was newest, without keeping it alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::checksum;
use super::kernel::{LogAccess, LogVersion, Pool};
use super::live_files::LiveFiles;
use super::version::TableVersion;
use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{FileKind, PathMap, Storage, TableIo};
use crate::table::TableLocation;

/// Commits that are read one by one before a newer checkpoint is looked for.
const MOST_COMMITS: u64 = 500;
/// Tables whose newest version is remembered.
const MOST_TABLES: usize = 10_000;

/// What all logs share.
#[derive(Debug)]
pub(super) struct Shared {
    storage: Arc<Storage>,
    caches: Arc<Caches>,
    pool: Pool,
    newest: Mutex<HashMap<String, Newest>>,
}

impl Shared {
    /// Errors: `Internal` where threads cannot be started.
    pub(super) fn new(storage: Arc<Storage>, caches: Arc<Caches>) -> Result<Self> {
        Ok(Self {
            storage,
            caches,
            pool: Pool::new()?,
            newest: Mutex::default(),
        })
    }
}

/// Which version of a table was newest when it was last asked for.
#[derive(Debug, Clone)]
struct Newest {
    version: Weak<TableVersion>,
    number: u64,
    /// Version of the checkpoint, or of the oldest commit, that it was made from.
    since: u64,
    /// Tells its commit's file from another of that name.
    stamp: u64,
    files: Weak<LiveFiles>,
    files_of: Weak<TableVersion>,
}

/// One table's log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    shared: Arc<Shared>,
    pub(super) io: TableIo,
    /// The table's folder, without slash at its end.
    pub(super) root: String,
}

impl Log {
    /// Errors: `InvalidInput` for a path map or a place that is none.
    pub(super) fn new(shared: &Arc<Shared>, location: &TableLocation) -> Result<Self> {
        let map = PathMap::new(location.path_map.clone())?;
        let root = location.root.trim_end_matches('/').to_owned();
        let io = TableIo::new(Arc::clone(&shared.storage), map, [root.clone()])?.for_table(&root);
        Ok(Self {
            shared: Arc::clone(shared),
            io,
            root,
        })
    }

    /// Access to the files of a version: a table that was made anew in its folder has another id, and may give old names
    /// to new files.
    pub(super) fn io_of(&self, version: &TableVersion) -> TableIo {
        self.io.clone().for_table(&format!("{}#{}", self.root, version.log.id))
    }

    /// Where a version's commit is, whether it is still there or not.
    pub(super) fn commit(&self, number: u64) -> String {
        format!("{}/_delta_log/{number:020}.json", self.root)
    }

    /// The version whose commit lies at a place; `None` where none of this log does.
    pub(super) fn number_of(&self, commit: &str) -> Option<u64> {
        let name = commit
            .strip_prefix(&self.root)?
            .strip_prefix("/_delta_log/")?
            .strip_suffix(".json")?;
        let is_number = name.len() == 20 && name.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| name.parse().ok())?
    }

    /// Runs a blocking call about the log. It ends soon where this is dropped.
    pub(super) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&LogAccess) -> Result<T> + Send + 'static,
    {
        let access = LogAccess::new(self.io.clone(), self.root.clone());
        let _waiting = access.waiting();
        self.shared.pool.run(move || work(&access)).await
    }

    fn key(&self) -> String {
        format!("{}#{}", self.root, self.io.cache_scope())
    }

    /// Tells a commit's file from another of the same name; `None` where it is not there (any more).
    async fn stamp(&self, number: u64) -> Result<Option<u64>> {
        match self.io.stamp(&self.commit(number), FileKind::Metadata).await {
            Ok(stamp) => Ok(Some(stamp)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The newest version now.
    ///
    /// Errors: as [`LogVersion::open`].
    pub(super) async fn newest(&self) -> Result<Arc<TableVersion>> {
        let known = self
            .shared
            .newest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&self.key())
            .cloned();
        let mut older = None;
        if let Some(known) = known
            && let Some(version) = known.version.upgrade()
            && self.stamp(known.number).await? == Some(known.stamp)
        {
            if self.stamp(known.number + 1).await?.is_none() {
                return Ok(version);
            }
            if known.number - known.since < MOST_COMMITS {
                older = Some((version, known));
            }
        }
        let (opened, since) = match &older {
            Some((version, known)) => {
                let log = version.log.clone();
                match self.run(move |access| log.refreshed(access)).await {
                    Ok(refreshed) => (refreshed, known.since),
                    // Commits between were cleaned away.
                    Err(_) => self.opened().await?,
                }
            }
            None => self.opened().await?,
        };
        let number = opened.number();
        // Between reading and looking the table may have been made anew; then the next look tells.
        let stamp = self.stamp(number).await?;
        let version = self.keep(opened, stamp).await?;
        let mut remembered = self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match stamp {
            // Where the commit itself was cleaned away nothing tells a change cheaply.
            None => drop(remembered.remove(&self.key())),
            Some(stamp) => {
                if remembered.len() >= MOST_TABLES {
                    remembered.clear();
                }
                let before = older.map(|(_, known)| known);
                remembered.insert(
                    self.key(),
                    Newest {
                        version: Arc::downgrade(&version),
                        number,
                        since,
                        stamp,
                        files: before.as_ref().map(|k| k.files.clone()).unwrap_or_default(),
                        files_of: before.map(|k| k.files_of).unwrap_or_default(),
                    },
                );
            }
        }
        Ok(version)
    }

    /// The newest version, and its number, read from the log's newest checkpoint on.
    async fn opened(&self) -> Result<(LogVersion, u64)> {
        let opened = self.run(|access| LogVersion::open(access, None)).await?;
        let number = opened.number();
        Ok((opened, number))
    }

    /// A version by its number.
    ///
    /// Errors: `NotFound` where it cannot be made again, naming the oldest that can.
    pub(super) async fn version(&self, number: u64) -> Result<Arc<TableVersion>> {
        let stamp = self.stamp(number).await?;
        let key = self.version_key(number, stamp);
        let cached = self.shared.caches.metadata.get_or_load(key, async {
            let opened = self.run(move |access| LogVersion::open(access, Some(number))).await?;
            let version = TableVersion::new(opened)?;
            let weight = version.memory_size();
            Ok((version, weight))
        });
        cached.await
    }

    async fn keep(&self, opened: LogVersion, stamp: Option<u64>) -> Result<Arc<TableVersion>> {
        let key = self.version_key(opened.number(), stamp);
        let kept = self.shared.caches.metadata.get_or_load(key, async {
            let version = TableVersion::new(opened)?;
            let weight = version.memory_size();
            Ok((version, weight))
        });
        kept.await
    }

    fn version_key(&self, number: u64, stamp: Option<u64>) -> CacheKey {
        let part = self.io.cache_scope() ^ stamp.unwrap_or(0).rotate_left(1);
        CacheKey::new(CacheKind::DeltaVersion, self.commit(number), part)
    }

    /// The files of a version.
    ///
    /// Errors: `Corrupt` for files of the log that break the protocol, naming them.
    pub(super) async fn files(&self, version: &Arc<TableVersion>) -> Result<Arc<LiveFiles>> {
        let number = version.log.number();
        // A version that was read anew is another, even where its number is the same.
        let part = self.io.cache_scope() ^ version.serial.rotate_left(17);
        let key = CacheKey::new(CacheKind::DeltaFiles, self.commit(number), part);
        let files = self.shared.caches.metadata.get_or_load(key, async {
            let files = match self.advanced(version).await? {
                Some(files) => files,
                None => {
                    let of = Arc::clone(version);
                    let replayed = self.run(move |access| LiveFiles::of(&of.log.files(access)?, &of.files));
                    let files = replayed.await?;
                    checksum::check(&files, &self.io, &format!("{}/_delta_log/{number:020}.crc", self.root)).await?;
                    files
                }
            };
            let weight = files.memory_size();
            Ok((files, weight))
        });
        let files = match files.await {
            Err(e) => return Err(self.placed(e.with("log", format!("{}/_delta_log", self.root)), number).await),
            Ok(files) => files,
        };
        let mut remembered = self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = remembered.get_mut(&self.key()).filter(|newest| newest.number == number) {
            newest.files = Arc::downgrade(&files);
            newest.files_of = Arc::downgrade(version);
        }
        Ok(files)
    }

    /// The files of a version by what changed since one whose files are known.
    async fn advanced(&self, version: &Arc<TableVersion>) -> Result<Option<LiveFiles>> {
        let known = {
            let remembered = self.shared.newest.lock().unwrap_or_else(PoisonError::into_inner);
            let newest = remembered.get(&self.key());
            newest.and_then(|newest| Some((newest.files.upgrade()?, newest.files_of.upgrade()?)))
        };
        let Some((files, of)) = known.filter(|(_, of)| of.reads_files_like(version)) else {
            return Ok(None);
        };
        let version = Arc::clone(version);
        self.run(move |access| {
            let changes = match version.log.changes_since(of.log.number(), access) {
                // A commit between was cleaned away.
                Err(e) if e.kind() == ErrorKind::NotFound => None,
                changes => changes?,
            };
            changes.map(|changes| files.after(&changes, &version.files)).transpose()
        })
        .await
    }

    /// The oldest version that can be made again: the first, or that of the oldest checkpoint.
    ///
    /// Errors: `NotFound` where there is none.
    pub(super) async fn oldest(&self) -> Result<u64> {
        let names = self.io.list_files(&format!("{}/_delta_log", self.root)).await?;
        let starts = names.iter().filter_map(|name| {
            let (digits, rest) = name.split_once('.')?;
            let number = digits.parse::<u64>().ok()?;
            (rest.starts_with("checkpoint.") || number == 0 && rest == "json").then_some(number)
        });
        starts
            .min()
            .ok_or_else(|| Error::not_found("there is neither a first commit nor a checkpoint"))
    }

    /// The version that was current at a time in microseconds since the epoch.
    ///
    /// Errors: `NotFound` before the oldest one that can be made again.
    pub(super) async fn number_at(&self, newest: &Arc<TableVersion>, micros: i64) -> Result<u64> {
        let log = newest.log.clone();
        let millis = micros.div_euclid(1_000);
        self.run(move |access| log.version_at(millis, access)).await
    }

    /// The first version at or after a time in microseconds since the epoch.
    ///
    /// Errors: `NotFound` after the newest one.
    pub(super) async fn number_after(&self, newest: &Arc<TableVersion>, micros: i64) -> Result<u64> {
        let log = newest.log.clone();
        // A time between two milliseconds is after the first of them.
        let millis = micros.div_euclid(1_000) + i64::from(micros.rem_euclid(1_000) > 0);
        self.run(move |access| log.version_after(millis, access)).await
    }
}
