//! Upgrades, properties, and what is kept of a file that others wrote.

use super::*;
use crate::iceberg::spec::MetadataCompression;

fn parse(value: &Value) -> Arc<TableMetadata> {
    Arc::new(TableMetadata::from_bytes(value.to_string().as_bytes(), "v1.metadata.json").unwrap())
}

#[test]
fn versions_go_up_only() {
    let base = table(2);
    assert_refused(change(&base).upgrade_format_version(1), "cannot go back to 1");
    assert_eq!(change(&base).upgrade_format_version(4).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut same = change(&base);
    same.upgrade_format_version(2).unwrap();
    assert!(!same.is_changed());
    let mut builder = change(&committed(&base, 7));
    builder.upgrade_format_version(3).unwrap();
    let table = Arc::new(builder.build().unwrap());
    assert_eq!((table.format_version, table.next_row_id), (3, Some(0)));
    assert_eq!(table.snapshots[0].first_row_id, None, "old snapshots stay as they are");
    assert_eq!(committed(&table, 8).next_row_id, Some(10));
}

#[test]
fn a_table_of_an_old_writer_gets_what_later_versions_require() {
    let base = parse(&json!({
        "format-version": 1, "location": "file:/t", "last-updated-ms": 1000, "last-column-id": 1, "own-key": {"x": 1},
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "required": true, "type": "long", "own": 1}]},
        "partition-spec": [{"name": "x", "transform": "identity", "source-id": 1, "own": 1}],
        "snapshots": [{"snapshot-id": 5, "sequence-number": 9, "timestamp-ms": 900, "manifests": ["m"], "own": 1}],
        "current-snapshot-id": 5
    }));
    let mut builder = change(&base);
    builder.upgrade_format_version(2).unwrap();
    assert_refused(builder.build(), "needs a uuid");
    let mut builder = change(&base);
    builder.upgrade_format_version(2).unwrap();
    builder.assign_uuid(UUID).unwrap();
    assert_refused(builder.assign_uuid(uuid::Uuid::nil()), "never changes");
    let table = Arc::new(builder.build().unwrap());
    let json = &table.raw_object().unwrap();
    assert_eq!(json["own-key"], json!({"x": 1}));
    assert_eq!(
        json["snapshots"][0],
        json!({"snapshot-id": 5, "timestamp-ms": 900, "manifests": ["m"], "own": 1})
    );
    assert_eq!(json["schemas"][0]["schema-id"], 0);
    assert_eq!(
        json["partition-specs"],
        json!([{"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "x", "transform": "identity", "own": 1}]}])
    );
    assert_eq!(json["schemas"][0]["fields"][0]["own"], json!(1));
    assert_eq!(
        (&json["last-partition-id"], &json["last-sequence-number"]),
        (&json!(1000), &json!(0))
    );
    assert!(!json.contains_key("schema") && !json.contains_key("partition-spec"));
    assert_eq!(committed(&table, 6).last_sequence_number, 1);
}

#[test]
fn a_v3_table_that_does_not_tell_its_next_row_id_counts_on_from_its_snapshots() {
    for snapshots in [0, 1] {
        let base = if snapshots == 0 { table(3) } else { committed(&table(3), 7) };
        let mut value = Value::Object(base.raw_object().unwrap());
        value.as_object_mut().unwrap().remove("next-row-id");
        let base = parse(&value);
        assert_eq!(base.next_row_id, None);
        let builder = change(&base);
        let without = Snapshot {
            first_row_id: None,
            added_rows: None,
            ..snapshot(&builder, 8)
        };
        assert_eq!(builder.table().next_row_id, Some(10 * snapshots));
        assert_refused(change(&base).add_snapshot(without), "the table's next one is");
        assert_eq!(committed(&base, 8).next_row_id, Some(10 * snapshots + 10));
    }
}

#[test]
fn what_is_not_known_stays_where_it_was() {
    let mut value = Value::Object(committed(&table(2), 7).raw_object().unwrap());
    value["zebra"] = json!([1, {"y": 2.50}]);
    value["snapshots"][0]["stripe"] = json!("s");
    value["schemas"][0]["fields"][0]["colour"] = json!("red");
    value["partition-specs"][0]["own"] = json!(true);
    value["sort-orders"][0]["own"] = json!(true);
    value["refs"]["main"]["own"] = json!(1);
    value["snapshot-log"][0]["own"] = json!(1);
    value["statistics"] = json!([{"snapshot-id": 7, "statistics-path": "p", "own": 1}]);
    let next = committed(&parse(&value), 8);
    let json = Value::Object(next.raw_object().unwrap());
    for path in [
        "/zebra/1/y",
        "/snapshots/0/stripe",
        "/schemas/0/fields/0/colour",
        "/partition-specs/0/own",
        "/sort-orders/0/own",
        "/refs/main/own",
        "/snapshot-log/0/own",
        "/statistics/0/own",
    ] {
        assert_eq!(json.pointer(path), value.pointer(path), "{path}");
        assert!(json.pointer(path).is_some(), "{path}");
    }
    assert_eq!(json["refs"]["main"]["snapshot-id"], 8);
    let keys: Vec<_> = value.as_object().unwrap().keys().collect();
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), keys, "in their order");
}

#[test]
fn a_change_of_nothing_changes_nothing_but_the_time() {
    let base = committed(&table(3), 7);
    let builder = change(&base);
    assert!(!builder.is_changed());
    let mut expected = base.raw_object().unwrap();
    expected["last-updated-ms"] = json!(NOW + 1);
    assert_eq!(builder.build().unwrap().raw_object().unwrap(), expected);
}

#[test]
fn properties_and_location() {
    let mut builder = change(&table(2));
    let set = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect::<BTreeMap<_, _>>()
    };
    builder.set_properties(&set(&[("a", "1"), ("b", "2")])).unwrap();
    builder.remove_properties(["a", "missing"]).unwrap();
    assert_refused(builder.remove_properties(["uuid"]), "uuid is reserved");
    builder.set_location("s3://b/t//").unwrap();
    assert_refused(builder.set_properties(&set(&[("uuid", "x")])), "uuid is reserved");
    let table = builder.build().unwrap();
    assert_eq!((table.properties, table.location), (set(&[("b", "2")]), "s3://b/t".to_owned()));
}

#[test]
fn metadata_files_are_compressed_as_the_table_asks() {
    let with = |codec: &str| {
        let properties = BTreeMap::from([(MetadataCompression::PROPERTY.to_owned(), codec.to_owned())]);
        MetadataBuilder::new_table(NewTable { properties, ..request(2) }, NOW)
            .unwrap()
            .build()
            .unwrap()
    };
    assert_eq!(MetadataCompression::of(&table(2)).unwrap(), MetadataCompression::None);
    assert_eq!(MetadataCompression::of(&with("none")).unwrap(), MetadataCompression::None);
    assert!(MetadataCompression::of(&with("lz4")).is_err());
    let gzip = with("GZIP");
    let compression = MetadataCompression::of(&gzip).unwrap();
    assert_eq!(compression.file_ending(), ".gz.metadata.json");
    let bytes = gzip.to_file_bytes(compression).unwrap();
    assert!(bytes.starts_with(&[0x1f, 0x8b]));
    assert_eq!(TableMetadata::from_bytes(&bytes, "f").unwrap().raw, gzip.raw);
    assert_eq!(gzip.to_file_bytes(MetadataCompression::None).unwrap(), gzip.to_json_bytes());
}
