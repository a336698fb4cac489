//! Snapshots, references and logs (spec "Snapshots", "Snapshot References").

use std::collections::BTreeMap;

/// A snapshot of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub snapshot_id: i64,
    pub parent_snapshot_id: Option<i64>,
    /// 0 where a v1 or old v2 file has none.
    pub sequence_number: i64,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// Where the manifests of the snapshot are listed.
    pub manifests: SnapshotManifests,
    /// `operation` and counters, as written.
    pub summary: BTreeMap<String, String>,
    pub schema_id: Option<i32>,
    /// First row id of the snapshot (v3).
    pub first_row_id: Option<u64>,
    /// Rows with ids assigned by this snapshot (v3).
    pub added_rows: Option<u64>,
    /// Encryption key of the manifest list (v3). A snapshot that has one is refused on read.
    pub key_id: Option<String>,
}

/// How a snapshot names its manifests.
#[derive(Debug, Clone, PartialEq)]
pub enum SnapshotManifests {
    /// Location of the manifest list.
    List(String),
    /// v1: locations of the manifests themselves.
    Inline(Vec<String>),
}

/// Branch or tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Branch,
    Tag,
}

/// A named reference to a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotRef {
    pub snapshot_id: i64,
    pub kind: RefKind,
    pub min_snapshots_to_keep: Option<i32>,
    pub max_snapshot_age_ms: Option<i64>,
    pub max_ref_age_ms: Option<i64>,
}
