//! Data files that rows are to be deleted of: what a commit must know of them.
//!
//! Invariant: the deletes of a target are all that its file's rows are subject to in the snapshot, and those
//! that concern no other file are told apart, because they go when a vector takes their rows in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::commit::RemovedFile;
use super::manifest::{DataFile, EntryRef, FileContent, ManifestContent};
use super::plan::plan_files;
use super::spec::DELETE_FILE_PATH_ID;
use super::table::IcebergSnapshot;
use crate::error::{Result, ResultExt};
use crate::table::{FileScanTask, ScanPlan, ScanRequest};

/// A data file that rows are to be deleted of.
#[derive(Debug, Clone)]
pub struct DeleteTarget {
    pub task: Arc<FileScanTask>,
    /// As the manifest has it.
    pub data_file: DataFile,
    /// Its deletion vector.
    pub vector: Option<RemovedFile>,
    /// Position delete files that apply to it and name no other file.
    pub scoped: Vec<RemovedFile>,
}

/// The files of a scan as a delete sees them.
#[derive(Debug, Clone)]
pub struct DeletePlan {
    pub scan: ScanPlan,
    /// One for each task of the scan, in order.
    pub targets: Vec<DeleteTarget>,
    /// All live delete files of the snapshot.
    pub delete_files: Vec<RemovedFile>,
}

/// A live delete file by its resolved location and, of a vector, its offset.
type Place = (String, Option<u64>);

impl IcebergSnapshot {
    /// The data files that may have a row that is asked for, with what deletes of them need to know.
    ///
    /// Errors: those of reading the snapshot's manifests.
    pub async fn plan_delete(&self, request: &ScanRequest) -> Result<DeletePlan> {
        let table = self.iceberg_table();
        let ident = || table.ident.clone();
        let Some(snapshot) = self.entry() else {
            let scan = crate::table::Snapshot::plan_scan(self, request).await?;
            return Ok(DeletePlan {
                scan,
                targets: Vec::new(),
                delete_files: Vec::new(),
            });
        };
        let mut data_files = Vec::new();
        let columns = crate::table::Snapshot::columns(self);
        let planned = plan_files(&table.files, &table.metadata, snapshot, columns, request, |entry, task| {
            data_files.push((entry.to_data_file(), Arc::clone(task)));
        });
        let planned = planned.await.context("table", ident)?;
        let mut places: HashMap<Place, (RemovedFile, Names)> = HashMap::new();
        let mut delete_files = Vec::new();
        for manifest in planned.manifests.iter().filter(|m| m.content() == ManifestContent::Deletes) {
            for entry in manifest.live() {
                let name = RemovedFile::of(&entry);
                delete_files.push(name.clone());
                if entry.content() == FileContent::PositionDeletes {
                    let location = table.files.io.resolve(entry.file_path()).context("file", || entry.file_path())?;
                    places.insert((location, name.content_offset), (name, Names::of(&entry)));
                }
            }
        }
        let targets = data_files.into_iter().map(|(data_file, task)| {
            let deletes = &task.deletes;
            let vector = deletes.vector.as_ref();
            let vector = vector.and_then(|vector| places.get(&(vector.location.clone(), Some(vector.offset))));
            let scoped: HashSet<&RemovedFile> = deletes
                .positions
                .iter()
                .filter_map(|file| places.get(&(file.location.clone(), None)))
                .filter(|(_, names)| names.only(&data_file.file_path))
                .map(|(name, _)| name)
                .collect();
            let mut scoped: Vec<RemovedFile> = scoped.into_iter().cloned().collect();
            scoped.sort();
            DeleteTarget {
                vector: vector.map(|(name, _)| name.clone()),
                scoped,
                data_file,
                task,
            }
        });
        Ok(DeletePlan {
            targets: targets.collect(),
            scan: planned.scan,
            delete_files,
        })
    }
}

/// Which data files a position delete file names, as far as its manifest tells.
#[derive(Debug)]
enum Names {
    One,
    /// The one of this path, or, where it is a bound that was cut, any whose path begins so.
    Bound(Vec<u8>),
    Several,
}

impl Names {
    fn of(entry: &EntryRef<'_>) -> Self {
        if entry.referenced_data_file().is_some() {
            return Self::One;
        }
        match (entry.lower_bound(DELETE_FILE_PATH_ID), entry.upper_bound(DELETE_FILE_PATH_ID)) {
            (Some(lower), Some(upper)) if lower == upper => Self::Bound(lower.to_vec()),
            _ => Self::Several,
        }
    }

    /// Whether it is certain that no other data file is named than the one of this path, to which the file applies.
    fn only(&self, path: &str) -> bool {
        match self {
            Self::One => true,
            Self::Bound(bound) => bound == path.as_bytes(),
            Self::Several => false,
        }
    }
}
