//! Scan planning: manifest list, manifests, delete index, tasks.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use futures::{StreamExt, TryStreamExt};

use super::arrow_schema::file_names;
use super::delete_index::{DeleteIndex, DeleteIndexBuilder};
use super::hidden::PartitionType;
use super::literal_array::literal_array;
use super::loader::TableFiles;
use super::manifest::{EntryRef, FileContent, FileFormat as ManifestFormat, Manifest, ManifestContent, ManifestFile, read_manifest_list};
use super::prune::Pruner;
use super::spec::{PartitionSpec, PartitionValues, Snapshot, SnapshotManifests, TableMetadata, Transform};
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::FileKind;
use crate::table::{Column, ColumnMatching, FileFormat, FileOrigin, FileScanTask, ScanPlan, ScanRequest};

/// Largest manifest list or manifest that is read.
pub(super) const MANIFEST_LIMIT: u64 = 1 << 30;
/// Manifests that are read at once.
const CONCURRENT_MANIFESTS: usize = 8;

/// The live data files of a snapshot that may have a row that is asked for, with their deletes.
/// `columns` are those that the snapshot is read with.
pub(super) async fn plan_scan(
    files: &TableFiles,
    metadata: &Arc<TableMetadata>,
    snapshot: &Snapshot,
    columns: &[Arc<Column>],
    request: &ScanRequest,
) -> Result<ScanPlan> {
    Ok(plan_files(files, metadata, snapshot, columns, request, |_, _| {}).await?.scan)
}

/// A plan with the manifests that it comes from.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) scan: ScanPlan,
    pub(super) manifests: Vec<Arc<Manifest>>,
}

/// As [`plan_scan`]; `each` is told of every planned file with its entry.
pub(super) async fn plan_files(
    files: &TableFiles,
    metadata: &Arc<TableMetadata>,
    snapshot: &Snapshot,
    columns: &[Arc<Column>],
    request: &ScanRequest,
    mut each: impl FnMut(&EntryRef<'_>, &Arc<FileScanTask>),
) -> Result<Planned> {
    snapshot.check_readable()?;
    let mapping = metadata.name_mapping()?;
    let names = file_names(mapping.as_ref());
    let list = manifest_list(files, snapshot).await?;
    let mut pruner = Pruner::new(request, columns, metadata);
    let list_name = match &snapshot.manifests {
        SnapshotManifests::List(recorded) => files.io.resolve(recorded).context("file", || recorded)?,
        SnapshotManifests::Inline(_) => "none".to_owned(),
    };
    let reads: Vec<_> = list
        .iter()
        .filter(|entry| entry.may_have_live_files() && pruner.wants_manifest(entry))
        .map(|entry| manifest(files, metadata, entry.clone()))
        .collect();
    let manifests: Vec<Arc<Manifest>> = futures::stream::iter(reads)
        .buffered(CONCURRENT_MANIFESTS)
        .try_collect()
        .await
        .context("manifest list", || list_name)?;

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
        partition_type: if request.partition {
            Some(PartitionType::of(metadata)?)
        } else {
            None
        },
        partitions: HashMap::new(),
    };
    let mut planned = Vec::new();
    for manifest in manifests.iter().filter(|m| m.content() == ManifestContent::Data) {
        // Writers exist that commit a file of no rows without writing it.
        for entry in pruner.wanted_files(manifest).into_iter().filter(|e| e.record_count() > 0) {
            let task = Arc::new(tasks.task(&entry).context("file", || entry.file_path())?);
            each(&entry, &task);
            planned.push(task);
        }
    }
    let scan = ScanPlan {
        tasks: planned,
        io: files.io.clone(),
        matching: matching(mapping.is_some()),
        proved: pruner.proved().to_vec(),
        counts: pruner.counts(),
    };
    Ok(Planned { scan, manifests })
}

/// How columns are found in the files of a table that has a name mapping, or none.
pub(super) fn matching(has_name_mapping: bool) -> ColumnMatching {
    match has_name_mapping {
        true => ColumnMatching::IdsOrNames,
        false => ColumnMatching::IdsOrPositions,
    }
}

/// The format of a data file.
fn data_format(entry: &EntryRef<'_>) -> Result<FileFormat> {
    if entry.content() != FileContent::Data {
        return Err(Error::corrupt("a data manifest lists a delete file"));
    }
    row_format(entry)
}

/// The format of a file of rows.
///
/// Errors: `Corrupt` for a Puffin file, which holds none.
pub(super) fn row_format(entry: &EntryRef<'_>) -> Result<FileFormat> {
    match entry.file_format() {
        ManifestFormat::Parquet => Ok(FileFormat::Parquet),
        ManifestFormat::Avro => Ok(FileFormat::Avro),
        ManifestFormat::Orc => Ok(FileFormat::Orc),
        ManifestFormat::Puffin => Err(Error::corrupt("a puffin file holds no rows, but its entry says so")),
    }
}

/// The manifests of a snapshot.
pub(super) async fn manifest_list(files: &TableFiles, snapshot: &Snapshot) -> Result<Arc<Vec<ManifestFile>>> {
    let recorded = match &snapshot.manifests {
        SnapshotManifests::Inline(paths) => return Ok(Arc::new(paths.iter().map(ManifestFile::bare).collect())),
        SnapshotManifests::List(recorded) => recorded,
    };
    let location = files.io.resolve(recorded).context("file", || recorded)?;
    let key = CacheKey::new(CacheKind::ManifestList, location.as_str(), files.io.cache_scope());
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
        ^ entry.first_row_id.map_or(0, |id| id.wrapping_add(1)).rotate_left(42)
        ^ files.io.cache_scope();
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
    /// Set when partition values are asked for.
    partition_type: Option<PartitionType>,
    partitions: HashMap<(i32, PartitionValues), ArrayRef>,
}

impl Tasks<'_> {
    fn task(&mut self, entry: &EntryRef<'_>) -> Result<FileScanTask> {
        let format = data_format(entry)?;
        let location = self.files.io.resolve(entry.file_path())?;
        Ok(FileScanTask {
            deletes: self.deletes.deletes_of(entry, &location)?,
            constants: self.constants_of(entry)?,
            location: location.into(),
            format,
            recorded_path: entry.file_path().to_owned(),
            size: entry.file_size_in_bytes(),
            record_count: Some(entry.record_count()),
            origin: FileOrigin {
                spec_id: entry.spec_id(),
                partition: self.partition_of(entry)?,
                first_row_id: entry.first_row_id(),
                sequence_number: entry.sequence_number(),
            },
        })
    }

    fn spec_of(&self, entry: &EntryRef<'_>) -> Result<&Arc<PartitionSpec>> {
        self.metadata
            .spec_by_id(entry.spec_id())
            .ok_or_else(|| Error::corrupt(format!("partition spec {} is not in the table's metadata", entry.spec_id())))
    }

    /// Partition values as one struct over all specs, if they are asked for.
    fn partition_of(&mut self, entry: &EntryRef<'_>) -> Result<Option<ArrayRef>> {
        let Some(of) = &self.partition_type else { return Ok(None) };
        let key = (entry.spec_id(), Arc::clone(entry.partition()));
        if let Some(known) = self.partitions.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let array = of.array(self.spec_of(entry)?, entry.partition())?;
        self.partitions.insert(key, Arc::clone(&array));
        Ok(Some(array))
    }

    /// Identity partition values as constant columns.
    fn constants_of(&mut self, entry: &EntryRef<'_>) -> Result<ConstantColumns> {
        let key = (entry.spec_id(), Arc::clone(entry.partition()));
        if let Some(known) = self.constants.get(&key) {
            return Ok(Arc::clone(known));
        }
        let spec = Arc::clone(self.spec_of(entry)?);
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
