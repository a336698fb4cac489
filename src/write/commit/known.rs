//! Commits that are known by their id: what became of them, and what they added.
//!
//! Invariants: an id stands for one commit of a table, on one branch; what is answered is what was committed,
//! whatever came with a request that names the id again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::journal::{About, Journal, Noted};
use super::{Commits, ready};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::IcebergTable;
use crate::iceberg::commit::{AFFECTED_ROWS_PROPERTY, Outcome, committed_as};
use crate::iceberg::manifest::{DataFile, FileContent};
use crate::iceberg::spec::TableMetadata;
use crate::table::{Table, TableIdent};

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitStatus {
    Committed { snapshot_id: Option<i64> },
    NotCommitted,
    Unknown,
}

/// What a commit adds to its table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub rows: u64,
    pub data_files: u64,
    /// Of the data files.
    pub bytes: u64,
}

/// A commit that a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub snapshot_id: i64,
    pub added: Added,
    /// Whether it only added rows; `None` where its snapshot has expired.
    pub appended: Option<bool>,
}

impl Added {
    /// Of new files.
    pub fn of_files(files: &[DataFile]) -> Self {
        let data = || files.iter().filter(|file| file.content == FileContent::Data);
        Self {
            rows: data().map(|file| file.record_count).sum(),
            data_files: data().count() as u64,
            bytes: data().map(|file| file.file_size_in_bytes).sum(),
        }
    }

    /// As a snapshot's summary says; `None` where it does not.
    fn of_summary(summary: &BTreeMap<String, String>) -> Option<Self> {
        let number = |key: &str| summary.get(key)?.parse().ok();
        if let Some(rows) = number(AFFECTED_ROWS_PROPERTY) {
            return Some(Self { rows, ..Self::default() });
        }
        Some(Self {
            rows: number("added-records")?,
            data_files: number("added-data-files")?,
            bytes: number("added-files-size")?,
        })
    }
}

impl Commits {
    /// The commit of an id that the branch has already. Reads the table past its caches, and finds out first what
    /// became of commits that were left open.
    ///
    /// Errors: `InvalidInput` for an id that was used on another branch; `Unavailable` where it cannot be told yet.
    pub async fn known(&self, table: &IcebergTable, branch: &str, commit_id: &str) -> Result<Option<Known>> {
        let ident = table.ident();
        let cell = self.journal_of(&ident.catalog).await?;
        let journal = ready(&cell)?;
        let _one_at_a_time = self.hold(ident).await;
        self.settle_left_open(journal, ident, Some(table.metadata().table_uuid)).await?;
        let now = self.catalogs.table(ident).await?;
        let now = IcebergTable::of(now.as_ref())?.metadata();
        known(journal, now, branch, commit_id).context("table", || ident)
    }

    /// What became of the commit of an id, as far as the catalogs' journals tell. `table` is the one that it was for.
    ///
    /// Errors: `Unavailable` when a journal cannot be read; `InvalidInput` for an id that was used on several tables
    /// where none is named.
    pub async fn status(&self, commit_id: &str, table: Option<&TableIdent>) -> Result<CommitStatus> {
        let mut found = Vec::new();
        for catalog in self.catalogs.iter().filter(|catalog| catalog.writable().is_some()) {
            if table.is_some_and(|table| table.catalog != catalog.name()) {
                continue;
            }
            let cell = self.journal_of(catalog.name()).await?;
            let journal = ready(&cell)?;
            found.extend(journal.find(commit_id).into_iter().map(|known| (catalog.name(), known)));
        }
        if let Some(ident) = table {
            let now = self.catalogs.table(ident).await?;
            let uuid = IcebergTable::of(now.as_ref())?.metadata().table_uuid.map(|uuid| uuid.to_string());
            let is_its = |about: &About| about.table_uuid == uuid && (uuid.is_some() || about.table == *ident);
            found.retain(|(_, (about, _))| about.as_ref().is_some_and(is_its));
        }
        let open = match found.as_slice() {
            [] => return Ok(CommitStatus::Unknown),
            [(_, (_, Noted::Closed { committed: None }))] => return Ok(CommitStatus::NotCommitted),
            [(_, (_, Noted::Closed { committed }))] => return Ok(CommitStatus::Committed { snapshot_id: *committed }),
            [(catalog, (_, Noted::Open(open)))] => (*catalog, open),
            several => return Err(ambiguous(several.iter().filter_map(|(_, (about, _))| about.as_ref()))),
        };
        let (catalog, open) = open;
        let lock = self.lock_of(&open.ident());
        // Held by the commit itself, while it is under way.
        let Ok(_guard) = lock.try_lock() else {
            return Ok(CommitStatus::Unknown);
        };
        let cell = self.journal_of(catalog).await?;
        Ok(match self.reconcile(ready(&cell)?, open).await? {
            Outcome::Committed(committed) => CommitStatus::Committed {
                snapshot_id: Some(committed.snapshot_id),
            },
            Outcome::NotCommitted(_) => CommitStatus::NotCommitted,
            Outcome::Unknown { .. } => CommitStatus::Unknown,
        })
    }
}

fn ambiguous<'a>(abouts: impl Iterator<Item = &'a About>) -> Error {
    let mut tables: Vec<String> = abouts.map(|about| about.table.to_string()).collect();
    tables.sort();
    tables.dedup();
    Error::invalid("the id or key was used on several tables: name the one that is meant").with("tables", tables.join(", "))
}

/// The commit of an id in the table's history, or in the journal where its snapshot has expired.
fn known(journal: &Journal, metadata: &TableMetadata, branch: &str, commit_id: &str) -> Result<Option<Known>> {
    let uuid = metadata.table_uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
    let noted = journal.committed_to(commit_id, &uuid);
    let snapshot = committed_as(metadata, commit_id);
    let (snapshot_id, added) = match (snapshot, &noted) {
        (Some(snapshot), _) => (snapshot.snapshot_id, Added::of_summary(&snapshot.summary)),
        (None, Some((snapshot_id, _))) => (*snapshot_id, None),
        (None, None) => return Ok(None),
    };
    let of_journal = noted.map(|(_, about)| about);
    let used_on = of_journal.as_ref().map(|about| about.branch.as_str());
    let is_here = used_on == Some(branch) || metadata.is_in_branch(branch, snapshot_id);
    if !is_here {
        let message = "the idempotency key was used on another branch of the table: take a key of its own for each branch";
        let error = Error::invalid(message).with("snapshot", snapshot_id);
        return Err(match used_on {
            Some(used_on) => error.with("branch", used_on),
            None => error,
        });
    }
    let added = added.or(of_journal.map(|about| about.added)).unwrap_or_default();
    let appended = snapshot.map(|snapshot| snapshot.operation() == Some("append"));
    Ok(Some(Known {
        snapshot_id,
        added,
        appended,
    }))
}
