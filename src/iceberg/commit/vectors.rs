//! Deletion vectors that are made at the commit (IC-8, IC-14, IC-20 to IC-22).
//!
//! A statement says which rows of a data file it deletes. The vector that the commit adds has these, what was
//! deleted in the file when the statement read it, and what other commits deleted since: two deletes of one
//! file do not stand against each other. What the vector takes the place of goes in the same snapshot.
//!
//! Invariants: a new vector has every row of all that it supersedes; a row counts for the statement only if no
//! other commit had deleted it by then; a row that another commit deleted because it wrote it anew elsewhere is
//! never merged away under snapshot isolation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::action::{NewFile, NotCommitted, WriteKind};
use super::change::{Change, Isolation, RemovedFile};
use super::checks::{Check, Checks};
use super::files::Files;
use super::history::History;
use super::live::{Gone, Live, Removals};
use super::names::Names;
use super::reconcile::same_place;
use crate::bitmap::RowSet;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::manifest::{DataFile, EntryRef, FileContent, FileFormat};
use crate::iceberg::puffin::PuffinWriter;
use crate::iceberg::spec::PartitionValues;
use crate::io::normalise;

/// Vectors of one file do not go far beyond this many bytes.
const FILE_BYTES: usize = 64 << 20;

/// Rows of one data file that a statement deletes.
#[derive(Debug, Clone)]
pub struct VectorRows {
    /// As the manifest spells it.
    pub data_file: String,
    /// The data file's.
    pub spec_id: i32,
    /// The data file's.
    pub partition: PartitionValues,
    /// Rows of the data file, deleted ones too.
    pub record_count: u64,
    /// What the statement deletes; none of it was deleted when it read the file.
    pub rows: Arc<RowSet>,
    /// What was deleted then, by a vector or by position delete files.
    pub base: Arc<RowSet>,
    /// The vector of then.
    pub vector: Option<RemovedFile>,
    /// Position delete files of then that are about this data file alone.
    pub folded: Vec<RemovedFile>,
}

/// The vector that one data file gets.
#[derive(Debug)]
struct Merged<'a> {
    of: &'a VectorRows,
    rows: RowSet,
    /// The vector that it takes the place of, if it is not the one that the statement read.
    over: Option<RemovedFile>,
}

/// The vectors of one attempt, before they are written.
#[derive(Debug)]
pub(super) struct Merging<'a> {
    merged: Vec<Merged<'a>>,
    /// Rows that this commit deletes and no other one did.
    pub(super) newly: u64,
}

/// Vectors that were written, and the files they are in.
#[derive(Debug, Clone, Default)]
pub(super) struct MadeVectors {
    pub(super) entries: Vec<DataFile>,
    files: Vec<(String, Bytes)>,
}

/// What vectors were made for, and what they take the place of.
type Key = Vec<(String, Option<RemovedFile>)>;

/// Vectors of earlier attempts: used again where nothing that they are made of has changed.
#[derive(Debug, Default)]
pub(super) struct VectorFiles {
    made: HashMap<Key, MadeVectors>,
}

/// The live entries that concern the data files of a change.
#[derive(Debug, Default)]
struct Found<'a> {
    data_files: HashMap<&'a str, EntryRef<'a>>,
    vectors: HashMap<&'a str, Vec<(usize, EntryRef<'a>)>>,
    folded: HashMap<&'a str, (usize, EntryRef<'a>)>,
}

impl<'a> Found<'a> {
    fn of(change: &'a Change, live: &'a Live) -> Self {
        let wanted: HashSet<&str> = change.vectors.iter().map(|rows| rows.data_file.as_str()).collect();
        let folded: HashSet<&str> = change
            .vectors
            .iter()
            .flat_map(|rows| &rows.folded)
            .map(|file| file.path.as_str())
            .collect();
        // Writers spell a path in more than one way.
        let places: HashMap<String, &str> = wanted.iter().filter_map(|path| Some((normalise(path).ok()?, *path))).collect();
        let spelled = |path: &str| {
            let same = || places.get(&normalise(path).ok()?).copied();
            wanted.get(path).copied().or_else(same)
        };
        let mut found = Self::default();
        for (number, entry) in live.entries() {
            match entry.content() {
                FileContent::Data => {
                    if let Some(path) = wanted.get(entry.file_path()) {
                        found.data_files.insert(path, entry);
                    }
                }
                FileContent::PositionDeletes if entry.is_deletion_vector() => {
                    if let Some(path) = entry.referenced_data_file().and_then(spelled) {
                        found.vectors.entry(path).or_default().push((number, entry));
                    }
                }
                FileContent::PositionDeletes => {
                    if let Some(path) = folded.get(entry.file_path()) {
                        found.folded.insert(path, (number, entry));
                    }
                }
                FileContent::EqualityDeletes => {}
            }
        }
        found
    }
}

/// Whether a commit that also wrote rows added a vector for the data file.
fn moved_rows(history: &History, data_file: &str) -> bool {
    let mut beside_rows = history.new_deletes_beside_rows();
    beside_rows.any(|entry| entry.referenced_data_file().is_some_and(|path| same_place(path, data_file)))
}

impl<'a> Merging<'a> {
    /// What the vectors hold on top of the live files, and what goes for them (`removals`); `None` while a vector
    /// of another commit has to be read. Files of `gone` get none.
    ///
    /// Errors: a conflict where a data file or what its vector is made of is not there any more, or where the
    /// statement has to be run again to be right.
    pub(super) fn of(
        change: &'a Change,
        files: &mut Files,
        live: &Live,
        history: &History,
        gone: &Gone,
        removals: &mut Removals,
        checks: Checks,
    ) -> Result<Option<Self>, NotCommitted> {
        let found = Found::of(change, live);
        let mut merging = Self {
            merged: Vec::new(),
            newly: 0,
        };
        let mut is_whole = true;
        for of in &change.vectors {
            if gone.data_files.contains(&of.data_file) {
                continue;
            }
            if !found.data_files.contains_key(of.data_file.as_str()) && checks.makes(Check::Referenced) {
                let message = "a data file of which rows are deleted is not in the table any more; run the statement again";
                return Err(NotCommitted::conflict(message).with("file", &of.data_file));
            }
            let vectors = found.vectors.get(of.data_file.as_str()).map_or(&[][..], Vec::as_slice);
            let current = match vectors {
                [] => None,
                [(_, entry)] => Some(entry),
                _ => {
                    return Err(Error::corrupt("a data file has two live deletion vectors")
                        .with("file", &of.data_file)
                        .into());
                }
            };
            let over = current.map(RemovedFile::of).filter(|name| of.vector.as_ref() != Some(name));
            let others = match (current, &over) {
                (Some(entry), Some(_)) => match files.vector(entry).context("data_file", || &of.data_file)? {
                    Some(rows) => Some(rows),
                    None => {
                        is_whole = false;
                        continue;
                    }
                },
                // The vector that was read has gone, and no other one stands for its rows.
                (None, _) if of.vector.is_some() && checks.makes(Check::Vectors) => {
                    let message = "another commit took away the deletion vector of a data file; run the statement again";
                    return Err(NotCommitted::conflict(message).with("file", &of.data_file));
                }
                _ => None,
            };
            let mut rows = (*of.base).clone();
            rows.union_with(&of.rows);
            merging.newly += of.rows.len();
            if let Some(others) = &others {
                let both = of.rows.count_common(others);
                merging.newly -= both;
                if both > 0 && change.isolation == Isolation::Snapshot && moved_rows(history, &of.data_file) {
                    let message = "another commit changed rows that the statement deletes; run the statement again";
                    return Err(NotCommitted::conflict(message).with("file", &of.data_file));
                }
                if checks.makes(Check::Vectors) {
                    rows.union_with(others);
                }
            }
            if let Some(last) = rows.max().filter(|last| *last >= of.record_count) {
                let message = format!("row {last} is to be deleted of a data file of {} rows", of.record_count);
                return Err(Error::corrupt(message).with("file", &of.data_file).into());
            }
            for (number, entry) in vectors {
                removals.add(*number, entry);
            }
            for folded in &of.folded {
                match found.folded.get(folded.path.as_str()) {
                    Some((number, entry)) => removals.add(*number, entry),
                    // Who took it away had to put its rows into a vector.
                    None if over.is_some() => {}
                    None => {
                        let message = "another commit took away a position delete file of a data file; run the statement again";
                        return Err(NotCommitted::conflict(message).with("file", &folded.path));
                    }
                }
            }
            merging.merged.push(Merged { of, rows, over });
        }
        Ok(is_whole.then_some(merging))
    }

    fn key(&self) -> Key {
        let of = self.merged.iter().map(|merged| (merged.of.data_file.clone(), merged.over.clone()));
        of.collect()
    }

    /// Writes the vectors; of an earlier attempt those that would be the same.
    pub(super) fn write(&self, known: &mut VectorFiles, folder: &str, names: &mut Names) -> Result<MadeVectors> {
        let key = self.key();
        if let Some(made) = known.made.get(&key) {
            return Ok(made.clone());
        }
        let mut made = MadeVectors::default();
        let mut rest = self.merged.as_slice();
        while !rest.is_empty() {
            rest = made.write_file(rest, names.vectors(folder))?;
        }
        known.made.insert(key, made.clone());
        Ok(made)
    }
}

impl MadeVectors {
    /// One Puffin file of the first vectors; gives those that found no place.
    fn write_file<'m, 'a>(&mut self, merged: &'m [Merged<'a>], location: String) -> Result<&'m [Merged<'a>]> {
        let mut writer = PuffinWriter::new(concat!("Sandur ", env!("CARGO_PKG_VERSION")));
        let mut taken: Vec<(&Merged<'_>, u64, u64)> = Vec::new();
        let mut bytes = 0;
        for of in merged {
            if bytes > FILE_BYTES {
                break;
            }
            let blob = writer
                .add_deletion_vector(&of.of.data_file, &of.rows)
                .context("data_file", || &of.of.data_file)?;
            bytes += usize::try_from(blob.length).unwrap_or(usize::MAX);
            taken.push((of, blob.offset, blob.length));
        }
        let count = taken.len();
        let (file, _) = writer.finish(false)?;
        for (merged, offset, length) in taken {
            let of = merged.of;
            let mut entry = DataFile::new(
                FileContent::PositionDeletes,
                location.clone(),
                FileFormat::Puffin,
                of.spec_id,
                Arc::clone(&of.partition),
            );
            entry.record_count = merged.rows.len();
            entry.file_size_in_bytes = file.len() as u64;
            entry.referenced_data_file = Some(of.data_file.clone());
            entry.content_offset = Some(offset);
            entry.content_size_in_bytes = Some(length);
            self.entries.push(entry);
        }
        self.files.push((location, file.into()));
        Ok(merged.get(count..).unwrap_or_default())
    }

    /// Bytes of their files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Where they are.
    pub(super) fn locations(&self) -> impl Iterator<Item = &String> {
        self.files.iter().map(|(location, _)| location)
    }

    /// The files, to be created.
    pub(super) fn files(&self) -> impl Iterator<Item = NewFile> {
        self.files.iter().map(|(location, bytes)| NewFile {
            kind: WriteKind::Vectors,
            location: location.clone(),
            bytes: bytes.clone(),
        })
    }
}
