//! What entries inherit, and what is refused.

use apache_avro::Codec;

use super::super::{EntryStatus, FileContent, FileFormat, ManifestFile};
use super::writer::{Entry, Style, manifest};
use super::{assert_corrupt, listed, listed_deletes, parse, refused};
use crate::error::ErrorKind;

/// Columns that only manifests from v2 on have.
const NOT_IN_V1: &[i32] = &[3, 4, 134, 142, 143, 144, 145];

fn v1_manifest(metadata: &[(&str, &str)], entries: &[Entry]) -> Vec<u8> {
    let rows = entries.iter().map(|entry| entry.row(Style::default(), NOT_IN_V1)).collect();
    Style::default().container(metadata, Codec::Null, rows)
}

#[test]
fn added_files_inherit_snapshot_and_sequence_numbers() {
    let explicit = Entry {
        snapshot_id: Some(12),
        sequence_number: Some(3),
        ..Entry::added("b")
    };
    let manifest = parse(&manifest(&[Entry::added("a"), explicit]), &listed());
    let a = manifest.entry(0);
    assert_eq!(
        (a.snapshot_id(), a.sequence_number(), a.file_sequence_number()),
        (Some(77), 5, Some(5))
    );
    let b = manifest.entry(1);
    assert_eq!(
        (b.snapshot_id(), b.sequence_number(), b.file_sequence_number()),
        (Some(12), 3, Some(5))
    );
}

#[test]
fn existing_and_deleted_files_keep_their_sequence_numbers() {
    let deleted = Entry {
        status: 2,
        ..Entry::existing("b", 2)
    };
    let manifest = parse(&manifest(&[Entry::existing("a", 3), deleted]), &listed());
    assert_eq!(manifest.entries().map(|e| e.sequence_number()).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(
        manifest.entries().map(|e| e.status()).collect::<Vec<_>>(),
        [EntryStatus::Existing, EntryStatus::Deleted]
    );
    assert_eq!(manifest.live().map(|e| e.file_path()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn an_existing_or_deleted_file_without_sequence_number_is_refused() {
    for status in [0, 2] {
        let entry = Entry {
            status,
            ..Entry::added("a")
        };
        assert_corrupt(&manifest(&[entry]), &listed(), "only added files inherit it");
    }
}

#[test]
fn an_existing_file_of_an_early_v2_writer_has_no_file_sequence_number() {
    let row = Entry::existing("a", 3).row(Style::default(), &[4]);
    let bytes = Style::default().container(&[("format-version", "2")], Codec::Null, vec![row]);
    let manifest = parse(&bytes, &listed());
    assert_eq!(manifest.entry(0).sequence_number(), 3);
    assert_eq!(manifest.entry(0).file_sequence_number(), None);
}

#[test]
fn files_of_a_v1_manifest_have_sequence_number_0_whatever_the_list_says() {
    let existing = Entry {
        status: 0,
        ..Entry::added("b")
    };
    let manifest = parse(&v1_manifest(&[("format-version", "1")], &[Entry::added("a"), existing]), &listed());
    assert_eq!(manifest.entries().map(|e| e.sequence_number()).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(
        manifest.entries().map(|e| e.content()).collect::<Vec<_>>(),
        [FileContent::Data, FileContent::Data]
    );
}

#[test]
fn files_of_a_manifest_without_version_and_v2_columns_inherit_where_added() {
    // The list of a v1 table has no sequence numbers, so this is 0 there.
    let existing = Entry {
        status: 0,
        ..Entry::added("b")
    };
    let manifest = parse(&v1_manifest(&[], &[Entry::added("a"), existing]), &listed());
    assert_eq!(manifest.entries().map(|e| e.sequence_number()).collect::<Vec<_>>(), [5, 0]);
}

#[test]
fn a_manifest_named_by_v1_metadata_directly_is_read() {
    let entry = Entry {
        snapshot_id: Some(8),
        ..Entry::added("a")
    };
    let listed = ManifestFile::bare("file:/t/metadata/m0.avro");
    let manifest = parse(&v1_manifest(&[("partition-spec-id", "0")], &[entry]), &listed);
    assert_eq!(manifest.spec_id(), 0);
    assert_eq!(manifest.entry(0).snapshot_id(), Some(8));
    assert_eq!(manifest.entry(0).sequence_number(), 0);
}

#[test]
fn row_ids_are_assigned_in_order_to_live_data_files_without_one() {
    let with_id = Entry {
        first_row_id: Some(500),
        ..Entry::added("b")
    };
    let deleted = Entry {
        status: 2,
        ..Entry::existing("c", 2)
    };
    let entries = [Entry::added("a"), with_id, deleted, Entry::existing("d", 2), Entry::added("e")];
    let listed = ManifestFile {
        first_row_id: Some(100),
        ..listed()
    };
    let manifest = parse(&manifest(&entries), &listed);
    let ids: Vec<_> = manifest.entries().map(|e| e.first_row_id()).collect();
    assert_eq!(ids, [Some(100), Some(500), None, Some(110), Some(120)]);
}

#[test]
fn without_row_id_in_the_list_no_file_has_one() {
    let with_id = Entry {
        first_row_id: Some(500),
        ..Entry::added("b")
    };
    let manifest = parse(&manifest(&[Entry::added("a"), with_id]), &listed());
    assert!(manifest.entries().all(|e| e.first_row_id().is_none()));
}

#[test]
fn delete_files_have_no_row_ids() {
    let listed = ManifestFile {
        first_row_id: Some(100),
        ..listed_deletes()
    };
    let manifest = parse(&manifest(&[Entry::equality_delete("a")]), &listed);
    assert_eq!(manifest.entry(0).first_row_id(), None);
}

#[test]
fn row_ids_beyond_63_bits_are_refused() {
    let listed = ManifestFile {
        first_row_id: Some(i64::MAX as u64 - 5),
        ..listed()
    };
    assert_corrupt(&manifest(&[Entry::added("a")]), &listed, "row ids");
}

#[test]
fn a_deletion_vector_is_read() {
    let manifest = parse(&manifest(&[Entry::deletion_vector("dv.puffin")]), &listed_deletes());
    let entry = manifest.entry(0);
    assert_eq!(entry.content(), FileContent::PositionDeletes);
    assert_eq!(entry.file_format(), FileFormat::Puffin);
    assert!(entry.is_deletion_vector());
    assert_eq!(entry.referenced_data_file(), Some("file:/t/data/a.parquet"));
    assert_eq!((entry.content_offset(), entry.content_size_in_bytes()), (Some(4), Some(44)));
}

#[test]
fn a_deletion_vector_without_its_place_is_refused() {
    let whole = Entry::deletion_vector("dv.puffin");
    let mut entries = [whole.clone(), whole.clone(), whole];
    entries[0].referenced = None;
    entries[1].content_offset = None;
    entries[2].content_size = None;
    for entry in entries {
        assert_corrupt(&manifest(&[entry]), &listed_deletes(), "deletion vector");
    }
}

#[test]
fn an_equality_delete_without_key_is_refused_but_not_once_deleted() {
    for ids in [None, Some(vec![])] {
        let entry = Entry {
            equality_ids: ids,
            ..Entry::equality_delete("a")
        };
        assert_corrupt(&manifest(std::slice::from_ref(&entry)), &listed_deletes(), "no key columns");
        let deleted = Entry {
            status: 2,
            sequence_number: Some(1),
            ..entry
        };
        assert_eq!(parse(&manifest(&[deleted]), &listed_deletes()).live().count(), 0);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    let change: [(&str, fn(&mut Entry)); 9] = [
        ("entry status is 3", |e| e.status = 3),
        ("entry status is -1", |e| e.status = -1),
        ("file content is 3", |e| e.content = 3),
        ("record count is -1", |e| e.record_count = -1),
        ("file size is -7", |e| e.file_size = -7),
        ("sequence number is -1", |e| e.sequence_number = Some(-1)),
        ("content offset is -1", |e| e.content_offset = Some(-1)),
        ("content size is -1", |e| e.content_size = Some(-1)),
        ("entry has no file path", |e| e.path.clear()),
    ];
    for (message, change) in change {
        let mut entry = Entry::added("a");
        change(&mut entry);
        assert_corrupt(&manifest(&[Entry::added("first"), entry]), &listed(), message);
    }
}

#[test]
fn an_unknown_file_format_is_unsupported() {
    let entry = Entry {
        format: "lance".to_owned(),
        ..Entry::added("a")
    };
    let error = refused(&manifest(&[entry]), &listed());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("\"lance\""), "{error}");
}

#[test]
fn data_and_delete_files_do_not_mix() {
    assert_corrupt(
        &manifest(&[Entry::equality_delete("a")]),
        &listed(),
        "data manifest holds a delete file",
    );
    assert_corrupt(
        &manifest(&[Entry::added("a")]),
        &listed_deletes(),
        "delete manifest holds a data file",
    );
    // A delete file without its kind is no data file either.
    assert_corrupt(&v1_manifest(&[], &[Entry::added("a")]), &listed_deletes(), "which kind");
}

#[test]
fn a_manifest_that_contradicts_its_list_is_refused() {
    let bytes = |key, value| Style::default().container(&[(key, value)], Codec::Null, vec![Entry::added("a").row(Style::default(), &[])]);
    assert_corrupt(&bytes("content", "deletes"), &listed(), "the manifest list says Data");
    assert_corrupt(&bytes("content", "other"), &listed(), "manifest content");
    assert_corrupt(&bytes("partition-spec-id", "1"), &listed(), "partition spec 0");
    assert_corrupt(&bytes("partition-spec-id", "x"), &listed(), "partition spec id");
    let error = refused(&bytes("format-version", "4"), &listed());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_partition_spec_that_the_table_lacks_is_refused() {
    let listed = ManifestFile {
        partition_spec_id: Some(17),
        ..listed()
    };
    assert_corrupt(&manifest(&[Entry::added("a")]), &listed, "no partition spec 17");
}

#[test]
fn key_metadata_is_kept_as_a_flag() {
    let entry = Entry {
        key_metadata: Some(vec![1]),
        ..Entry::added("a")
    };
    let manifest = parse(&manifest(&[entry, Entry::added("b")]), &listed());
    assert!(manifest.entry(0).has_key_metadata());
    assert!(!manifest.entry(1).has_key_metadata());
}

#[test]
fn statistics_with_unordered_or_repeated_ids_are_found() {
    let entry = Entry {
        value_counts: Some(vec![(5, 50), (2, 20), (5, 51), (-1, 3)]),
        null_value_counts: Some(vec![(2, -1), (3, 0)]),
        lower_bounds: Some(vec![(9, b"i".to_vec()), (1, vec![])]),
        ..Entry::added("a")
    };
    let manifest = parse(&manifest(&[Entry::added("first"), entry, Entry::added("last")]), &listed());
    let counts = manifest.entry(1).value_counts();
    assert_eq!(counts.iter().collect::<Vec<_>>(), [(-1, 3), (2, 20), (5, 51)]);
    assert_eq!((counts.get(5), counts.get(6)), (Some(51), None));
    // A negative count is no count.
    assert_eq!(manifest.entry(1).null_value_counts().iter().collect::<Vec<_>>(), [(3, 0)]);
    assert_eq!(manifest.entry(1).lower_bound(1), Some(&b""[..]));
    assert_eq!(manifest.entry(1).lower_bound(9), Some(&b"i"[..]));
    assert_eq!(manifest.entry(1).lower_bound(2), None);
    for row in [0, 2] {
        assert_eq!(manifest.entry(row).value_counts().iter().count(), 0);
        assert_eq!(manifest.entry(row).lower_bounds().count(), 0);
    }
}
