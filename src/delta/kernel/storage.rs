//! Listing the log and reading its small files.
//!
//! Listings are of one folder: what lies in folders below `_delta_log` (sidecars, staged commits) is named by
//! actions, or belongs to tables that are refused.

use bytes::Bytes;
use delta_kernel::{FileMeta, FileSlice, KernelError, KernelResult, KernelResultIteratorStatic, StorageHandler};
use url::Url;

use super::errors::wrapped;
use super::files::LogFiles;
use crate::error::{Error, ErrorKind};
use crate::io::FileKind;

/// Names the newest checkpoint; may be stale or missing (PROTOCOL.md, "Last Checkpoint File").
pub(super) const HINT: &str = "_last_checkpoint";

#[derive(Debug)]
pub(super) struct LogStorage {
    files: LogFiles,
    /// The hint is not shown: it named a checkpoint that is gone.
    hides_hint: bool,
}

impl LogStorage {
    pub(super) fn new(files: LogFiles, hides_hint: bool) -> Self {
        Self { files, hides_hint }
    }

    fn is_hidden(&self, url: &Url) -> bool {
        self.hides_hint && url.path().ends_with(HINT)
    }

    fn read(&self, (url, range): FileSlice) -> KernelResult<Bytes> {
        if self.is_hidden(&url) {
            return Err(KernelError::FileNotFound(url.to_string()));
        }
        let Some(range) = range else { return self.files.read(&url) };
        let location = LogFiles::location(&url)?;
        self.files.seen.opened(&location);
        let read = self.files.wait(|io| async {
            let size = io.size(&location, FileKind::Metadata).await?;
            if range.start > range.end || range.end > size {
                return Err(Error::corrupt(format!("bytes {}..{} of a file of {size}", range.start, range.end)).with("file", &location));
            }
            let mut parts = io.read_ranges(&location, FileKind::Metadata, std::slice::from_ref(&range)).await?;
            parts.pop().ok_or_else(|| Error::internal("a range read gave nothing"))
        });
        read.map_err(wrapped)
    }
}

fn write_refused() -> KernelError {
    wrapped(Error::unsupported("Delta tables cannot be written yet"))
}

impl StorageHandler for LogStorage {
    fn list_from(&self, path: &Url) -> KernelResult<KernelResultIteratorStatic<FileMeta>> {
        let folder = path.join(".").map_err(KernelError::from)?;
        let after = path.path_segments().and_then(|mut s| s.next_back()).unwrap_or_default().to_owned();
        let location = LogFiles::location(&folder)?;
        let location = location.trim_end_matches('/');
        let listed = self.files.wait(|io| io.list_stats(location, &after));
        let listed = match listed {
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            other => other.map_err(wrapped)?,
        };
        let mut metas = Vec::with_capacity(listed.len());
        for file in listed {
            let mut url = folder.clone();
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.pop_if_empty().push(&file.name);
            }
            metas.push(Ok(FileMeta::new(url, file.modified_ms, file.size)));
        }
        Ok(Box::new(metas.into_iter()))
    }

    fn read_files(&self, files: Vec<FileSlice>) -> KernelResult<KernelResultIteratorStatic<Bytes>> {
        let read: Vec<_> = files.into_iter().map(|slice| self.read(slice)).collect();
        Ok(Box::new(read.into_iter()))
    }

    fn head(&self, path: &Url) -> KernelResult<FileMeta> {
        if self.is_hidden(path) {
            return Err(KernelError::FileNotFound(path.to_string()));
        }
        let location = LogFiles::location(path)?;
        let found = self.files.wait(|io| io.stat(&location, FileKind::Metadata)).map_err(wrapped)?;
        Ok(FileMeta::new(path.clone(), found.modified_ms, found.size))
    }

    fn copy_atomic(&self, _src: &Url, _dest: &Url) -> KernelResult<()> {
        Err(write_refused())
    }

    fn put(&self, _path: &Url, _data: Bytes, _overwrite: bool) -> KernelResult<()> {
        Err(write_refused())
    }

    fn delete(&self, _path: &Url) -> KernelResult<()> {
        Err(write_refused())
    }
}
