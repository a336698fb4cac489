//! What the writing side makes of tables of real writers, from the case collection: metadata that
//! was built on theirs, manifests and lists carried over from theirs, summaries worked out anew.

#![allow(clippy::unwrap_used, reason = "a test file: a failure is a panic")]

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use sandur::error::{ErrorKind, Result};
use sandur::iceberg::SummaryBuilder;
use sandur::iceberg::manifest::{
    AvroLayout, EntryStatus, Manifest, ManifestFile, ManifestListWriter, ManifestWriter, read_manifest_list_in_full,
};
use sandur::iceberg::spec::{MAIN_BRANCH, MetadataBuilder, MetadataCompression, Snapshot, SnapshotManifests, TableMetadata};

use crate::format_manifest::{assert_list_entry, assert_manifest, avro_files, oracle};
use crate::format_metadata::metadata_files;
use crate::support::cases;

/// Every metadata file of the collection with its bytes.
fn all_metadata() -> Vec<(PathBuf, TableMetadata)> {
    let Some(cases) = cases::dir_or_say() else { return Vec::new() };
    let mut files = Vec::new();
    metadata_files(&cases.join("iceberg"), &mut files);
    files.sort();
    let parse = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        let metadata = TableMetadata::from_bytes(&bytes, &path.display().to_string()).ok()?;
        Some((path, metadata))
    };
    files.into_iter().filter_map(parse).collect()
}

/// All that was parsed is the same, but for the time.
fn assert_same(a: &TableMetadata, b: &TableMetadata, name: &str) {
    assert_eq!(
        (a.format_version, a.table_uuid, &a.location),
        (b.format_version, b.table_uuid, &b.location),
        "{name}"
    );
    // A v3 table without snapshots may leave its next row id out.
    let next_row_id = |table: &TableMetadata| table.next_row_id.or((table.format_version > 2).then_some(0));
    let numbers = |table: &TableMetadata| (table.last_sequence_number, next_row_id(table));
    assert_eq!(numbers(a), numbers(b), "{name}");
    assert_eq!((&a.schemas, a.current_schema_id), (&b.schemas, b.current_schema_id), "{name}");
    assert_eq!(
        (&a.partition_specs, a.default_spec_id),
        (&b.partition_specs, b.default_spec_id),
        "{name}"
    );
    assert_eq!(
        (a.last_column_id, a.last_partition_id),
        (b.last_column_id, b.last_partition_id),
        "{name}"
    );
    assert_eq!(
        (&a.sort_orders, a.default_sort_order_id),
        (&b.sort_orders, b.default_sort_order_id),
        "{name}"
    );
    assert_eq!((&a.properties, &a.refs), (&b.properties, &b.refs), "{name}");
    assert_eq!(
        (&a.snapshots, a.current_snapshot_id),
        (&b.snapshots, b.current_snapshot_id),
        "{name}"
    );
    assert_eq!((&a.snapshot_log, &a.metadata_log), (&b.snapshot_log, &b.metadata_log), "{name}");
}

#[test]
fn metadata_built_on_that_of_every_table_keeps_all_of_it() {
    let mut tables = 0;
    for (path, base) in all_metadata() {
        let name = path.display().to_string();
        tables += 1;
        let base = Arc::new(base);
        let built = MetadataBuilder::from_base(Arc::clone(&base), None, 0).build();
        let built = built.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_same(&built, &base, &name);
        let members = built.raw_object().unwrap();
        for (key, value) in base.raw_object().unwrap().iter().filter(|(key, _)| *key != "last-updated-ms") {
            assert_eq!(members.get(key), Some(value), "{name}: {key}");
        }
        for compression in [MetadataCompression::None, MetadataCompression::Gzip] {
            let bytes = built.to_file_bytes(compression).unwrap();
            let read = TableMetadata::from_bytes(&bytes, &name).unwrap();
            assert_same(&read, &built, &name);
            assert_eq!(read.raw, built.raw, "{name}");
        }
    }
    assert!(tables == 0 || tables >= 600, "{tables} tables");
}

/// The next snapshot of `main`, without regard to what it holds.
fn next_snapshot(builder: &MetadataBuilder) -> Snapshot {
    let table = builder.table();
    Snapshot {
        snapshot_id: i64::MAX - 1,
        parent_snapshot_id: table.current_snapshot_id,
        sequence_number: if table.format_version == 1 {
            0
        } else {
            table.last_sequence_number + 1
        },
        timestamp_ms: builder.timestamp_ms(),
        manifests: SnapshotManifests::List("list.avro".to_owned()),
        summary: BTreeMap::from([("operation".to_owned(), "append".to_owned())]),
        schema_id: Some(table.current_schema_id),
        first_row_id: table.next_row_id,
        added_rows: table.next_row_id.map(|_| 1),
        key_id: None,
    }
}

#[test]
fn every_table_can_be_upgraded_and_committed_to() {
    let mut tables = 0;
    for (path, base) in all_metadata() {
        let name = path.display().to_string();
        let base = Arc::new(base);
        for version in base.format_version..=3 {
            let mut builder = MetadataBuilder::from_base(Arc::clone(&base), Some(&name), 0);
            builder.upgrade_format_version(version).unwrap();
            builder.assign_uuid(base.table_uuid.unwrap_or_default()).unwrap();
            let snapshot = next_snapshot(&builder);
            builder
                .commit_snapshot(snapshot.clone(), MAIN_BRANCH)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let built = builder.build().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(built.format_version, version);
            assert_eq!(**built.current_snapshot().unwrap().unwrap(), snapshot, "{name}");
            assert_eq!(built.snapshots.len(), base.snapshots.len() + 1, "{name}");
            assert_eq!(built.schemas, base.schemas, "{name}");
            assert_eq!(built.partition_specs, base.partition_specs, "{name}");
            tables += 1;
        }
    }
    assert!(tables == 0 || tables >= 1000, "{tables} tables");
}

/// A table with its manifest lists and manifests by file name.
pub(crate) struct Files {
    name: String,
    pub(crate) metadata: TableMetadata,
    by_name: HashMap<String, PathBuf>,
}

impl Files {
    pub(crate) fn of(case: &cases::Case) -> Option<Self> {
        let path = case.metadata_file()?;
        let name = path.display().to_string();
        let metadata = TableMetadata::from_bytes(&std::fs::read(&path).unwrap(), &name).unwrap();
        let files = avro_files(&case.table_dir().join("metadata"));
        let by_name = files
            .into_iter()
            .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path));
        Some(Self {
            name: case.name.clone(),
            metadata,
            by_name: by_name.collect(),
        })
    }

    /// `None` for a file that the case does not have.
    fn read(&self, location: &str) -> Option<Vec<u8>> {
        let path = self.by_name.get(location.rsplit('/').next()?)?;
        Some(std::fs::read(path).unwrap())
    }

    /// The manifests of a snapshot.
    pub(crate) fn list(&self, snapshot: &Snapshot) -> Option<Vec<ManifestFile>> {
        match &snapshot.manifests {
            SnapshotManifests::List(list) => Some(read_manifest_list_in_full(&self.read(list)?, list).unwrap()),
            SnapshotManifests::Inline(files) => Some(files.iter().map(ManifestFile::bare).collect()),
        }
    }

    pub(crate) fn manifest(&self, listed: &ManifestFile) -> Option<(Vec<u8>, Manifest)> {
        let bytes = self.read(&listed.location)?;
        let manifest = Manifest::parse_in_full(&bytes, listed, &self.metadata).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        Some((bytes, manifest))
    }
}

fn layout() -> AvroLayout {
    AvroLayout::deflate(*b"0123456789abcdef")
}

/// All live files of a manifest in a new one, and what its list says of it.
fn carried(files: &Files, manifest: &Manifest) -> Result<Option<(Vec<u8>, ManifestFile)>> {
    let mut writer = ManifestWriter::new(&files.metadata, manifest.spec_id(), manifest.content(), 1, layout())?;
    manifest.live().try_for_each(|entry| writer.existing(&entry))?;
    if writer.is_empty() {
        return Ok(None);
    }
    let (bytes, mut listed) = writer.finish("carried.avro")?;
    if files.metadata.format_version > 1 {
        listed.sequence_number = files.metadata.last_sequence_number + 1;
    }
    Ok(Some((bytes, listed)))
}

#[test]
fn manifests_of_every_table_are_carried_over_without_loss() {
    let (mut manifests, mut entries, mut refused) = (0, 0, BTreeMap::new());
    for files in cases::iceberg().iter().filter_map(Files::of) {
        let mut seen = std::collections::HashSet::new();
        let lists = files.metadata.snapshots.iter().filter_map(|snapshot| files.list(snapshot));
        for listed in lists.flatten().filter(|listed| seen.insert(listed.location.clone())) {
            let Some((_, manifest)) = files.manifest(&listed) else { continue };
            let (bytes, new_listed) = match carried(&files, &manifest) {
                Ok(Some(carried)) => carried,
                Ok(None) => continue,
                Err(e) => {
                    assert!(
                        matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput),
                        "{}: {e}",
                        files.name
                    );
                    refused.insert(files.name.clone(), e.to_string());
                    continue;
                }
            };
            manifests += 1;
            let read = Manifest::parse_in_full(&bytes, &new_listed, &files.metadata).unwrap_or_else(|e| panic!("{}: {e}", files.name));
            assert_eq!(read.len(), manifest.live().count(), "{}", files.name);
            for (new, old) in read.entries().zip(manifest.live()) {
                entries += 1;
                // The new list hands out no row ids here, so those of the file itself are not seen.
                let mut expected = old.to_data_file();
                expected.first_row_id = None;
                assert_eq!(new.to_data_file(), expected, "{}", files.name);
                assert_eq!(new.status(), EntryStatus::Existing);
                assert_eq!(new.snapshot_id(), old.snapshot_id(), "{}", files.name);
                assert_eq!(new.sequence_number(), old.sequence_number(), "{}", files.name);
                if let Some(number) = old.file_sequence_number() {
                    assert_eq!(new.file_sequence_number(), Some(number), "{}", files.name);
                }
            }
            let (rows, header) = oracle(&bytes).unwrap_or_else(|| panic!("{}: another reader fails", files.name));
            let spec = files.metadata.spec_by_id(manifest.spec_id()).unwrap();
            let is_v1 = header["format-version"] == b"1";
            assert_manifest(&read, &new_listed, spec, &rows, is_v1, &files.name);
        }
    }
    println!("{manifests} manifests, {entries} entries, refused: {refused:#?}");
    if manifests > 0 {
        assert!(manifests > 450, "{manifests} manifests");
        // A table that was replaced by another: its old manifests have text where the column of the
        // same id is a number today.
        assert_eq!(refused.into_keys().collect::<Vec<_>>(), ["spark_replaced_table"]);
    }
}

#[test]
fn lists_of_every_table_are_written_again_without_loss() {
    let (mut lists, mut incomplete) = (0, 0);
    for files in cases::iceberg().iter().filter_map(Files::of) {
        let version = files.metadata.format_version;
        for snapshot in &files.metadata.snapshots {
            let Some(mut manifests) = files.list(snapshot) else { continue };
            for listed in manifests.iter_mut().filter(|listed| !listed.is_complete()) {
                incomplete += 1;
                if let Some((bytes, manifest)) = files.manifest(listed) {
                    listed.complete(&manifest, bytes.len() as u64, snapshot.snapshot_id);
                }
            }
            let next = if version == 1 { 0 } else { files.metadata.last_sequence_number + 1 };
            let row_id = (version > 2).then(|| files.metadata.next_row_id.unwrap_or(0));
            let mut writer = ManifestListWriter::new(version, 1, Some(snapshot.snapshot_id), next, row_id, layout()).unwrap();
            for listed in &manifests {
                writer.add(listed).unwrap_or_else(|e| panic!("{}: {e}", files.name));
            }
            let written = writer.finish().unwrap();
            let read = read_manifest_list_in_full(&written.bytes, "list").unwrap();
            assert_eq!(read, written.manifests, "{}", files.name);
            let (rows, _) = oracle(&written.bytes).unwrap();
            for ((new, old), row) in read.iter().zip(&manifests).zip(&rows) {
                let mut expected = old.clone();
                // Manifests from before v3 get theirs with the next list.
                expected.first_row_id = expected.first_row_id.or(new.first_row_id);
                assert_eq!(*new, expected, "{}", files.name);
                assert_list_entry(new, row, &files.name);
            }
            lists += 1;
        }
    }
    println!("{lists} lists, {incomplete} incomplete entries");
    assert!(lists == 0 || lists > 300, "{lists} lists");
}

/// Keys that are worked out from files; writers add others of their own.
const COMPUTED: [&str; 25] = [
    "added-data-files",
    "deleted-data-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
    "changed-partition-count",
    "total-records",
    "total-files-size",
    "total-data-files",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
];

/// The summary of a snapshot worked out from its manifests; `None` where a file or the parent is gone.
fn summary_of(files: &Files, snapshot: &Snapshot) -> Option<BTreeMap<String, String>> {
    let parent = match snapshot.parent_snapshot_id {
        None => None,
        Some(id) => Some(files.metadata.snapshot_by_id(id)?),
    };
    let mut summary = SummaryBuilder::new(&files.metadata).unwrap();
    let own = Some(snapshot.snapshot_id);
    for listed in files.list(snapshot)?.iter().filter(|listed| listed.added_snapshot_id == own) {
        let (_, manifest) = files.manifest(listed)?;
        for entry in manifest.entries().filter(|entry| entry.snapshot_id() == own) {
            match entry.status() {
                EntryStatus::Added => summary.added(&entry.to_data_file()).unwrap(),
                EntryStatus::Deleted => summary.removed(&entry.to_data_file()).unwrap(),
                EntryStatus::Existing => {}
            }
        }
    }
    Some(summary.build(snapshot.operation()?, parent.map(Arc::as_ref)).unwrap())
}

#[test]
fn summaries_worked_out_from_manifests_are_those_that_java_wrote() {
    let (mut compared, mut wrong) = (0, Vec::new());
    for case in cases::iceberg().iter().filter(|case| case.is_own()) {
        let Some(files) = Files::of(case) else { continue };
        for snapshot in &files.metadata.snapshots {
            let Some(ours) = summary_of(&files, snapshot) else { continue };
            compared += 1;
            let by_manifest = !snapshot.summary.contains_key("changed-partition-count");
            for key in COMPUTED {
                // Where whole manifests were appended the writer looked at no file, so it knows
                // neither partitions nor sizes.
                if by_manifest && (key == "changed-partition-count" || key.ends_with("-files-size")) {
                    continue;
                }
                if ours.get(key) != snapshot.summary.get(key) {
                    let (ours, theirs) = (ours.get(key), snapshot.summary.get(key));
                    wrong.push(format!("{} {} {key}: {ours:?}, {theirs:?}", files.name, snapshot.snapshot_id));
                }
            }
        }
    }
    println!("{compared} summaries");
    assert!(wrong.is_empty(), "{} of {compared} summaries:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared == 0 || compared > 150, "{compared} summaries");
}
