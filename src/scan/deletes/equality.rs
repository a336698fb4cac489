//! Equality deletes: key sets that are probed once per row.
//!
//! A set joins all delete files of one scope and one list of key columns; each key carries the
//! greatest sequence number it was deleted with, so one set serves data files of every age.
//! Null equals null and nothing else; NaN equals NaN; -0.0 and 0.0 are different keys.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, RecordBatch};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, SortField};
use sha2::{Digest, Sha256};

use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::TableIo;
use crate::table::{Column, ColumnMatching, EqualityDeleteSet};

use super::super::ScanContext;
use super::super::adapt::{Read, path_parts};
use super::super::open::FileHandle;
use super::super::reader::decode_unit;

/// A loaded set of keys.
#[derive(Debug)]
pub(in crate::scan) struct KeySet {
    columns: Vec<Arc<Column>>,
    converter: RowConverter,
    /// Encoded key to the greatest sequence number of a delete of it.
    keys: HashMap<Box<[u8]>, i64>,
    newest: i64,
}

impl KeySet {
    /// The key columns, to be read beside the projection.
    pub(in crate::scan) fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }

    /// For each row of the key columns: true when the row of a data file of age
    /// `data_sequence_number` stays. `None` when all stay.
    pub(in crate::scan) fn keep(&self, columns: &[ArrayRef], data_sequence_number: i64) -> Result<Option<BooleanArray>> {
        if self.keys.is_empty() || self.newest <= data_sequence_number {
            return Ok(None);
        }
        let rows = self.converter.convert_columns(&parts(columns)?)?;
        let mut keep = BooleanBufferBuilder::new(rows.num_rows());
        let mut any = false;
        for row in &rows {
            let deleted = self.keys.get(row.as_ref()).is_some_and(|sequence| *sequence > data_sequence_number);
            any |= deleted;
            keep.append(!deleted);
        }
        Ok(any.then(|| BooleanArray::new(keep.finish(), None)))
    }

    fn memory_size(&self) -> usize {
        let keys: usize = self.keys.keys().map(|k| k.len() + 40).sum();
        keys + self.converter.size()
    }
}

/// The arrays that keys compare by, with one spelling of NaN.
fn parts(columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let mut all = Vec::with_capacity(columns.len());
    for column in columns {
        all.extend(path_parts(column)?.into_iter().map(one_nan));
    }
    Ok(all)
}

fn one_nan(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }),
        ),
        _ => array,
    }
}

/// The types of [`parts`] of a column.
fn part_types(column: &Column) -> Vec<DataType> {
    let mut types = Vec::new();
    let mut column = column;
    while let (DataType::Struct(_), [child]) = (column.field.data_type(), column.children.as_slice()) {
        types.push(DataType::Boolean);
        column = child;
    }
    types.push(column.field.data_type().clone());
    types
}

pub(super) async fn load(
    io: &TableIo,
    context: &Arc<ScanContext>,
    set: &EqualityDeleteSet,
    matching: ColumnMatching,
) -> Result<Arc<KeySet>> {
    let key = CacheKey::new(CacheKind::EqualityDeletes, digest(set), io.cache_scope());
    context.caches.deletes.get_or_load(key, read(io, context, set, matching)).await
}

/// Names the set: its files with their ages, its keys with their types and defaults.
fn digest(set: &EqualityDeleteSet) -> String {
    let mut hash = Sha256::new();
    for file in &set.files {
        hash.update(format!("{:?}\n", file));
    }
    for column in &set.keys {
        hash.update(format!("{:?}\n", column));
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

async fn read(io: &TableIo, context: &Arc<ScanContext>, set: &EqualityDeleteSet, matching: ColumnMatching) -> Result<(KeySet, usize)> {
    let sorts = set.keys.iter().flat_map(|c| part_types(c)).map(SortField::new).collect();
    let converter = RowConverter::new(sorts)
        .map_err(|e| Error::unsupported("equality delete on a column of a type that has no keys").with_source(e))?;
    let mut keys: HashMap<Box<[u8]>, i64> = HashMap::new();
    let mut newest = i64::MIN;
    for file in &set.files {
        let location: Arc<str> = Arc::from(file.location.as_str());
        let handle = FileHandle::open(io, context, &location, file.format).await?;
        let plan = handle.resolve(&set.keys, &[], matching).context("file", || &location)?;
        if !plan.reads.iter().all(Read::is_from_file) {
            return Err(Error::corrupt("equality delete file lacks a key column").with("file", &location));
        }
        let units = handle.units(Some(file.record_count)).context("file", || &location)?;
        for unit in 0..units.len() {
            let batches = decode_unit(io, context, &location, &handle, unit, &set.keys, &plan).await?;
            for batch in &batches {
                insert(&converter, batch, file.sequence_number, &mut keys).context("file", || &location)?;
            }
        }
        newest = newest.max(file.sequence_number);
    }
    let set = KeySet {
        columns: set.keys.clone(),
        converter,
        keys,
        newest,
    };
    let bytes = set.memory_size();
    Ok((set, bytes))
}

fn insert(converter: &RowConverter, batch: &RecordBatch, sequence: i64, keys: &mut HashMap<Box<[u8]>, i64>) -> Result<()> {
    for row in &converter.convert_columns(&parts(batch.columns())?)? {
        match keys.get_mut(row.as_ref()) {
            Some(known) => *known = (*known).max(sequence),
            None => {
                keys.insert(row.as_ref().into(), sequence);
            }
        }
    }
    Ok(())
}
