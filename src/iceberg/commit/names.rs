//! Names of the files of a commit. Each holds a UUID of the run that writes it, so two runs never
//! write the same file, also when they carry the same commit id.

use crate::iceberg::loader::metadata_version;
use crate::iceberg::spec::{MetadataCompression, TableMetadata};

/// Table property: the folder of metadata files.
const METADATA_PATH_PROPERTY: &str = "write.metadata.path";

/// The names of one run.
#[derive(Debug, Clone)]
pub(super) struct Names {
    run: uuid::Uuid,
    manifests: u32,
    vectors: u32,
}

impl Names {
    pub(super) fn new(run: uuid::Uuid) -> Self {
        Self {
            run,
            manifests: 0,
            vectors: 0,
        }
    }

    /// Tells this run apart from all others.
    pub(super) fn run(&self) -> String {
        self.run.to_string()
    }

    /// The next manifest's.
    pub(super) fn manifest(&mut self, metadata: &TableMetadata) -> String {
        let number = self.manifests;
        self.manifests += 1;
        format!("{}/{}-m{number}.avro", folder(metadata), self.run)
    }

    /// The next Puffin file's, in a folder of data files.
    pub(super) fn vectors(&mut self, folder: &str) -> String {
        let number = self.vectors;
        self.vectors += 1;
        format!("{}/{}-{number:05}-deletes.puffin", folder.trim_end_matches('/'), self.run)
    }

    pub(super) fn list(&self, metadata: &TableMetadata, snapshot_id: i64, attempt: u32) -> String {
        format!("{}/snap-{snapshot_id}-{attempt}-{}.avro", folder(metadata), self.run)
    }
}

/// A name for the metadata file that follows `base`, in the folder that `metadata` says. `id` is new for each attempt.
pub fn next_metadata_location(metadata: &TableMetadata, base: &str, id: uuid::Uuid, compression: MetadataCompression) -> String {
    let file = base.rsplit('/').next().unwrap_or(base);
    let version = metadata_version(file).map_or(0, |version| version.saturating_add(1));
    format!("{}/{version:05}-{id}{}", folder(metadata), compression.file_ending())
}

fn folder(metadata: &TableMetadata) -> String {
    match metadata.properties.get(METADATA_PATH_PROPERTY) {
        Some(folder) if !folder.trim_end_matches('/').is_empty() => folder.trim_end_matches('/').to_owned(),
        _ => format!("{}/metadata", metadata.location.trim_end_matches('/')),
    }
}
