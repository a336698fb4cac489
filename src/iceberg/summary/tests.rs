//! Keys, totals and partition summaries by hand.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::iceberg::manifest::{FileContent, FileFormat};
use crate::iceberg::spec::Literal;

/// A table of `id long` and `name string`; spec 0 without fields, spec 1 identity(name).
fn table(properties: &serde_json::Value) -> TableMetadata {
    let json = json!({
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:/t",
        "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 2, "next-row-id": 0, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": false, "type": "long"},
            {"id": 2, "name": "name", "required": false, "type": "string"}]}],
        "default-spec-id": 0, "last-partition-id": 1000,
        "partition-specs": [{"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "name", "transform": "identity"}]}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": properties
    });
    TableMetadata::from_bytes(json.to_string().as_bytes(), "test").unwrap()
}

fn file(content: FileContent, records: u64, bytes: u64) -> DataFile {
    DataFile {
        record_count: records,
        file_size_in_bytes: bytes,
        ..DataFile::new(content, "f", FileFormat::Parquet, 0, Arc::from([]))
    }
}

fn in_partition(name: Option<&str>, records: u64) -> DataFile {
    DataFile {
        spec_id: 1,
        partition: Arc::from([name.map(|name| Literal::String(name.to_owned()))]),
        ..file(FileContent::Data, records, 100)
    }
}

fn vector(records: u64, bytes: u64) -> DataFile {
    DataFile {
        file_format: FileFormat::Puffin,
        content_offset: Some(4),
        content_size_in_bytes: Some(bytes),
        ..file(FileContent::PositionDeletes, records, 10_000)
    }
}

fn parent(summary: &[(&str, &str)]) -> Snapshot {
    let summary: serde_json::Map<_, _> = summary.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
    let value = json!({"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "l", "summary": summary});
    Snapshot::from_json(&value, 2).unwrap()
}

fn text(summary: &BTreeMap<String, String>) -> Vec<String> {
    summary.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

#[test]
fn a_first_append_counts_from_zero() {
    let table = table(&json!({}));
    let mut summary = SummaryBuilder::new(&table).unwrap();
    summary.added(&file(FileContent::Data, 3, 500)).unwrap();
    summary.added(&file(FileContent::Data, 4, 600)).unwrap();
    summary.set("own", "x");
    summary.set("total-records", "99");
    assert_eq!(
        text(&summary.build("append", None).unwrap()),
        [
            "added-data-files=2",
            "added-files-size=1100",
            "added-records=7",
            "changed-partition-count=1",
            "operation=append",
            "own=x",
            "total-data-files=2",
            "total-delete-files=0",
            "total-equality-deletes=0",
            "total-files-size=1100",
            "total-position-deletes=0",
            "total-records=7",
        ]
    );
}

#[test]
fn a_row_delta_of_all_kinds() {
    let table = table(&json!({}));
    let mut summary = SummaryBuilder::new(&table).unwrap();
    summary.added(&vector(5, 40)).unwrap();
    summary.removed(&vector(2, 30)).unwrap();
    summary.removed(&file(FileContent::PositionDeletes, 1, 300)).unwrap();
    summary.added(&file(FileContent::EqualityDeletes, 6, 200)).unwrap();
    summary.removed(&file(FileContent::Data, 10, 1000)).unwrap();
    let before = parent(&[
        ("total-records", "50"),
        ("total-files-size", "9000"),
        ("total-data-files", "2"),
        ("total-delete-files", "2"),
        ("total-position-deletes", "3"),
        ("total-equality-deletes", "0"),
    ]);
    assert_eq!(
        text(&summary.build("overwrite", Some(&before)).unwrap()),
        [
            "added-delete-files=2",
            "added-dvs=1",
            "added-equality-delete-files=1",
            "added-equality-deletes=6",
            "added-files-size=240",
            "added-position-deletes=5",
            "changed-partition-count=1",
            "deleted-data-files=1",
            "deleted-records=10",
            "operation=overwrite",
            "removed-delete-files=2",
            "removed-dvs=1",
            "removed-files-size=1330",
            "removed-position-delete-files=1",
            "removed-position-deletes=3",
            "total-data-files=1",
            "total-delete-files=2",
            "total-equality-deletes=6",
            "total-files-size=7910",
            "total-position-deletes=5",
            "total-records=40",
        ]
    );
}

#[test]
fn totals_that_are_not_known_or_would_be_negative_are_left_out() {
    let table = table(&json!({}));
    let mut summary = SummaryBuilder::new(&table).unwrap();
    summary.removed(&file(FileContent::Data, 10, 1000)).unwrap();
    let before = parent(&[("total-records", "9"), ("total-data-files", "many"), ("total-files-size", "1000")]);
    let summary = summary.build("delete", Some(&before)).unwrap();
    let totals: Vec<_> = text(&summary).into_iter().filter(|line| line.starts_with("total-")).collect();
    assert_eq!(totals, ["total-files-size=0"]);
}

#[test]
fn partitions_are_listed_up_to_the_limit() {
    for (limit, listed) in [("2", true), ("1", false)] {
        let table = table(&json!({PARTITION_LIMIT_PROPERTY: limit}));
        let mut summary = SummaryBuilder::new(&table).unwrap();
        summary.added(&in_partition(Some("a/b"), 1)).unwrap();
        summary.added(&in_partition(Some("a/b"), 2)).unwrap();
        summary.removed(&in_partition(None, 4)).unwrap();
        let summary = summary.build("overwrite", None).unwrap();
        assert_eq!(summary["changed-partition-count"], "2");
        assert_eq!(summary.contains_key("partition-summaries-included"), listed);
        let of = |path: &str| summary.get(&format!("partitions.{path}")).map(String::as_str);
        let expected = "added-data-files=2,added-records=3,added-files-size=200";
        assert_eq!(of("name=a%2Fb"), listed.then_some(expected));
        let expected = "deleted-data-files=1,deleted-records=4,removed-files-size=100";
        assert_eq!(of("name=null"), listed.then_some(expected));
    }
    let wrong = table(&json!({PARTITION_LIMIT_PROPERTY: "some"}));
    assert!(SummaryBuilder::new(&wrong).is_err());
}

#[test]
fn a_replace_never_adds_rows() {
    let table = table(&json!({}));
    let build = |added, removed| {
        let mut summary = SummaryBuilder::new(&table).unwrap();
        summary.added(&file(FileContent::Data, added, 1)).unwrap();
        summary.removed(&file(FileContent::Data, removed, 1)).unwrap();
        summary.build("replace", None)
    };
    assert!(build(11, 10).is_err());
    // Rows that delete files had taken away are not written again.
    build(9, 10).unwrap();
}
