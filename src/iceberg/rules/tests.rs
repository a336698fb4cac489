//! Each rule, kept and broken.

use std::sync::Arc;

use serde_json::json;

use super::{Rule, SnapshotRules};
use crate::iceberg::manifest::{AvroLayout, DataFile, FileContent, FileFormat, Manifest, ManifestContent, ManifestFile, ManifestWriter};
use crate::iceberg::spec::{Literal, Snapshot, TableMetadata};

/// A v3 table of `id long`, divided by it; the next row id is 100.
fn table() -> TableMetadata {
    let json = json!({
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:/t",
        "last-sequence-number": 5, "last-updated-ms": 1, "last-column-id": 1, "next-row-id": 100, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": false, "type": "long"}]}],
        "default-spec-id": 0, "last-partition-id": 1000,
        "partition-specs": [{"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}]}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}]
    });
    TableMetadata::from_bytes(json.to_string().as_bytes(), "test").unwrap()
}

fn snapshot(summary: &serde_json::Value) -> Snapshot {
    let json = json!({"snapshot-id": 7, "sequence-number": 5, "timestamp-ms": 1, "manifest-list": "l", "schema-id": 0,
        "summary": summary, "first-row-id": 0, "added-rows": 100});
    Snapshot::from_json(&json, 3).unwrap()
}

/// 10 rows and 1000 bytes of partition `id`.
fn file(path: &str, id: i64) -> DataFile {
    DataFile {
        record_count: 10,
        file_size_in_bytes: 1000,
        ..DataFile::new(
            FileContent::Data,
            path,
            FileFormat::Parquet,
            0,
            Arc::from([Some(Literal::Long(id))]),
        )
    }
}

fn vector(data_file: &str, id: i64, offset: u64) -> DataFile {
    DataFile {
        content: FileContent::PositionDeletes,
        file_format: FileFormat::Puffin,
        referenced_data_file: Some(data_file.to_owned()),
        content_offset: Some(offset),
        content_size_in_bytes: Some(40),
        record_count: 1,
        ..file("v.puffin", id)
    }
}

type Listed = (ManifestFile, Manifest);

/// A manifest that snapshot 7 added at sequence number 5, with row ids from `first_row_id`.
fn manifest(location: &str, files: &[DataFile], first_row_id: Option<u64>) -> Listed {
    let content = match files[0].content {
        FileContent::Data => ManifestContent::Data,
        _ => ManifestContent::Deletes,
    };
    let layout = AvroLayout::deflate(*b"0123456789abcdef");
    let mut writer = ManifestWriter::new(&table(), 0, content, 7, layout).unwrap();
    files.iter().for_each(|file| writer.add(file).unwrap());
    let (bytes, listed) = writer.finish(location).unwrap();
    let listed = ManifestFile {
        sequence_number: 5,
        min_sequence_number: 5,
        first_row_id,
        ..listed
    };
    let manifest = Manifest::parse_in_full(&bytes, &listed, &table()).unwrap();
    (listed, manifest)
}

fn found_in(table: &TableMetadata, snapshot: &Snapshot, manifests: &[Listed], is_whole: bool) -> Vec<(Rule, String)> {
    let mut rules = SnapshotRules::new(table, snapshot);
    manifests.iter().for_each(|(listed, manifest)| rules.manifest(listed, manifest));
    let found = rules.finish(is_whole);
    found.into_iter().map(|finding| (finding.rule, finding.subject)).collect()
}

#[track_caller]
fn assert_found(manifests: &[Listed], wanted: &[(Rule, &str)]) {
    let found = found_in(&table(), &snapshot(&json!({"operation": "append"})), manifests, true);
    let wanted: Vec<_> = wanted.iter().map(|(rule, subject)| (*rule, (*subject).to_owned())).collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_sound_snapshot_has_no_findings() {
    let summary = json!({"operation": "append", "total-records": "20", "total-data-files": "2", "total-delete-files": "1",
        "total-position-deletes": "1", "total-equality-deletes": "0", "total-files-size": "2040"});
    let manifests = [
        manifest("m1", &[file("file:/a", 1), file("file:/b", 2)], Some(0)),
        manifest("m2", &[vector("file:///a", 1, 4)], None),
    ];
    assert_eq!(found_in(&table(), &snapshot(&summary), &manifests, true), []);
}

#[test]
fn a_file_is_live_once_however_its_place_is_spelt() {
    let manifests = [
        manifest("m1", &[file("file:/a", 1)], Some(0)),
        manifest("m2", &[file("file:///a", 1)], Some(10)),
    ];
    assert_found(&manifests, &[(Rule::DuplicateFile, "file:///a")]);
}

#[test]
fn a_data_file_has_one_vector_of_its_partition_and_takes_it_along() {
    let data = || manifest("m1", &[file("file:/a", 1)], Some(0));
    let two = manifest("m2", &[vector("file:/a", 1, 4), vector("file:/a", 1, 60)], None);
    assert_found(&[data(), two], &[(Rule::TwoVectors, "v.puffin")]);
    let elsewhere = manifest("m2", &[vector("file:/a", 2, 4)], None);
    assert_found(&[data(), elsewhere], &[(Rule::DeletePartition, "v.puffin")]);
    let dangling = || manifest("m2", &[vector("file:/b", 1, 4)], None);
    assert_found(&[data(), dangling()], &[(Rule::DanglingVector, "v.puffin")]);
    let in_part = found_in(&table(), &snapshot(&json!({"operation": "delete"})), &[data(), dangling()], false);
    assert_eq!(in_part, [], "the data file may be in a manifest that was not given");
}

#[test]
fn row_ids_were_handed_out_and_are_given_once() {
    let overlapping = [
        manifest("m1", &[file("file:/a", 1)], Some(0)),
        manifest("m2", &[file("file:/b", 1)], Some(9)),
    ];
    assert_found(&overlapping, &[(Rule::RowIds, "file:/b")]);
    assert_found(&[manifest("m1", &[file("file:/a", 1)], Some(91))], &[(Rule::RowIds, "file:/a")]);
    assert_found(&[manifest("m1", &[file("file:/a", 1)], None)], &[(Rule::RowIds, "file:/a")]);
    let mut ahead = table();
    ahead.next_row_id = Some(99);
    let found = found_in(&ahead, &snapshot(&json!({"operation": "append"})), &[], true);
    assert_eq!(found, [(Rule::RowIds, "snapshot 7".to_owned())]);
}

#[test]
fn the_list_tells_the_truth_of_its_manifests() {
    let (listed, parsed) = manifest("m1", &[file("file:/a", 1)], Some(0));
    let wrong = ManifestFile {
        added_files_count: Some(2),
        deleted_rows_count: Some(1),
        min_sequence_number: 6,
        ..listed
    };
    let wanted = [
        (Rule::SequenceNumber, "file:/a"),
        (Rule::ListCounts, "m1"),
        (Rule::ListCounts, "m1"),
    ];
    assert_found(&[(wrong, parsed)], &wanted);
}

#[test]
fn sequence_numbers_do_not_run_ahead() {
    let (listed, _) = manifest("m1", &[file("file:/a", 1)], Some(0));
    let ahead = ManifestFile {
        sequence_number: 6,
        ..listed
    };
    let layout = AvroLayout::deflate(*b"0123456789abcdef");
    let mut writer = ManifestWriter::new(&table(), 0, ManifestContent::Data, 7, layout).unwrap();
    writer.add(&file("file:/a", 1)).unwrap();
    let (bytes, _) = writer.finish("m1").unwrap();
    let parsed = Manifest::parse_in_full(&bytes, &ahead, &table()).unwrap();
    assert_found(
        &[(ahead, parsed)],
        &[(Rule::SequenceNumber, "file:/a"), (Rule::SequenceNumber, "m1")],
    );
}

#[test]
fn what_a_manifest_adds_is_of_the_snapshot_that_wrote_it() {
    let (listed, parsed) = manifest("m1", &[file("file:/a", 1)], Some(0));
    let of_another = ManifestFile {
        added_snapshot_id: Some(6),
        ..listed
    };
    assert_found(&[(of_another, parsed)], &[(Rule::SnapshotId, "file:/a")]);
}

#[test]
fn vectors_are_of_version_3() {
    let vectors = manifest("m2", &[vector("file:/a", 1, 4)], None);
    let mut old = table();
    (old.format_version, old.next_row_id) = (2, None);
    let found = found_in(&old, &snapshot(&json!({"operation": "delete"})), &[vectors], false);
    assert_eq!(found, [(Rule::FormatVersion, "v.puffin".to_owned())]);
}

#[test]
fn totals_are_those_of_the_files() {
    let summary = json!({"operation": "append", "total-records": "11", "total-data-files": "1", "total-files-size": "x"});
    let manifests = [manifest("m1", &[file("file:/a", 1)], Some(0))];
    let found = found_in(&table(), &snapshot(&summary), &manifests, true);
    assert_eq!(
        found,
        [
            (Rule::Totals, "total-files-size".to_owned()),
            (Rule::Totals, "total-records".to_owned())
        ]
    );
}
