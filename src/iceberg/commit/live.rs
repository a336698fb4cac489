//! The files of the snapshot that a commit follows, and which of them it removes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::action::NotCommitted;
use super::change::{Change, Operation, RemovedFile};
use super::checks::{Check, Checks};
use super::files::Files;
use super::matching::{Matching, Partitions};
use crate::iceberg::manifest::{EntryRef, FileContent, Manifest, ManifestContent, ManifestFile};

/// Which manifests a change must look into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    pub(super) data: bool,
    pub(super) deletes: bool,
}

impl Needs {
    pub(super) fn of(change: &Change) -> Self {
        let adds_vectors = !change.vectors.is_empty() || change.added.iter().any(|file| file.is_deletion_vector());
        // A data file takes its vector along.
        let all = Self { data: true, deletes: true };
        match &change.operation {
            Operation::Append | Operation::Upsert if change.removed.is_empty() => Self {
                data: false,
                deletes: false,
            },
            Operation::DeleteRows | Operation::UpdateRows | Operation::CompactDeletes if change.removed.is_empty() && !adds_vectors => {
                Self {
                    data: true,
                    deletes: false,
                }
            }
            _ => all,
        }
    }
}

/// The manifests of the parent, those that are needed with their entries.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) manifests: Vec<(ManifestFile, Option<Arc<Manifest>>)>,
}

impl Live {
    /// `None` while files are missing.
    pub(super) fn load(files: &mut Files, listed: Vec<ManifestFile>, needs: Needs) -> Option<Self> {
        let mut is_whole = true;
        let manifests = listed.into_iter().map(|listed| {
            let is_needed = match listed.content {
                ManifestContent::Data => needs.data,
                ManifestContent::Deletes => needs.deletes,
            };
            if !is_needed || !listed.may_have_live_files() {
                return (listed, None);
            }
            let manifest = files.manifest(&listed).map(|(manifest, _)| manifest);
            is_whole &= manifest.is_some();
            (listed, manifest)
        });
        let manifests = manifests.collect();
        is_whole.then_some(Self { manifests })
    }

    /// Live entries that were looked at, with the number of their manifest.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, EntryRef<'_>)> {
        let manifests = self.manifests.iter().enumerate();
        let read = manifests.filter_map(|(number, (_, manifest))| Some((number, manifest.as_ref()?)));
        read.flat_map(|(number, manifest)| manifest.live().map(move |entry| (number, entry)))
    }

    pub(super) fn data_files(&self) -> impl Iterator<Item = (usize, EntryRef<'_>)> {
        self.entries().filter(|(_, entry)| entry.content() == FileContent::Data)
    }
}

/// What other commits deleted without harm to a delete of rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) data_files: BTreeSet<String>,
    /// The vectors that went with them.
    pub(super) vectors: BTreeSet<RemovedFile>,
}

/// Entries by the number of their manifest.
#[derive(Debug, Default)]
pub(super) struct Removals {
    pub(super) by_manifest: BTreeMap<usize, BTreeSet<usize>>,
    /// Paths of the data files among them.
    pub(super) data_files: HashSet<String>,
}

impl Removals {
    pub(super) fn add(&mut self, number: usize, entry: &EntryRef<'_>) {
        self.by_manifest.entry(number).or_default().insert(entry.index());
        if entry.content() == FileContent::Data {
            self.data_files.insert(entry.file_path().to_owned());
        }
    }

    /// The entries.
    pub(super) fn entries<'a>(&'a self, live: &'a Live) -> impl Iterator<Item = EntryRef<'a>> {
        live.entries()
            .filter(|(number, entry)| self.by_manifest.get(number).is_some_and(|indices| indices.contains(&entry.index())))
            .map(|(_, entry)| entry)
    }

    /// What the change removes of the parent's files; what is `gone` already need not be there.
    ///
    /// Errors: a conflict where a file is missing (IC-6), or matches the filter in part only.
    pub(super) fn choose(
        change: &Change,
        live: &Live,
        matching: &Matching<'_>,
        partitions: &Partitions<'_>,
        gone: &Gone,
        checks: Checks,
    ) -> Result<Self, NotCommitted> {
        let mut chosen = Self::default();
        let named = change.removed.iter().map(|file| ((file.path.as_str(), file.content_offset), file));
        let named: HashMap<(&str, Option<u64>), &RemovedFile> = named.collect();
        let mut missing: BTreeSet<&RemovedFile> = named.values().copied().collect();
        if !named.is_empty() {
            for (number, entry) in live.entries() {
                let offset = entry.content_offset().filter(|_| entry.is_deletion_vector());
                if let Some(file) = named.get(&(entry.file_path(), offset)) {
                    missing.remove(file);
                    chosen.add(number, &entry);
                }
            }
        }
        if let Some(first) = missing.into_iter().find(|name| !gone.vectors.contains(name))
            && checks.makes(Check::MissingPaths)
        {
            let message =
                "a file that the commit replaces is not in the table any more: another commit removed it; run the statement again";
            return Err(NotCommitted::conflict(message).with("file", &first.path));
        }
        match change.operation {
            Operation::DeleteWhere | Operation::OverwriteWhere => {
                for (number, entry) in live.data_files().filter(|(_, entry)| matching.may_match(*entry)) {
                    if !matching.must_match(entry) && checks.makes(Check::Partly) {
                        let message = "a data file matches the filter with some of its rows only, so it cannot be removed as a whole";
                        return Err(NotCommitted::conflict(message).with("file", entry.file_path()));
                    }
                    chosen.add(number, &entry);
                }
            }
            Operation::OverwritePartitions => {
                for (number, entry) in live.data_files().filter(|(_, entry)| partitions.contain(entry)) {
                    chosen.add(number, &entry);
                }
            }
            _ => {}
        }
        // A vector is nothing without its data file.
        let orphaned: Vec<_> = live
            .entries()
            .filter(|(_, entry)| entry.is_deletion_vector())
            .filter(|(_, entry)| entry.referenced_data_file().is_some_and(|path| chosen.data_files.contains(path)))
            .collect();
        for (number, entry) in orphaned {
            chosen.add(number, &entry);
        }
        Ok(chosen)
    }
}
