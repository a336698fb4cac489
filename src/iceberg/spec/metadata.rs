//! Table metadata (spec "Table Metadata"): parsed view plus the JSON it came from.
//!
//! Lossless: keys that are not known here are kept in `raw` and come back when the metadata
//! is written again.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{PartitionSpec, Schema, Snapshot, SnapshotRef};

/// Parsed table metadata, v1 to v3.
#[derive(Debug, Clone)]
pub struct TableMetadata {
    /// 1, 2 or 3; anything else is refused.
    pub format_version: u8,
    pub table_uuid: Option<uuid::Uuid>,
    pub location: String,
    pub last_sequence_number: i64,
    pub last_updated_ms: i64,
    pub last_column_id: i32,
    pub schemas: Vec<Arc<Schema>>,
    pub current_schema_id: i32,
    pub partition_specs: Vec<Arc<PartitionSpec>>,
    pub default_spec_id: i32,
    pub last_partition_id: i32,
    pub properties: BTreeMap<String, String>,
    /// `None` for a table without snapshot (-1, null or absent in JSON).
    pub current_snapshot_id: Option<i64>,
    pub snapshots: Vec<Arc<Snapshot>>,
    /// (timestamp ms, snapshot id), oldest first.
    pub snapshot_log: Vec<(i64, i64)>,
    /// (timestamp ms, metadata file), oldest first.
    pub metadata_log: Vec<(i64, String)>,
    pub sort_orders: Vec<SortOrder>,
    pub default_sort_order_id: i32,
    /// `main` is synthesised from the current snapshot where the JSON has no refs.
    pub refs: BTreeMap<String, SnapshotRef>,
    pub next_row_id: Option<u64>,
    /// The JSON object as read, key order kept.
    pub raw: serde_json::Map<String, serde_json::Value>,
}

/// A sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortOrder {
    pub order_id: i32,
    pub fields: Vec<SortField>,
}

/// One field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    pub source_id: i32,
    pub transform: super::Transform,
    pub descending: bool,
    pub nulls_first: bool,
}
