//! One attempt of a commit: from the table as it is now to the files of the next snapshot (IC-2, IC-8,
//! IC-11, IC-12, IC-16).
//!
//! Manifests are kept over attempts where what they came from did not change; the manifest list and
//! the metadata file are made anew each time, from the snapshot that the commit really follows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::action::{FileToRead, JournalEntry, Loaded, NewFile, NotCommitted, VectorsMade, WriteKind};
use super::change::{AFFECTED_ROWS_PROPERTY, COMMIT_ID_PROPERTY, Change, Operation, head_of};
use super::checks::{Check, Checks};
use super::files::Files;
use super::history::{self, History};
use super::live::{Gone, Live, Needs, Removals};
use super::manifests::{Manifests, Written};
use super::matching::{Matching, Partitions};
use super::names::{Names, next_metadata_location};
use super::random::Random;
use super::validate::{self, Validation};
use super::vectors::{MadeVectors, Merging, VectorFiles};
use super::verdict::{self, Published};
use super::{guard, parent};
use crate::error::Error;
use crate::iceberg::avro::Codec;
use crate::iceberg::manifest::{AvroLayout, DataFile, ManifestFile, ManifestListWriter};
use crate::iceberg::spec::{MetadataBuilder, MetadataCompression, Snapshot, SnapshotManifests, TableMetadata};
use crate::iceberg::summary::SummaryBuilder;

/// What one attempt needs next.
#[derive(Debug)]
pub(super) enum Plan {
    Read(Vec<FileToRead>),
    Commit(Box<Attempt>),
}

/// The files of an attempt that is ready to be sent.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) entry: JournalEntry,
    pub(super) list: String,
    /// Manifests and files of vectors, of this run, that the snapshot names.
    pub(super) parts: HashSet<String>,
    pub(super) vectors: VectorsMade,
    /// What is not written yet.
    pub(super) files: Vec<NewFile>,
}

/// What a run carries from attempt to attempt.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) change: Change,
    pub(super) files: Files,
    pub(super) random: Random,
    pub(super) checks: Checks,
    codec: Codec,
    names: Names,
    snapshot_id: Option<i64>,
    manifests: Manifests,
    vectors: VectorFiles,
    /// Manifests and files of vectors that are written.
    pub(super) written: HashSet<String>,
}

/// What a commit does to the manifests of its parent.
#[derive(Debug)]
struct Decision {
    live: Live,
    removals: Removals,
    gone: Gone,
    vectors: MadeVectors,
    newly_deleted: u64,
}

impl Run {
    pub(super) fn new(change: Change, codec: Codec, mut random: Random) -> Self {
        Self {
            change,
            files: Files::default(),
            checks: Checks::default(),
            codec,
            names: Names::new(random.uuid()),
            random,
            snapshot_id: None,
            manifests: Manifests::default(),
            vectors: VectorFiles::default(),
            written: HashSet::new(),
        }
    }

    /// Tells this run apart from others of the same commit id.
    pub(super) fn run_id(&self) -> String {
        self.names.run()
    }

    /// Makes the files of attempt `number` on top of `base`.
    ///
    /// Errors: that no attempt can succeed.
    pub(super) fn plan(&mut self, base: &Loaded, number: u32, now_ms: i64) -> Result<Plan, NotCommitted> {
        let metadata = &base.metadata;
        validate::check_itself(&self.change)?;
        guard::check(&self.change, metadata)?;
        let parent = match head_of(metadata, &self.change.branch) {
            None => None,
            Some(id) => {
                let snapshot = metadata.snapshot_by_id(id);
                let missing = || Error::corrupt("the branch's snapshot is not in the table's metadata").with("snapshot", id);
                Some(Arc::clone(snapshot.ok_or_else(missing)?))
            }
        };
        match self.decide(metadata, parent.as_ref())? {
            Some(decision) => {
                let attempt = self.commit(base, parent.as_deref(), &decision, number, now_ms)?;
                Ok(Plan::Commit(Box::new(attempt)))
            }
            None => Ok(Plan::Read(self.files.wanted())),
        }
    }

    /// Validates, and chooses what is removed; `None` while files are missing.
    fn decide(&mut self, metadata: &TableMetadata, parent: Option<&Arc<Snapshot>>) -> Result<Option<Decision>, NotCommitted> {
        let change = &self.change;
        let kept = match parent {
            None => Some(Vec::new()),
            Some(parent) => parent::complete(&mut self.files, metadata, parent)?,
        };
        let snapshots = if validate::looks_back(&change.operation) {
            match history::since(metadata, parent, change.start) {
                Err(_) if !self.checks.makes(Check::Start) => Vec::new(),
                snapshots => snapshots?,
            }
        } else {
            Vec::new()
        };
        let history = History::load(&mut self.files, &snapshots)?;
        let Some(kept) = kept else { return Ok(None) };
        let live = Live::load(&mut self.files, kept, Needs::of(change));
        let (Some(live), Some(history)) = (live, history) else {
            return Ok(None);
        };

        let schema = change.pinned.schema_by_id(change.schema_id);
        let schema = schema.ok_or_else(|| Error::invalid(format!("the table has no schema {}", change.schema_id)))?;
        let matching = Matching::new(&change.filter, schema, metadata);
        let partitions = Partitions::of(change.added.iter(), metadata);
        let validation = Validation {
            change,
            metadata,
            history: &history,
            live: &live,
            matching: &matching,
            partitions: &partitions,
            checks: self.checks,
        };
        let gone = validation.gone();
        let mut removals = Removals::choose(change, &live, &matching, &partitions, &gone, self.checks)?;
        validation.check(&removals)?;
        let merging = Merging::of(change, &mut self.files, &live, &history, &gone, &mut removals, self.checks)?;
        let Some(merging) = merging else { return Ok(None) };
        let vectors = merging.write(&mut self.vectors, &change.vector_folder, &mut self.names)?;
        Ok(Some(Decision {
            newly_deleted: merging.newly,
            live,
            removals,
            gone,
            vectors,
        }))
    }

    fn layout(&mut self) -> AvroLayout {
        AvroLayout {
            codec: self.codec,
            sync: self.random.sync(),
        }
    }

    fn commit(
        &mut self,
        base: &Loaded,
        parent: Option<&Snapshot>,
        decision: &Decision,
        number: u32,
        now_ms: i64,
    ) -> Result<Attempt, NotCommitted> {
        let metadata = &base.metadata;
        let snapshot_id = self.snapshot_id(metadata);
        let (own, kept) = self.manifests(metadata, snapshot_id, decision)?;
        let mut builder = MetadataBuilder::from_base(Arc::clone(metadata), Some(&base.location), now_ms);
        let version = metadata.format_version;
        let sequence_number = match version {
            1 => 0,
            _ => next_sequence_number(builder.table())?,
        };
        let first_row_id = builder.table().next_row_id;
        let parent_id = parent.map(|parent| parent.snapshot_id);
        let mut list = ManifestListWriter::new(version, snapshot_id, parent_id, sequence_number, first_row_id, self.layout())?;
        for manifest in own.iter().map(|written| &written.listed).chain(&kept) {
            list.add(manifest)?;
        }
        let list = list.finish()?;
        let list_location = self.names.list(metadata, snapshot_id, number);
        let snapshot = Snapshot {
            snapshot_id,
            parent_snapshot_id: parent_id,
            sequence_number,
            timestamp_ms: builder.timestamp_ms(),
            manifests: SnapshotManifests::List(list_location.clone()),
            summary: self.summary(metadata, parent, decision, [own.len(), kept.len()])?,
            schema_id: Some(metadata.current_schema_id),
            first_row_id,
            added_rows: list.assigned_rows,
            key_id: None,
        };
        builder.commit_snapshot(snapshot.clone(), &self.change.branch)?;
        let next = builder.build()?;
        let published = Published::read(&own, &list.manifests, &decision.live, &next)?;
        if self.change.operation == Operation::OverwriteWhere && self.checks.makes(Check::Inside) {
            let schema = self.change.pinned.schema_by_id(self.change.schema_id);
            let matching = schema.map(|schema| Matching::new(&self.change.filter, schema, metadata));
            verdict::check_inside(&published, matching.as_ref(), snapshot_id)?;
        }
        if self.checks.judges() {
            verdict::check(&published, &next, &snapshot, &decision.live, metadata, parent)?;
        }
        let compression = MetadataCompression::of(&next)?;
        let new = next_metadata_location(metadata, &base.location, self.random.uuid(), compression);
        let mut files: Vec<NewFile> = decision.vectors.files().collect();
        files.retain(|file| !self.written.contains(&file.location));
        for written in own.iter().filter(|written| !self.written.contains(&written.listed.location)) {
            files.push(NewFile {
                kind: WriteKind::Manifest,
                location: written.listed.location.clone(),
                bytes: written.bytes.clone(),
            });
        }
        files.push(NewFile {
            kind: WriteKind::ManifestList,
            location: list_location.clone(),
            bytes: list.bytes.into(),
        });
        files.push(NewFile {
            kind: WriteKind::Metadata,
            location: new.clone(),
            bytes: next.to_file_bytes(compression)?.into(),
        });
        Ok(Attempt {
            entry: JournalEntry {
                commit_id: self.change.commit_id.clone(),
                run: self.run_id(),
                table_uuid: metadata.table_uuid.map(|uuid| uuid.to_string()),
                snapshot_id,
                parent_snapshot_id: parent_id,
                branch: self.change.branch.clone(),
                sequence_number,
                attempt: number,
                base: base.location.clone(),
                new,
            },
            list: list_location,
            parts: own
                .into_iter()
                .map(|written| written.listed.location)
                .chain(decision.vectors.locations().cloned())
                .collect(),
            vectors: VectorsMade {
                newly_deleted: decision.newly_deleted,
                bytes: decision.vectors.bytes(),
            },
            files,
        })
    }

    /// The same over all attempts, unless another snapshot has it.
    fn snapshot_id(&mut self, metadata: &TableMetadata) -> i64 {
        let taken = |id| metadata.snapshot_by_id(id).is_some();
        let id = match self.snapshot_id {
            Some(id) if !taken(id) => id,
            _ => self.random.snapshot_id(taken),
        };
        self.snapshot_id = Some(id);
        id
    }

    /// The manifests that this run adds, and those of the parent that stay as they are.
    fn manifests(
        &mut self,
        metadata: &TableMetadata,
        snapshot_id: i64,
        decision: &Decision,
    ) -> Result<(Vec<Written>, Vec<ManifestFile>), NotCommitted> {
        let sequence_number = match self.change.operation {
            Operation::Compact { sequence_number } => sequence_number,
            _ => None,
        };
        let mut writing = self
            .manifests
            .writing(metadata, snapshot_id, self.codec, &mut self.names, &mut self.random);
        let added: Vec<&DataFile> = added(&self.change, decision).collect();
        let mut own = writing.added(&added, sequence_number)?;
        if let Operation::RewriteManifests(replaced) = &self.change.operation {
            let (rewritten, kept) = writing.rewritten(replaced, &decision.live)?;
            own.extend(rewritten);
            return Ok((own, kept));
        }
        let mut kept = Vec::new();
        for (number, (listed, manifest)) in decision.live.manifests.iter().enumerate() {
            match (decision.removals.by_manifest.get(&number), manifest) {
                (Some(indices), Some(manifest)) => own.push(writing.filtered(listed, manifest, indices)?),
                _ => kept.push(listed.clone()),
            }
        }
        Ok((own, kept))
    }

    fn summary(
        &self,
        metadata: &TableMetadata,
        parent: Option<&Snapshot>,
        decision: &Decision,
        [created, kept]: [usize; 2],
    ) -> Result<BTreeMap<String, String>, NotCommitted> {
        let mut summary = SummaryBuilder::new(metadata)?;
        let replaced = decision.live.manifests.len().saturating_sub(kept);
        for (key, count) in [("created", created), ("kept", kept), ("replaced", replaced)] {
            summary.set(format!("manifests-{key}"), count.to_string());
        }
        for file in added(&self.change, decision) {
            summary.added(file)?;
        }
        for entry in decision.removals.entries(&decision.live) {
            summary.removed(&entry.to_data_file())?;
        }
        for (key, value) in &self.change.summary {
            summary.set(key, value);
        }
        if self.change.operation == Operation::OverwritePartitions {
            summary.set("replace-partitions", "true");
        }
        if let Some(counted) = self.change.counted {
            let rows = counted.saturating_add(decision.newly_deleted);
            summary.set(AFFECTED_ROWS_PROPERTY, rows.to_string());
        }
        summary.set(COMMIT_ID_PROPERTY, &self.change.commit_id);
        let operation = self.change.operation_name(!decision.removals.data_files.is_empty());
        Ok(summary.build(operation, parent)?)
    }
}

/// Errors: `Unsupported` for a table that has used up its sequence numbers: one more snapshot would share its number.
fn next_sequence_number(table: &TableMetadata) -> Result<i64, Error> {
    let next = table.last_sequence_number.checked_add(1);
    next.ok_or_else(|| Error::unsupported("the table's last-sequence-number is the largest there is: it takes no more commits"))
}

/// The files that are added, without vectors of data files that are gone.
fn added<'a>(change: &'a Change, decision: &'a Decision) -> impl Iterator<Item = &'a DataFile> {
    let gone = &decision.gone;
    let is_gone = |file: &DataFile| {
        let data_file = file.referenced_data_file.as_ref().filter(|_| file.is_deletion_vector());
        data_file.is_some_and(|path| gone.data_files.contains(path))
    };
    change
        .added
        .iter()
        .filter(move |file| !is_gone(file))
        .chain(&decision.vectors.entries)
}
