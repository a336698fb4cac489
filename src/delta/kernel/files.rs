//! The files of a log, as the handlers read them: whole, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::{EngineData, FileDataReadResultIterator, FileMeta, KernelResult};
use tokio::runtime::Handle;
use url::Url;

use super::errors::wrapped;
use super::seen::Seen;
use crate::error::{Error, Result};
use crate::io::{FileKind, TableIo};

/// Largest file of a log that is read: a commit, a checkpoint or a part of one.
const FILE_LIMIT: u64 = 2 << 30;

/// Rows of a batch of a log's file.
pub(super) const BATCH: usize = 8192;

/// Where a log lies, and whether anybody still waits for what is read of it.
#[derive(Debug, Clone)]
pub(in crate::delta) struct LogAccess {
    io: TableIo,
    /// Drives the reads; a call of the crate waits for them on a thread of its own.
    runtime: Handle,
    /// The table's folder, without slash at its end.
    root: String,
    given_up: Arc<AtomicBool>,
}

impl LogAccess {
    /// For reads that the current runtime drives.
    pub(in crate::delta) fn new(io: TableIo, root: String) -> Self {
        Self {
            io,
            runtime: Handle::current(),
            root,
            given_up: Arc::default(),
        }
    }

    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// While this lives, somebody waits; then reads and replays end at their next step.
    pub(in crate::delta) fn waiting(&self) -> Waiting {
        Waiting(Arc::clone(&self.given_up))
    }

    fn check(&self) -> Result<()> {
        match self.given_up.load(Ordering::Relaxed) {
            true => Err(Error::cancelled("nobody waits for the Delta log any more")),
            false => Ok(()),
        }
    }

    /// The whole of a file.
    pub(super) fn read(&self, location: &str, limit: u64) -> Result<Bytes> {
        self.wait(self.io.read(location, FileKind::Metadata, limit))
    }

    /// Waits for a read. The thread is one of [`super::Pool`], which are there to wait.
    #[allow(clippy::disallowed_methods)]
    fn wait<T>(&self, read: impl Future<Output = Result<T>>) -> Result<T> {
        self.check()?;
        self.runtime.block_on(read)
    }
}

/// Somebody waits for a log.
#[derive(Debug)]
pub(in crate::delta) struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The files of one table's log, for one call.
#[derive(Debug, Clone)]
pub(super) struct LogFiles {
    access: LogAccess,
    pub(super) seen: Seen,
}

impl LogFiles {
    pub(super) fn new(access: &LogAccess) -> Self {
        Self {
            access: access.clone(),
            seen: Seen::default(),
        }
    }

    /// The location of a URL below the table's root.
    pub(super) fn location(url: &Url) -> KernelResult<String> {
        location(url).map_err(wrapped)
    }

    pub(super) fn read(&self, url: &Url) -> KernelResult<Bytes> {
        let location = Self::location(url)?;
        self.seen.opened(&location);
        self.access.read(&location, FILE_LIMIT).map_err(wrapped)
    }

    /// Waits for what is asked of the table's files.
    pub(super) fn wait<'a, T, F>(&'a self, ask: impl FnOnce(&'a TableIo) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        self.access.wait(ask(&self.access.io))
    }
}

/// The batches of files, one file after the other. A file that cannot be read is one error, in its place.
pub(super) fn in_order<I>(
    log: &LogFiles,
    files: &[FileMeta],
    open: impl Fn(Bytes, &FileMeta) -> KernelResult<I> + Send + 'static,
) -> FileDataReadResultIterator
where
    I: Iterator<Item = KernelResult<ArrowEngineData>> + Send + 'static,
{
    let (log, files) = (log.clone(), files.to_vec());
    let all = files.into_iter().flat_map(move |file| -> FileDataReadResultIterator {
        let (log, place) = (log.clone(), place(&file.location));
        match log.read(&file.location).and_then(|data| open(data, &file)) {
            Ok(batches) => Box::new(batches.map(move |batch| {
                log.access.check().map_err(wrapped)?;
                let batch = batch?;
                log.seen.batch(&place, batch.record_batch());
                Ok(Box::new(batch) as Box<dyn EngineData>)
            })),
            Err(e) => Box::new(std::iter::once(Err(e))),
        }
    });
    Box::new(all)
}

/// The URL of a folder by its location, with the slash at its end that joins depend on.
pub(super) fn folder_url(location: &str) -> Result<Url> {
    Url::from_directory_path(location).map_err(|()| Error::invalid("not a usable path").with("path", location))
}

/// How a file of the log is named in errors.
pub(super) fn place(url: &Url) -> String {
    location(url).unwrap_or_else(|_| url.to_string())
}

fn location(url: &Url) -> Result<String> {
    let refused = || Error::unsupported("only local files of a Delta log can be read").with("file", url);
    if url.scheme() != "file" {
        return Err(refused());
    }
    let path = url.to_file_path().map_err(|()| refused())?;
    path.into_os_string().into_string().map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::super::{LogVersion, Pool};
    use super::*;
    use crate::error::ErrorKind;
    use crate::io::{PathMap, Storage};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_log_that_nobody_waits_for_is_not_read_on() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        let io = TableIo::new(Arc::new(Storage::default()), PathMap::default(), [root.clone()]).unwrap();
        let access = LogAccess::new(io, root);
        let pool = Pool::new().unwrap();
        let open = |access: &LogAccess| {
            let access = access.clone();
            pool.run(move || LogVersion::open(&access, None))
        };
        let waiting = access.waiting();
        assert_eq!(open(&access).await.unwrap_err().kind(), ErrorKind::NotFound);
        drop(waiting);
        assert_eq!(open(&access).await.unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
