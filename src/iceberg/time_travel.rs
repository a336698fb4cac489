//! From the version that is asked for to a snapshot and the schema it is read with (spec "Snapshots",
//! "Snapshot References"; iceberg.md 6.4).
//!
//! Invariants: what cannot be found is an error, never the newest snapshot. A time means the snapshot
//! that was current then by the snapshot log: after a rollback, or with commits to branches, times of
//! snapshots alone do not tell. A branch is read with the table's current schema, anything else that is
//! asked for by name, id or time with the schema of its snapshot.

use std::sync::Arc;

use arrow::temporal_conversions::timestamp_ms_to_datetime;

use super::spec::{MAIN_BRANCH, RefKind, Schema, Snapshot, TableMetadata};
use crate::error::{Error, Result};
use crate::table::AsOf;

/// A version of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Version<'a> {
    /// `None` for a table that was never written to.
    pub(super) snapshot: Option<&'a Arc<Snapshot>>,
    pub(super) schema: &'a Arc<Schema>,
}

/// Finds a version.
///
/// Errors: `NotFound` naming the oldest snapshot that is left; `Corrupt` for metadata that lacks what it refers to.
pub(super) fn version<'a>(metadata: &'a TableMetadata, at: &AsOf) -> Result<Version<'a>> {
    match at {
        AsOf::Latest => latest(metadata),
        AsOf::Version(id) => by_id(metadata, *id),
        AsOf::Ref(name) => by_name(metadata, name),
        AsOf::Timestamp(micros) => {
            let id = snapshot_as_of(metadata, micros.div_euclid(1000))?;
            by_id(metadata, id)
        }
        AsOf::Changes(_) => Err(Error::unsupported("the changes of Iceberg tables are not built yet")),
    }
}

fn latest(metadata: &TableMetadata) -> Result<Version<'_>> {
    Ok(Version {
        snapshot: metadata.current_snapshot()?,
        schema: metadata.current_schema()?,
    })
}

fn by_id(metadata: &TableMetadata, id: i64) -> Result<Version<'_>> {
    let snapshot = metadata
        .snapshot_by_id(id)
        .ok_or_else(|| gone(metadata, &format!("the table has no snapshot {id}: it expired or never was")))?;
    with_own_schema(metadata, snapshot)
}

fn with_own_schema<'a>(metadata: &'a TableMetadata, snapshot: &'a Arc<Snapshot>) -> Result<Version<'a>> {
    let schema = match snapshot.schema_id {
        // Written before snapshots named their schema.
        None => metadata.current_schema()?,
        Some(id) => metadata.schema_by_id(id).ok_or_else(|| {
            Error::corrupt(format!("the table has no schema {id}, that of one of its snapshots")).with("snapshot", snapshot.snapshot_id)
        })?,
    };
    Ok(Version {
        snapshot: Some(snapshot),
        schema,
    })
}

/// A branch or tag, else the id that the text is.
fn by_name<'a>(metadata: &'a TableMetadata, name: &str) -> Result<Version<'a>> {
    let Some(reference) = metadata.refs.get(name) else {
        if name == MAIN_BRANCH {
            return latest(metadata);
        }
        if let Some(id) = name.parse::<i64>().ok().or_else(|| name.parse::<u64>().ok().map(u64::cast_signed)) {
            return by_id(metadata, id);
        }
        let names: Vec<String> = metadata.refs.keys().map(|known| format!("\"{known}\"")).collect();
        let known = match names.len() {
            0 => "none".to_owned(),
            1..=20 => names.join(", "),
            count => format!("{count}, see the metadata table refs"),
        };
        return Err(Error::not_found(format!(
            "the table has no branch or tag \"{name}\"; branches and tags: {known}"
        )));
    };
    let snapshot = metadata
        .snapshot_by_id(reference.snapshot_id)
        .ok_or_else(|| Error::corrupt(format!("\"{name}\" refers to snapshot {}, which is missing", reference.snapshot_id)))?;
    match reference.kind {
        RefKind::Branch => Ok(Version {
            snapshot: Some(snapshot),
            schema: metadata.current_schema()?,
        }),
        RefKind::Tag => with_own_schema(metadata, snapshot),
    }
}

/// Id of the snapshot that was current at a time in milliseconds: that of the last entry of the
/// snapshot log that is not later. The snapshot may have expired since.
///
/// Errors: `NotFound` for a time before the first entry, and for a table without log.
pub(super) fn snapshot_as_of(metadata: &TableMetadata, millis: i64) -> Result<i64> {
    let before = metadata.snapshot_log.iter().rev().find(|(at, _)| *at <= millis);
    before.map(|(_, id)| *id).ok_or_else(|| {
        let why = if metadata.snapshot_log.is_empty() {
            "the table has no snapshot log, which tells what was current when: ask for a snapshot by its id".to_owned()
        } else {
            format!(
                "the table had no snapshot at {}, as far as its snapshot log goes back",
                time(millis)
            )
        };
        gone(metadata, &why)
    })
}

/// An error that names the oldest snapshot that can still be read.
fn gone(metadata: &TableMetadata, why: &str) -> Error {
    let oldest = metadata.snapshots.iter().min_by_key(|s| (s.timestamp_ms, s.sequence_number));
    Error::not_found(match oldest {
        Some(s) => format!("{why}; the oldest snapshot left is {} of {}", s.snapshot_id, time(s.timestamp_ms)),
        None => format!("{why}; the table has no snapshots"),
    })
}

fn time(millis: i64) -> String {
    match timestamp_ms_to_datetime(millis) {
        Some(time) => format!("{}Z", time.format("%Y-%m-%d %H:%M:%S%.3f")),
        None => format!("{millis} ms"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ErrorKind;

    /// Schema 0 has `a`, schema 1 (current) has `b`. 10 (t=100), 20 (200), rolled back to 10 (300),
    /// 30 (400) beside 20. Branch `dev` at 20, tag `first` at 10.
    fn metadata(change: impl Fn(&mut Value)) -> TableMetadata {
        let schema = |id: i32, name: &str| {
            json!({"type": "struct", "schema-id": id,
                   "fields": [{"id": 1, "name": name, "required": false, "type": "int"}]})
        };
        let snapshot = |id: i64, parent: Option<i64>, at: i64, schema: i32| {
            json!({"snapshot-id": id, "parent-snapshot-id": parent, "timestamp-ms": at, "sequence-number": id / 10,
                   "manifest-list": format!("s{id}.avro"), "schema-id": schema, "summary": {"operation": "append"}})
        };
        let mut value = json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
            "last-sequence-number": 3, "last-updated-ms": 400, "last-column-id": 1,
            "schemas": [schema(0, "a"), schema(1, "b")], "current-schema-id": 1,
            "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0, "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
            "current-snapshot-id": 30,
            "snapshots": [snapshot(10, None, 100, 0), snapshot(20, Some(10), 200, 0), snapshot(30, Some(10), 400, 1)],
            "snapshot-log": [{"timestamp-ms": 100, "snapshot-id": 10}, {"timestamp-ms": 200, "snapshot-id": 20},
                             {"timestamp-ms": 300, "snapshot-id": 10}, {"timestamp-ms": 400, "snapshot-id": 30}],
            "refs": {"main": {"snapshot-id": 30, "type": "branch"}, "dev": {"snapshot-id": 20, "type": "branch"},
                     "first": {"snapshot-id": 10, "type": "tag"}}
        });
        change(&mut value);
        TableMetadata::from_bytes(value.to_string().as_bytes(), "m.json").unwrap()
    }

    fn found(metadata: &TableMetadata, at: &AsOf) -> (Option<i64>, i32) {
        let version = version(metadata, at).unwrap();
        (version.snapshot.map(|s| s.snapshot_id), version.schema.schema_id())
    }

    fn refused(metadata: &TableMetadata, at: &AsOf) -> String {
        let error = version(metadata, at).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        error.to_string()
    }

    #[test]
    fn branches_have_the_schema_of_the_table_and_all_else_its_own() {
        let metadata = metadata(|_| {});
        assert_eq!(found(&metadata, &AsOf::Latest), (Some(30), 1));
        assert_eq!(found(&metadata, &AsOf::Version(20)), (Some(20), 0));
        assert_eq!(found(&metadata, &AsOf::Ref("dev".to_owned())), (Some(20), 1));
        assert_eq!(found(&metadata, &AsOf::Ref("first".to_owned())), (Some(10), 0));
        assert_eq!(found(&metadata, &AsOf::Ref("main".to_owned())), (Some(30), 1));
        assert_eq!(found(&metadata, &AsOf::Ref("20".to_owned())), (Some(20), 0));
    }

    /// B105: at 300 the table was rolled back to 10, though 20 is the newest snapshot by its time.
    #[test]
    fn a_time_is_looked_up_in_the_snapshot_log() {
        let metadata = metadata(|_| {});
        let at = |millis: i64| found(&metadata, &AsOf::Timestamp(millis * 1000)).0;
        assert_eq!(at(100), Some(10));
        assert_eq!(at(199), Some(10));
        assert_eq!(at(200), Some(20));
        assert_eq!(at(399), Some(10));
        assert_eq!(at(i64::MAX / 1000), Some(30));
        assert_eq!(found(&metadata, &AsOf::Timestamp(399_999)), (Some(10), 0));
        let text = refused(&metadata, &AsOf::Timestamp(99_999));
        assert!(
            text.contains("the oldest snapshot left is 10 of 1970-01-01 00:00:00.100Z"),
            "{text}"
        );
        let log_only = self::metadata(|m| m["snapshot-log"] = json!([]));
        assert!(refused(&log_only, &AsOf::Timestamp(500_000)).contains("no snapshot log"));
    }

    #[test]
    fn what_has_expired_is_said_to_be_gone() {
        let expired = metadata(|m| {
            m["snapshots"].as_array_mut().unwrap().remove(1);
            m["refs"].as_object_mut().unwrap().remove("dev");
        });
        for at in [AsOf::Version(20), AsOf::Timestamp(250_000), AsOf::Ref("20".to_owned())] {
            let text = refused(&expired, &at);
            assert!(
                text.contains("no snapshot 20") && text.contains("oldest snapshot left is 10"),
                "{text}"
            );
        }
        let text = refused(&expired, &AsOf::Ref("dev".to_owned()));
        assert!(text.contains("\"first\", \"main\""), "{text}");
    }

    #[test]
    fn a_table_that_was_never_written_to_has_only_its_present() {
        let empty = metadata(|m| {
            m["snapshots"] = json!([]);
            m["snapshot-log"] = json!([]);
            m["refs"] = json!({});
            m["current-snapshot-id"] = json!(-1);
        });
        assert_eq!(found(&empty, &AsOf::Latest), (None, 1));
        assert_eq!(found(&empty, &AsOf::Ref("main".to_owned())), (None, 1));
        for at in [AsOf::Version(-1), AsOf::Timestamp(i64::MAX), AsOf::Ref("dev".to_owned())] {
            refused(&empty, &at);
        }
    }

    #[test]
    fn a_snapshot_without_its_schema_is_damaged() {
        let damaged = metadata(|m| m["snapshots"][0]["schema-id"] = json!(7));
        assert_eq!(version(&damaged, &AsOf::Version(10)).unwrap_err().kind(), ErrorKind::Corrupt);
        let old = metadata(|m| {
            m["snapshots"][0].as_object_mut().unwrap().remove("schema-id");
        });
        assert_eq!(found(&old, &AsOf::Version(10)), (Some(10), 1));
    }
}
