//! Snapshots and references (spec "Snapshots", "Snapshot References", appendix C).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json::{Obj, clip};
use crate::error::{Error, Result, ResultExt};

/// A snapshot of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub snapshot_id: i64,
    pub parent_snapshot_id: Option<i64>,
    /// 0 in v1, and where a table upgraded from v1 has none.
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

impl Snapshot {
    /// Reads a snapshot of a table of this format version. Errors: `Corrupt`.
    pub fn from_json(value: &Value, format_version: u8) -> Result<Self> {
        let obj = Obj::new(value, "snapshot")?;
        let snapshot_id = obj.snapshot_id("snapshot-id")?;
        parse(&obj, snapshot_id, format_version).context("snapshot", || snapshot_id)
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        let mut obj = Map::new();
        if self.sequence_number > 0 {
            obj.insert("sequence-number".to_owned(), json!(self.sequence_number));
        }
        obj.insert("snapshot-id".to_owned(), json!(self.snapshot_id));
        if let Some(parent) = self.parent_snapshot_id {
            obj.insert("parent-snapshot-id".to_owned(), json!(parent));
        }
        obj.insert("timestamp-ms".to_owned(), json!(self.timestamp_ms));
        // The operation stands first, as readers of the text expect it.
        let mut summary = Map::new();
        let operation = self.summary.get_key_value("operation");
        for (key, value) in operation.into_iter().chain(&self.summary) {
            summary.insert(key.clone(), json!(value));
        }
        if !summary.is_empty() {
            obj.insert("summary".to_owned(), Value::Object(summary));
        }
        match &self.manifests {
            SnapshotManifests::List(list) => obj.insert("manifest-list".to_owned(), json!(list)),
            SnapshotManifests::Inline(files) => obj.insert("manifests".to_owned(), json!(files)),
        };
        let numbers = [("first-row-id", self.first_row_id), ("added-rows", self.added_rows)];
        if let Some(schema_id) = self.schema_id {
            obj.insert("schema-id".to_owned(), json!(schema_id));
        }
        for (key, number) in numbers {
            if let Some(number) = number {
                obj.insert(key.to_owned(), json!(number));
            }
        }
        if let Some(key_id) = &self.key_id {
            obj.insert("key-id".to_owned(), json!(key_id));
        }
        Value::Object(obj)
    }

    /// The kind of commit: `append`, `replace`, `overwrite`, `delete`; `None` in old files.
    pub fn operation(&self) -> Option<&str> {
        self.summary.get("operation").map(String::as_str)
    }

    /// Refuses (`Unsupported`) a snapshot that this build cannot read: an encrypted one.
    pub fn check_readable(&self) -> Result<()> {
        match &self.key_id {
            None => Ok(()),
            Some(_) => Err(
                Error::unsupported("the snapshot is encrypted, and encrypted tables are not supported").with("snapshot", self.snapshot_id),
            ),
        }
    }
}

fn parse(obj: &Obj<'_>, snapshot_id: i64, format_version: u8) -> Result<Snapshot> {
    let manifests = match (obj.opt_str("manifest-list")?, obj.opt_strings("manifests")?) {
        (Some(list), _) => SnapshotManifests::List(list.to_owned()),
        // v1, and the old snapshots of tables upgraded from it.
        (None, Some(manifests)) => SnapshotManifests::Inline(manifests),
        (None, None) => return Err(Error::corrupt("snapshot has neither `manifest-list` nor `manifests`")),
    };
    Ok(Snapshot {
        snapshot_id,
        parent_snapshot_id: obj.opt_snapshot_id("parent-snapshot-id")?,
        sequence_number: if format_version == 1 {
            0
        } else {
            obj.opt_i64("sequence-number")?.unwrap_or(0)
        },
        timestamp_ms: obj.i64("timestamp-ms")?,
        manifests,
        summary: obj.string_map("summary")?,
        schema_id: obj.opt_i32("schema-id")?,
        first_row_id: obj.opt_u63("first-row-id")?,
        added_rows: obj.opt_u63("added-rows")?,
        key_id: obj.opt_str("key-id")?.map(str::to_owned),
    })
}

impl SnapshotRef {
    /// A branch without retention settings of its own.
    pub fn branch(snapshot_id: i64) -> Self {
        Self {
            snapshot_id,
            kind: RefKind::Branch,
            min_snapshots_to_keep: None,
            max_snapshot_age_ms: None,
            max_ref_age_ms: None,
        }
    }

    /// A tag without retention settings of its own.
    pub fn tag(snapshot_id: i64) -> Self {
        Self {
            kind: RefKind::Tag,
            ..Self::branch(snapshot_id)
        }
    }

    /// Puts the members of the JSON form into an object, whose other members stay.
    pub(super) fn write_json(&self, obj: &mut Map<String, Value>) {
        obj.insert("snapshot-id".to_owned(), json!(self.snapshot_id));
        let kind = match self.kind {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        };
        obj.insert("type".to_owned(), json!(kind));
        let numbers = [
            ("min-snapshots-to-keep", self.min_snapshots_to_keep.map(i64::from)),
            ("max-snapshot-age-ms", self.max_snapshot_age_ms),
            ("max-ref-age-ms", self.max_ref_age_ms),
        ];
        for (key, number) in numbers {
            match number {
                Some(number) => obj.insert(key.to_owned(), json!(number)),
                None => obj.shift_remove(key),
            };
        }
    }

    /// Reads a reference. Errors: `Corrupt`, and `Unsupported` for a kind that is neither branch nor tag.
    pub fn from_json(value: &Value) -> Result<Self> {
        let obj = Obj::new(value, "snapshot reference")?;
        let kind = match obj.str("type")? {
            kind if kind.eq_ignore_ascii_case("branch") => RefKind::Branch,
            kind if kind.eq_ignore_ascii_case("tag") => RefKind::Tag,
            other => {
                return Err(Error::unsupported(format!(
                    "snapshot reference of type `{}` is not supported",
                    clip(other)
                )));
            }
        };
        Ok(Self {
            snapshot_id: obj.snapshot_id("snapshot-id")?,
            kind,
            min_snapshots_to_keep: obj.opt_i32("min-snapshots-to-keep")?,
            max_snapshot_age_ms: obj.opt_i64("max-snapshot-age-ms")?,
            max_ref_age_ms: obj.opt_i64("max-ref-age-ms")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use serde_json::json;

    #[test]
    fn the_example_of_the_spec() {
        let value = json!({
            "snapshot-id": 3_051_729_675_574_597_004_i64, "timestamp-ms": 1_515_100_955_770_i64,
            "summary": {"operation": "append"}, "manifest-list": "s3://b/wh/.../s1.avro", "schema-id": 0
        });
        let snapshot = Snapshot::from_json(&value, 1).unwrap();
        assert_eq!(snapshot.snapshot_id, 3_051_729_675_574_597_004);
        assert_eq!(snapshot.manifests, SnapshotManifests::List("s3://b/wh/.../s1.avro".to_owned()));
        assert_eq!(
            (snapshot.operation(), snapshot.sequence_number, snapshot.parent_snapshot_id),
            (Some("append"), 0, None)
        );
        snapshot.check_readable().unwrap();
    }

    #[test]
    fn a_list_wins_over_inline_manifests_and_one_of_them_must_be_there() {
        let read = |value: Value| Snapshot::from_json(&value, 2);
        let both = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifest-list": "l", "manifests": ["m"]});
        assert_eq!(read(both).unwrap().manifests, SnapshotManifests::List("l".to_owned()));
        let inline = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifests": ["m1", "m2"]});
        assert_eq!(
            read(inline).unwrap().manifests,
            SnapshotManifests::Inline(vec!["m1".to_owned(), "m2".to_owned()])
        );
        assert!(read(json!({"snapshot-id": 1, "timestamp-ms": 2})).is_err());
    }

    #[test]
    fn an_encrypted_snapshot_parses_and_is_refused_for_reading() {
        let value = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifest-list": "l", "key-id": "k", "first-row-id": 5, "added-rows": 7});
        let snapshot = Snapshot::from_json(&value, 3).unwrap();
        assert_eq!((snapshot.first_row_id, snapshot.added_rows), (Some(5), Some(7)));
        let error = snapshot.check_readable().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("snapshot: 1"));
        let negative = json!({"snapshot-id": 1, "timestamp-ms": 2, "manifest-list": "l", "first-row-id": -5});
        assert!(Snapshot::from_json(&negative, 3).is_err());
    }

    #[test]
    fn references() {
        let tag =
            SnapshotRef::from_json(&json!({"snapshot-id": 123_456_789_000_i64, "type": "tag", "max-ref-age-ms": 10_000_000})).unwrap();
        assert_eq!(
            (tag.kind, tag.snapshot_id, tag.max_ref_age_ms),
            (RefKind::Tag, 123_456_789_000, Some(10_000_000))
        );
        let error = SnapshotRef::from_json(&json!({"snapshot-id": 1, "type": "stash"})).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
