//! The lists of table metadata that grow with each commit, read straight into what they mean.
//!
//! Making JSON values of them first is most of what opening a table with a long history costs. Invariants: what is
//! read here is what reading member by member gives; text in which anything is unusual (a missing or repeated key, a
//! wrong type, a number out of range, manifests without list) is an error here, and is read member by member instead.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::{Snapshot, SnapshotManifests};

/// A metadata file without surprises.
pub(super) struct Usual {
    /// All members but the lists.
    pub(super) rest: Map<String, Value>,
    /// `None` where the lists are in `rest`.
    pub(super) lists: Option<Lists>,
}

/// Absent lists are empty.
pub(super) struct Lists {
    pub(super) snapshots: Vec<UsualSnapshot>,
    /// (timestamp ms, snapshot id)
    pub(super) snapshot_log: Vec<(i64, i64)>,
    /// (timestamp ms, metadata file)
    pub(super) metadata_log: Vec<(i64, String)>,
}

/// The members of a snapshot as almost every writer has them.
#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct UsualSnapshot {
    snapshot_id: i64,
    parent_snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
    timestamp_ms: i64,
    manifest_list: String,
    summary: Option<BTreeMap<String, String>>,
    schema_id: Option<i32>,
    first_row_id: Option<U63>,
    added_rows: Option<U63>,
    key_id: Option<String>,
}

/// A long that is not negative.
#[derive(Clone, Copy)]
struct U63(u64);

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SnapshotLogEntry {
    timestamp_ms: i64,
    snapshot_id: i64,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct MetadataLogEntry {
    timestamp_ms: i64,
    metadata_file: String,
}

impl UsualSnapshot {
    /// The snapshot in a table of this format version.
    pub(super) fn snapshot(self, format_version: u8) -> Snapshot {
        Snapshot {
            snapshot_id: self.snapshot_id,
            parent_snapshot_id: self.parent_snapshot_id,
            sequence_number: self.sequence_number.filter(|_| format_version > 1).unwrap_or(0),
            timestamp_ms: self.timestamp_ms,
            manifests: SnapshotManifests::List(self.manifest_list),
            summary: self.summary.unwrap_or_default(),
            schema_id: self.schema_id,
            first_row_id: self.first_row_id.map(|id| id.0),
            added_rows: self.added_rows.map(|rows| rows.0),
            key_id: self.key_id,
        }
    }
}

impl<'de> Deserialize<'de> for U63 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        u64::try_from(number).map(Self).map_err(|_| D::Error::custom("negative"))
    }
}

impl<'de> Deserialize<'de> for Usual {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Usual;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Usual, A::Error> {
        let mut rest = Map::new();
        let mut snapshots: Option<Option<Vec<UsualSnapshot>>> = None;
        let mut snapshot_log: Option<Option<Vec<SnapshotLogEntry>>> = None;
        let mut metadata_log: Option<Option<Vec<MetadataLogEntry>>> = None;
        while let Some(key) = map.next_key::<String>()? {
            let again = match key.as_str() {
                "snapshots" => snapshots.replace(map.next_value()?).is_some(),
                "snapshot-log" => snapshot_log.replace(map.next_value()?).is_some(),
                "metadata-log" => metadata_log.replace(map.next_value()?).is_some(),
                _ => {
                    rest.insert(key, map.next_value()?);
                    false
                }
            };
            if again {
                return Err(A::Error::custom("a list occurs twice"));
            }
        }
        let lists = Lists {
            snapshots: snapshots.flatten().unwrap_or_default(),
            snapshot_log: list(snapshot_log, |entry| (entry.timestamp_ms, entry.snapshot_id)),
            metadata_log: list(metadata_log, |entry| (entry.timestamp_ms, entry.metadata_file)),
        };
        Ok(Usual { rest, lists: Some(lists) })
    }
}

fn list<E, T>(entries: Option<Option<Vec<E>>>, of: impl Fn(E) -> (i64, T)) -> Vec<(i64, T)> {
    entries.flatten().unwrap_or_default().into_iter().map(of).collect()
}
