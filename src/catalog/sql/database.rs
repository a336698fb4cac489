//! Connections to the SQLite file, and transactions whose end is checked (AT-10, AT-11).
//!
//! Write-ahead logging is set on a file that this program creates: readers then never make a COMMIT fail, and
//! pyiceberg and Spark follow it by themselves since the file says so. It needs all programs on one machine, which
//! a file that is there already may not have, so an existing file keeps its mode; nothing here relies on it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::rows::{Layout, create_tables};
use crate::crash;
use crate::error::{Error, ErrorKind, Result};

/// How long a statement waits for the locks of others.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reading connections that are kept.
const KEPT_READERS: usize = 8;

/// What a transaction's statements ask for.
pub(super) enum Verdict<T> {
    Commit(T),
    Rollback(T),
}

/// How a transaction ended.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// As its statements asked for.
    Done(T),
    /// Nothing of it was applied.
    NotApplied(Error),
    /// COMMIT did not say that it was applied.
    Unknown(Error),
}

/// A connection with the identity of the file that it opened.
struct Held {
    connection: Connection,
    file: (u64, u64),
}

/// The SQLite file of a catalog.
pub(super) struct Database {
    path: PathBuf,
    busy_timeout: Duration,
    readers: Mutex<Vec<Held>>,
    /// Changes of this process take turns here, so that they do not wait for each other inside SQLite.
    writer: Arc<AsyncMutex<Option<Held>>>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Database {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        Self {
            path,
            busy_timeout,
            readers: Mutex::default(),
            writer: Arc::default(),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs queries in one read transaction; `None` when there is no file yet or no catalog in it.
    ///
    /// Errors: `Corrupt` for a file that is no catalog, `Unavailable`.
    pub(super) async fn read<T, F>(self: &Arc<Self>, queries: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, Layout) -> Result<T> + Send + 'static,
    {
        let own = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || own.read_now(queries)).await;
        done.map_err(|e| Error::internal("a blocking task failed").with_source(e))?
            .map_err(|e| e.with("catalog file", self.path.display()))
    }

    fn read_now<T>(&self, queries: impl FnOnce(&Connection, Layout) -> Result<T>) -> Result<Option<T>> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(held) = self.current(kept)? else { return Ok(None) };
        let connection = &held.connection;
        connection.execute_batch("BEGIN").map_err(sql_error)?;
        let done = match Layout::of(connection) {
            Ok(Some(layout)) => queries(connection, layout).map(Some),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        if connection.execute_batch("ROLLBACK").is_ok() {
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < KEPT_READERS {
                readers.push(held);
            }
        }
        done
    }

    /// Runs statements in one transaction that has the write lock from its beginning.
    pub(super) async fn write<T, F>(self: &Arc<Self>, statements: F) -> Ended<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, Layout) -> Result<Verdict<T>> + Send + 'static,
    {
        let turn = Arc::clone(&self.writer).lock_owned().await;
        let own = Arc::clone(self);
        let ended = match tokio::task::spawn_blocking(move || own.write_now(turn, statements)).await {
            Ok(ended) => ended,
            Err(e) => Ended::Unknown(Error::internal("a blocking task failed").with_source(e)),
        };
        match ended {
            Ended::Done(done) => Ended::Done(done),
            Ended::NotApplied(e) => Ended::NotApplied(e.with("catalog file", self.path.display())),
            Ended::Unknown(e) => Ended::Unknown(e.with("catalog file", self.path.display())),
        }
    }

    fn write_now<T>(
        &self,
        mut turn: OwnedMutexGuard<Option<Held>>,
        statements: impl FnOnce(&Connection, Layout) -> Result<Verdict<T>>,
    ) -> Ended<T> {
        let held = match self.current(turn.take()) {
            Ok(Some(held)) => held,
            Ok(None) => return Ended::NotApplied(gone()),
            Err(e) => return Ended::NotApplied(e),
        };
        let connection = &held.connection;
        if let Err(e) = connection.execute_batch("BEGIN IMMEDIATE") {
            return Ended::NotApplied(sql_error(e));
        }
        let asked = match Layout::of(connection) {
            Ok(Some(layout)) => statements(connection, layout),
            Ok(None) => Err(gone()),
            Err(e) => Err(e),
        };
        let ended = match asked {
            Ok(Verdict::Commit(done)) => {
                crash::point("sql-commit");
                if let Err(e) = connection.execute_batch("COMMIT") {
                    // Ends the transaction where it is still open. That alone proves nothing: see `change`.
                    let _ = connection.execute_batch("ROLLBACK");
                    return Ended::Unknown(sql_error(e));
                }
                crash::point("sql-committed");
                *turn = Some(held);
                return Ended::Done(done);
            }
            Ok(Verdict::Rollback(done)) => Ended::Done(done),
            Err(e) => Ended::NotApplied(e),
        };
        // Where this fails, closing the connection ends the transaction, which without a COMMIT is a rollback.
        if connection.execute_batch("ROLLBACK").is_ok() {
            *turn = Some(held);
        }
        ended
    }

    /// Creates the file and the catalog's tables where they are missing.
    ///
    /// Errors: `NotFound` when the folder is not there, `PermissionDenied`, `Corrupt`, `Unavailable`.
    pub(super) async fn prepare(self: &Arc<Self>) -> Result<()> {
        let turn = Arc::clone(&self.writer).lock_owned().await;
        let own = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            own.prepare_now()
        });
        done.await
            .map_err(|e| Error::internal("a blocking task failed").with_source(e))?
            .map_err(|e| e.with("catalog file", self.path.display()))
    }

    fn prepare_now(&self) -> Result<()> {
        if let Some(held) = self.current(None)? {
            if Layout::of(&held.connection)?.is_some_and(|layout| layout.complete) {
                return Ok(());
            }
        } else if !self.path.parent().is_some_and(Path::is_dir) {
            return Err(Error::not_found("the folder of the catalog file does not exist"));
        }
        let connection = self.open(OpenFlags::SQLITE_OPEN_CREATE)?;
        let pages: i64 = connection.query_row("PRAGMA page_count", (), |row| row.get(0)).map_err(sql_error)?;
        if pages == 0 {
            let mode: String = connection
                .query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))
                .map_err(sql_error)?;
            if mode != "wal" {
                tracing::warn!(file = %self.path.display(), mode, "the catalog file has no write-ahead log");
            }
        }
        connection.execute_batch("BEGIN IMMEDIATE").map_err(sql_error)?;
        create_tables(&connection)?;
        connection.execute_batch("COMMIT").map_err(sql_error)?;
        // The file's own entry in its folder.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        std::fs::File::open(folder)
            .and_then(|f| f.sync_all())
            .map_err(|e| Error::unavailable("cannot make the catalog file durable").with_source(e))
    }

    /// `kept` if it still is the file of this name, else a new connection; `None` when there is no file. A file that
    /// was replaced would take commits that nobody sees.
    fn current(&self, kept: Option<Held>) -> Result<Option<Held>> {
        let Some(now) = self.metadata()? else { return Ok(None) };
        if let Some(kept) = kept.filter(|kept| kept.file == identity(&now)) {
            return Ok(Some(kept));
        }
        let connection = self.open(OpenFlags::empty())?;
        match self.metadata()? {
            Some(after) if identity(&after) == identity(&now) => Ok(Some(Held {
                connection,
                file: identity(&now),
            })),
            _ => Err(Error::unavailable("the catalog file was replaced while it was opened")),
        }
    }

    fn metadata(&self) -> Result<Option<Metadata>> {
        match std::fs::metadata(&self.path) {
            Ok(found) if found.is_file() => Ok(Some(found)),
            Ok(_) => Err(Error::invalid("the catalog is no regular file")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::unavailable("cannot open the catalog file").with_source(e)),
        }
    }

    fn open(&self, extra: OpenFlags) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | extra;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(sql_error)?;
        connection.busy_timeout(self.busy_timeout).map_err(sql_error)?;
        // FULL: a COMMIT that was answered survives a power cut, with a write-ahead log too.
        connection
            .execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;")
            .map_err(sql_error)?;
        Ok(connection)
    }
}

fn identity(of: &Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

fn gone() -> Error {
    Error::unavailable("the catalog file or its tables have gone")
}

/// An error of SQLite as one of ours; the kind says whether trying again may help.
pub(super) fn sql_error(e: rusqlite::Error) -> Error {
    let (kind, message) = match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Unavailable, "the catalog file stayed locked by another connection")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (ErrorKind::Corrupt, "the catalog is no intact SQLite file"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (ErrorKind::PermissionDenied, "may not write the catalog file"),
        Some(ErrorCode::DiskFull) => (ErrorKind::ResourceExhausted, "no space is left for the catalog file"),
        _ => (ErrorKind::Unavailable, "the catalog file cannot be used"),
    };
    Error::new(kind, message).with_source(e)
}
