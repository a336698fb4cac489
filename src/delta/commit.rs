//! One commit of a log, action by action: for what looks at changes instead of at the table.
//!
//! A line of a commit is a JSON object with one action (PROTOCOL.md, "Actions"). Actions that are not known here
//! are passed over: whether a table may be read at all was decided when its version was opened.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::log::Log;
use super::vectors::Descriptor;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::io::FileKind;

/// Largest commit that is read.
const COMMIT_LIMIT: u64 = 1 << 30;

/// Commits that are searched for what an error is about.
const COMMITS_SEARCHED: u64 = 100;
/// Commits that an error names.
const COMMITS_NAMED: usize = 10;

/// A file that a commit adds or removes, or that holds changed rows.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileAction {
    pub(super) path: String,
    #[serde(default)]
    pub(super) partition_values: Option<HashMap<String, Option<String>>>,
    #[serde(default)]
    pub(super) size: Option<i64>,
    #[serde(default)]
    pub(super) data_change: bool,
    #[serde(default)]
    pub(super) stats: Option<String>,
    #[serde(default)]
    pub(super) deletion_vector: Option<Descriptor>,
}

impl FileAction {
    /// Rows of the file before deletes, where its statistics tell.
    pub(super) fn record_count(&self) -> Option<u64> {
        let statistics: Statistics = serde_json::from_str(self.stats.as_deref()?).ok()?;
        statistics.num_records
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statistics {
    #[serde(default)]
    num_records: Option<u64>,
}

/// What a commit says of the table anew.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetadataAction {
    #[serde(default)]
    pub(super) partition_columns: Vec<String>,
    #[serde(default)]
    pub(super) configuration: BTreeMap<String, Option<String>>,
}

/// A commit.
#[derive(Debug, Default)]
pub(super) struct Commit {
    pub(super) number: u64,
    /// Milliseconds since the epoch: the commit's own time where it has one, else its file's as [`Log::commits`] gives it.
    pub(super) millis: i64,
    pub(super) info: Map<String, Value>,
    pub(super) metadata: Option<MetadataAction>,
    pub(super) added: Vec<FileAction>,
    pub(super) removed: Vec<FileAction>,
    pub(super) changes: Vec<FileAction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    add: Option<FileAction>,
    #[serde(default)]
    remove: Option<FileAction>,
    #[serde(default)]
    cdc: Option<FileAction>,
    #[serde(default)]
    meta_data: Option<MetadataAction>,
    #[serde(default)]
    commit_info: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InfoLine {
    #[serde(default)]
    commit_info: Option<Map<String, Value>>,
}

impl Log {
    /// A commit, whose file is of that time; `None` where its file is gone.
    ///
    /// Errors: `Corrupt` for a line that is no action, naming the file.
    pub(super) async fn read_commit(&self, (number, millis): (u64, i64)) -> Result<Option<Commit>> {
        self.parse_commit(number, millis, |text, commit| {
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                let line: Line = serde_json::from_str(line).map_err(broken)?;
                commit.added.extend(line.add);
                commit.removed.extend(line.remove);
                commit.changes.extend(line.cdc);
                commit.metadata = line.meta_data.or(commit.metadata.take());
                if let Some(info) = line.commit_info {
                    commit.info = info;
                }
            }
            Ok(())
        })
        .await
    }

    /// What a commit says of itself, without its other actions; `None` where its file is gone.
    ///
    /// Errors: as [`Self::read_commit`].
    pub(super) async fn read_commit_info(&self, (number, millis): (u64, i64)) -> Result<Option<Commit>> {
        self.parse_commit(number, millis, |text, commit| {
            for line in text.lines().filter(|line| line.contains("\"commitInfo\"")) {
                let line: InfoLine = serde_json::from_str(line).map_err(broken)?;
                if let Some(info) = line.commit_info {
                    commit.info = info;
                    break;
                }
            }
            Ok(())
        })
        .await
    }

    async fn parse_commit(&self, number: u64, millis: i64, parse: impl FnOnce(&str, &mut Commit) -> Result<()>) -> Result<Option<Commit>> {
        let file = self.commit(number);
        let bytes = match self.io.read(&file, FileKind::Metadata, COMMIT_LIMIT).await {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let mut commit = Commit {
            number,
            millis,
            ..Commit::default()
        };
        let text = std::str::from_utf8(&bytes).map_err(|e| Error::corrupt("a commit is no text").with_source(e));
        text.and_then(|text| parse(text, &mut commit)).context("file", || &file)?;
        if let Some(own) = commit.info.get("inCommitTimestamp").and_then(Value::as_i64) {
            commit.millis = own;
        }
        Ok(Some(commit))
    }

    /// An error about a data file, with the newest commits that name it, where some do.
    pub(super) async fn placed(&self, error: Error, newest: u64) -> Error {
        let file = error.context().iter().find(|(key, _)| *key == "file").map(|(_, file)| file);
        let Some(text) = file.and_then(|file| serde_json::to_string(file).ok()) else {
            return error;
        };
        let mut found = Vec::new();
        for number in (newest.saturating_sub(COMMITS_SEARCHED)..=newest).rev() {
            let commit = self.commit(number);
            let read = self.io.read(&commit, FileKind::Metadata, COMMIT_LIMIT).await;
            if read.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&text)) {
                found.push(commit);
            }
            if found.len() == COMMITS_NAMED {
                break;
            }
        }
        match found.is_empty() {
            true => error,
            false => error.with("commits", found.join(", ")),
        }
    }

    /// The commits whose files are there, up to one, in order: number and time of the file in milliseconds since the epoch.
    /// A time is at least a millisecond after the one before it, as it is for those who ask for a version by its time.
    pub(super) async fn commits(&self, newest: u64) -> Result<Vec<(u64, i64)>> {
        let listed = self.io.list_stats(&format!("{}/_delta_log", self.root), "").await?;
        let mut commits = Vec::new();
        let mut after = i64::MIN;
        for file in listed {
            let digits = file.name.strip_suffix(".json");
            let digits = digits.filter(|d| d.len() == 20 && d.bytes().all(|b| b.is_ascii_digit()));
            let number = digits.and_then(|digits| digits.parse::<u64>().ok());
            if let Some(number) = number.filter(|number| *number <= newest) {
                let millis = file.modified_ms.max(after.saturating_add(1));
                commits.push((number, millis));
                after = millis;
            }
        }
        Ok(commits)
    }
}

fn broken(e: serde_json::Error) -> Error {
    Error::corrupt("a line of a commit is no action").with_source(e)
}
