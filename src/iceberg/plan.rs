//! Scan planning: manifest list, manifests, delete index, tasks.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use futures::{StreamExt, TryStreamExt};

use super::arrow_schema::file_names;
use super::delete_index::{DeleteIndex, DeleteIndexBuilder};
use super::literal_array::literal_array;
use super::loader::TableFiles;
use super::manifest::{EntryRef, FileContent, FileFormat, Manifest, ManifestContent, ManifestFile, read_manifest_list};
use super::spec::{PartitionValues, Snapshot, SnapshotManifests, TableMetadata, Transform};
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::FileKind;
use crate::table::{FileScanTask, ScanPlan};

/// Largest manifest list or manifest that is read.
pub(super) const MANIFEST_LIMIT: u64 = 1 << 30;
/// Manifests that are read at once.
const CONCURRENT_MANIFESTS: usize = 8;

/// All live data files of a snapshot with their deletes.
pub(super) async fn plan_scan(files: &TableFiles, metadata: &Arc<TableMetadata>, snapshot: &Snapshot) -> Result<ScanPlan> {
    snapshot.check_readable()?;
    let mapping = metadata.name_mapping()?;
    let names = file_names(mapping.as_ref());
    let list = manifest_list(files, snapshot).await?;
    let reads: Vec<_> = list
        .iter()
        .filter(|entry| entry.may_have_live_files())
        .map(|entry| manifest(files, metadata, entry.clone()))
        .collect();
    let manifests: Vec<Arc<Manifest>> = futures::stream::iter(reads).buffered(CONCURRENT_MANIFESTS).try_collect().await?;

    let mut deletes = DeleteIndexBuilder::new(&files.io, metadata, &names);
    for manifest in manifests.iter().filter(|m| m.content() == ManifestContent::Deletes) {
        for entry in manifest.live() {
            deletes.add(&entry).context("manifest", || manifest.location())?;
        }
    }
    let deletes = deletes.build()?;

    let mut tasks = Tasks {
        files,
        metadata,
        deletes: &deletes,
        constants: HashMap::new(),
    };
    let mut planned = Vec::new();
    for manifest in manifests.iter().filter(|m| m.content() == ManifestContent::Data) {
        // Writers exist that commit a file of no rows without writing it.
        for entry in manifest.live().filter(|e| e.record_count() > 0) {
            planned.push(Arc::new(tasks.task(&entry).context("file", || entry.file_path())?));
        }
    }
    Ok(ScanPlan {
        tasks: planned,
        io: files.io.clone(),
        has_name_mapping: mapping.is_some(),
    })
}

fn check_readable(entry: &EntryRef<'_>) -> Result<()> {
    if entry.content() != FileContent::Data {
        return Err(Error::corrupt("a data manifest lists a delete file"));
    }
    if entry.file_format() != FileFormat::Parquet {
        return Err(Error::unsupported(format!(
            "data files in {} cannot be read yet",
            entry.file_format().as_str()
        )));
    }
    Ok(())
}

/// The manifests of a snapshot.
pub(super) async fn manifest_list(files: &TableFiles, snapshot: &Snapshot) -> Result<Arc<Vec<ManifestFile>>> {
    let recorded = match &snapshot.manifests {
        SnapshotManifests::Inline(paths) => return Ok(Arc::new(paths.iter().map(ManifestFile::bare).collect())),
        SnapshotManifests::List(recorded) => recorded,
    };
    let location = files.io.resolve(recorded).context("file", || recorded)?;
    let key = CacheKey::new(CacheKind::ManifestList, location.as_str(), 0);
    files
        .caches
        .metadata
        .get_or_load(key, async {
            let bytes = files.io.read(&location, FileKind::ManifestList, MANIFEST_LIMIT).await?;
            let name = location.clone();
            let size = bytes.len();
            let list = files.pool.spawn(move |_| read_manifest_list(&bytes, &name)).await?;
            // Entries are about as large decoded as the uncompressed file.
            let weight = size.max(list.len() * 512);
            Ok((list, weight))
        })
        .await
        .context("file", || &location)
}

async fn manifest(files: &TableFiles, metadata: &Arc<TableMetadata>, entry: ManifestFile) -> Result<Arc<Manifest>> {
    if entry.has_key_metadata {
        return Err(Error::unsupported("encrypted manifests cannot be read").with("file", &entry.location));
    }
    let location = files.io.resolve(&entry.location).context("file", || &entry.location)?;
    // What is inherited (sequence numbers, ids) belongs to the list entry, so it is part of the key.
    let part = entry.sequence_number.cast_unsigned()
        ^ entry.added_snapshot_id.unwrap_or(0).cast_unsigned().rotate_left(21)
        ^ entry.first_row_id.map_or(0, |id| id.wrapping_add(1)).rotate_left(42);
    let key = CacheKey::new(CacheKind::Manifest, location.as_str(), part);
    files
        .caches
        .metadata
        .get_or_load(key, async {
            let bytes = files.io.read(&location, FileKind::Manifest, MANIFEST_LIMIT).await?;
            let metadata = Arc::clone(metadata);
            let manifest = files.pool.spawn(move |_| Manifest::parse(&bytes, &entry, &metadata)).await?;
            let weight = manifest.memory_size();
            Ok((manifest, weight))
        })
        .await
        .context("file", || &location)
}

type ConstantColumns = Arc<Vec<(i32, ArrayRef)>>;

/// Makes tasks of data file entries.
struct Tasks<'a> {
    files: &'a TableFiles,
    metadata: &'a TableMetadata,
    deletes: &'a DeleteIndex,
    /// Constant columns by spec id and partition.
    constants: HashMap<(i32, PartitionValues), ConstantColumns>,
}

impl Tasks<'_> {
    fn task(&mut self, entry: &EntryRef<'_>) -> Result<FileScanTask> {
        check_readable(entry)?;
        let location = self.files.io.resolve(entry.file_path())?;
        Ok(FileScanTask {
            deletes: self.deletes.deletes_of(entry, &location)?,
            constants: self.constants_of(entry)?,
            location: location.into(),
            recorded_path: entry.file_path().to_owned(),
            size: entry.file_size_in_bytes(),
            record_count: entry.record_count(),
        })
    }

    /// Identity partition values as constant columns.
    fn constants_of(&mut self, entry: &EntryRef<'_>) -> Result<ConstantColumns> {
        let key = (entry.spec_id(), Arc::clone(entry.partition()));
        if let Some(known) = self.constants.get(&key) {
            return Ok(Arc::clone(known));
        }
        let spec = self
            .metadata
            .spec_by_id(entry.spec_id())
            .ok_or_else(|| Error::corrupt(format!("partition spec {} is not in the table's metadata", entry.spec_id())))?;
        let mut columns = Vec::new();
        for (field, value) in spec.fields.iter().zip(entry.partition().iter()) {
            if field.transform != Transform::Identity {
                continue;
            }
            // The source may have been dropped since; an equality delete can still name it.
            // A table that was replaced may use its id for another type; older snapshots have the older one.
            let types = std::iter::once(self.metadata.current_schema()?)
                .chain(self.metadata.schemas.iter().rev())
                .filter_map(|schema| schema.field_by_id(field.source_id))
                .filter_map(|source| source.field_type.as_primitive());
            let mut constant = None;
            for primitive in types {
                match (literal_array(value.as_ref(), primitive), &constant) {
                    (Ok(array), _) => {
                        constant = Some(Ok(array));
                        break;
                    }
                    (Err(e), None) => constant = Some(Err(e)),
                    (Err(_), Some(_)) => {}
                }
            }
            if let Some(constant) = constant {
                columns.push((field.source_id, constant?));
            }
        }
        let columns = Arc::new(columns);
        self.constants.insert(key, Arc::clone(&columns));
        Ok(columns)
    }
}
