//! Snapshots, references, logs.

use super::*;
use crate::iceberg::spec::RefKind;

#[test]
fn a_commit_moves_the_table_on() {
    let base = committed(&table(3), 7);
    assert_eq!(
        (base.last_sequence_number, base.next_row_id, base.current_snapshot_id),
        (1, Some(10), Some(7))
    );
    let mut builder = MetadataBuilder::from_base(Arc::clone(&base), Some("file:/t/metadata/v2.json"), NOW + 500);
    let next = snapshot(&builder, 8);
    builder.commit_snapshot(next.clone(), MAIN_BRANCH).unwrap();
    let table = builder.build().unwrap();
    assert_eq!(**table.current_snapshot().unwrap().unwrap(), next);
    assert_eq!((table.last_sequence_number, table.next_row_id), (2, Some(20)));
    assert_eq!(table.last_updated_ms, NOW + 500);
    assert_eq!(table.snapshot_log, [(NOW + 1, 7), (NOW + 500, 8)]);
    assert_eq!(table.metadata_log, [(NOW + 1, "file:/t/metadata/v2.json".to_owned())]);
    assert_eq!(table.refs["main"], SnapshotRef::branch(8));
    let json = Value::Object(table.raw_object().unwrap());
    assert_eq!(
        json["snapshots"][1],
        json!({"sequence-number": 2, "snapshot-id": 8, "parent-snapshot-id": 7, "timestamp-ms": NOW + 500,
            "summary": {"operation": "append"}, "manifest-list": "file:/t/metadata/snap-8.avro", "schema-id": 0,
            "first-row-id": 10, "added-rows": 10})
    );
}

#[test]
fn time_never_goes_back() {
    let base = committed(&table(2), 7);
    let mut builder = MetadataBuilder::from_base(Arc::clone(&base), None, 5);
    assert_eq!(builder.timestamp_ms(), NOW + 1);
    let early = Snapshot {
        timestamp_ms: NOW,
        ..snapshot(&builder, 8)
    };
    assert_refused(builder.add_snapshot(early), "lies before");
}

#[test]
fn snapshots_of_v1_have_no_numbers() {
    let base = committed(&committed(&table(1), 7), 8);
    assert_eq!((base.last_sequence_number, base.snapshots[1].sequence_number), (0, 0));
    assert!(base.raw_object().unwrap()["snapshots"][1].get("sequence-number").is_none());
}

#[test]
fn each_rule_of_a_snapshot_has_its_message() {
    let base = committed(&table(3), 7);
    let ok = || snapshot(&change(&base), 8);
    let refused = |snapshot: Snapshot, message: &str| assert_refused(change(&base).add_snapshot(snapshot), message);
    refused(Snapshot { snapshot_id: 7, ..ok() }, "id is taken");
    refused(Snapshot { snapshot_id: -1, ..ok() }, "negative");
    refused(
        Snapshot {
            sequence_number: 1,
            ..ok()
        },
        "the table's next one is 2",
    );
    refused(
        Snapshot {
            sequence_number: 3,
            ..ok()
        },
        "the table's next one is 2",
    );
    let inline = SnapshotManifests::Inline(Vec::new());
    refused(Snapshot { manifests: inline, ..ok() }, "needs a manifest list");
    let summary = BTreeMap::new();
    refused(Snapshot { summary, ..ok() }, "lacks its operation");
    refused(
        Snapshot {
            schema_id: Some(4),
            ..ok()
        },
        "Some(4)",
    );
    refused(Snapshot { schema_id: None, ..ok() }, "None");
    refused(
        Snapshot {
            first_row_id: Some(0),
            ..ok()
        },
        "the table's next one is 10",
    );
    refused(Snapshot { added_rows: None, ..ok() }, "the table's next one is 10");
    refused(
        Snapshot {
            added_rows: Some(1 << 63),
            ..ok()
        },
        "63 bits",
    );
    let v2 = table(2);
    let with_rows = Snapshot {
        first_row_id: Some(0),
        added_rows: Some(1),
        ..snapshot(&change(&v2), 8)
    };
    assert_refused(change(&v2).add_snapshot(with_rows), "has no row ids");
    let encrypted = Snapshot {
        key_id: Some("k".to_owned()),
        ..ok()
    };
    assert_eq!(change(&base).add_snapshot(encrypted).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_branch_takes_only_children_of_its_newest_snapshot() {
    let base = committed(&committed(&table(2), 7), 8);
    let orphan = |parent| Snapshot {
        parent_snapshot_id: parent,
        ..snapshot(&change(&base), 9)
    };
    assert_refused(
        change(&base).commit_snapshot(orphan(Some(7)), MAIN_BRANCH),
        "newest snapshot Some(8)",
    );
    assert_refused(change(&base).commit_snapshot(orphan(None), MAIN_BRANCH), "ref: main");
    let mut builder = change(&base);
    builder.set_ref("old", SnapshotRef::branch(7)).unwrap();
    builder.commit_snapshot(orphan(Some(7)), "old").unwrap();
    builder.set_ref("fixed", SnapshotRef::tag(7)).unwrap();
    assert_refused(
        builder.commit_snapshot(snapshot(&change(&base), 10), "fixed"),
        "tag cannot be committed to",
    );
    let table = builder.build().unwrap();
    assert_eq!((table.refs["old"].snapshot_id, table.current_snapshot_id), (9, Some(8)));
    assert_eq!(table.snapshot_log.len(), 2, "the log is that of main");
}

#[test]
fn a_new_branch_starts_at_the_current_snapshot() {
    let base = committed(&table(2), 7);
    let mut builder = change(&base);
    builder.commit_snapshot(snapshot(&builder, 8), "audit").unwrap();
    let table = builder.build().unwrap();
    assert_eq!((table.refs["audit"].snapshot_id, table.refs["main"].snapshot_id), (8, 7));
    assert_eq!(table.last_sequence_number, 2);
}

#[test]
fn rules_of_references() {
    let base = committed(&table(2), 7);
    let refused = |name: &str, reference: SnapshotRef, message: &str| assert_refused(change(&base).set_ref(name, reference), message);
    refused("x", SnapshotRef::branch(99), "no such snapshot");
    refused("main", SnapshotRef::tag(7), "main must be a branch");
    refused("", SnapshotRef::tag(7), "needs a name");
    let keep = SnapshotRef {
        min_snapshots_to_keep: Some(2),
        ..SnapshotRef::tag(7)
    };
    refused("x", keep.clone(), "keeps one snapshot");
    let none = SnapshotRef {
        max_ref_age_ms: Some(0),
        ..SnapshotRef::tag(7)
    };
    refused("x", none, "must be positive");
    let mut builder = change(&base);
    builder.set_ref("x", SnapshotRef::tag(7)).unwrap();
    let branch = SnapshotRef {
        kind: RefKind::Branch,
        ..keep
    };
    assert_refused(builder.set_ref("x", branch.clone()), "cannot become a tag");
    builder.remove_ref("x");
    builder.set_ref("x", branch).unwrap();
    let table = builder.build().unwrap();
    let object = table.raw_object().unwrap();
    let json = &object["refs"]["x"];
    assert_eq!(*json, json!({"snapshot-id": 7, "type": "branch", "min-snapshots-to-keep": 2}));
}

#[test]
fn rolling_back_and_removing_main() {
    let base = committed(&committed(&table(2), 7), 8);
    let mut builder = change(&base);
    builder.set_ref(MAIN_BRANCH, SnapshotRef::branch(7)).unwrap();
    let back = Arc::new(builder.build().unwrap());
    assert_eq!(back.current_snapshot_id, Some(7));
    assert_eq!(back.snapshot_log.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [7, 8, 7]);
    let mut builder = change(&back);
    builder.remove_ref(MAIN_BRANCH);
    let empty = builder.build().unwrap();
    assert_eq!(
        (empty.current_snapshot_id, &empty.raw_object().unwrap()["current-snapshot-id"]),
        (None, &json!(-1))
    );
    assert_eq!(empty.snapshots.len(), 2);
}

#[test]
fn of_several_snapshots_of_one_change_only_the_last_was_ever_current() {
    let mut builder = change(&committed(&table(2), 7));
    for id in [8, 9] {
        let snapshot = snapshot(&builder, id);
        builder.commit_snapshot(snapshot, MAIN_BRANCH).unwrap();
    }
    let table = builder.build().unwrap();
    assert_eq!(table.snapshot_log.iter().map(|(_, id)| *id).collect::<Vec<_>>(), [7, 9]);
    assert_eq!((table.last_sequence_number, table.snapshots.len()), (3, 3));
}

#[test]
fn the_metadata_log_is_cut_to_the_tables_limit() {
    let mut base = table(2);
    let log = |base: &TableMetadata| base.metadata_log.iter().map(|(_, file)| file.clone()).collect::<Vec<_>>();
    for (i, limit) in ["3", "3", "3", "3", "2", "0"].iter().enumerate() {
        let mut builder = MetadataBuilder::from_base(Arc::clone(&base), Some(&format!("v{i}")), NOW);
        let property = BTreeMap::from([(PREVIOUS_VERSIONS_MAX_PROPERTY.to_owned(), (*limit).to_owned())]);
        builder.set_properties(&property).unwrap();
        base = Arc::new(builder.build().unwrap());
        let expected: &[&str] = match i {
            0 => &["v0"],
            1 => &["v0", "v1"],
            2 => &["v0", "v1", "v2"],
            3 => &["v1", "v2", "v3"],
            4 => &["v3", "v4"],
            _ => &["v5"],
        };
        assert_eq!(log(&base), expected);
    }
    let mut builder = MetadataBuilder::from_base(base, Some("v9"), NOW);
    let property = BTreeMap::from([(PREVIOUS_VERSIONS_MAX_PROPERTY.to_owned(), "few".to_owned())]);
    builder.set_properties(&property).unwrap();
    assert_refused(builder.build(), "no number");
}
