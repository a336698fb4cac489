//! Table metadata as JSON, v1 to v3 (spec "Table Metadata", appendix C).

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::table::{SnapshotState, TestTable};

/// The metadata of a table's state.
pub fn json(table: &TestTable, now: i64) -> Map<String, Value> {
    let version = table.version;
    let spec = table.specs.last().expect("a table has a spec");
    let last_column_id = table.schemas.iter().map(super::types::Schema::last_id).max().unwrap_or(0);
    let mut out = json!({
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": table.location,
        "last-updated-ms": now,
        "last-column-id": last_column_id,
        "schemas": table.schemas.iter().map(super::types::Schema::json).collect::<Vec<_>>(),
        "current-schema-id": table.schema().id,
        "partition-specs": table.specs.iter().map(super::partition::PartitionSpec::json).collect::<Vec<_>>(),
        "default-spec-id": spec.id,
        "last-partition-id": table.last_partition_id(),
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": table.properties_json(),
        "snapshots": table.snapshots.iter().map(|s| snapshot(table, s)).collect::<Vec<_>>(),
        "snapshot-log": table.snapshot_log.iter().map(|(t, id)| json!({"timestamp-ms": t, "snapshot-id": id})).collect::<Vec<_>>(),
        "metadata-log": table.metadata_log().iter().map(|(t, f)| json!({"timestamp-ms": t, "metadata-file": f})).collect::<Vec<_>>(),
        "refs": refs(table),
    });
    if let Some(id) = table.snapshot_id() {
        out["current-snapshot-id"] = json!(id);
    } else if version == 1 {
        out["current-snapshot-id"] = json!(-1);
    }
    match version {
        1 => {
            out["schema"] = table.schema().json();
            out["partition-spec"] = spec.fields_json();
        }
        _ => out["last-sequence-number"] = json!(table.last_sequence_number),
    }
    if version > 2 {
        out["next-row-id"] = json!(table.next_row_id);
    }
    match out {
        Value::Object(map) => map,
        _ => unreachable!("made as an object"),
    }
}

fn refs(table: &TestTable) -> Value {
    let refs = table.refs.iter().map(|(name, id, is_branch)| {
        let kind = if *is_branch { "branch" } else { "tag" };
        (name.clone(), json!({"snapshot-id": id, "type": kind}))
    });
    Value::Object(refs.collect())
}

fn snapshot(table: &TestTable, s: &SnapshotState) -> Value {
    let mut out = json!({
        "snapshot-id": s.id,
        "timestamp-ms": s.timestamp_ms,
        "summary": s.summary,
        "schema-id": s.schema_id,
    });
    if table.inline_manifests {
        out["manifests"] = json!(s.manifests.iter().map(|m| &m.path).collect::<Vec<_>>());
    } else {
        out["manifest-list"] = json!(s.manifest_list);
    }
    if let Some(parent) = s.parent {
        out["parent-snapshot-id"] = json!(parent);
    }
    if table.version > 1 {
        out["sequence-number"] = json!(s.sequence_number);
    }
    for (key, value) in [("first-row-id", s.first_row_id), ("added-rows", s.added_rows)] {
        if let Some(value) = value {
            out[key] = json!(value);
        }
    }
    out
}

/// The bytes as a gzip file without time stamp.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
