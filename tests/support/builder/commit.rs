//! Commits: from files to a snapshot with its manifests and manifest list.
//!
//! A commit carries the manifests of its parent over. A manifest that loses a file is rewritten
//! with that entry DELETED and the others EXISTING; new entries go into one manifest per spec for
//! data and one per spec for deletes.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::data::DataFile;
use super::deletes::{DeletionVectors, EqualityDeletes, PositionDeletes};
use super::files::{Content, Effect, Place, Status, Stored};
use super::manifest::{Context, Entry, EntryStatus, Manifest, write_list};
use super::table::{SnapshotState, TestTable};

/// Changes that become one snapshot.
#[derive(Debug, Default)]
pub struct Commit {
    data: Vec<DataFile>,
    positions: Vec<PositionDeletes>,
    equality: Vec<EqualityDeletes>,
    vectors: Vec<DeletionVectors>,
    removed: Vec<String>,
    rewrite: bool,
    sequence_number: Option<i64>,
    snapshot_id: Option<i64>,
    branch: Option<String>,
    operation: Option<String>,
}

impl Commit {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a data file.
    #[must_use]
    pub fn data(mut self, file: DataFile) -> Self {
        self.data.push(file);
        self
    }

    /// Adds a position delete file.
    #[must_use]
    pub fn positions(mut self, file: PositionDeletes) -> Self {
        self.positions.push(file);
        self
    }

    /// Adds an equality delete file.
    #[must_use]
    pub fn equality(mut self, file: EqualityDeletes) -> Self {
        self.equality.push(file);
        self
    }

    /// Adds deletion vectors; they replace the live ones of the same data files.
    #[must_use]
    pub fn vectors(mut self, file: DeletionVectors) -> Self {
        self.vectors.push(file);
        self
    }

    /// Removes a data or delete file by name (a vector is named `<Puffin file>/<data file>`).
    #[must_use]
    pub fn remove(mut self, name: &str) -> Self {
        self.removed.push(name.to_owned());
        self
    }

    /// Rewrites all manifests: every live entry becomes EXISTING with its numbers spelt out.
    #[must_use]
    pub fn rewrite_manifests(mut self) -> Self {
        self.rewrite = true;
        self
    }

    /// Sequence number of the commit; one more than the table's last by default.
    #[must_use]
    pub fn sequence_number(mut self, number: i64) -> Self {
        self.sequence_number = Some(number);
        self
    }

    /// Id of the snapshot; counted by default.
    #[must_use]
    pub fn snapshot_id(mut self, id: i64) -> Self {
        self.snapshot_id = Some(id);
        self
    }

    /// Commits to a branch instead of `main`.
    #[must_use]
    pub fn on_branch(mut self, name: &str) -> Self {
        self.branch = Some(name.to_owned());
        self
    }

    /// `operation` of the summary; by default what was really done.
    #[must_use]
    pub fn operation(mut self, operation: &str) -> Self {
        self.operation = Some(operation.to_owned());
        self
    }

    fn real_operation(&self) -> &'static str {
        let deletes = !(self.positions.is_empty() && self.equality.is_empty() && self.vectors.is_empty() && self.removed.is_empty());
        match (self.data.is_empty(), deletes) {
            (_, false) if self.rewrite => "replace",
            (_, false) => "append",
            (true, true) => "delete",
            (false, true) => "overwrite",
        }
    }
}

impl TestTable {
    /// Commits one data file.
    pub fn append(&mut self, file: DataFile) -> i64 {
        self.commit(Commit::new().data(file))
    }

    /// Commits one position delete file.
    pub fn delete_positions(&mut self, file: PositionDeletes) -> i64 {
        self.commit(Commit::new().positions(file))
    }

    /// Commits one equality delete file.
    pub fn delete_keys(&mut self, file: EqualityDeletes) -> i64 {
        self.commit(Commit::new().equality(file))
    }

    /// Commits one file of deletion vectors.
    pub fn delete_by_vectors(&mut self, file: DeletionVectors) -> i64 {
        self.commit(Commit::new().vectors(file))
    }

    /// Writes the files of a commit and the metadata; returns the snapshot's id.
    pub fn commit(&mut self, commit: Commit) -> i64 {
        let operation = commit.operation.clone().unwrap_or_else(|| commit.real_operation().to_owned());
        let sequence_number = match (self.version, commit.sequence_number) {
            (1, _) => 0,
            (_, Some(number)) => number,
            (_, None) => self.last_sequence_number + 1,
        };
        let id = commit.snapshot_id.unwrap_or_else(|| self.next_snapshot_id());
        let branch = commit.branch.unwrap_or_else(|| "main".to_owned());
        let parent = self.refs.iter().find(|(name, ..)| *name == branch).map(|(_, id, _)| *id);
        let mut carried = parent.map_or_else(Vec::new, |id| self.snapshot(id).manifests.clone());

        let mut new: Vec<(Rc<Stored>, Place)> = Vec::new();
        let mut add = |table: &mut Self, (stored, place): (Stored, Place)| {
            let stored = Rc::new(stored);
            table.files.push(stored.clone());
            new.push((stored, place));
        };
        for file in commit.data {
            let stored = file.store(self);
            add(self, stored);
        }
        for file in commit.positions {
            let stored = file.store(self);
            add(self, stored);
        }
        for file in commit.equality {
            let stored = file.store(self);
            add(self, stored);
        }
        let mut removed = commit.removed;
        for file in commit.vectors {
            let keeps_old = file.keeps_old();
            for stored in file.store(self) {
                if !keeps_old {
                    removed.extend(live_vectors_of(&carried, &stored.0));
                }
                add(self, stored);
            }
        }

        for name in &removed {
            let live = |m: &Manifest| m.entries.iter().any(|e| e.is_live() && e.file.name == *name);
            assert!(carried.iter().any(live), "no live file {name} to remove");
        }
        let added = group(new.iter().map(|(stored, place)| new_entry(id, stored, place)));
        let mut manifests: Vec<Manifest> = added
            .into_iter()
            .map(|((deletes, spec), entries)| self.manifest(spec, deletes, entries))
            .collect();
        if commit.rewrite {
            let kept = carried.iter().flat_map(|m| {
                let live = m
                    .entries
                    .iter()
                    .enumerate()
                    .filter(|(_, e)| e.is_live() && !removed.contains(&e.file.name));
                live.map(|(i, _)| existing(m, i)).collect::<Vec<_>>()
            });
            let kept = group(kept);
            carried.clear();
            manifests.extend(
                kept.into_iter()
                    .map(|((deletes, spec), entries)| self.manifest(spec, deletes, entries)),
            );
        }
        for manifest in &mut carried {
            if manifest.entries.iter().any(|e| e.is_live() && removed.contains(&e.file.name)) {
                let entries = manifest.entries.iter().enumerate().filter(|(_, e)| e.is_live());
                let entries = entries.map(|(i, e)| {
                    let mut entry = existing(manifest, i);
                    if removed.contains(&e.file.name) {
                        entry.status = EntryStatus::Deleted;
                        entry.snapshot_id = id;
                    }
                    entry
                });
                let entries = entries.collect();
                *manifest = self.manifest(manifest.spec_id, manifest.deletes, entries);
            }
        }
        // new manifests are written once their number is known; carried ones are there already
        for manifest in manifests.iter_mut().chain(&mut carried).filter(|m| m.path.is_empty()) {
            manifest.sequence_number = sequence_number;
            manifest.snapshot_id = id;
            self.write_manifest(manifest);
        }
        manifests.append(&mut carried);

        let first_row_id = (self.version > 2).then_some(self.next_row_id);
        if self.version > 2 {
            for manifest in manifests.iter_mut().filter(|m| !m.deletes && m.first_row_id.is_none()) {
                manifest.first_row_id = Some(self.next_row_id);
                self.next_row_id += manifest.rows_for_ids();
            }
        }
        let list = format!("metadata/snap-{id}.avro");
        let snapshot = SnapshotState {
            id,
            parent,
            sequence_number,
            timestamp_ms: self.now(),
            manifest_list: self.recorded(&list),
            summary: summary(&operation, id, &manifests),
            schema_id: self.schema().id,
            first_row_id,
            added_rows: first_row_id.map(|first| self.next_row_id - first),
            manifests,
        };
        self.write_list(&list, &snapshot);
        self.last_sequence_number = self.last_sequence_number.max(sequence_number);
        if branch == "main" {
            self.snapshot_log.push((snapshot.timestamp_ms, id));
        }
        self.refs.retain(|(name, ..)| *name != branch);
        self.refs.push((branch, id, true));
        self.snapshots.push(snapshot);
        self.write_metadata();
        id
    }

    fn manifest(&self, spec_id: i32, deletes: bool, entries: Vec<Entry>) -> Manifest {
        Manifest {
            path: String::new(),
            length: 0,
            version: self.version,
            spec_id,
            deletes,
            sequence_number: 0,
            snapshot_id: 0,
            first_row_id: None,
            entries,
        }
    }

    fn write_manifest(&mut self, manifest: &mut Manifest) {
        self.manifests_written += 1;
        let relative = format!("metadata/m{}.avro", self.manifests_written);
        let context = Context {
            container: self.container,
            schema: self.schema(),
            schemas: &self.schemas,
            spec: self.spec(manifest.spec_id),
        };
        let bytes = context.write(manifest);
        manifest.path = self.recorded(&relative);
        manifest.length = bytes.len() as i64;
        self.write_file(&relative, &bytes);
    }

    fn write_list(&self, relative: &str, snapshot: &SnapshotState) {
        let mut header = vec![
            ("snapshot-id", snapshot.id.to_string()),
            ("format-version", self.version.to_string()),
        ];
        if let Some(parent) = snapshot.parent {
            header.push(("parent-snapshot-id", parent.to_string()));
        }
        if self.version > 1 {
            header.push(("sequence-number", snapshot.sequence_number.to_string()));
        }
        if let Some(first) = snapshot.first_row_id {
            header.push(("first-row-id", first.to_string()));
        }
        let types = |spec_id| self.partition_types(spec_id);
        let bytes = write_list(self.version, self.container, &header, &snapshot.manifests, &types);
        self.write_file(relative, &bytes);
    }
}

fn new_entry(snapshot_id: i64, stored: &Rc<Stored>, place: &Place) -> Entry {
    let (status, sequence_number, file_sequence_number) = match place.status {
        Status::Added => (EntryStatus::Added, None, None),
        Status::AddedWith(number) => (EntryStatus::Added, Some(number), None),
        Status::Existing(number) => (EntryStatus::Existing, number, number),
    };
    Entry {
        status,
        snapshot_id,
        sequence_number,
        file_sequence_number,
        first_row_id: stored.entry.first_row_id,
        file: stored.clone(),
    }
}

/// An entry of a manifest as another manifest takes it over.
fn existing(manifest: &Manifest, index: usize) -> Entry {
    let entry = &manifest.entries[index];
    let number = Some(manifest.sequence_number_of(entry));
    Entry {
        status: EntryStatus::Existing,
        sequence_number: number,
        file_sequence_number: entry
            .file_sequence_number
            .or(Some(if manifest.version == 1 { 0 } else { manifest.sequence_number })),
        first_row_id: manifest.first_row_id_of(index),
        ..entry.clone()
    }
}

/// Entries by (deletes, spec id).
fn group(entries: impl IntoIterator<Item = Entry>) -> BTreeMap<(bool, i32), Vec<Entry>> {
    let mut groups: BTreeMap<(bool, i32), Vec<Entry>> = BTreeMap::new();
    for entry in entries {
        let file = &entry.file.entry;
        groups.entry((file.content != Content::Data, file.spec_id)).or_default().push(entry);
    }
    groups
}

/// Names of the live vectors over the data file that a new vector is about.
fn live_vectors_of(manifests: &[Manifest], new: &Stored) -> Vec<String> {
    let Effect::Vector { path: target, .. } = &new.effect else {
        return Vec::new();
    };
    let live = manifests.iter().flat_map(|m| &m.entries).filter(|e| e.is_live());
    let same = live.filter(|e| matches!(&e.file.effect, Effect::Vector { path, .. } if path == target));
    same.map(|e| e.file.name.clone()).collect()
}

fn summary(operation: &str, id: i64, manifests: &[Manifest]) -> Map<String, Value> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in manifests.iter().flat_map(|m| &m.entries).filter(|e| e.is_live()) {
        let file = &entry.file.entry;
        let added = entry.status == EntryStatus::Added && entry.snapshot_id == id;
        let (total, new, rows) = match file.content {
            Content::Data => ("total-data-files", "added-data-files", Some(("total-records", "added-records"))),
            _ => ("total-delete-files", "added-delete-files", None),
        };
        *counts.entry(total).or_default() += 1;
        *counts.entry(new).or_default() += i64::from(added);
        if let Some((total, new)) = rows {
            *counts.entry(total).or_default() += file.record_count;
            *counts.entry(new).or_default() += if added { file.record_count } else { 0 };
        }
    }
    let counts = counts.into_iter().map(|(k, v)| (k.to_owned(), json!(v.to_string())));
    std::iter::once(("operation".to_owned(), json!(operation))).chain(counts).collect()
}
