//! Judging one snapshot from its manifests.

use std::collections::{HashMap, HashSet};

use super::row_ids::RowIds;
use super::totals::Totals;
use super::{Finding, Rule};
use crate::iceberg::manifest::{EntryRef, EntryStatus, FileContent, Manifest, ManifestFile};
use crate::iceberg::spec::{PartitionValues, Snapshot, TableMetadata};
use crate::io::normalise;

/// What is compared between a delete file and its data file.
#[derive(Debug)]
struct Place {
    spec_id: i32,
    partition: PartitionValues,
    sequence_number: i64,
}

impl Place {
    fn of(entry: &EntryRef<'_>) -> Self {
        Self {
            spec_id: entry.spec_id(),
            partition: entry.partition().clone(),
            sequence_number: entry.sequence_number(),
        }
    }
}

/// A delete file about one data file.
#[derive(Debug)]
struct FileDelete {
    path: String,
    data_file: String,
    place: Place,
    is_vector: bool,
}

/// Collects the manifests of a snapshot, then judges.
#[derive(Debug)]
pub struct SnapshotRules<'a> {
    metadata: &'a TableMetadata,
    snapshot: &'a Snapshot,
    data_files: HashMap<String, Place>,
    /// Delete files, with the offset of a vector.
    delete_files: HashSet<(String, Option<u64>)>,
    file_deletes: Vec<FileDelete>,
    row_ids: RowIds,
    totals: Totals,
    findings: Vec<Finding>,
}

/// A path as it is compared: spellings of one place are one.
fn comparable(path: &str) -> String {
    normalise(path).unwrap_or_else(|_| path.to_owned())
}

impl<'a> SnapshotRules<'a> {
    /// For a snapshot of a table; the metadata may be that of a later time.
    pub fn new(metadata: &'a TableMetadata, snapshot: &'a Snapshot) -> Self {
        Self {
            metadata,
            snapshot,
            data_files: HashMap::new(),
            delete_files: HashSet::new(),
            file_deletes: Vec::new(),
            row_ids: RowIds::new(metadata, snapshot),
            totals: Totals::default(),
            findings: Vec::new(),
        }
    }

    fn find(&mut self, rule: Rule, subject: &str, message: String) {
        self.findings.push(Finding {
            rule,
            subject: subject.to_owned(),
            message,
        });
    }

    /// Takes in a manifest with its entry in the snapshot's list.
    pub fn manifest(&mut self, listed: &ManifestFile, manifest: &Manifest) {
        self.counts(listed, manifest);
        let own = self.snapshot.sequence_number;
        if own > 0 && listed.sequence_number > own {
            let message = format!("the manifest has sequence number {}, its snapshot {own}", listed.sequence_number);
            self.find(Rule::SequenceNumber, &listed.location, message);
        }
        for entry in manifest.entries() {
            self.entry(listed, &entry);
        }
    }

    fn counts(&mut self, listed: &ManifestFile, manifest: &Manifest) {
        let mut files = [0_u64; 3];
        let mut rows = [0_u64; 3];
        for entry in manifest.entries() {
            let slot = entry.status() as usize;
            files[slot] += 1;
            rows[slot] = rows[slot].saturating_add(entry.record_count());
        }
        let listed_files = [
            (EntryStatus::Existing, listed.existing_files_count, listed.existing_rows_count),
            (EntryStatus::Added, listed.added_files_count, listed.added_rows_count),
            (EntryStatus::Deleted, listed.deleted_files_count, listed.deleted_rows_count),
        ];
        for (status, told_files, told_rows) in listed_files {
            let slot = status as usize;
            for (what, told, is) in [("files", told_files, files[slot]), ("rows", told_rows, rows[slot])] {
                if let Some(told) = told.filter(|told| *told != is) {
                    let message = format!("the list says {told} {status:?} {what}, the manifest has {is}").to_lowercase();
                    self.find(Rule::ListCounts, &listed.location, message);
                }
            }
        }
    }

    fn entry(&mut self, listed: &ManifestFile, entry: &EntryRef<'_>) {
        let path = entry.file_path();
        if entry.status() != EntryStatus::Existing
            && let (Some(own), Some(writer)) = (entry.snapshot_id(), listed.added_snapshot_id)
            && own != writer
        {
            let message = format!("snapshot {writer} wrote the manifest, its {:?} entry says {own}", entry.status());
            self.find(Rule::SnapshotId, path, message);
        }
        if !entry.is_live() {
            return;
        }
        self.sequence_numbers(listed, entry);
        self.totals.add(entry);
        match entry.content() {
            FileContent::Data => {
                self.row_ids.add(entry);
                if self.data_files.insert(comparable(path), Place::of(entry)).is_some() {
                    self.find(Rule::DuplicateFile, path, "the data file is there twice".to_owned());
                }
            }
            FileContent::PositionDeletes | FileContent::EqualityDeletes => self.delete_file(entry),
        }
    }

    fn sequence_numbers(&mut self, listed: &ManifestFile, entry: &EntryRef<'_>) {
        let (number, path) = (entry.sequence_number(), entry.file_path());
        let own = self.snapshot.sequence_number;
        if own > 0 && number > own {
            self.find(
                Rule::SequenceNumber,
                path,
                format!("the file has sequence number {number}, its snapshot {own}"),
            );
        }
        if listed.min_sequence_number > number {
            let message = format!(
                "the file has sequence number {number}, the list says at least {}",
                listed.min_sequence_number
            );
            self.find(Rule::SequenceNumber, path, message);
        }
        if let Some(of_file) = entry.file_sequence_number().filter(|of_file| *of_file < number) {
            let message = format!("the file's data has sequence number {number}, the file itself {of_file}");
            self.find(Rule::SequenceNumber, path, message);
        }
    }

    fn delete_file(&mut self, entry: &EntryRef<'_>) {
        let (path, is_vector) = (entry.file_path(), entry.is_deletion_vector());
        if is_vector && self.metadata.format_version < 3 {
            let message = format!("the table has format version {}", self.metadata.format_version);
            self.find(Rule::FormatVersion, path, message);
        }
        let key = (comparable(path), entry.content_offset().filter(|_| is_vector));
        if !self.delete_files.insert(key) {
            self.find(Rule::DuplicateFile, path, "the delete file is there twice".to_owned());
        }
        if let Some(data_file) = entry.referenced_data_file() {
            self.file_deletes.push(FileDelete {
                path: path.to_owned(),
                data_file: comparable(data_file),
                place: Place::of(entry),
                is_vector,
            });
        }
    }

    /// What was found. `is_whole` is whether all manifests with live files were given.
    pub fn finish(mut self, is_whole: bool) -> Vec<Finding> {
        let mut with_vector: HashMap<&str, &str> = HashMap::new();
        for delete in &self.file_deletes {
            let mut find = |rule, message| {
                self.findings.push(Finding {
                    rule,
                    subject: delete.path.clone(),
                    message,
                });
            };
            if delete.is_vector
                && let Some(other) = with_vector.insert(&delete.data_file, &delete.path)
            {
                find(Rule::TwoVectors, format!("{} has another vector in {other}", delete.data_file));
            }
            let Some(data_file) = self.data_files.get(&delete.data_file) else {
                if delete.is_vector && is_whole {
                    find(
                        Rule::DanglingVector,
                        format!("its data file {} is not in the table", delete.data_file),
                    );
                }
                continue;
            };
            let is_older = delete.place.sequence_number < data_file.sequence_number;
            if is_older && !delete.is_vector {
                // It was about an earlier file of the same name.
                continue;
            }
            if is_older {
                let numbers = (delete.place.sequence_number, data_file.sequence_number);
                let message = format!(
                    "it has sequence number {}, its data file {} has {}",
                    numbers.0, delete.data_file, numbers.1
                );
                find(Rule::DeleteAge, message);
            }
            if (data_file.spec_id, &data_file.partition) != (delete.place.spec_id, &delete.place.partition) {
                find(
                    Rule::DeletePartition,
                    format!("its data file {} is in another partition", delete.data_file),
                );
            }
        }
        self.findings.extend(self.row_ids.finish());
        if is_whole {
            self.findings.extend(self.totals.finish(self.snapshot));
        }
        self.findings.sort();
        self.findings
    }
}
