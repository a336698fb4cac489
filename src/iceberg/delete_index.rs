//! Which deletes apply to which data file (spec "Scan Planning").
//!
//! - A deletion vector applies to the one file it references; there is at most one, and it
//!   replaces all position deletes of that file.
//! - A position delete file applies when data sequence number <= delete sequence number and spec
//!   and partition are equal; whether it names the data file is found on reading it, or here
//!   when it names one file only. Bounds of its paths that are equal are taken for that file's path
//!   and, since writers exist that cut an upper bound without rounding it up, for what several paths
//!   begin with.
//! - An equality delete file applies when data sequence number < delete sequence number, and
//!   spec and partition are equal or the delete's spec is unpartitioned.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::arrow_schema::{FileNames, key_column};
use super::manifest::{EntryRef, FileContent, FileFormat};
use super::plan::row_format;
use super::spec::{DELETE_FILE_PATH_ID, PartitionValues, TableMetadata};
use crate::error::{Error, Result, ResultExt};
use crate::io::TableIo;
use crate::table::{
    Column, DeleteSet, DeletionVectorRef, EqualityDeleteFile, EqualityDeleteSet, EqualityDeletes, PositionDeleteFile, VectorContainer,
};

type Partition = (i32, PartitionValues);

#[derive(Debug)]
struct Positions {
    file: Arc<PositionDeleteFile>,
    sequence_number: i64,
    partition: Partition,
}

#[derive(Debug)]
struct Equality {
    set: Arc<EqualityDeleteSet>,
    newest: i64,
}

/// The deletes of a snapshot.
#[derive(Debug, Default)]
pub(super) struct DeleteIndex {
    /// By resolved data file location, with the sequence number.
    vectors: HashMap<String, (Arc<DeletionVectorRef>, i64)>,
    by_file: HashMap<String, Vec<Positions>>,
    by_partition: HashMap<Partition, Vec<Positions>>,
    /// Files whose path bounds are equal, by that bound as recorded, and the lengths of these bounds.
    by_bound: HashMap<String, Vec<Positions>>,
    bound_lengths: BTreeSet<usize>,
    global_equality: Vec<Equality>,
    equality_by_partition: HashMap<Partition, Vec<Equality>>,
}

/// Collects delete entries, then becomes a [`DeleteIndex`].
pub(super) struct DeleteIndexBuilder<'a> {
    io: &'a TableIo,
    metadata: &'a TableMetadata,
    names: &'a FileNames,
    index: DeleteIndex,
    /// By scope (`None` is global) and sorted key ids.
    equality: HashMap<Option<Partition>, BTreeMap<Vec<i32>, Vec<EqualityDeleteFile>>>,
}

impl<'a> DeleteIndexBuilder<'a> {
    pub(super) fn new(io: &'a TableIo, metadata: &'a TableMetadata, names: &'a FileNames) -> Self {
        Self {
            io,
            metadata,
            names,
            index: DeleteIndex::default(),
            equality: HashMap::new(),
        }
    }

    /// Adds a live entry of a delete manifest.
    ///
    /// Errors: `Corrupt` for an entry that breaks the rules.
    pub(super) fn add(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        match (entry.content(), entry.file_format()) {
            (FileContent::PositionDeletes, FileFormat::Puffin) => self.add_vector(entry),
            (FileContent::PositionDeletes, _) => self.add_positions(entry),
            (FileContent::EqualityDeletes, _) => self.add_equality(entry),
            (FileContent::Data, _) => Err(Error::corrupt("a delete manifest lists a data file")),
        }
        .context("file", || entry.file_path())
    }

    fn add_vector(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        let (Some(data_file), Some(offset), Some(length)) =
            (entry.referenced_data_file(), entry.content_offset(), entry.content_size_in_bytes())
        else {
            return Err(Error::corrupt("a deletion vector lacks its referenced data file, offset or size"));
        };
        let vector = DeletionVectorRef {
            location: self.io.resolve(entry.file_path())?,
            offset,
            length,
            cardinality: entry.record_count(),
            container: VectorContainer::Puffin,
        };
        let data_file = self.io.comparable(data_file)?;
        if self
            .index
            .vectors
            .insert(data_file.clone(), (Arc::new(vector), entry.sequence_number()))
            .is_some()
        {
            return Err(Error::corrupt("a data file has two live deletion vectors").with("data_file", data_file));
        }
        Ok(())
    }

    fn add_positions(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        if entry.record_count() == 0 {
            return Ok(());
        }
        let named = match (
            entry.referenced_data_file(),
            entry.lower_bound(DELETE_FILE_PATH_ID),
            entry.upper_bound(DELETE_FILE_PATH_ID),
        ) {
            (Some(path), _, _) => Some(path.to_owned()),
            (None, Some(lower), Some(upper)) if lower == upper => std::str::from_utf8(lower).ok().map(str::to_owned),
            _ => None,
        };
        let bound = named.clone().filter(|_| entry.referenced_data_file().is_none());
        let file = PositionDeleteFile {
            location: self.io.resolve(entry.file_path())?,
            format: row_format(entry)?,
            size: entry.file_size_in_bytes(),
            record_count: entry.record_count(),
        };
        let partition = (entry.spec_id(), Arc::clone(entry.partition()));
        let positions = Positions {
            file: Arc::new(file),
            sequence_number: entry.sequence_number(),
            partition: partition.clone(),
        };
        if let Some(bound) = bound {
            self.index.bound_lengths.insert(bound.len());
            self.index.by_bound.entry(bound).or_default().push(Positions {
                file: Arc::clone(&positions.file),
                sequence_number: positions.sequence_number,
                partition: positions.partition.clone(),
            });
        }
        match named {
            Some(path) => self.index.by_file.entry(self.io.comparable(&path)?).or_default().push(positions),
            None => self.index.by_partition.entry(partition).or_default().push(positions),
        }
        Ok(())
    }

    fn add_equality(&mut self, entry: &EntryRef<'_>) -> Result<()> {
        let mut ids = entry.equality_ids().unwrap_or_default().to_vec();
        if ids.is_empty() {
            return Err(Error::corrupt("an equality delete file has no equality ids"));
        }
        if entry.record_count() == 0 {
            return Ok(());
        }
        ids.sort_unstable();
        ids.dedup();
        // Here, where an error still tells the manifest.
        for id in &ids {
            self.key(*id)?;
        }
        let spec = self
            .metadata
            .spec_by_id(entry.spec_id())
            .ok_or_else(|| Error::corrupt(format!("partition spec {} is not in the table's metadata", entry.spec_id())))?;
        let scope = (!spec.is_unpartitioned()).then(|| (entry.spec_id(), Arc::clone(entry.partition())));
        let file = EqualityDeleteFile {
            location: self.io.resolve(entry.file_path())?,
            format: row_format(entry)?,
            size: entry.file_size_in_bytes(),
            record_count: entry.record_count(),
            sequence_number: entry.sequence_number(),
        };
        self.equality.entry(scope).or_default().entry(ids).or_default().push(file);
        Ok(())
    }

    /// The finished index.
    pub(super) fn build(mut self) -> Result<DeleteIndex> {
        for (scope, sets) in std::mem::take(&mut self.equality) {
            for (ids, files) in sets {
                let newest = files.iter().map(|f| f.sequence_number).max().unwrap_or(i64::MIN);
                let key = |id: &i32| self.key(*id).context("file", || files.first().map_or("", |f| &f.location));
                let keys = ids.iter().map(key).collect::<Result<Vec<_>>>()?;
                let equality = Equality {
                    set: Arc::new(EqualityDeleteSet { keys, files }),
                    newest,
                };
                match &scope {
                    None => self.index.global_equality.push(equality),
                    Some(partition) => self
                        .index
                        .equality_by_partition
                        .entry(partition.clone())
                        .or_default()
                        .push(equality),
                }
            }
        }
        Ok(self.index)
    }

    /// The key column of field `id`: as the table has it now, or as the newest schema that had it.
    fn key(&self, id: i32) -> Result<Arc<Column>> {
        let current = self.metadata.current_schema()?;
        let mut older: Vec<_> = self.metadata.schemas.iter().collect();
        older.sort_by_key(|s| std::cmp::Reverse(s.schema_id()));
        for schema in std::iter::once(current).chain(older) {
            if let Some(column) = key_column(schema, self.names, id)? {
                return Ok(column);
            }
        }
        Err(Error::corrupt(format!(
            "equality delete on field {id}, which no schema of the table has"
        )))
    }
}

impl DeleteIndex {
    /// Files whose path bounds are equal and begin this path without being all of it.
    fn begun_by<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Positions> {
        let lengths = self.bound_lengths.range(..path.len());
        let bounds = lengths.filter_map(|length| self.by_bound.get(path.get(..*length)?));
        bounds.flatten()
    }

    /// The deletes that apply to a live data file at `location`.
    ///
    /// Errors: `Corrupt` where a delete names the file but cannot belong to it.
    pub(super) fn deletes_of(&self, entry: &EntryRef<'_>, location: &str) -> Result<DeleteSet> {
        let age = entry.sequence_number();
        let partition = (entry.spec_id(), Arc::clone(entry.partition()));
        let mut deletes = DeleteSet::default();
        if let Some((vector, sequence)) = self.vectors.get(location) {
            if *sequence < age {
                return Err(Error::corrupt(format!(
                    "a deletion vector of sequence number {sequence} references a data file of sequence number {age}"
                )));
            }
            deletes.vector = Some(Arc::clone(vector));
        } else {
            for positions in self
                .by_file
                .get(location)
                .into_iter()
                .flatten()
                .filter(|p| age <= p.sequence_number)
            {
                if positions.partition != partition {
                    return Err(Error::corrupt("a position delete file names a data file of another partition")
                        .with("delete_file", &positions.file.location));
                }
                deletes.positions.push(Arc::clone(&positions.file));
            }
            let shared = self.by_partition.get(&partition).into_iter().flatten();
            let cut = self.begun_by(entry.file_path()).filter(|p| p.partition == partition);
            deletes
                .positions
                .extend(shared.chain(cut).filter(|p| age <= p.sequence_number).map(|p| Arc::clone(&p.file)));
        }
        let scoped = self.equality_by_partition.get(&partition).into_iter().flatten();
        deletes.equality.extend(
            self.global_equality
                .iter()
                .chain(scoped)
                .filter(|e| age < e.newest)
                .map(|e| EqualityDeletes {
                    set: Arc::clone(&e.set),
                    data_sequence_number: age,
                }),
        );
        Ok(deletes)
    }
}
