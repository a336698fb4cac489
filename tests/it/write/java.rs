//! Files that Iceberg Java wrote, written again: partition, counts and bounds must be those of its manifests.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{Field, Schema as ArrowSchema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sandur::iceberg::arrow_columns;
use sandur::iceberg::manifest::{DataFile, EntryStatus, FileFormat, ManifestContent};
use sandur::iceberg::spec::{PrimitiveType, Schema, TableMetadata};

use super::{own_cases, write};
use crate::format_write::Files;
use crate::support::cases::Case;
use crate::support::read::block_on;

/// Rows of a file in the types of the table; `None` where the file has no field ids.
fn rows(path: &Path, schema: &Schema) -> Result<Option<Vec<RecordBatch>>, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).map_err(|e| text(&e))?;
    let id = |field: &Field| field.metadata().get("PARQUET:field_id").and_then(|id| id.parse::<i32>().ok());
    let ids: Vec<Option<i32>> = reader.schema().fields().iter().map(|field| id(field)).collect();
    if ids.iter().all(Option::is_none) {
        return Ok(None);
    }
    let columns = arrow_columns(schema).map_err(|e| text(&e))?;
    let fields: Vec<_> = columns.iter().map(|column| Arc::clone(&column.field)).collect();
    let fields = Arc::new(ArrowSchema::new(fields));
    let mut batches = Vec::new();
    for batch in reader.build().map_err(|e| text(&e))? {
        let batch = batch.map_err(|e| text(&e))?;
        let arrays = columns.iter().map(|column| -> Result<ArrayRef, String> {
            let target = column.field.data_type();
            match ids.iter().position(|id| *id == Some(column.id)) {
                Some(at) => cast(batch.column(at), target).map_err(|e| text(&e)),
                None => Ok(new_null_array(target, batch.num_rows())),
            }
        });
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        batches.push(RecordBatch::try_new_with_options(Arc::clone(&fields), arrays, &options).map_err(|e| text(&e))?);
    }
    Ok(Some(batches))
}

/// The file's place on this machine.
fn local(case: &Case, recorded: &str) -> Option<String> {
    case.path_map()
        .iter()
        .find_map(|(from, to)| Some(format!("{to}{}", recorded.strip_prefix(from.as_str())?)))
}

/// The folders between `data` and the file.
fn folder(path: &str) -> Option<&str> {
    Some(path.split_once("/data/")?.1.rsplit_once('/').map_or("", |(folder, _)| folder))
}

fn compare<T: PartialEq + Debug>(what: &str, ours: &T, theirs: &T, wrong: &mut Vec<String>) {
    if ours != theirs {
        wrong.push(format!("{what}: {ours:?} instead of {theirs:?}"));
    }
}

fn compare_maps<V: PartialEq + Debug>(what: &str, ours: &BTreeMap<i32, V>, theirs: &BTreeMap<i32, V>, wrong: &mut Vec<String>) {
    for id in ours.keys().chain(theirs.keys().filter(|id| !ours.contains_key(id))) {
        compare(&format!("{what} of {id}"), &ours.get(id), &theirs.get(id), wrong);
    }
}

fn differences(ours: &DataFile, theirs: &DataFile, with_folder: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    compare("partition", &ours.partition, &theirs.partition, &mut wrong);
    compare("spec", &ours.spec_id, &theirs.spec_id, &mut wrong);
    compare("rows", &ours.record_count, &theirs.record_count, &mut wrong);
    compare("sort order", &ours.sort_order_id, &theirs.sort_order_id, &mut wrong);
    compare_maps("values", &ours.value_counts, &theirs.value_counts, &mut wrong);
    compare_maps("nulls", &ours.null_value_counts, &theirs.null_value_counts, &mut wrong);
    compare_maps("NaN", &ours.nan_value_counts, &theirs.nan_value_counts, &mut wrong);
    compare_maps("lower bound", &ours.lower_bounds, &theirs.lower_bounds, &mut wrong);
    compare_maps("upper bound", &ours.upper_bounds, &theirs.upper_bounds, &mut wrong);
    let sizes = |file: &DataFile| file.column_sizes.keys().copied().collect::<Vec<_>>();
    compare("columns with sizes", &sizes(ours), &sizes(theirs), &mut wrong);
    if with_folder {
        compare("folder", &folder(&ours.file_path), &folder(&theirs.file_path), &mut wrong);
    }
    wrong
}

/// Rows that a rewrite carried over bring their row ids, in columns of reserved ids; new rows have none.
fn without_lineage(file: &mut DataFile) {
    let is_reserved = |id: &i32| *id > i32::MAX - 200;
    for counts in [&mut file.column_sizes, &mut file.value_counts, &mut file.null_value_counts] {
        counts.retain(|id, _| !is_reserved(id));
    }
    file.lower_bounds.retain(|id, _| !is_reserved(id));
    file.upper_bounds.retain(|id, _| !is_reserved(id));
}

/// The table as it was when the file was written, in a folder of its own.
fn as_written(files: &Files, theirs: &DataFile, schema_id: Option<i32>, location: &Path) -> TableMetadata {
    let mut metadata = files.metadata.clone();
    metadata.location = location.to_str().unwrap().to_owned();
    metadata.current_schema_id = schema_id.unwrap_or(metadata.current_schema_id);
    metadata.default_spec_id = theirs.spec_id;
    metadata.default_sort_order_id = theirs.sort_order_id.unwrap_or(0);
    for moved in ["write.object-storage.enabled", "write.data.path", "write.format.default"] {
        metadata.properties.remove(moved);
    }
    metadata
}

#[test]
fn files_are_described_as_by_iceberg_java() {
    let (mut compared, mut wrong, mut skipped) = (0, Vec::new(), BTreeMap::<String, usize>::new());
    for case in own_cases() {
        let Some(files) = Files::of(&case) else { continue };
        for snapshot in &files.metadata.snapshots {
            let manifests = files.list(snapshot).unwrap_or_default();
            let own = manifests
                .iter()
                .filter(|m| m.content == ManifestContent::Data && m.added_snapshot_id == Some(snapshot.snapshot_id));
            for (_, manifest) in own.filter_map(|listed| files.manifest(listed)) {
                let added = manifest
                    .entries()
                    .filter(|e| e.status() == EntryStatus::Added && e.file_format() == FileFormat::Parquet);
                for mut theirs in added.map(|entry| entry.to_data_file()) {
                    let Some(path) = local(&case, &theirs.file_path).filter(|path| Path::new(path).exists()) else {
                        continue;
                    };
                    let dir = tempfile::tempdir().unwrap();
                    let metadata = as_written(&files, &theirs, snapshot.schema_id, dir.path());
                    let schema = metadata.current_schema().unwrap();
                    let batches = match rows(Path::new(&path), schema) {
                        Ok(Some(batches)) => batches,
                        Ok(None) => continue,
                        Err(e) => {
                            *skipped.entry(format!("{}: {e}", case.name)).or_default() += 1;
                            continue;
                        }
                    };
                    let ours = match block_on(write(&metadata, &batches)) {
                        Ok(ours) => ours,
                        Err(e) => {
                            *skipped.entry(format!("{}: {e}", case.name)).or_default() += 1;
                            continue;
                        }
                    };
                    let ([ours], name) = (ours.as_slice(), &case.name) else {
                        if theirs.record_count > 0 {
                            wrong.push(format!("{}: {} files for one", case.name, ours.len()));
                        }
                        continue;
                    };
                    compared += 1;
                    without_lineage(&mut theirs);
                    // Bounds of shapes are points, which are not worked out here.
                    let is_shape = |id: &i32| {
                        let of = schema.field_by_id(*id).and_then(|field| field.field_type.as_primitive());
                        matches!(of, Some(PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }))
                    };
                    theirs.lower_bounds.retain(|id, _| !is_shape(id));
                    theirs.upper_bounds.retain(|id, _| !is_shape(id));
                    let with_folder = !files.metadata.properties.contains_key("write.object-storage.enabled");
                    wrong.extend(differences(ours, &theirs, with_folder).into_iter().map(|d| format!("{name}: {d}")));
                }
            }
        }
    }
    println!("{compared} files compared, skipped: {skipped:#?}");
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared >= 100, "{compared} files");
}
