//! What a builder makes, keeps and refuses.

mod new_table;
mod partition_specs;
mod schemas;
mod snapshots;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::error::ErrorKind;
use crate::iceberg::spec::{Snapshot, SnapshotManifests, SnapshotRef, StructType, Transform, Type};

const UUID: uuid::Uuid = uuid::uuid!("9c12d441-03fe-4693-9a96-a0705ddf69c1");
const NOW: i64 = 1_700_000_000_000;

/// A struct of fields in JSON.
fn fields(fields: &Value) -> StructType {
    match Type::from_json(&json!({"type": "struct", "fields": fields})).unwrap() {
        Type::Struct(fields) => fields,
        _ => unreachable!(),
    }
}

fn field(id: i32, name: &str, field_type: impl Into<Value>) -> Value {
    json!({"id": id, "name": name, "required": false, "type": field_type.into()})
}

fn request(format_version: u8) -> NewTable {
    NewTable {
        format_version,
        uuid: UUID,
        location: "file:/t/".to_owned(),
        schema: fields(&json!([field(1, "a", "int"), field(2, "b", "timestamp"), field(3, "c", "string")])),
        identifier_field_ids: Vec::new(),
        partition_fields: Vec::new(),
        sort_fields: Vec::new(),
        properties: BTreeMap::new(),
    }
}

/// A table of `a int`, `b timestamp`, `c string` without snapshots.
fn table(format_version: u8) -> Arc<TableMetadata> {
    let builder = MetadataBuilder::new_table(request(format_version), NOW).unwrap();
    Arc::new(builder.build().unwrap())
}

fn change(base: &Arc<TableMetadata>) -> MetadataBuilder {
    MetadataBuilder::from_base(Arc::clone(base), None, NOW + 1)
}

/// The next snapshot of `main`.
fn snapshot(builder: &MetadataBuilder, id: i64) -> Snapshot {
    let table = builder.table();
    Snapshot {
        snapshot_id: id,
        parent_snapshot_id: table.current_snapshot_id,
        sequence_number: if table.format_version == 1 {
            0
        } else {
            table.last_sequence_number + 1
        },
        timestamp_ms: builder.timestamp_ms(),
        manifests: SnapshotManifests::List(format!("file:/t/metadata/snap-{id}.avro")),
        summary: BTreeMap::from([("operation".to_owned(), "append".to_owned())]),
        schema_id: Some(table.current_schema_id),
        first_row_id: table.next_row_id,
        added_rows: table.next_row_id.map(|_| 10),
        key_id: None,
    }
}

/// The table with one snapshot more.
fn committed(base: &Arc<TableMetadata>, id: i64) -> Arc<TableMetadata> {
    let mut builder = change(base);
    let snapshot = snapshot(&builder, id);
    builder.commit_snapshot(snapshot, MAIN_BRANCH).unwrap();
    Arc::new(builder.build().unwrap())
}

fn partition(source_id: i32, name: &str, transform: &str) -> UnboundPartitionField {
    UnboundPartitionField {
        source_id,
        name: name.to_owned(),
        transform: transform.parse().unwrap(),
    }
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: crate::error::Result<T>, message: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains(message), "{error} lacks {message}");
}
