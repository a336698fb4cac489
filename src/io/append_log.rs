//! A small log of lines in a file of the server's own, each durable before it is reported.
//!
//! Invariants: a line that was appended is there after a crash; one that was cut off, by a crash or a full disk, was
//! never reported and is cut away before the log goes on; one process has the log open (its catalog's lock sees to that).

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::write::{blocking, create_folder_of, sync_folder_of};
use crate::error::{Error, Result};

/// Largest log that is read back.
const LIMIT: u64 = 1 << 30;

/// An open log.
#[derive(Debug, Clone)]
pub struct AppendLog {
    end: Arc<Mutex<End>>,
    path: Arc<Path>,
}

/// Where the log goes on.
#[derive(Debug)]
struct End {
    file: File,
    /// Bytes of whole, durable lines.
    length: u64,
    /// The last line may be there in part.
    is_cut: bool,
}

impl End {
    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.is_cut {
            self.file.set_len(self.length)?;
        }
        self.is_cut = true;
        self.file.write_all(line)?;
        self.file.sync_data()?;
        self.is_cut = false;
        self.length += line.len() as u64;
        Ok(())
    }
}

impl AppendLog {
    /// Opens or creates the log, and gives the lines that it has.
    ///
    /// Errors: `Unavailable`; `Corrupt` for a file that is no text.
    pub async fn open(path: PathBuf) -> Result<(Self, Vec<String>)> {
        let place = path.clone();
        let opened = blocking(move || open(&place)).await?;
        let (file, text) = opened.map_err(|e| failed(e, &path))?;
        let text = String::from_utf8(text).map_err(|e| Error::corrupt("the log is no text").with("file", path.display()).with_source(e))?;
        let end = End {
            file,
            length: text.len() as u64,
            is_cut: false,
        };
        let log = Self {
            end: Arc::new(Mutex::new(end)),
            path: path.into(),
        };
        Ok((log, text.lines().map(str::to_owned).collect()))
    }

    /// Replaces the log by one of these lines, in one step.
    ///
    /// Errors: `Unavailable`; the log then is as it was or as it should be.
    pub async fn rewrite(&self, lines: &[String]) -> Result<()> {
        let mut text = lines.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        let (path, end) = (Arc::clone(&self.path), Arc::clone(&self.end));
        let written = blocking(move || {
            let mut end = end.lock().unwrap_or_else(PoisonError::into_inner);
            let beside = path.with_extension("new");
            let mut fresh = OpenOptions::new().create(true).truncate(true).write(true).open(&beside)?;
            fresh.write_all(text.as_bytes())?;
            fresh.sync_all()?;
            std::fs::rename(&beside, &path)?;
            sync_folder_of(&path)?;
            *end = End {
                file: OpenOptions::new().append(true).open(&path)?,
                length: text.len() as u64,
                is_cut: false,
            };
            Ok(())
        });
        written.await?.map_err(|e| failed(e, &self.path))
    }

    /// Appends a line, which must not hold a line break.
    ///
    /// Errors: `Unavailable`: the line is not there once the log goes on, and may be there until then.
    pub async fn append(&self, line: &str) -> Result<()> {
        let bytes = format!("{line}\n").into_bytes();
        let end = Arc::clone(&self.end);
        let written = blocking(move || end.lock().unwrap_or_else(PoisonError::into_inner).append(&bytes));
        written.await?.map_err(|e| failed(e, &self.path))
    }
}

fn failed(error: std::io::Error, path: &Path) -> Error {
    Error::unavailable("the log cannot be read or written")
        .with("file", path.display())
        .with_source(error)
}

fn open(path: &Path) -> std::io::Result<(File, Vec<u8>)> {
    create_folder_of(path)?;
    let is_new = !path.exists();
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if is_new {
        file.sync_all()?;
        sync_folder_of(path)?;
    }
    if file.metadata()?.len() > LIMIT {
        return Err(std::io::Error::other("the log is larger than 1 GiB"));
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        file.set_len(u64::try_from(whole).unwrap_or_default())?;
        file.sync_all()?;
        text.truncate(whole);
    }
    Ok((file, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_back_and_a_cut_one_is_cut_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/log");
        let (log, lines) = AppendLog::open(path.clone()).await.unwrap();
        assert!(lines.is_empty());
        log.append("one").await.unwrap();
        log.append("two").await.unwrap();
        std::fs::write(&path, b"one\ntwo\nthr").unwrap();
        let (log, lines) = AppendLog::open(path.clone()).await.unwrap();
        assert_eq!(lines, ["one", "two"]);
        log.append("three").await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        log.rewrite(&["three".to_owned()]).await.unwrap();
        log.append("four").await.unwrap();
        let (_, lines) = AppendLog::open(path).await.unwrap();
        assert_eq!(lines, ["three", "four"]);
    }

    /// As after a full disk: half a line was written, then an error came.
    #[tokio::test]
    async fn a_line_that_failed_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (log, _) = AppendLog::open(path.clone()).await.unwrap();
        log.append("one").await.unwrap();
        {
            let mut end = log.end.lock().unwrap();
            end.file.write_all(b"tw").unwrap();
            end.is_cut = true;
        }
        log.append("three").await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\nthree\n");
    }
}
