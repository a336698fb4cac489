//! The files of a log, as the handlers read them: whole, one after the other.

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

/// The files of one table's log.
#[derive(Debug, Clone)]
pub(super) struct LogFiles {
    pub(super) io: TableIo,
    /// Drives the reads; a call of the crate waits for them on a thread of its own.
    runtime: Handle,
    pub(super) seen: Seen,
}

impl LogFiles {
    pub(super) fn new(io: TableIo, runtime: Handle) -> Self {
        let seen = Seen::default();
        Self { io, runtime, seen }
    }

    /// The location of a URL below the table's root.
    pub(super) fn location(url: &Url) -> KernelResult<String> {
        location(url).map_err(wrapped)
    }

    pub(super) fn read(&self, url: &Url) -> KernelResult<Bytes> {
        let location = Self::location(url)?;
        self.seen.opened(&location);
        let read = self.io.read(&location, FileKind::Metadata, FILE_LIMIT);
        self.wait(read).map_err(wrapped)
    }

    /// Waits for a read. The thread is one of [`super::Pool`], which are there to wait.
    #[allow(clippy::disallowed_methods)]
    pub(super) fn wait<T>(&self, read: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(read)
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
        let (seen, place) = (log.seen.clone(), place(&file.location));
        match log.read(&file.location).and_then(|data| open(data, &file)) {
            Ok(batches) => Box::new(batches.map(move |batch| {
                let batch = batch?;
                seen.batch(&place, batch.record_batch());
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
