//! Manifest lists: what the commit assigns, what stays, what each version has.

use super::super::{ManifestListWriter, UNASSIGNED_SEQUENCE_NUMBER, WrittenList};
use super::*;
use crate::error::{ErrorKind, Result};
use crate::iceberg::manifest::{FieldSummary, read_manifest_list_in_full};

/// A data manifest of the commit with added and existing rows.
fn new_manifest(location: &str, added: u64, existing: u64) -> ManifestFile {
    ManifestFile {
        length: Some(100),
        partition_spec_id: Some(0),
        sequence_number: UNASSIGNED_SEQUENCE_NUMBER,
        min_sequence_number: UNASSIGNED_SEQUENCE_NUMBER,
        added_snapshot_id: Some(SNAPSHOT),
        added_files_count: Some(1),
        existing_files_count: Some(u64::from(existing > 0)),
        deleted_files_count: Some(0),
        added_rows_count: Some(added),
        existing_rows_count: Some(existing),
        deleted_rows_count: Some(0),
        partitions: Some(Vec::new()),
        ..ManifestFile::bare(location)
    }
}

/// One of an earlier snapshot.
fn old_manifest(location: &str, first_row_id: Option<u64>) -> ManifestFile {
    ManifestFile {
        sequence_number: 3,
        min_sequence_number: 2,
        added_snapshot_id: Some(5),
        first_row_id,
        ..new_manifest(location, 100, 0)
    }
}

fn write(version: u8, first_row_id: Option<u64>, manifests: &[ManifestFile]) -> Result<WrittenList> {
    let sequence_number = if version == 1 { 0 } else { 4 };
    let mut list = ManifestListWriter::new(version, SNAPSHOT, Some(5), sequence_number, first_row_id, layout())?;
    manifests.iter().try_for_each(|manifest| list.add(manifest))?;
    list.finish()
}

#[test]
fn row_ids_are_handed_out_as_in_the_example_of_the_specification() {
    // Existing manifests keep theirs; new ones count on from the table's next row id by the
    // added and existing rows of those before them.
    let manifests = [
        old_manifest("old", Some(0)),
        new_manifest("m1", 100, 25),
        new_manifest("m2", 0, 100),
        new_manifest("m3", 125, 25),
    ];
    let written = write(3, Some(1000), &manifests).unwrap();
    let ids: Vec<_> = written.manifests.iter().map(|m| m.first_row_id.unwrap()).collect();
    assert_eq!(ids, [0, 1000, 1125, 1225]);
    assert_eq!(written.assigned_rows, Some(375));
}

#[test]
fn manifests_from_before_v3_get_row_ids_and_delete_manifests_none() {
    let deletes = ManifestFile {
        content: ManifestContent::Deletes,
        ..new_manifest("deletes", 7, 0)
    };
    let written = write(3, Some(0), &[new_manifest("new", 10, 0), old_manifest("v2", None), deletes]).unwrap();
    let ids: Vec<_> = written.manifests.iter().map(|m| m.first_row_id).collect();
    assert_eq!((ids, written.assigned_rows), (vec![Some(0), Some(10), None], Some(110)));
}

#[test]
fn sequence_numbers_are_given_to_manifests_of_the_commit_alone() {
    let rewritten = ManifestFile {
        min_sequence_number: 1,
        ..new_manifest("rewritten", 0, 10)
    };
    let written = write(2, None, &[new_manifest("new", 10, 0), rewritten, old_manifest("old", None)]).unwrap();
    let numbers: Vec<_> = written
        .manifests
        .iter()
        .map(|m| (m.sequence_number, m.min_sequence_number))
        .collect();
    assert_eq!(numbers, [(4, 4), (4, 1), (3, 2)]);
    assert_eq!(written.assigned_rows, None);
}

#[test]
fn lists_of_all_versions_come_back_and_another_reader_reads_them() {
    let summary = |null, nan, lower: Option<&'static [u8]>| FieldSummary {
        contains_null: null,
        contains_nan: nan,
        lower_bound: lower.map(Into::into),
        upper_bound: lower.map(Into::into),
    };
    for version in 1..=3 {
        let sequence_number = if version == 1 { 0 } else { UNASSIGNED_SEQUENCE_NUMBER };
        let manifest = ManifestFile {
            sequence_number,
            min_sequence_number: sequence_number,
            partitions: Some(vec![summary(true, None, None), summary(false, Some(true), Some(b"a"))]),
            key_metadata: Some(b"key".as_slice().into()),
            has_key_metadata: true,
            ..new_manifest("file:/t/m.avro", 10, 5)
        };
        let written = write(version, (version == 3).then_some(30), std::slice::from_ref(&manifest)).unwrap();
        assert_eq!(read_manifest_list_in_full(&written.bytes, "list").unwrap(), written.manifests);
        let (rows, metadata) = oracle(&written.bytes);
        assert_eq!((rows.len(), rows[0].len()), (1, [12, 15, 16][usize::from(version) - 1]));
        assert_eq!(metadata["snapshot-id"], "77");
        assert_eq!(metadata["parent-snapshot-id"], "5");
        assert_eq!(metadata.get("sequence-number").map(String::as_str), (version > 1).then_some("4"));
        assert_eq!(metadata.get("first-row-id").map(String::as_str), (version > 2).then_some("30"));
        assert_eq!(metadata["format-version"], version.to_string());
    }
}

#[test]
fn v1_may_leave_counts_unknown_and_later_versions_may_not() {
    let manifest = |version| ManifestFile {
        sequence_number: if version == 1 { 0 } else { UNASSIGNED_SEQUENCE_NUMBER },
        min_sequence_number: 0,
        existing_rows_count: None,
        ..new_manifest("m", 1, 1)
    };
    write(1, None, &[manifest(1)]).unwrap();
    for version in [2, 3] {
        let error = write(version, (version == 3).then_some(0), &[manifest(version)]).unwrap_err();
        assert!(error.to_string().contains("read the manifest"), "{error}");
        assert!(!manifest(version).is_complete());
    }
}

#[test]
fn an_incomplete_entry_is_completed_from_the_manifest() {
    let mut manifest = writer(2, 0, ManifestContent::Data);
    manifest.add(&data_file("a")).unwrap();
    manifest.add(&data_file("b")).unwrap();
    let (bytes, _) = manifest.finish(LOCATION).unwrap();
    let mut listed = ManifestFile::bare(LOCATION);
    let parsed = read(2, &bytes, &listed);
    listed.complete(&parsed, bytes.len() as u64, 5);
    assert!(listed.is_complete());
    assert_eq!((listed.added_files_count, listed.added_rows_count), (Some(2), Some(20)));
    assert_eq!((listed.existing_files_count, listed.added_snapshot_id), (Some(0), Some(5)));
    write(2, None, &[listed]).unwrap();
}

#[test]
fn what_a_list_must_not_hold_is_refused_by_name() {
    let base = || new_manifest("file:/t/m.avro", 1, 0);
    let deletes = ManifestContent::Deletes;
    let v1 = || ManifestFile {
        sequence_number: 0,
        min_sequence_number: 0,
        ..base()
    };
    let refused: Vec<(u8, ManifestFile, &str)> = vec![
        (
            2,
            ManifestFile {
                added_snapshot_id: Some(5),
                ..base()
            },
            "another snapshot has no sequence number",
        ),
        (
            2,
            ManifestFile {
                sequence_number: 5,
                ..base()
            },
            "sequence number 5 in a commit of 4",
        ),
        (
            2,
            ManifestFile {
                sequence_number: -7,
                ..base()
            },
            "sequence number -7",
        ),
        (
            2,
            ManifestFile {
                first_row_id: Some(1),
                ..base()
            },
            "have row ids",
        ),
        (
            3,
            ManifestFile {
                first_row_id: Some(1),
                content: deletes,
                ..base()
            },
            "have row ids",
        ),
        (
            3,
            ManifestFile {
                first_row_id: Some(1),
                ..base()
            },
            "has not handed out",
        ),
        (1, ManifestFile { content: deletes, ..v1() }, "neither delete files"),
        (2, ManifestFile { length: None, ..base() }, "length"),
        (
            2,
            ManifestFile {
                partition_spec_id: None,
                ..base()
            },
            "partition spec",
        ),
        (
            2,
            ManifestFile {
                added_files_count: Some(1 << 31),
                ..base()
            },
            "2^31 files",
        ),
    ];
    for (version, manifest, message) in refused {
        let error = write(version, (version == 3).then_some(0), &[manifest]).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.to_string().contains("file:/t/m.avro"), "{error}");
    }
    let twice = write(2, None, &[base(), base()]).unwrap_err();
    assert!(twice.to_string().contains("listed already"), "{twice}");
    for (version, number, row_id) in [(1, 1, None), (2, 0, None), (2, -1, None), (2, 4, Some(0)), (3, 4, None)] {
        assert!(ManifestListWriter::new(version, 1, None, number, row_id, layout()).is_err());
    }
    let error = ManifestListWriter::new(4, 1, None, 1, Some(0), layout()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}
