//! A file that is written as a stream: data files and whatever is too large to hold (AT-3).
//!
//! Invariants: memory is bounded by [`BUFFER`] and the bytes of one call; under its name the file is there
//! as a whole or not at all, synced, and never in another file's place; a writer that is aborted, dropped or
//! failed leaves nothing behind. What a killed process leaves ends in `#` and digits, which no listing shows.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rand::RngExt;

use super::table_io::local_error;
use super::write::{blocking, create_folder_of, sync_folder_of};
use super::{FileKind, TableIo, WriteStep};
use crate::error::{Error, ErrorKind, Result};

/// Bytes that are gathered before they go to the file.
const BUFFER: usize = 1 << 20;

impl TableIo {
    /// Starts a file that must not be there yet; `location` is resolved.
    ///
    /// Errors: `PermissionDenied` outside of the roots, `AlreadyExists`, `Unavailable`.
    pub async fn writer(&self, location: &str, kind: FileKind) -> Result<FileWriter> {
        self.place(location).await?;
        let staged = PathBuf::from(format!("{location}#{}", rand::rng().random::<u32>()));
        let (place, name) = (PathBuf::from(location), staged.clone());
        let file = blocking(move || {
            create_folder_of(&place)?;
            if place.symlink_metadata().is_ok() {
                return Err(std::io::ErrorKind::AlreadyExists.into());
            }
            File::options().write(true).create_new(true).open(name)
        })
        .await?
        .map_err(|e| writing_error(e, location))?;
        Ok(FileWriter {
            io: self.clone(),
            location: location.to_owned(),
            kind,
            file: Some(file),
            staged: Some(staged),
            buffer: Vec::new(),
            written: 0,
        })
    }
}

/// A file on its way. Dropping it gives it up.
#[derive(Debug)]
pub struct FileWriter {
    io: TableIo,
    location: String,
    kind: FileKind,
    /// `None` while bytes are written, and after a failure.
    file: Option<File>,
    /// The name until it is finished; `None` when nothing is left to remove.
    staged: Option<PathBuf>,
    buffer: Vec<u8>,
    written: u64,
}

impl FileWriter {
    /// The name that the file will have.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Bytes taken so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Bytes of them that are held in memory.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Appends bytes. After an error, or when the future was dropped, the writer can only be given up.
    ///
    /// Errors: `Unavailable`.
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.written += bytes.len() as u64;
        if self.buffer.len() + bytes.len() <= BUFFER {
            self.buffer.extend_from_slice(&bytes);
            return Ok(());
        }
        self.flush(bytes).await
    }

    /// Writes what was gathered, then `more`.
    async fn flush(&mut self, more: Bytes) -> Result<()> {
        let file = self.file.take();
        self.io.fault(WriteStep::Part, self.kind, &self.location)?;
        let mut file = file.ok_or_else(|| self.given_up())?;
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = (buffer.len() + more.len()) as u64;
        self.io.storage().counters().record_write(self.kind, 1, bytes);
        let (file, mut buffer) = blocking(move || {
            file.write_all(&buffer)?;
            file.write_all(&more)?;
            Ok((file, buffer))
        })
        .await?
        .map_err(|e| writing_error(e, &self.location))?;
        buffer.clear();
        self.buffer = buffer;
        self.file = Some(file);
        Ok(())
    }

    /// Makes the file durable and gives it its name; its size in bytes.
    ///
    /// Errors: `AlreadyExists`, `Unavailable`: then the file is not there, except when the future was dropped
    /// or a fault says so, where it may be.
    pub async fn finish(mut self) -> Result<u64> {
        self.flush(Bytes::new()).await?;
        self.io.fault(WriteStep::Finish, self.kind, &self.location)?;
        let (Some(file), Some(staged)) = (self.file.take(), self.staged.take()) else {
            return Err(self.given_up());
        };
        let place = PathBuf::from(&self.location);
        blocking(move || publish(&file, &staged, &place))
            .await?
            .map_err(|e| writing_error(e, &self.location))?;
        self.io.fault(WriteStep::Finished, self.kind, &self.location)?;
        Ok(self.written)
    }

    /// Gives the file up; nothing of it stays.
    ///
    /// Errors: `Unavailable` when it could not be removed.
    pub async fn abort(mut self) -> Result<()> {
        self.file = None;
        let Some(staged) = self.staged.take() else { return Ok(()) };
        blocking(move || std::fs::remove_file(staged))
            .await?
            .map_err(|e| writing_error(e, &self.location))
    }

    fn given_up(&self) -> Error {
        Error::internal("a file was written to after it had failed").with("file", &self.location)
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take() {
            // What cannot be removed is swept later, as after a crash.
            let _ = std::fs::remove_file(staged);
        }
    }
}

/// Links the synced file under its name, which fails where the name is taken, and syncs the entry.
fn publish(file: &File, staged: &Path, place: &Path) -> std::io::Result<()> {
    let linked = file.sync_all().and_then(|()| std::fs::hard_link(staged, place));
    let removed = std::fs::remove_file(staged);
    linked?;
    let synced = removed.and_then(|()| sync_folder_of(place));
    if synced.is_err() {
        // This call made the entry, so it may take it away again.
        let _ = std::fs::remove_file(place);
    }
    synced
}

fn writing_error(e: std::io::Error, location: &str) -> Error {
    match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::new(ErrorKind::AlreadyExists, "file is there already").with("file", location),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => local_error(e, location),
        _ => Error::unavailable("cannot write file").with("file", location).with_source(e),
    }
}
