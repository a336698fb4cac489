//! Checks a whole table: the rules of every snapshot that it keeps, and that the files which its live entries name are
//! there with the size that is written down (OP-12). Reads only.
//!
//! Invariant: a file that cannot be read is a finding and ends nothing, so that all findings are told.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::manifest::{FileContent, Manifest, ManifestFile, read_manifest_list_in_full};
use super::rules::SnapshotRules;
use super::spec::{Snapshot, SnapshotManifests};
use super::table::IcebergTable;
use crate::error::{Error, ErrorKind, Result};
use crate::io::FileKind;

/// Largest manifest or manifest list that is read.
const READ_LIMIT: u64 = 1 << 30;

/// What was looked at and what was found.
#[derive(Debug, Default)]
pub struct TableCheck {
    pub snapshots: usize,
    pub manifests: usize,
    /// Data files and delete files of live entries.
    pub files: usize,
    /// One sentence each, in order of snapshots; each is told once.
    pub findings: Vec<String>,
}

impl TableCheck {
    fn find(&mut self, finding: String) {
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// A manifest is read once, though it is in many snapshots. What its entries inherit belongs to the list.
type Manifests = HashMap<(String, i64, Option<u64>), Option<Arc<Manifest>>>;

/// Checks all snapshots of the table.
///
/// Errors: `Unsupported` for manifests that are named without a manifest list (v1).
pub async fn check_table(table: &IcebergTable) -> Result<TableCheck> {
    let mut check = TableCheck::default();
    let mut manifests = Manifests::new();
    let mut files: BTreeMap<String, (u64, FileContent)> = BTreeMap::new();
    for snapshot in &table.metadata().snapshots {
        check.snapshots += 1;
        let SnapshotManifests::List(list) = &snapshot.manifests else {
            return Err(Error::unsupported(format!(
                "snapshot {} names its manifests without a manifest list",
                snapshot.snapshot_id
            )));
        };
        match read(table, list, FileKind::ManifestList)
            .await
            .and_then(|bytes| read_manifest_list_in_full(&bytes, list))
        {
            Ok(listed) => check_snapshot(table, snapshot, &listed, &mut manifests, &mut files, &mut check).await,
            Err(error) => check.find(format!("snapshot {}: {error}", snapshot.snapshot_id)),
        }
    }
    check.manifests = manifests.keys().map(|(location, ..)| location).collect::<HashSet<_>>().len();
    check.files = files.len();
    for (path, (size, content)) in files {
        check_file(table, &path, size, content, &mut check).await;
    }
    Ok(check)
}

async fn read(table: &IcebergTable, location: &str, kind: FileKind) -> Result<bytes::Bytes> {
    let io = table.io();
    let location = io.resolve(location)?;
    io.read(&location, kind, READ_LIMIT).await.map_err(|e| e.with("file", &location))
}

async fn check_snapshot(
    table: &IcebergTable,
    snapshot: &Snapshot,
    listed: &[ManifestFile],
    manifests: &mut Manifests,
    files: &mut BTreeMap<String, (u64, FileContent)>,
    check: &mut TableCheck,
) {
    let metadata = table.metadata();
    let mut rules = SnapshotRules::new(metadata, snapshot);
    let mut is_whole = true;
    for entry in listed {
        let key = (entry.location.clone(), entry.sequence_number, entry.first_row_id);
        let known = manifests.get(&key).cloned();
        let manifest = match known {
            Some(manifest) => manifest,
            None => {
                let bytes = read(table, &entry.location, FileKind::Manifest).await;
                let parsed = bytes.and_then(|bytes| Manifest::parse_in_full(&bytes, entry, metadata));
                let parsed = parsed.map_err(|error| check.find(format!("snapshot {}: {error}", snapshot.snapshot_id)));
                let manifest = parsed.ok().map(Arc::new);
                manifests.insert(key, manifest.clone());
                manifest
            }
        };
        let Some(manifest) = manifest else {
            is_whole = false;
            continue;
        };
        rules.manifest(entry, &manifest);
        for file in manifest.entries().filter(|file| file.is_live()) {
            files.insert(file.file_path().to_owned(), (file.file_size_in_bytes(), file.content()));
        }
    }
    for finding in rules.finish(is_whole) {
        check.find(format!("snapshot {}: {finding}", snapshot.snapshot_id));
    }
}

async fn check_file(table: &IcebergTable, path: &str, size: u64, content: FileContent, check: &mut TableCheck) {
    let kind = match content {
        FileContent::Data => FileKind::Data,
        _ => FileKind::Delete,
    };
    let found = match table.io().resolve(path) {
        Ok(location) => table.io().size(&location, kind).await,
        Err(e) => Err(e),
    };
    match found {
        Ok(found) if found == size => {}
        Ok(found) => check.find(format!("{path} has {found} bytes, its entry says {size}")),
        Err(e) if e.kind() == ErrorKind::NotFound => check.find(format!("{path} is missing")),
        Err(e) => check.find(format!("{path}: {e}")),
    }
}
