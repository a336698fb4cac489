//! What is in the table.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::model::{Model, Row};
use super::store::{Content, Lab};
use crate::bitmap::deletion_vector::decode_blob;
use crate::iceberg::commit::RemovedFile;
use crate::iceberg::manifest::{EntryRef, FileContent, Manifest, ManifestContent, ManifestFile, read_manifest_list};
use crate::iceberg::rules::{Finding, SnapshotRules};
use crate::iceberg::spec::{Literal, SnapshotManifests};

/// A live data file with its deletes.
#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) struct LiveFile {
    pub(in crate::iceberg::commit) path: String,
    pub(in crate::iceberg::commit) p: i32,
    pub(in crate::iceberg::commit) rows: Vec<Row>,
    sequence_number: i64,
    /// Deleted by vector or position delete files.
    pub(in crate::iceberg::commit) positions: BTreeSet<usize>,
    /// Deleted by key.
    pub(in crate::iceberg::commit) by_key: BTreeSet<usize>,
    /// Vector or position delete files about this file.
    pub(in crate::iceberg::commit) deletes: Vec<RemovedFile>,
}

impl LiveFile {
    /// Positions and rows that are there.
    pub(in crate::iceberg::commit) fn visible(&self) -> impl Iterator<Item = (usize, &Row)> {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(position, _)| !self.positions.contains(position) && !self.by_key.contains(position))
    }

    pub(in crate::iceberg::commit) fn bounds(&self) -> (i64, i64) {
        bounds(&self.rows)
    }
}

pub(in crate::iceberg::commit) fn bounds(rows: &[Row]) -> (i64, i64) {
    let xs = || rows.iter().map(|row| row.x);
    (xs().min().unwrap(), xs().max().unwrap())
}

/// The table at its newest snapshot.
#[derive(Debug, Clone)]
pub(in crate::iceberg::commit) struct View {
    pub(in crate::iceberg::commit) files: Vec<LiveFile>,
    pub(in crate::iceberg::commit) manifests: Vec<ManifestFile>,
}

impl View {
    /// The rows; a row that is there twice is a failure.
    pub(in crate::iceberg::commit) fn model(&self) -> Result<Model, String> {
        let mut model = Model::default();
        for row in self.files.iter().flat_map(|file| file.visible().map(|(_, row)| row)) {
            if model.0.insert(row.name.clone(), row.clone()).is_some() {
                return Err(format!("row {} is there twice", row.name));
            }
        }
        Ok(model)
    }

    pub(in crate::iceberg::commit) fn file(&self, path: &str) -> &LiveFile {
        self.files.iter().find(|file| file.path == path).unwrap()
    }
}

impl Lab {
    fn manifests(&self) -> Vec<(ManifestFile, Arc<Manifest>)> {
        let metadata = &self.now.metadata;
        let Some(snapshot) = metadata.current_snapshot().unwrap() else {
            return Vec::new();
        };
        let SnapshotManifests::List(list) = &snapshot.manifests else {
            panic!("a snapshot without a list")
        };
        let listed = read_manifest_list(&self.files[list], list).unwrap();
        let parse = |listed: ManifestFile| {
            let key = (listed.location.clone(), listed.sequence_number, listed.first_row_id);
            let parse = || Arc::new(Manifest::parse(&self.files[&listed.location], &listed, metadata).unwrap());
            let manifest = Arc::clone(self.read.borrow_mut().entry(key).or_insert_with(parse));
            (listed, manifest)
        };
        listed.into_iter().map(parse).collect()
    }

    /// A vector that a commit has made.
    fn made_vector(&self, entry: &EntryRef<'_>) -> Content {
        let (offset, length) = (entry.content_offset().unwrap(), entry.content_size_in_bytes().unwrap());
        let blob = self.files[entry.file_path()].slice(offset as usize..(offset + length) as usize);
        let rows = decode_blob(&blob, Some(entry.record_count())).unwrap();
        let data_file = entry.referenced_data_file().unwrap().to_owned();
        Content::Positions(data_file, rows.iter().map(|row| row as usize).collect())
    }

    /// Rules that the newest snapshot breaks.
    pub(in crate::iceberg::commit) fn findings(&self) -> Vec<Finding> {
        let metadata = &self.now.metadata;
        let Some(snapshot) = metadata.current_snapshot().unwrap() else {
            return Vec::new();
        };
        let mut rules = SnapshotRules::new(metadata, snapshot);
        for (listed, manifest) in &self.manifests() {
            rules.manifest(listed, manifest);
        }
        rules.finish(true)
    }

    pub(in crate::iceberg::commit) fn view(&self) -> View {
        let manifests = self.manifests();
        let mut files = Vec::new();
        for entry in manifests.iter().flat_map(|(_, manifest)| manifest.live()) {
            if entry.content() == FileContent::Data {
                let Content::Rows(rows) = &self.contents[&(entry.file_path().to_owned(), None)] else {
                    panic!("{} holds no rows", entry.file_path())
                };
                let Some(Literal::Int(p)) = entry.partition()[0] else {
                    panic!("no partition")
                };
                files.push(LiveFile {
                    path: entry.file_path().to_owned(),
                    p,
                    rows: rows.clone(),
                    sequence_number: entry.sequence_number(),
                    positions: BTreeSet::new(),
                    by_key: BTreeSet::new(),
                    deletes: Vec::new(),
                });
            }
        }
        let deletes = manifests.iter().filter(|(listed, _)| listed.content == ManifestContent::Deletes);
        for entry in deletes.flat_map(|(_, manifest)| manifest.live()) {
            let offset = entry.content_offset();
            let made = || self.made_vector(&entry);
            let content = self
                .contents
                .get(&(entry.file_path().to_owned(), offset))
                .cloned()
                .unwrap_or_else(made);
            let Some(Literal::Int(p)) = entry.partition()[0] else {
                panic!("no partition")
            };
            for file in files.iter_mut().filter(|file| file.p == p) {
                match &content {
                    Content::Positions(path, positions) if *path == file.path && file.sequence_number <= entry.sequence_number() => {
                        file.positions.extend(positions);
                        file.deletes.push(RemovedFile {
                            path: entry.file_path().to_owned(),
                            content_offset: offset,
                        });
                    }
                    Content::Keys(keys) if file.sequence_number < entry.sequence_number() => {
                        let hit = file.rows.iter().enumerate().filter(|(_, row)| keys.contains(&row.x));
                        let hit: Vec<usize> = hit.map(|(position, _)| position).collect();
                        file.by_key.extend(hit);
                    }
                    _ => {}
                }
            }
        }
        View {
            files,
            manifests: manifests.into_iter().map(|(listed, _)| listed).collect(),
        }
    }
}
