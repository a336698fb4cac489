//! One writing Sandur process for a catalog file: an OS lock on a file beside it (interface.md 2).
//!
//! The system lets go of the lock when the process ends, however it ends. pyiceberg and Spark do not look at it and
//! do not need to: each of their changes is one transaction. It keeps two servers from both believing that
//! they alone know which commits of a journal are still open.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::error::{Error, Result};

/// Added to the catalog file's name.
const SUFFIX: &str = ".sandur-lock";

/// Locks that this process holds, since a second catalog on the same file is the same writer.
static HELD: Mutex<BTreeMap<PathBuf, Weak<File>>> = Mutex::new(BTreeMap::new());

/// The lock of one catalog file, taken or not.
#[derive(Debug)]
pub(super) struct WriterLock {
    path: PathBuf,
    held: Mutex<Option<Arc<File>>>,
}

impl WriterLock {
    pub(super) fn beside(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push(SUFFIX);
        Self {
            path: path.into(),
            held: Mutex::new(None),
        }
    }

    /// Takes the lock, or keeps it. Blocks for a moment at most.
    ///
    /// Errors: `PermissionDenied` when another process has it, `Unavailable` when it cannot be had.
    pub(super) fn take(&self) -> Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_none() {
            *held = Some(self.acquire()?);
        }
        Ok(())
    }

    fn acquire(&self) -> Result<Arc<File>> {
        let failed = |e: std::io::Error| {
            Error::unavailable("cannot lock the catalog for writing")
                .with("file", self.path.display())
                .with_source(e)
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .map_err(failed)?;
        let key = std::fs::canonicalize(&self.path).map_err(failed)?;
        let mut all = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = all.get(&key).and_then(Weak::upgrade) {
            return Ok(held);
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(e)) => return Err(failed(e)),
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = Read::by_ref(&mut file).take(64).read_to_string(&mut owner);
                let owner: String = owner.chars().filter(char::is_ascii_digit).collect();
                let owner = if owner.is_empty() { "unknown".to_owned() } else { owner };
                return Err(Error::permission_denied(
                    "another Sandur server writes to this catalog, so this one only reads it: stop one of them, or send writes to the other",
                )
                .with("its process", owner)
                .with("lock", self.path.display()));
            }
        }
        // Who it is matters to the one who finds it locked; the lock itself is what counts.
        let named = file.set_len(0).and_then(|()| file.rewind());
        let _ = named.and_then(|()| writeln!(file, "{}", std::process::id()));
        let file = Arc::new(file);
        all.insert(key, Arc::downgrade(&file));
        Ok(file)
    }
}
