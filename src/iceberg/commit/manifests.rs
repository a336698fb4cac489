//! The manifests that a commit writes: of added files, of files that stay beside removed ones, and of
//! manifests that are put together.
//!
//! What an attempt wrote serves the next where nothing of it changed. A deleted file is told once, by
//! the snapshot that deletes it: entries that were deleted before are not carried on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::action::NotCommitted;
use super::live::Live;
use super::names::Names;
use super::random::Random;
use crate::error::Result;
use crate::iceberg::avro::Codec;
use crate::iceberg::manifest::{AvroLayout, DataFile, EntryRef, FileContent, Manifest, ManifestContent, ManifestFile, ManifestWriter};
use crate::iceberg::spec::TableMetadata;

/// Most entries of a manifest that is written.
const FILES_PER_MANIFEST: usize = 10_000;

/// A manifest that was made, with its entry for the list.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) listed: ManifestFile,
    pub(super) bytes: Bytes,
}

/// What a manifest was made from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Origin {
    /// Paths of the added files, of one spec and content.
    Added(Vec<(String, Option<u64>)>),
    /// A manifest without these entries. What its entries inherit is part of what they are.
    Filtered(String, Option<u64>, Vec<usize>),
}

/// Manifests that were made so far.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    /// With the format version and snapshot that they are of.
    made: HashMap<(Origin, u8, i64), Written>,
}

impl Manifests {
    pub(super) fn writing<'a>(
        &'a mut self,
        metadata: &'a TableMetadata,
        snapshot_id: i64,
        codec: Codec,
        names: &'a mut Names,
        random: &'a mut Random,
    ) -> Writing<'a> {
        Writing {
            made: &mut self.made,
            metadata,
            snapshot_id,
            codec,
            names,
            random,
        }
    }
}

/// The manifests of one attempt.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    made: &'a mut HashMap<(Origin, u8, i64), Written>,
    metadata: &'a TableMetadata,
    snapshot_id: i64,
    codec: Codec,
    names: &'a mut Names,
    random: &'a mut Random,
}

impl Writing<'_> {
    /// Makes a manifest, or finds the one that was made before.
    fn make(
        &mut self,
        origin: Option<Origin>,
        spec_id: i32,
        content: ManifestContent,
        fill: impl FnOnce(&mut ManifestWriter) -> Result<()>,
    ) -> Result<Written> {
        let key = origin.map(|origin| (origin, self.metadata.format_version, self.snapshot_id));
        if let Some(made) = key.as_ref().and_then(|key| self.made.get(key)) {
            return Ok(made.clone());
        }
        let layout = AvroLayout {
            codec: self.codec,
            sync: self.random.sync(),
        };
        let mut writer = ManifestWriter::new(self.metadata, spec_id, content, self.snapshot_id, layout)?;
        fill(&mut writer)?;
        let (bytes, listed) = writer.finish(self.names.manifest(self.metadata))?;
        let written = Written {
            listed,
            bytes: bytes.into(),
        };
        if let Some(key) = key {
            self.made.insert(key, written.clone());
        }
        Ok(written)
    }

    /// Manifests of added files, one for each content and spec. `sequence_number` is the age of the
    /// rows where it is not that of the commit.
    pub(super) fn added(&mut self, files: &[&DataFile], sequence_number: Option<i64>) -> Result<Vec<Written>> {
        let mut groups: BTreeMap<(bool, i32), Vec<&DataFile>> = BTreeMap::new();
        for file in files.iter().copied() {
            groups
                .entry((file.content != FileContent::Data, file.spec_id))
                .or_default()
                .push(file);
        }
        let mut manifests = Vec::new();
        for ((is_deletes, spec_id), files) in groups {
            let content = if is_deletes {
                ManifestContent::Deletes
            } else {
                ManifestContent::Data
            };
            for chunk in files.chunks(FILES_PER_MANIFEST) {
                let names = chunk.iter().map(|file| (file.file_path.clone(), file.content_offset));
                let origin = Origin::Added(names.collect());
                let fill = |writer: &mut ManifestWriter| {
                    chunk.iter().try_for_each(|file| match sequence_number {
                        Some(number) => writer.add_with_sequence_number(file, number),
                        None => writer.add(file),
                    })
                };
                manifests.push(self.make(Some(origin), spec_id, content, fill)?);
            }
        }
        Ok(manifests)
    }

    /// A manifest of the parent with these entries deleted.
    pub(super) fn filtered(&mut self, listed: &ManifestFile, manifest: &Manifest, removed: &BTreeSet<usize>) -> Result<Written> {
        let origin = Origin::Filtered(listed.location.clone(), listed.first_row_id, removed.iter().copied().collect());
        self.make(Some(origin), manifest.spec_id(), manifest.content(), |writer| {
            manifest.live().try_for_each(|entry| match removed.contains(&entry.index()) {
                true => writer.delete(&entry),
                false => writer.existing(&entry),
            })
        })
    }

    /// The live files of `replaced` in as few manifests as there are specs and contents, and the other
    /// manifests of the parent.
    ///
    /// Errors: a conflict where one of them is not listed any more.
    pub(super) fn rewritten(&mut self, replaced: &[String], live: &Live) -> Result<(Vec<Written>, Vec<ManifestFile>), NotCommitted> {
        let is_replaced = |listed: &ManifestFile| replaced.contains(&listed.location);
        if let Some(missing) = replaced
            .iter()
            .find(|location| !live.manifests.iter().any(|(listed, _)| listed.location == **location))
        {
            let message = "a manifest that is rewritten is not in the table any more: another commit replaced it";
            return Err(NotCommitted::conflict(message).with("manifest", missing));
        }
        let mut groups: BTreeMap<(bool, i32), Vec<EntryRef<'_>>> = BTreeMap::new();
        for (number, entry) in live.entries() {
            if live.manifests.get(number).is_some_and(|(listed, _)| is_replaced(listed)) {
                let is_deletes = entry.content() != FileContent::Data;
                groups.entry((is_deletes, entry.spec_id())).or_default().push(entry);
            }
        }
        let mut manifests = Vec::new();
        for ((is_deletes, spec_id), entries) in groups {
            let content = if is_deletes {
                ManifestContent::Deletes
            } else {
                ManifestContent::Data
            };
            for chunk in entries.chunks(FILES_PER_MANIFEST) {
                manifests.push(self.make(None, spec_id, content, |writer| {
                    chunk.iter().try_for_each(|entry| writer.existing(entry))
                })?);
            }
        }
        let kept = live
            .manifests
            .iter()
            .map(|(listed, _)| listed)
            .filter(|listed| !is_replaced(listed));
        Ok((manifests, kept.cloned().collect()))
    }
}
