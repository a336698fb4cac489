//! A manifest as a columnar object (spec "Manifests"): what the cache holds.

use std::sync::Arc;

use super::columns::Columns;
use super::{EntryRef, ManifestContent, ManifestFile};
use crate::error::{Error, Result};
use crate::iceberg::spec::{PartitionValues, TableMetadata};

/// All entries of a manifest, decoded, checked and with inherited values filled in.
#[derive(Debug)]
pub struct Manifest {
    location: Arc<str>,
    spec_id: i32,
    content: ManifestContent,
    partitions: Vec<PartitionValues>,
    partitions_memory: usize,
    pub(super) columns: Columns,
}

impl Manifest {
    /// Parses a manifest's bytes. `list_entry` is its entry in the manifest list, `metadata`
    /// that of the table (partition specs and schemas).
    ///
    /// Errors: `Corrupt` naming the manifest for bytes that break the format, `Unsupported` for
    /// an unknown codec, format version or file format.
    pub fn parse(bytes: &[u8], list_entry: &ManifestFile, metadata: &TableMetadata) -> Result<Self> {
        let _ = (bytes, metadata);
        Err(Error::internal("manifests are not read yet").with("manifest", &list_entry.location))
    }

    /// Location of the manifest.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Partition spec of all entries.
    pub fn spec_id(&self) -> i32 {
        self.spec_id
    }

    /// Data or delete files.
    pub fn content(&self) -> ManifestContent {
        self.content
    }

    /// Number of entries, deleted ones included.
    pub fn len(&self) -> usize {
        self.columns.flags.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.columns.flags.is_empty()
    }

    /// Entry `index`; `None` behind the end.
    pub fn get(&self, index: usize) -> Option<EntryRef<'_>> {
        (index < self.len()).then(|| EntryRef::new(self, index))
    }

    /// Entry `index`, which is below [`Self::len`]; panics otherwise, like a slice.
    pub fn entry(&self, index: usize) -> EntryRef<'_> {
        assert!(index < self.len(), "entry {index} of a manifest of {}", self.len());
        EntryRef::new(self, index)
    }

    /// All entries in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        (0..self.len()).map(|row| EntryRef::new(self, row))
    }

    /// The entries that are part of the table.
    pub fn live(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.entries().filter(EntryRef::is_live)
    }

    /// The distinct partitions of the entries.
    pub fn partitions(&self) -> &[PartitionValues] {
        &self.partitions
    }

    pub(super) fn partition(&self, index: u32) -> &PartitionValues {
        &self.partitions[index as usize]
    }

    /// Bytes of memory that this object holds.
    pub fn memory_size(&self) -> usize {
        size_of::<Self>() + self.location.len() + self.partitions_memory + self.columns.memory()
    }
}
