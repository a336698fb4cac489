//! What other commits did since a statement read the table (IC-3, IC-4).

use std::sync::Arc;

use super::action::NotCommitted;
use super::files::Files;
use super::parent;
use crate::error::Result;
use crate::iceberg::manifest::{EntryRef, EntryStatus, FileContent, Manifest};
use crate::iceberg::spec::{Snapshot, TableMetadata};

/// A kind of snapshot, by its `operation`. One that tells none, or one that is not known, is of every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Append,
    Delete,
    Overwrite,
    Replace,
}

impl Kind {
    fn is(self, snapshot: &Snapshot) -> bool {
        match snapshot.operation() {
            Some("append") => self == Self::Append,
            Some("delete") => self == Self::Delete,
            Some("overwrite") => self == Self::Overwrite,
            Some("replace") => self == Self::Replace,
            _ => true,
        }
    }
}

/// A snapshot with the manifests that it wrote.
#[derive(Debug)]
struct Step {
    snapshot: Arc<Snapshot>,
    manifests: Vec<Arc<Manifest>>,
}

/// The snapshots after the one that was read, up to the one that is followed.
#[derive(Debug, Default)]
pub(super) struct History(Vec<Step>);

/// The snapshots after `start` up to `parent`, the newest first.
///
/// Errors: a conflict where the way back does not lead to `start`.
pub(super) fn since(
    metadata: &TableMetadata,
    parent: Option<&Arc<Snapshot>>,
    start: Option<i64>,
) -> Result<Vec<Arc<Snapshot>>, NotCommitted> {
    let newest = parent.map(|parent| parent.snapshot_id);
    let mut snapshots = Vec::new();
    if newest == start {
        return Ok(snapshots);
    }
    for snapshot in metadata.ancestors(newest) {
        snapshots.push(Arc::clone(snapshot));
        if snapshot.parent_snapshot_id == start {
            return Ok(snapshots);
        }
    }
    let message = "the snapshot that the statement read is not in the branch's history any more: it was expired, or the branch \
                   was turned back; run the statement again";
    Err(NotCommitted::conflict(message).with("snapshot", start.unwrap_or(-1)))
}

impl History {
    /// Reads what `snapshots` wrote; `None` while files are missing.
    pub(super) fn load(files: &mut Files, snapshots: &[Arc<Snapshot>]) -> Result<Option<Self>> {
        let mut steps = Vec::new();
        let mut is_whole = true;
        for snapshot in snapshots {
            let Some(list) = parent::listed(files, snapshot)? else {
                is_whole = false;
                continue;
            };
            let mut manifests = Vec::new();
            // Who wrote a manifest that v1 metadata names directly is told by its entries alone.
            let own = list
                .iter()
                .filter(|listed| listed.added_snapshot_id.is_none_or(|id| id == snapshot.snapshot_id));
            for listed in own {
                match files.manifest(listed) {
                    Some((manifest, _)) => manifests.push(manifest),
                    None => is_whole = false,
                }
            }
            steps.push(Step {
                snapshot: Arc::clone(snapshot),
                manifests,
            });
        }
        Ok(is_whole.then_some(Self(steps)))
    }

    fn entries(&self, kinds: &'static [Kind], status: EntryStatus) -> impl Iterator<Item = EntryRef<'_>> {
        let steps = self.0.iter().filter(move |step| kinds.iter().any(|kind| kind.is(&step.snapshot)));
        steps.flat_map(move |step| {
            let id = step.snapshot.snapshot_id;
            let entries = step.manifests.iter().flat_map(|manifest| manifest.entries());
            entries.filter(move |entry| entry.status() == status && entry.snapshot_id() == Some(id))
        })
    }

    /// Data files with rows that were not there before: compaction brings none.
    pub(super) fn new_data(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries(&[Kind::Append, Kind::Overwrite], EntryStatus::Added)
            .filter(|entry| entry.content() == FileContent::Data)
    }

    /// Data files that were removed by snapshots of these kinds.
    pub(super) fn removed_data(&self, kinds: &'static [Kind]) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries(kinds, EntryStatus::Deleted)
            .filter(|entry| entry.content() == FileContent::Data)
    }

    /// Delete files that were removed by snapshots of these kinds.
    pub(super) fn removed_deletes(&self, kinds: &'static [Kind]) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries(kinds, EntryStatus::Deleted)
            .filter(|entry| entry.content() != FileContent::Data)
    }

    /// New delete files of commits that wrote rows, too: what they delete may live on elsewhere.
    pub(super) fn new_deletes_beside_rows(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries(&[Kind::Overwrite], EntryStatus::Added)
            .filter(|entry| entry.content() != FileContent::Data)
    }

    /// New delete files; a deletion vector counts also where a compaction of deletes made it.
    pub(super) fn new_deletes(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let files = self.entries(&[Kind::Delete, Kind::Overwrite], EntryStatus::Added);
        let compacted = self
            .entries(&[Kind::Replace], EntryStatus::Added)
            .filter(EntryRef::is_deletion_vector);
        files.chain(compacted).filter(|entry| entry.content() != FileContent::Data)
    }
}
