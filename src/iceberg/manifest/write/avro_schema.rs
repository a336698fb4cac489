//! The Avro schemas of manifests and manifest lists: names, types and field ids of the
//! specification. Record names are those that old readers insist on (`r2`, `k117_v118`).

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::partition::PartitionColumn;

/// A column that is always there.
fn required(id: i32, name: &str, avro_type: &Value) -> Value {
    json!({"name": name, "type": avro_type, "field-id": id})
}

/// A column that may be null.
pub(super) fn optional(id: i32, name: &str, avro_type: &Value) -> Value {
    json!({"name": name, "type": ["null", avro_type], "default": null, "field-id": id})
}

/// A map from field ids, as an array of pairs.
fn map(id: i32, name: &str, key_id: i32, value_type: &str) -> Value {
    let value_id = key_id + 1;
    let pair = json!({"type": "record", "name": format!("k{key_id}_v{value_id}"), "fields": [
        required(key_id, "key", &json!("int")), required(value_id, "value", &json!(value_type))]});
    optional(id, name, &json!({"type": "array", "items": pair, "logicalType": "map"}))
}

fn list(id: i32, name: &str, element_id: i32, items: &str) -> Value {
    optional(id, name, &json!({"type": "array", "items": items, "element-id": element_id}))
}

/// The schemas of manifests of unpartitioned specs, and of manifest lists, by version.
static UNPARTITIONED: [LazyLock<String>; 3] = [
    LazyLock::new(|| entry(1, &[]).to_string()),
    LazyLock::new(|| entry(2, &[]).to_string()),
    LazyLock::new(|| entry(3, &[]).to_string()),
];
static LISTS: [LazyLock<String>; 3] = [
    LazyLock::new(|| listed(1).to_string()),
    LazyLock::new(|| listed(2).to_string()),
    LazyLock::new(|| listed(3).to_string()),
];

fn of(schemas: &'static [LazyLock<String>; 3], version: u8) -> Option<Cow<'static, str>> {
    let schema = schemas.get(usize::from(version).checked_sub(1)?)?;
    Some(Cow::Borrowed(schema.as_str()))
}

/// The schema of a manifest's entries.
pub(super) fn manifest_entry(version: u8, partition: &[PartitionColumn]) -> Cow<'static, str> {
    let known = of(&UNPARTITIONED, version).filter(|_| partition.is_empty());
    known.unwrap_or_else(|| entry(version, partition).to_string().into())
}

/// The schema of a manifest list.
pub(super) fn manifest_file(version: u8) -> Cow<'static, str> {
    of(&LISTS, version).unwrap_or_else(|| listed(version).to_string().into())
}

/// Columns stand in the order in which `entry` writes them.
fn entry(version: u8, partition: &[PartitionColumn]) -> Value {
    let (int, long, text, bytes) = (json!("int"), json!("long"), json!("string"), json!("bytes"));
    let mut file = Vec::new();
    if version > 1 {
        file.push(required(134, "content", &int));
    }
    let fields = PartitionColumn::avro_fields(partition);
    file.extend([
        required(100, "file_path", &text),
        required(101, "file_format", &text),
        required(102, "partition", &json!({"type": "record", "name": "r102", "fields": fields})),
        required(103, "record_count", &long),
        required(104, "file_size_in_bytes", &long),
    ]);
    if version == 1 {
        file.push(required(105, "block_size_in_bytes", &long));
    }
    file.extend([
        map(108, "column_sizes", 117, "long"),
        map(109, "value_counts", 119, "long"),
        map(110, "null_value_counts", 121, "long"),
        map(137, "nan_value_counts", 138, "long"),
        map(125, "lower_bounds", 126, "bytes"),
        map(128, "upper_bounds", 129, "bytes"),
        optional(131, "key_metadata", &bytes),
        list(132, "split_offsets", 133, "long"),
    ]);
    if version > 1 {
        file.push(list(135, "equality_ids", 136, "int"));
    }
    file.push(optional(140, "sort_order_id", &int));
    if version > 2 {
        file.push(optional(142, "first_row_id", &long));
    }
    if version > 1 {
        file.push(optional(143, "referenced_data_file", &text));
    }
    if version > 2 {
        file.push(optional(144, "content_offset", &long));
        file.push(optional(145, "content_size_in_bytes", &long));
    }

    let mut entry = vec![required(0, "status", &int)];
    if version == 1 {
        entry.push(required(1, "snapshot_id", &long));
    } else {
        entry.extend([
            optional(1, "snapshot_id", &long),
            optional(3, "sequence_number", &long),
            optional(4, "file_sequence_number", &long),
        ]);
    }
    entry.push(required(2, "data_file", &json!({"type": "record", "name": "r2", "fields": file})));
    json!({"type": "record", "name": "manifest_entry", "fields": entry})
}

/// Columns stand in the order in which `list` writes them.
fn listed(version: u8) -> Value {
    let (int, long, bytes) = (json!("int"), json!("long"), json!("bytes"));
    let mut fields = vec![
        required(500, "manifest_path", &json!("string")),
        required(501, "manifest_length", &long),
        required(502, "partition_spec_id", &int),
    ];
    if version > 1 {
        fields.extend([
            required(517, "content", &int),
            required(515, "sequence_number", &long),
            required(516, "min_sequence_number", &long),
        ]);
    }
    fields.push(required(503, "added_snapshot_id", &long));
    let counts = [
        (504, "added_files_count", &int),
        (505, "existing_files_count", &int),
        (506, "deleted_files_count", &int),
        (512, "added_rows_count", &long),
        (513, "existing_rows_count", &long),
        (514, "deleted_rows_count", &long),
    ];
    let count = if version > 1 { required } else { optional };
    fields.extend(counts.map(|(id, name, avro_type)| count(id, name, avro_type)));
    let summary = json!({"type": "record", "name": "r508", "fields": [
        required(509, "contains_null", &json!("boolean")),
        optional(518, "contains_nan", &json!("boolean")),
        optional(510, "lower_bound", &bytes),
        optional(511, "upper_bound", &bytes)]});
    fields.push(optional(
        507,
        "partitions",
        &json!({"type": "array", "items": summary, "element-id": 508}),
    ));
    fields.push(optional(519, "key_metadata", &bytes));
    if version > 2 {
        fields.push(optional(520, "first_row_id", &long));
    }
    json!({"type": "record", "name": "manifest_file", "fields": fields})
}
