//! File actions as batches of one shape, whether they come from a replay or from a commit.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema};
use delta_kernel::engine::arrow_data::ArrowEngineData;
use delta_kernel::log_replay::FileActionKey;
use delta_kernel::{FilteredEngineData, KernelResult};

use super::errors::own;
use crate::error::{Error, Result};

/// What tells a file action apart from others: the path as the log spells it and the deletion vector's unique id
/// (PROTOCOL.md, "Add File and Remove File").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::delta) struct FileKey {
    pub(in crate::delta) path: String,
    pub(in crate::delta) vector: Option<String>,
}

impl From<&FileActionKey> for FileKey {
    fn from(key: &FileActionKey) -> Self {
        Self {
            path: key.path().to_owned(),
            vector: key.dv_unique_id().map(str::to_owned),
        }
    }
}

/// Columns of a batch of added files, with where a replay has those that are not at its top.
const COLUMNS: [(&str, Option<&str>); 7] = [
    ("path", None),
    ("size", None),
    ("modificationTime", None),
    ("stats", None),
    ("deletionVector", None),
    ("partitionValues", Some(CONSTANTS)),
    ("baseRowId", Some(CONSTANTS)),
];
const COMMIT_VERSION: (&str, Option<&str>) = ("defaultRowCommitVersion", Some(CONSTANTS));
const CONSTANTS: &str = "fileConstantValues";

/// The rows of a replay that stand, with the columns path, size, modificationTime, stats, deletionVector,
/// partitionValues, baseRowId and defaultRowCommitVersion.
pub(super) fn of_replay(files: FilteredEngineData) -> Result<RecordBatch> {
    flat(&selected(files)?)
}

/// The same of added files in commits.
pub(super) fn of_commits(files: FilteredEngineData) -> Result<RecordBatch> {
    let batch = selected(files)?;
    let add = column(&batch, "add")?;
    let add = add.as_struct_opt().ok_or_else(|| shape("add"))?;
    let there = (0..add.len()).map(|row| Some(add.is_valid(row))).collect::<BooleanArray>();
    flat(&filter_record_batch(&RecordBatch::from(add_without_nulls(add)), &there)?)
}

/// The struct's fields as columns; which structs are null is told apart from them.
fn add_without_nulls(add: &StructArray) -> StructArray {
    let (fields, columns, _) = add.clone().into_parts();
    StructArray::new(fields, columns, None)
}

fn selected(files: FilteredEngineData) -> Result<RecordBatch> {
    let batch = || -> KernelResult<_> { ArrowEngineData::try_from_engine_data(files.apply_selection_vector()?) };
    Ok(batch().map_err(|e| own(&e))?.record_batch().clone())
}

fn flat(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (name, inside) in COLUMNS.iter().chain([&COMMIT_VERSION]) {
        let array = match inside.filter(|inside| batch.column_by_name(inside).is_some()) {
            None => column(batch, name)?,
            Some(inside) => {
                let outer = column(batch, inside)?;
                let outer = outer.as_struct_opt().ok_or_else(|| shape(inside))?;
                Arc::clone(outer.column_by_name(name).ok_or_else(|| shape(name))?)
            }
        };
        fields.push(Field::new(*name, array.data_type().clone(), true));
        columns.push(array);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

fn column(batch: &RecordBatch, name: &str) -> Result<ArrayRef> {
    batch.column_by_name(name).cloned().ok_or_else(|| shape(name))
}

fn shape(name: &str) -> Error {
    Error::internal(format!("file actions have no column {name} of the expected type"))
}
