//! Table metadata: versions, fallbacks of older writers, refusals, lossless writing.

use std::io::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::ErrorKind;

fn read(value: &Value) -> Result<TableMetadata> {
    TableMetadata::from_bytes(value.to_string().as_bytes(), "s3://b/t/metadata/v7.metadata.json")
}

fn schema(id: i32) -> Value {
    json!({"type": "struct", "schema-id": id, "fields": [{"id": 1, "name": "x", "required": true, "type": "long"}]})
}

fn snapshot(id: i64, sequence_number: i64) -> Value {
    json!({"snapshot-id": id, "sequence-number": sequence_number, "timestamp-ms": 100, "manifest-list": "l", "summary": {"operation": "append"}})
}

fn v2() -> Value {
    json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
        "last-sequence-number": 34, "last-updated-ms": 1000, "last-column-id": 1,
        "current-schema-id": 1, "schemas": [schema(0), schema(1)],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"a": "b"}, "current-snapshot-id": 6,
        "snapshots": [snapshot(5, 0), snapshot(6, 1)],
        "snapshot-log": [{"timestamp-ms": 100, "snapshot-id": 5}, {"timestamp-ms": 200, "snapshot-id": 6}],
        "metadata-log": [{"timestamp-ms": 90, "metadata-file": "v6.metadata.json"}]
    })
}

fn v1() -> Value {
    json!({
        "format-version": 1, "location": "s3://b/t", "last-updated-ms": 1000, "last-column-id": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "required": true, "type": "long"}]},
        "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1}]
    })
}

/// `base` with some members replaced; a null value removes the member.
fn with(mut base: Value, changes: &Value) -> Value {
    let map = base.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        if value.is_null() {
            map.remove(key);
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
    base
}

#[test]
fn a_v2_table_reads() {
    let table = read(&v2()).unwrap();
    assert_eq!(table.format_version, 2);
    assert_eq!(table.table_uuid.unwrap().to_string(), "9c12d441-03fe-4693-9a96-a0705ddf69c1");
    assert_eq!((table.schemas.len(), table.current_schema().unwrap().schema_id()), (2, 1));
    assert_eq!(table.current_snapshot().unwrap().unwrap().sequence_number, 1);
    assert_eq!(table.refs.get("main"), Some(&SnapshotRef::branch(6)));
    assert_eq!(table.snapshot_log, [(100, 5), (200, 6)]);
    assert_eq!(table.metadata_log, [(90, "v6.metadata.json".to_owned())]);
    assert!(table.spec_by_id(0).unwrap().is_unpartitioned());
    assert_eq!(table.next_row_id, None);
    assert!(table.name_mapping().unwrap().is_none());
    assert!(table.memory_size() > v2().to_string().len());
}

#[test]
fn a_v1_table_of_an_old_writer_reads() {
    let table = read(&v1()).unwrap();
    assert_eq!((table.format_version, table.table_uuid, table.last_sequence_number), (1, None, 0));
    assert_eq!((table.current_schema_id, table.schemas.len()), (0, 1));
    assert_eq!(table.partition_specs[0].fields[0].field_id, 1000);
    assert_eq!((table.default_spec_id, table.last_partition_id), (0, 1000));
    assert_eq!(table.sort_orders, [SortOrder::unsorted()]);
    assert!(table.current_snapshot().unwrap().is_none() && table.refs.is_empty());
}

#[test]
fn no_current_snapshot_is_written_in_three_ways() {
    for current in [json!(-1), Value::Null] {
        let mut value = with(v2(), &json!({"refs": {}}));
        value["current-snapshot-id"] = current;
        let table = read(&value).unwrap();
        assert!(table.current_snapshot_id.is_none() && table.refs.is_empty());
    }
    assert!(
        read(&with(v2(), &json!({"current-snapshot-id": null})))
            .unwrap()
            .current_snapshot()
            .unwrap()
            .is_none()
    );
}

#[test]
fn snapshots_of_older_versions_live_on_in_upgraded_tables() {
    let old = json!({"snapshot-id": 4, "timestamp-ms": 50, "manifests": ["m"]});
    let table = read(&with(
        v2(),
        &json!({"format-version": 3, "next-row-id": 0, "snapshots": [old, snapshot(6, 34)]}),
    ))
    .unwrap();
    let old = table.snapshot_by_id(4).unwrap();
    assert_eq!((old.sequence_number, old.first_row_id), (0, None));
    assert_eq!(old.manifests, SnapshotManifests::Inline(vec!["m".to_owned()]));
    assert_eq!(table.next_row_id, Some(0));
}

#[test]
fn v1_ignores_sequence_numbers() {
    let value = with(v1(), &json!({"snapshots": [snapshot(5, 9)], "current-snapshot-id": 5}));
    assert_eq!(read(&value).unwrap().current_snapshot().unwrap().unwrap().sequence_number, 0);
}

#[test]
fn a_missing_main_is_filled_in_beside_other_refs() {
    let refs = json!({"old": {"snapshot-id": 5, "type": "tag"}});
    let table = read(&with(v2(), &json!({"refs": refs}))).unwrap();
    assert_eq!(table.refs.keys().collect::<Vec<_>>(), ["main", "old"]);
}

#[test]
fn versions_that_are_not_known_are_unsupported_and_named_with_the_file() {
    for version in [0, 4, 42, -1, 258] {
        let error = read(&with(v2(), &json!({"format-version": version}))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{version}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("format version {version}")) && text.contains("v7.metadata.json"),
            "{text}"
        );
    }
    assert_eq!(
        read(&json!({"view-uuid": "x", "format-version": 1})).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn members_that_v2_requires() {
    for key in [
        "format-version",
        "table-uuid",
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ] {
        let error = read(&with(v2(), &json!({key: null}))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{key}");
        assert!(error.message().contains(key), "{key}: {error}");
    }
}

#[test]
fn contradictions_are_refused() {
    for changes in [
        json!({"current-schema-id": 2}),
        json!({"schemas": [schema(1), schema(1)]}),
        json!({"default-spec-id": 1}),
        json!({"partition-specs": []}),
        json!({"sort-orders": []}),
        json!({"snapshots": [snapshot(6, 1), snapshot(6, 2)]}),
        json!({"snapshots": [snapshot(6, 35)]}),
        json!({"refs": {"main": {"snapshot-id": 5, "type": "branch"}}}),
        json!({"refs": {"old": {"snapshot-id": 99, "type": "tag"}}}),
        json!({"current-snapshot-id": null, "refs": {"main": {"snapshot-id": 5, "type": "branch"}}}),
        json!({"snapshot-log": [{"timestamp-ms": 100_000, "snapshot-id": 5}, {"timestamp-ms": 39_999, "snapshot-id": 6}]}),
        json!({"metadata-log": [{"timestamp-ms": 61_001, "metadata-file": "f"}]}),
        json!({"properties": {"a": 1}}),
        json!({"table-uuid": "no"}),
        json!({"refs": []}),
    ] {
        assert_eq!(read(&with(v2(), &changes)).unwrap_err().kind(), ErrorKind::Corrupt, "{changes}");
    }
}

#[test]
fn a_current_snapshot_that_is_not_listed_is_never_an_empty_table() {
    let table = read(&with(v2(), &json!({"current-snapshot-id": 7, "refs": {}}))).unwrap();
    assert_eq!(table.current_snapshot().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn clocks_may_differ_by_a_minute() {
    let log = json!({"snapshot-log": [{"timestamp-ms": 61_000, "snapshot-id": 5}, {"timestamp-ms": 1_000, "snapshot-id": 6}]});
    read(&with(v2(), &log)).unwrap();
}

#[test]
fn v1_picks_schema_and_spec_where_the_ids_are_missing() {
    let both = json!({"schemas": [schema(0)]});
    let table = read(&with(v1(), &both)).unwrap();
    assert_eq!((table.schemas.len(), table.current_schema_id), (1, 0));
    let field = |id: i32| json!({"name": "x", "transform": "identity", "source-id": 1, "field-id": id});
    let specs = json!({"partition-specs": [{"spec-id": 1, "fields": [field(1000)]}, {"spec-id": 2, "fields": [field(1001)]}], "partition-spec": null});
    let table = read(&with(v1(), &specs)).unwrap();
    assert_eq!((table.default_spec_id, table.last_partition_id), (2, 1001));
    assert!(read(&with(v1(), &json!({"schema": null}))).is_err());
    assert!(read(&with(v1(), &json!({"schema": null, "schemas": [schema(0)]}))).is_err());
    assert!(read(&with(v1(), &json!({"partition-spec": null}))).is_err());
}

#[test]
fn the_name_mapping_property() {
    let table = |text: &str| read(&with(v2(), &json!({"properties": {NAME_MAPPING_PROPERTY: text}}))).unwrap();
    let mapping = table(r#"[{"field-id": 1, "names": ["x", "X"]}]"#).name_mapping().unwrap().unwrap();
    assert_eq!(mapping.fields[0].names, ["x", "X"]);
    let error = table("{").name_mapping().unwrap_err();
    assert!(error.to_string().contains(NAME_MAPPING_PROPERTY), "{error}");
}

#[test]
fn keys_that_are_not_known_come_back_in_order_with_the_digits_they_had() {
    let base = v2().to_string();
    let text = format!(
        r#"{{"zebra": 1.50, "apple": 123456789012345678901234567890, {}"#,
        base.strip_prefix('{').unwrap()
    );
    let table = TableMetadata::from_bytes(text.as_bytes(), "f").unwrap();
    assert_eq!(table.to_json_bytes(), text.as_bytes());
    let mut builder = super::super::MetadataBuilder::from_base(Arc::new(table), None, 2000);
    builder.set_properties(&BTreeMap::from([("c".to_owned(), "d".to_owned())])).unwrap();
    let written = String::from_utf8(builder.build().unwrap().to_json_bytes()).unwrap();
    assert!(
        written.starts_with(r#"{"zebra":1.50,"apple":123456789012345678901234567890,"format-version":2,"#),
        "{written}"
    );
}

#[test]
fn gzip_is_found_by_its_magic_bytes_under_any_name() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(v2().to_string().as_bytes()).unwrap();
    let table = TableMetadata::from_bytes(&gzip.finish().unwrap(), "v1.metadata.json").unwrap();
    assert_eq!(Value::Object(table.raw_object().unwrap()), v2());
}

proptest! {
    #[test]
    fn damaged_files_never_panic(at in 0_usize..1200, byte: u8, cut in 0_usize..1200) {
        let mut bytes = v2().to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut / 100);
        let _ = TableMetadata::from_bytes(&bytes, "f");
    }
}
