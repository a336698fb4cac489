//! The files of one version, with what is known of each.
//!
//! Invariants: a path occurs once; files are in no order. A list never changes; a newer version's is made of an older
//! one's by what changed between, sharing what stayed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, MapArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use super::kernel::{FileChanges, FileKey};
use super::partition_value;
use super::paths::spelled_out;
use super::stats::{Statistics, StatisticsSchema};
use super::vectors::Descriptor;
use crate::error::{Error, Result, ResultExt};
use crate::table::{Column, ColumnStats, Datum, Facts};

/// What batches of file actions are read with.
#[derive(Debug)]
pub(super) struct FileSchema {
    statistics: StatisticsSchema,
    partition: Vec<Arc<Column>>,
}

impl FileSchema {
    /// The columns that the table is partitioned by.
    pub(super) fn partition(&self) -> &[Arc<Column>] {
        &self.partition
    }

    /// For a table of these columns, some of which it is partitioned by.
    pub(super) fn new(columns: &[Arc<Column>], partition: Vec<Arc<Column>>) -> Self {
        let is_data = |column: &&Arc<Column>| !partition.iter().any(|p| p.id == column.id);
        Self {
            statistics: StatisticsSchema::new(columns.iter().filter(is_data)),
            partition,
        }
    }
}

/// Files that came in one batch.
#[derive(Debug)]
struct Batch {
    statistics: Statistics,
    /// Field id and values of each partition column.
    partition: Vec<(i32, ArrayRef)>,
    /// Name in the log and values as the log has them.
    partition_texts: Vec<(String, StringArray)>,
}

/// A data file.
#[derive(Debug, Clone)]
pub(super) struct LiveFile {
    /// As the log spells it.
    pub(super) path: Arc<str>,
    pub(super) size: i64,
    /// Milliseconds since the epoch.
    pub(super) modified: i64,
    pub(super) vector: Option<Arc<Descriptor>>,
    pub(super) base_row_id: Option<i64>,
    pub(super) commit_version: Option<i64>,
    batch: Arc<Batch>,
    row: usize,
}

impl LiveFile {
    /// Rows of the file before deletes.
    pub(super) fn record_count(&self) -> Option<u64> {
        self.batch.statistics.record_count(self.row)
    }

    /// Partition values: field id and an array of one row.
    pub(super) fn partition(&self) -> impl Iterator<Item = (i32, ArrayRef)> {
        self.batch.partition.iter().map(|(id, values)| (*id, values.slice(self.row, 1)))
    }

    /// Partition values as the log has them: the column's name in the log and the text.
    pub(super) fn partition_texts(&self) -> impl Iterator<Item = (&str, Option<String>)> {
        self.batch.partition_texts.iter().map(|(name, texts)| {
            let text = texts.is_valid(self.row).then(|| texts.value(self.row).to_owned());
            (name.as_str(), text)
        })
    }

    /// What partition values tell.
    pub(super) fn partition_facts(&self) -> PartitionFacts<'_> {
        PartitionFacts(self)
    }

    /// What partition values and statistics tell.
    pub(super) fn facts(&self) -> FileFacts<'_> {
        FileFacts(self)
    }

    fn partition_column(&self, id: i32) -> Option<ColumnStats> {
        let (_, values) = self.batch.partition.iter().find(|(of, _)| *of == id)?;
        if values.is_null(self.row) {
            return Some(ColumnStats::null());
        }
        Some(Datum::at(values, self.row).map_or_else(ColumnStats::unknown, ColumnStats::only))
    }

    fn key(&self) -> FileKey {
        FileKey {
            path: self.path.to_string(),
            vector: self.vector.as_ref().map(|v| v.unique_id()),
        }
    }
}

/// What partition values tell of a file.
#[derive(Debug)]
pub(super) struct PartitionFacts<'a>(&'a LiveFile);

impl Facts for PartitionFacts<'_> {
    fn column(&self, field_id: i32) -> ColumnStats {
        self.0.partition_column(field_id).unwrap_or_else(ColumnStats::unknown)
    }
}

/// What partition values and statistics tell of a file.
#[derive(Debug)]
pub(super) struct FileFacts<'a>(&'a LiveFile);

impl Facts for FileFacts<'_> {
    fn column(&self, field_id: i32) -> ColumnStats {
        let file = self.0;
        file.partition_column(field_id)
            .unwrap_or_else(|| file.batch.statistics.column(field_id, file.row))
    }
}

/// The files of a version.
#[derive(Debug, Default)]
pub(super) struct LiveFiles {
    pub(super) files: Vec<LiveFile>,
}

impl LiveFiles {
    /// From the batches of a replay.
    ///
    /// Errors: `Corrupt` for a file whose partition values or deletion vector break the protocol, naming it.
    pub(super) fn of(batches: &[RecordBatch], schema: &FileSchema) -> Result<Self> {
        let mut all = Self::default();
        for batch in batches {
            all.add(batch, schema)?;
        }
        all.check()?;
        Ok(all)
    }

    /// A newer version's files.
    ///
    /// Errors: as [`Self::of`].
    pub(super) fn after(&self, changes: &FileChanges, schema: &FileSchema) -> Result<Self> {
        let mut paths: HashMap<&str, Vec<&FileKey>> = HashMap::new();
        for key in &changes.gone {
            paths.entry(key.path.as_str()).or_default().push(key);
        }
        let stays = |file: &&LiveFile| paths.get(&*file.path).is_none_or(|keys| !keys.contains(&&file.key()));
        let mut all = Self {
            files: self.files.iter().filter(stays).cloned().collect(),
        };
        for batch in &changes.added {
            all.add(batch, schema)?;
        }
        all.check()?;
        Ok(all)
    }

    /// A file that stands twice, with other deletion vectors or spelled otherwise, would give rows twice: a writer forgot
    /// to name the vector that it replaced.
    fn check(&self) -> Result<()> {
        let mut seen = HashSet::with_capacity(self.files.len());
        match self.files.iter().find(|file| !seen.insert(spelled_out(&file.path))) {
            None => Ok(()),
            Some(twice) => Err(
                Error::corrupt("the log lists a file twice, with different deletion vectors or in different spellings")
                    .with("file", &twice.path),
            ),
        }
    }

    fn add(&mut self, batch: &RecordBatch, schema: &FileSchema) -> Result<()> {
        let column = |name: &str| {
            batch
                .column_by_name(name)
                .ok_or_else(|| Error::internal(format!("file actions lack {name}")))
        };
        let text = |name: &str| {
            column(name)?
                .as_string_opt::<i32>()
                .ok_or_else(|| Error::internal(format!("{name} is no text")))
        };
        let long = |name: &str| {
            column(name)?
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| Error::internal(format!("{name} is no long")))
        };
        let (paths, sizes, modified) = (text("path")?, long("size")?, long("modificationTime")?);
        let (row_ids, versions) = (long("baseRowId")?, long("defaultRowCommitVersion")?);
        let vectors = column("deletionVector")?
            .as_struct_opt()
            .ok_or_else(|| Error::internal("deletionVector is no struct"))?;
        let values = column("partitionValues")?
            .as_map_opt()
            .ok_or_else(|| Error::internal("partitionValues is no map"))?;
        let partition_texts = partition_texts(values, &schema.partition)?;
        let typed = partition_texts
            .iter()
            .zip(&schema.partition)
            .map(|((_, texts), column)| Ok((column.id, partition_value::typed(texts.iter().collect(), column)?)));
        let shared = Arc::new(Batch {
            statistics: schema.statistics.parse(text("stats")?)?,
            partition: typed.collect::<Result<_>>()?,
            partition_texts,
        });
        let at = |array: &arrow::array::Int64Array, row: usize| array.is_valid(row).then(|| array.value(row));
        self.files.reserve(batch.num_rows());
        for row in 0..batch.num_rows() {
            let path = paths.is_valid(row).then(|| paths.value(row));
            let path = path.ok_or_else(|| Error::corrupt("a file action of the log has no path"))?;
            let vector = Descriptor::at(vectors, row).context("file", || path)?;
            self.files.push(LiveFile {
                path: path.into(),
                size: at(sizes, row).unwrap_or(0),
                modified: at(modified, row).unwrap_or(0),
                vector: vector.map(Arc::new),
                base_row_id: at(row_ids, row),
                commit_version: at(versions, row),
                batch: Arc::clone(&shared),
                row,
            });
        }
        Ok(())
    }

    /// Bytes that this holds, about.
    pub(super) fn memory_size(&self) -> usize {
        let mut batches: HashMap<*const Batch, usize> = HashMap::new();
        let mut own = 0;
        for file in &self.files {
            own += file.path.len() + std::mem::size_of::<LiveFile>();
            own += file.vector.as_ref().map_or(0, |v| v.path_or_inline.len() + 96);
            batches.entry(Arc::as_ptr(&file.batch)).or_insert_with(|| {
                let partition: usize = file.batch.partition.iter().map(|(_, a)| 2 * a.get_array_memory_size()).sum();
                partition + file.batch.statistics.memory_size()
            });
        }
        own + batches.values().sum::<usize>()
    }
}

/// The texts of each partition column, by the names that the log knows them by.
fn partition_texts(values: &MapArray, columns: &[Arc<Column>]) -> Result<Vec<(String, StringArray)>> {
    let broken = || Error::internal("partitionValues is no map of texts");
    let keys = values.keys().as_string_opt::<i32>().ok_or_else(broken)?;
    let texts: &StringArray = values.values().as_string_opt::<i32>().ok_or_else(broken)?;
    let offsets = values.value_offsets();
    let found = columns.iter().map(|column| {
        let name = column.names.first().map_or("", String::as_str);
        let of_row = |row: usize| {
            if values.is_null(row) {
                return None;
            }
            let (start, end) = (*offsets.get(row)?, *offsets.get(row + 1)?);
            let mut entries = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
            let at = entries.find(|at| keys.value(*at) == name)?;
            texts.is_valid(at).then(|| texts.value(at))
        };
        (name.to_owned(), (0..values.len()).map(of_row).collect())
    });
    Ok(found.collect())
}
