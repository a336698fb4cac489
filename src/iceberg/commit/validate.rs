//! What concurrent commits a change bears (reliability-security.md 2.2).
//!
//! Each row of the matrix is one arm of [`Validation::check`]; a rule is one function. What is
//! compared with what was read is only what snapshots after the start wrote.

use std::collections::HashSet;

use super::action::NotCommitted;
use super::change::{Change, Isolation, Operation, RemovedFile};
use super::checks::{Check, Checks};
use super::history::{History, Kind};
use super::live::{Gone, Live, Removals};
use super::matching::{Matching, Partitions, is_unpartitioned};
use crate::error::Error;
use crate::iceberg::manifest::{EntryRef, FileContent};
use crate::iceberg::spec::{DELETE_FILE_PATH_ID, TableMetadata};

type Verdict = Result<(), NotCommitted>;

/// A change before the snapshots that it meets.
#[derive(Debug)]
pub(super) struct Validation<'a> {
    pub(super) change: &'a Change,
    pub(super) metadata: &'a TableMetadata,
    pub(super) history: &'a History,
    pub(super) live: &'a Live,
    pub(super) matching: &'a Matching<'a>,
    pub(super) partitions: &'a Partitions<'a>,
    pub(super) checks: Checks,
}

/// Whether the change must know what happened since it read the table.
pub(super) fn looks_back(operation: &Operation) -> bool {
    !matches!(
        operation,
        Operation::Append | Operation::DeleteFiles | Operation::DeleteWhere | Operation::RewriteManifests(_)
    )
}

/// What no table bears.
pub(super) fn check_itself(change: &Change) -> Verdict {
    let refuse = |message: &str| Err(NotCommitted::from(Error::invalid(message)));
    let mut paths = HashSet::new();
    for file in &change.added {
        if !paths.insert((&file.file_path, file.content_offset)) {
            return Err(Error::invalid("the commit adds a file twice").with("file", &file.file_path).into());
        }
    }
    let vectors = change.added.iter().filter(|file| file.is_deletion_vector());
    let named = vectors.filter_map(|file| file.referenced_data_file.as_ref());
    let mut with_vector = HashSet::new();
    for path in named.chain(change.vectors.iter().map(|rows| &rows.data_file)) {
        if !with_vector.insert(path) {
            return Err(Error::invalid("the commit adds two deletion vectors for one data file")
                .with("file", path)
                .into());
        }
        if change
            .removed
            .iter()
            .any(|removed| removed.content_offset.is_none() && removed.path == *path)
        {
            return Err(Error::invalid("the commit removes a data file and adds a deletion vector for it")
                .with("file", path)
                .into());
        }
    }
    if !change.vectors.is_empty() {
        if !matches!(change.operation, Operation::DeleteRows | Operation::UpdateRows) {
            return refuse("only a delete or update of rows makes deletion vectors");
        }
        if change.pinned.format_version < 3 {
            return refuse("deletion vectors need format version 3");
        }
    }
    let adds = |content: FileContent| change.added.iter().any(|file| file.content == content);
    let (data, positions, equality) = (
        adds(FileContent::Data),
        adds(FileContent::PositionDeletes),
        adds(FileContent::EqualityDeletes),
    );
    match change.operation {
        Operation::Append if positions || equality || !change.removed.is_empty() => refuse("an append only adds data files"),
        Operation::DeleteFiles | Operation::DeleteWhere if !change.added.is_empty() => refuse("a delete of whole files adds none"),
        Operation::DeleteRows if data => refuse("a delete of rows adds no data files"),
        Operation::RewriteManifests(_) if !change.added.is_empty() || !change.removed.is_empty() => {
            refuse("rewriting manifests neither adds nor removes files")
        }
        Operation::CompactDeletes if data || equality => refuse("a compaction of position deletes adds no other files"),
        Operation::CompactDeletes if positions && change.removed.is_empty() => {
            refuse("a compaction of delete files adds some only where it removes some")
        }
        Operation::CopyOnWrite | Operation::OverwriteWhere | Operation::OverwritePartitions | Operation::Compact { .. }
            if positions || equality =>
        {
            refuse("an operation that rewrites whole files adds no delete files")
        }
        _ => Ok(()),
    }
}

impl Validation<'_> {
    /// Data files that other commits deleted as a whole: rows that a delete is about are gone with them.
    pub(super) fn gone(&self) -> Gone {
        let mut gone = Gone::default();
        if !matches!(self.change.operation, Operation::DeleteRows) {
            return gone;
        }
        let referenced = self.referenced();
        let deleted = self
            .history
            .removed_data(&[Kind::Delete])
            .filter(|entry| referenced.contains(entry.file_path()));
        gone.data_files.extend(deleted.map(|entry| entry.file_path().to_owned()));
        for (_, entry) in self.live.data_files() {
            gone.data_files.remove(entry.file_path());
        }
        let is_gone = |entry: &EntryRef<'_>| entry.referenced_data_file().is_some_and(|path| gone.data_files.contains(path));
        let vectors: Vec<_> = self.history.removed_deletes(&[Kind::Delete]).filter(is_gone).collect();
        gone.vectors.extend(vectors.iter().map(RemovedFile::of));
        gone
    }

    /// Whether the change may be committed on top of the snapshots since it read the table.
    pub(super) fn check(&self, removals: &Removals) -> Verdict {
        let serializable = self.change.isolation == Isolation::Serializable;
        if self.change.depends && serializable {
            self.no_rows_gone()?;
        }
        match &self.change.operation {
            Operation::Append | Operation::DeleteFiles | Operation::DeleteWhere | Operation::RewriteManifests(_) => return Ok(()),
            Operation::CopyOnWrite => self.no_new_deletes_on(removals, |_| true)?,
            Operation::OverwriteWhere => {
                self.no_new_deletes_in(|entry| self.filter_may_hit(entry))?;
                self.none_removed_in(|entry| self.matching.may_match(*entry))?;
            }
            Operation::OverwritePartitions => {
                self.no_new_deletes_in(|entry| self.partitions.may_be_hit_by(entry))?;
                self.none_removed_in(|entry| self.partitions.contain(entry))?;
            }
            Operation::DeleteRows => {
                self.referenced_not_removed(&[Kind::Overwrite, Kind::Replace])?;
                self.no_new_vectors()?;
                self.no_uncounted_deletes(removals)?;
            }
            Operation::UpdateRows => {
                self.referenced_not_removed(&[Kind::Overwrite, Kind::Replace, Kind::Delete])?;
                self.no_new_vectors()?;
                self.no_new_deletes_in(|entry| self.filter_may_hit(entry))?;
                self.no_new_deletes_on(removals, |_| true)?;
            }
            Operation::Upsert => {}
            // New equality deletes are younger than the files that keep their age.
            Operation::Compact { sequence_number: Some(_) } => {
                return self.no_new_deletes_on(removals, |entry| entry.content() == FileContent::PositionDeletes);
            }
            Operation::Compact { sequence_number: None } => return self.no_new_deletes_on(removals, |_| true),
            Operation::CompactDeletes => {
                self.referenced_are_live()?;
                return self.no_new_vectors();
            }
        }
        if !serializable {
            return Ok(());
        }
        match self.change.operation {
            Operation::OverwritePartitions => self.no_new_data(|entry| self.partitions.contain(&entry)),
            _ => self.no_new_data(|entry| self.matching.may_match(entry)),
        }
    }

    fn conflict(message: &str, entry: &EntryRef<'_>) -> Verdict {
        let conflict = NotCommitted::conflict(format!("{message}; run the statement again"));
        Err(conflict.with("file", entry.file_path()))
    }

    fn first<'e>(&self, check: Check, mut found: impl Iterator<Item = EntryRef<'e>>, message: &str) -> Verdict {
        match found.next().filter(|_| self.checks.makes(check)) {
            Some(entry) => Self::conflict(message, &entry),
            None => Ok(()),
        }
    }

    fn no_new_data(&self, in_scope: impl Fn(EntryRef<'_>) -> bool) -> Verdict {
        let found = self.history.new_data().filter(|entry| in_scope(*entry));
        self.first(Check::NewData, found, "another commit added rows that the statement may be about")
    }

    fn none_removed_in(&self, in_scope: impl Fn(&EntryRef<'_>) -> bool) -> Verdict {
        let removed = self.history.removed_data(&[Kind::Overwrite, Kind::Replace, Kind::Delete]);
        let found = removed.filter(|entry| in_scope(entry));
        self.first(
            Check::RemovedInScope,
            found,
            "another commit removed a data file that the statement may be about",
        )
    }

    fn no_new_deletes_in(&self, in_scope: impl Fn(&EntryRef<'_>) -> bool) -> Verdict {
        let found = self.history.new_deletes().filter(|entry| in_scope(entry));
        self.first(
            Check::NewDeletesInScope,
            found,
            "another commit deleted rows that the statement may be about",
        )
    }

    /// No row of the table was deleted, wherever it lay; of new rows the filter tells.
    fn no_rows_gone(&self) -> Verdict {
        let message = "another commit deleted rows, and which rows the statement is about depends on them";
        self.first(Check::NewDeletesInScope, self.history.new_deletes(), message)?;
        let removed = self.history.removed_data(&[Kind::Overwrite, Kind::Delete]);
        self.first(Check::RemovedInScope, removed, message)
    }

    /// A delete file in whose reach a row may match. Equality deletes without a partition reach all.
    fn filter_may_hit(&self, entry: &EntryRef<'_>) -> bool {
        is_unpartitioned(self.metadata, entry.spec_id()) || self.matching.partition_may_match(entry)
    }

    /// No new delete file, of those that count, applies to a data file that is removed.
    fn no_new_deletes_on(&self, removals: &Removals, counts: impl Fn(&EntryRef<'_>) -> bool) -> Verdict {
        let removed: Vec<EntryRef<'_>> = removals
            .entries(self.live)
            .filter(|entry| entry.content() == FileContent::Data)
            .collect();
        let applies = |delete: &EntryRef<'_>| removed.iter().any(|data_file| self.applies(delete, data_file));
        let found = self.history.new_deletes().filter(|entry| counts(entry) && applies(entry));
        self.first(
            Check::NewDeletes,
            found,
            "another commit deleted rows of a data file that is replaced",
        )
    }

    fn applies(&self, delete: &EntryRef<'_>, data_file: &EntryRef<'_>) -> bool {
        let same_partition = delete.spec_id() == data_file.spec_id() && delete.partition() == data_file.partition();
        match delete.content() {
            FileContent::EqualityDeletes => {
                let reaches = same_partition || is_unpartitioned(self.metadata, delete.spec_id());
                reaches && (delete.sequence_number() == 0 || data_file.sequence_number() < delete.sequence_number())
            }
            _ => data_file.sequence_number() <= delete.sequence_number() && may_name(delete, data_file.file_path(), same_partition),
        }
    }

    /// Data files whose vectors are made with those of other commits.
    fn merged(&self) -> HashSet<&str> {
        self.change.vectors.iter().map(|rows| rows.data_file.as_str()).collect()
    }

    /// Where deleted rows are counted: no other commit deleted rows of the same data files, unless its vector is
    /// merged, which tells what it deleted.
    fn no_uncounted_deletes(&self, removals: &Removals) -> Verdict {
        if self.change.counted.is_none() {
            return Ok(());
        }
        let (referenced, merged) = (self.referenced(), self.merged());
        // The rows of a file that went as a whole were deleted by who took it away.
        let removed = self.history.removed_data(&[Kind::Delete]);
        let uncounted = |path: &str| referenced.contains(path) && !merged.contains(path);
        let gone = removed.filter(|entry| uncounted(entry.file_path()));
        self.first(
            Check::Counted,
            gone,
            "another commit deleted a data file that the statement deletes rows of",
        )?;
        let entries = self.live.data_files().map(|(_, entry)| entry);
        let touched = entries.filter(|entry| referenced.contains(entry.file_path()) || removals.data_files.contains(entry.file_path()));
        let touched: Vec<EntryRef<'_>> = touched.collect();
        let is_merged =
            |delete: &EntryRef<'_>| delete.is_deletion_vector() && delete.referenced_data_file().is_some_and(|path| merged.contains(path));
        let applies = |delete: &EntryRef<'_>| touched.iter().any(|data_file| self.applies(delete, data_file));
        let found = self.history.new_deletes().filter(|entry| !is_merged(entry) && applies(entry));
        self.first(
            Check::Counted,
            found,
            "another commit deleted rows of a data file that the statement deletes rows of",
        )
    }

    fn referenced(&self) -> HashSet<&str> {
        self.change.referenced.iter().map(String::as_str).collect()
    }

    fn referenced_not_removed(&self, kinds: &'static [Kind]) -> Verdict {
        let referenced = self.referenced();
        let found = self
            .history
            .removed_data(kinds)
            .filter(|entry| referenced.contains(entry.file_path()));
        self.first(
            Check::Referenced,
            found,
            "another commit replaced a data file of which rows are deleted",
        )
    }

    fn referenced_are_live(&self) -> Verdict {
        let mut referenced = self.referenced();
        for (_, entry) in self.live.data_files() {
            referenced.remove(entry.file_path());
        }
        match referenced.into_iter().next().filter(|_| self.checks.makes(Check::Referenced)) {
            Some(path) => {
                Err(NotCommitted::conflict("a data file of which rows are deleted is not in the table any more").with("file", path))
            }
            None => Ok(()),
        }
    }

    /// No vector was added for a file that gets one that is not merged: it has one only. Nor were position
    /// deletes, which a vector would hide.
    fn no_new_vectors(&self) -> Verdict {
        let vectors = self.change.added.iter().filter(|file| file.is_deletion_vector());
        let added = vectors.filter_map(|file| Some((file.referenced_data_file.as_deref()?, file.spec_id, &file.partition)));
        let made = self.change.vectors.iter();
        let made = made.map(|rows| (rows.data_file.as_str(), rows.spec_id, &rows.partition));
        let own: Vec<_> = added.chain(made).collect();
        let (referenced, merged) = (self.referenced(), self.merged());
        let clashes = |entry: &EntryRef<'_>| match entry.referenced_data_file() {
            Some(path) if entry.is_deletion_vector() => {
                let is_own = || own.iter().any(|(own, ..)| *own == path);
                !merged.contains(path) && (referenced.contains(path) || is_own())
            }
            _ => {
                entry.content() == FileContent::PositionDeletes
                    && own.iter().any(|(path, spec_id, partition)| {
                        let same = *spec_id == entry.spec_id() && *partition == entry.partition();
                        may_name(entry, path, same)
                    })
            }
        };
        let found = self.history.new_deletes().filter(clashes);
        self.first(Check::Vectors, found, "another commit deleted rows of the same data file")
    }
}

/// Whether a position delete file or vector may name a data file.
fn may_name(delete: &EntryRef<'_>, path: &str, same_partition: bool) -> bool {
    if let Some(named) = delete.referenced_data_file() {
        return named == path;
    }
    match (delete.lower_bound(DELETE_FILE_PATH_ID), delete.upper_bound(DELETE_FILE_PATH_ID)) {
        // Bounds may have been cut.
        (Some(lower), Some(upper)) if lower == upper => same_partition && path.as_bytes().starts_with(lower),
        _ => same_partition,
    }
}
