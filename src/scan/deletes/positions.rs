//! Position delete files.
//!
//! A file may name many data files and need not be sorted. It is read a unit (a row group, a
//! stripe, a whole Avro file) at a time: a unit is decoded once into sets of rows by data file and
//! kept; row groups of Parquet whose `file_path` statistics rule the data file out are not read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;

use crate::bitmap::RowSet;
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{DELETE_FILE_PATH_ID, DELETE_POS_ID};
use crate::io::TableIo;
use crate::table::{Column, ColumnMatching, FileScanTask, PositionDeleteFile};

use super::super::ScanContext;
use super::super::open::FileHandle;
use super::super::reader::decode_unit;

type ByFile = HashMap<String, Arc<RowSet>>;

/// The rows that `file` deletes from the task's data file, one set per unit that names it.
pub(super) async fn load(
    io: &TableIo,
    context: &Arc<ScanContext>,
    file: &PositionDeleteFile,
    task: &FileScanTask,
) -> Result<Vec<Arc<RowSet>>> {
    let location: Arc<str> = Arc::from(file.location.as_str());
    let handle = FileHandle::open(io, context, &location, file.format).await?;
    let units: Vec<usize> = match &handle {
        FileHandle::Parquet(metadata) => row_groups_naming(metadata, io, task)?,
        other => (0..other.units(Some(file.record_count))?.len()).collect(),
    };
    let mut found = Vec::new();
    for unit in units {
        let key = CacheKey::new(CacheKind::PositionDeletes, format!("{location}#{unit}"), io.cache_scope());
        let by_file: Arc<ByFile> = context
            .caches
            .deletes
            .get_or_load(key, read(io, context, &location, &handle, unit))
            .await
            .context("file", || &location)?;
        if let Some(rows) = by_file.get(&*task.location) {
            found.push(Arc::clone(rows));
        }
    }
    Ok(found)
}

async fn read(io: &TableIo, context: &Arc<ScanContext>, location: &Arc<str>, handle: &FileHandle, unit: usize) -> Result<(ByFile, usize)> {
    let columns = [
        column(DELETE_FILE_PATH_ID, "file_path", DataType::Utf8),
        column(DELETE_POS_ID, "pos", DataType::Int64),
    ];
    // Without ids the two columns are known by their names, which the specification fixes.
    let plan = handle.resolve(&columns, &[], ColumnMatching::IdsOrNames)?;
    let batches = decode_unit(io, context, location, handle, unit, &columns, &plan).await?;
    let names = io.clone();
    let by_file = context.pool.spawn(move |_| collect(&batches, &names)).await?;
    let bytes = by_file.iter().map(|(name, rows)| name.len() + rows.memory_size() + 64).sum();
    Ok((by_file, bytes))
}

fn column(id: i32, name: &str, data_type: DataType) -> Arc<Column> {
    Arc::new(Column {
        id,
        field: Arc::new(Field::new(name, data_type, false)),
        names: vec![name.to_owned()],
        initial_default: None,
        children: Vec::new(),
    })
}

/// Sets of rows by resolved data file location. Rows come in any order.
fn collect(batches: &[RecordBatch], io: &TableIo) -> Result<ByFile> {
    let mut sets: HashMap<String, RowSet> = HashMap::new();
    let mut spelled: HashMap<String, String> = HashMap::new();
    for batch in batches {
        let (paths, positions) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        let mut row = 0;
        while row < batch.num_rows() {
            // A row without path or position names no row of any file.
            if paths.is_null(row) {
                row += 1;
                continue;
            }
            let path = paths.value(row);
            let mut end = row + 1;
            while end < batch.num_rows() && paths.is_valid(end) && paths.value(end) == path {
                end += 1;
            }
            let location = match spelled.get(path) {
                Some(location) => location.clone(),
                None => {
                    let location = io.comparable(path)?;
                    spelled.insert(path.to_owned(), location.clone());
                    location
                }
            };
            let set = sets.entry(location).or_default();
            for index in (row..end).filter(|index| positions.is_valid(*index)) {
                let position = u64::try_from(positions.value(index)).map_err(|_| {
                    Error::corrupt(format!(
                        "a position delete file has the negative position {}",
                        positions.value(index)
                    ))
                })?;
                set.insert(position);
            }
            row = end;
        }
    }
    Ok(sets.into_iter().map(|(name, rows)| (name, Arc::new(rows))).collect())
}

/// Row groups whose statistics do not rule out the task's data file.
fn row_groups_naming(metadata: &ArrowReaderMetadata, io: &TableIo, task: &FileScanTask) -> Result<Vec<usize>> {
    let groups = metadata.metadata().row_groups();
    let all = || (0..groups.len()).collect::<Vec<_>>();
    let Some(name) = metadata
        .schema()
        .fields()
        .iter()
        .map(|f| f.name())
        .find(|n| n.as_str() == "file_path")
    else {
        return Ok(all());
    };
    let Ok(converter) = StatisticsConverter::try_new(name, metadata.schema(), metadata.parquet_schema()) else {
        return Ok(all());
    };
    let (Ok(mins), Ok(maxes)) = (converter.row_group_mins(groups.iter()), converter.row_group_maxes(groups.iter())) else {
        return Ok(all());
    };
    let (Some(mins), Some(maxes)) = (mins.as_string_opt::<i32>(), maxes.as_string_opt::<i32>()) else {
        return Ok(all());
    };
    let possible = |i: usize| mins.is_null(i) || maxes.is_null(i) || may_name(mins.value(i), maxes.value(i), task, io);
    Ok((0..groups.len()).filter(|i| possible(*i)).collect())
}

/// Whether paths between `min` and `max` can mean the data file. Every such path starts with the
/// common prefix of the two; a data file spelled with that prefix is compared as spelled, one that
/// can only have another spelling under it is kept.
fn may_name(min: &str, max: &str, task: &FileScanTask, io: &TableIo) -> bool {
    if min == max {
        return io.comparable(min).map_or(true, |location| location == *task.location);
    }
    let common = min.bytes().zip(max.bytes()).take_while(|(a, b)| a == b).count();
    let folder = min
        .get(..common)
        .and_then(|prefix| prefix.rfind('/').map(|slash| &prefix[..=slash]));
    let Some(folder) = folder.filter(|f| !f.ends_with("//") && f.trim_matches('/').contains('/')) else {
        return true;
    };
    if task.recorded_path.starts_with(folder) && !task.recorded_path[folder.len()..].contains("//") {
        return (min..=max).contains(&task.recorded_path.as_str());
    }
    io.comparable(folder).map_or(true, |folder| task.location.starts_with(&folder))
}
