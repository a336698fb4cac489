//! What must hold when a history has ended: nothing lost, nothing doubled, no file missing.

use std::collections::{BTreeMap, BTreeSet};

use super::history::{Facts, Known, ROWS};
use super::world::World;
use crate::bitmap::RowSet;
use crate::bitmap::deletion_vector::decode_blob;
use crate::iceberg::commit::{RemovedFile, committed_as};
use crate::iceberg::manifest::{EntryRef, FileContent, Manifest, read_manifest_list};
use crate::iceberg::spec::{Snapshot, SnapshotManifests, TableMetadata};

pub(super) fn all(world: &World, known: &BTreeMap<String, Known>, facts: &Facts) {
    let now = world.current();
    let metadata = &now.metadata;
    // Appends drop no manifest, so what older snapshots need is among what the newest one needs.
    for snapshot in &metadata.snapshots {
        let SnapshotManifests::List(list) = &snapshot.manifests else {
            panic!("a snapshot without a manifest list")
        };
        assert!(world.store.contains_key(list), "{list} is missing");
    }
    ancestry(metadata);
    let rows = files(world, metadata, metadata.current_snapshot().unwrap().unwrap());
    let gone: BTreeSet<(String, u64)> = rows
        .keys()
        .flat_map(|path| vector(world, path).0.iter().map(|row| (path.clone(), row)).collect::<Vec<_>>())
        .collect();
    for row in &facts.deleted {
        assert!(gone.contains(row), "the delete of {row:?} was acknowledged and it is there");
    }
    for row in &gone {
        assert!(facts.asked.contains(row), "{row:?} is deleted and nobody asked for it");
    }
    for (path, times) in &rows {
        assert_eq!(*times, 1, "{path} is in the table {times} times");
    }
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for path in rows.keys() {
        *by_id.entry(path.split('/').nth(3).unwrap()).or_default() += 1;
    }
    for file in &facts.applied {
        assert!(rows.contains_key(file), "{file} was acknowledged and is not there");
    }
    for file in &facts.refused {
        assert!(!rows.contains_key(file), "{file} was refused and is there");
    }
    for lost in &facts.lost {
        assert!(
            metadata.snapshot_by_id(*lost).is_none(),
            "snapshot {lost} was found lost and is there"
        );
    }
    for (id, known) in known {
        let of_row = usize::from(id.starts_with("row-") && committed_as(metadata, id).is_some());
        let found = by_id.get(id.as_str()).copied().unwrap_or(of_row);
        match known {
            Known::Committed(snapshot_id) => {
                assert_eq!(found, 1, "{id} was acknowledged and is there {found} times");
                let snapshot = committed_as(metadata, id).unwrap();
                assert_eq!(snapshot.snapshot_id, *snapshot_id, "{id} was acknowledged as another snapshot");
            }
            // Another run of the same id may have been applied before anybody was told.
            Known::NotCommitted | Known::Nothing => assert!(found <= 1, "{id} is there {found} times"),
            Known::Unknown => panic!("{id} stays unknown"),
        }
    }
}

/// The live entries of the newest snapshot.
fn each_entry(world: &World, mut each: impl FnMut(&EntryRef<'_>)) {
    let metadata = world.current().metadata;
    let Some(snapshot) = metadata.current_snapshot().unwrap() else {
        return;
    };
    let SnapshotManifests::List(list) = &snapshot.manifests else {
        panic!("a snapshot without a manifest list")
    };
    for listed in read_manifest_list(&world.store[list], list).unwrap() {
        let manifest = Manifest::parse(&world.store[&listed.location], &listed, &metadata).unwrap();
        manifest.live().for_each(|entry| each(&entry));
    }
}

/// Data files of the newest snapshot.
pub(super) fn live(world: &World) -> Vec<String> {
    let mut live = Vec::new();
    each_entry(world, |entry| {
        if entry.content() == FileContent::Data {
            live.push(entry.file_path().to_owned());
        }
    });
    live
}

/// What is deleted of a data file, and the vector that says so.
pub(super) fn vector(world: &World, path: &str) -> (RowSet, Option<RemovedFile>) {
    let mut found = Vec::new();
    each_entry(world, |entry| {
        if entry.is_deletion_vector() && entry.referenced_data_file() == Some(path) {
            let (offset, length) = (entry.content_offset().unwrap(), entry.content_size_in_bytes().unwrap());
            let blob = world.store[entry.file_path()].slice(offset as usize..(offset + length) as usize);
            let rows = decode_blob(&blob, Some(entry.record_count())).unwrap();
            found.push((rows, Some(RemovedFile::of(entry))));
        }
    });
    assert!(found.len() <= 1, "{path} has {} vectors", found.len());
    found.pop().unwrap_or_default()
}

/// The live files of a snapshot with how often each is there; all that it names must exist.
fn files(world: &World, metadata: &TableMetadata, snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let stored = |location: &str| {
        let found = world.store.get(location);
        found.unwrap_or_else(|| {
            let deleted = world.deleted.contains(location);
            panic!(
                "snapshot {} names {location}, which is missing (deleted: {deleted})",
                snapshot.snapshot_id
            )
        })
    };
    let SnapshotManifests::List(list) = &snapshot.manifests else {
        panic!("a snapshot without a manifest list")
    };
    let mut live = BTreeMap::new();
    for listed in read_manifest_list(stored(list), list).unwrap() {
        let manifest = Manifest::parse(stored(&listed.location), &listed, metadata).unwrap();
        for entry in manifest.live() {
            stored(entry.file_path());
            if entry.content() != FileContent::Data {
                continue;
            }
            *live.entry(entry.file_path().to_owned()).or_default() += 1;
        }
    }
    live
}

/// Each snapshot follows the one before, with a higher sequence number and, of an append, the rows of one file more.
fn ancestry(metadata: &TableMetadata) {
    let mut parent: Option<&Snapshot> = None;
    let mut rows = 0;
    for (n, snapshot) in metadata.snapshots.iter().enumerate() {
        assert_eq!(snapshot.parent_snapshot_id, parent.map(|p| p.snapshot_id));
        let sequence_number = if metadata.format_version == 1 {
            0
        } else {
            i64::try_from(n).unwrap() + 1
        };
        assert_eq!(snapshot.sequence_number, sequence_number);
        let added = if snapshot.operation() == Some("append") { ROWS } else { 0 };
        if metadata.format_version == 3 {
            assert_eq!((snapshot.first_row_id, snapshot.added_rows), (Some(rows), Some(added)));
        }
        rows += added;
        assert_eq!(snapshot.summary["total-records"], rows.to_string());
        parent = Some(snapshot.as_ref());
    }
}
