//! Manifest lists, manifests and deletion vectors that were read for a commit. They never change, so what one attempt
//! has read serves the next.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::action::{FileToRead, ReadKind};
use crate::bitmap::RowSet;
use crate::bitmap::deletion_vector::{MAX_BLOB_BYTES, decode_blob};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::manifest::{EntryRef, Manifest, ManifestFile, read_manifest_list_in_full};
use crate::iceberg::spec::TableMetadata;

/// A file that planning asked for and that is not there yet.
#[derive(Debug)]
enum Wanted {
    List(String),
    Manifest(Box<ManifestFile>),
    Vector(VectorKey),
}

/// What entries inherit belongs to the manifest's entry in the list, so it is part of the key.
type ManifestKey = (String, i64, Option<u64>);

/// A deletion vector by its file, offset, length and cardinality.
type VectorKey = (String, u64, u64, u64);

/// What was read so far. Planning asks for what it needs and is done anew once all that was missing
/// has been read.
#[derive(Debug, Default)]
pub(super) struct Files {
    lists: HashMap<String, Arc<Vec<ManifestFile>>>,
    manifests: HashMap<ManifestKey, (Arc<Manifest>, u64)>,
    vectors: HashMap<VectorKey, Arc<RowSet>>,
    wanted: Vec<Wanted>,
    wanted_lists: HashSet<String>,
    wanted_manifests: HashSet<ManifestKey>,
}

fn key(listed: &ManifestFile) -> ManifestKey {
    (listed.location.clone(), listed.sequence_number, listed.first_row_id)
}

impl Files {
    /// A manifest list, or `None` and it is wanted.
    pub(super) fn list(&mut self, location: &str) -> Option<Arc<Vec<ManifestFile>>> {
        let found = self.lists.get(location).map(Arc::clone);
        if found.is_none() && self.wanted_lists.insert(location.to_owned()) {
            self.wanted.push(Wanted::List(location.to_owned()));
        }
        found
    }

    /// A manifest with its length in bytes, or `None` and it is wanted.
    pub(super) fn manifest(&mut self, listed: &ManifestFile) -> Option<(Arc<Manifest>, u64)> {
        let of = key(listed);
        let found = self.manifests.get(&of).cloned();
        if found.is_none() && self.wanted_manifests.insert(of) {
            self.wanted.push(Wanted::Manifest(Box::new(listed.clone())));
        }
        found
    }

    /// The rows of a deletion vector, or `None` and it is wanted.
    ///
    /// Errors: `Corrupt` for an entry that is none or lies about its place.
    pub(super) fn vector(&mut self, entry: &EntryRef<'_>) -> Result<Option<Arc<RowSet>>> {
        let (Some(offset), Some(length)) = (entry.content_offset(), entry.content_size_in_bytes()) else {
            return Err(Error::corrupt("a deletion vector lacks its offset or size").with("file", entry.file_path()));
        };
        if length > MAX_BLOB_BYTES as u64 || offset.checked_add(length).is_none() {
            let message = format!("a deletion vector of {length} bytes at {offset} cannot be read");
            return Err(Error::corrupt(message).with("file", entry.file_path()));
        }
        let key = (entry.file_path().to_owned(), offset, length, entry.record_count());
        let found = self.vectors.get(&key).map(Arc::clone);
        if found.is_none() {
            self.wanted.push(Wanted::Vector(key));
        }
        Ok(found)
    }

    /// What is wanted, in the order in which [`Self::take`] gets it.
    pub(super) fn wanted(&self) -> Vec<FileToRead> {
        let wanted = self.wanted.iter().map(|wanted| match wanted {
            Wanted::List(location) => FileToRead {
                kind: ReadKind::ManifestList,
                location: location.clone(),
                range: None,
            },
            Wanted::Manifest(listed) => FileToRead {
                kind: ReadKind::Manifest,
                location: listed.location.clone(),
                range: None,
            },
            Wanted::Vector((location, offset, length, _)) => FileToRead {
                kind: ReadKind::DeletionVector,
                location: location.clone(),
                range: Some(*offset..offset.saturating_add(*length)),
            },
        });
        wanted.collect()
    }

    /// Takes in the files that were wanted.
    ///
    /// Errors: `Corrupt`, `Unsupported`; `Internal` for another number of files.
    pub(super) fn take(&mut self, read: Vec<Bytes>, metadata: &TableMetadata) -> Result<()> {
        let wanted = std::mem::take(&mut self.wanted);
        self.wanted_lists.clear();
        self.wanted_manifests.clear();
        if wanted.len() != read.len() {
            return Err(Error::internal("another number of files was read than asked for"));
        }
        for (wanted, bytes) in wanted.into_iter().zip(read) {
            match wanted {
                Wanted::List(location) => {
                    let list = read_manifest_list_in_full(&bytes, &location)?;
                    self.lists.insert(location, Arc::new(list));
                }
                Wanted::Vector(key) => {
                    let rows = decode_blob(&bytes, Some(key.3)).context("file", || &key.0)?;
                    self.vectors.insert(key, Arc::new(rows));
                }
                Wanted::Manifest(listed) => {
                    if listed.has_key_metadata {
                        return Err(Error::unsupported("encrypted manifests cannot be read").with("manifest", &listed.location));
                    }
                    let manifest = Manifest::parse_in_full(&bytes, &listed, metadata)?;
                    self.manifests.insert(key(&listed), (Arc::new(manifest), bytes.len() as u64));
                }
            }
        }
        Ok(())
    }
}
