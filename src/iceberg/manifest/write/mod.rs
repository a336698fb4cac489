//! Writing of manifests and manifest lists, format versions 1 to 3 (spec "Manifests", "Manifest Lists").
//!
//! What cannot be written in the table's format version is refused, never left out: a file that
//! is carried from one manifest to the next keeps all that was known of it.

mod avro_schema;
mod checks;
mod entry;
mod list;
mod manifest;
mod partition;
mod summary;
#[cfg(test)]
mod tests;

pub use list::{ManifestListWriter, WrittenList};
pub use manifest::ManifestWriter;

use crate::iceberg::avro::{Codec, SyncMarker};

/// The sequence number of a manifest before the commit that adds it; the manifest list's writer
/// puts the commit's in its place.
pub const UNASSIGNED_SEQUENCE_NUMBER: i64 = -1;

/// How the Avro files of a commit are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvroLayout {
    pub codec: Codec,
    /// Random; of each file its own.
    pub sync: SyncMarker,
}

impl AvroLayout {
    /// Deflate, the default of the reference implementation.
    pub fn deflate(sync: SyncMarker) -> Self {
        Self {
            codec: Codec::Deflate,
            sync,
        }
    }
}
