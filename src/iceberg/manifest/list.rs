//! Manifest lists (spec "Manifest Lists"): what a snapshot consists of.
//!
//! Columns are found by field id, never by name: old writers call the counts otherwise.

use bytes::Bytes;

use crate::error::{Error, Result};

/// What the files of a manifest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManifestContent {
    Data,
    Deletes,
}

/// One manifest of a snapshot, as its manifest list describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestFile {
    /// Location as written.
    pub location: String,
    /// Length in bytes; `None` for a manifest named in v1 metadata directly.
    pub length: Option<u64>,
    /// Partition spec of all files; `None` for a manifest named in v1 metadata directly, which tells it itself.
    pub partition_spec_id: Option<i32>,
    pub content: ManifestContent,
    /// 0 in v1.
    pub sequence_number: i64,
    /// Lowest data sequence number of the live files; 0 in v1.
    pub min_sequence_number: i64,
    /// `None` only for a manifest named in v1 metadata directly.
    pub added_snapshot_id: Option<i64>,
    /// Counts; `None` means unknown, to be treated as not zero.
    pub added_files_count: Option<u64>,
    pub existing_files_count: Option<u64>,
    pub deleted_files_count: Option<u64>,
    pub added_rows_count: Option<u64>,
    pub existing_rows_count: Option<u64>,
    pub deleted_rows_count: Option<u64>,
    /// Summaries by position in the spec's fields; `None` means unknown.
    pub partitions: Option<Vec<FieldSummary>>,
    /// Whether the manifest is encrypted; then it must be refused.
    pub has_key_metadata: bool,
    /// First row id for the data files without one (v3).
    pub first_row_id: Option<u64>,
}

/// Summary of one partition field over all files of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSummary {
    pub contains_null: bool,
    pub contains_nan: Option<bool>,
    /// Binary single-value form, typed by the partition field; `None` if there is no value or it is unknown.
    pub lower_bound: Option<Bytes>,
    pub upper_bound: Option<Bytes>,
}

impl ManifestFile {
    /// A data manifest that v1 metadata names directly, without a manifest list.
    pub fn bare(location: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            length: None,
            partition_spec_id: None,
            content: ManifestContent::Data,
            sequence_number: 0,
            min_sequence_number: 0,
            added_snapshot_id: None,
            added_files_count: None,
            existing_files_count: None,
            deleted_files_count: None,
            added_rows_count: None,
            existing_rows_count: None,
            deleted_rows_count: None,
            partitions: None,
            has_key_metadata: false,
            first_row_id: None,
        }
    }

    /// Whether the manifest may have live files, by its counts.
    pub fn may_have_live_files(&self) -> bool {
        self.added_files_count != Some(0) || self.existing_files_count != Some(0)
    }
}

/// Reads a manifest list of any version, in the order of the file.
///
/// `file` is the list's location, for messages.
///
/// Errors: `Corrupt` for bytes that are no manifest list, `Unsupported` for an unknown codec
/// or format version.
pub fn read_manifest_list(bytes: &[u8], file: &str) -> Result<Vec<ManifestFile>> {
    let _ = bytes;
    Err(Error::internal("manifest lists are not read yet").with("file", file))
}
