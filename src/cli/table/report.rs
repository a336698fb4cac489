//! Reports on a table's metadata as text. Names and paths come from the table, so they are
//! escaped for the terminal.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::super::output::escape_control;
use crate::error::Result;
use crate::iceberg::spec::{PartitionSpec, Snapshot as SnapshotMetadata, TableMetadata, Transform};
use crate::table::{Column, DOC_KEY, DeleteSet, FileScanTask, ScanPlan, Snapshot, TYPE_NAME_KEY};

/// `sandur table inspect`
pub(super) fn inspect(metadata: &TableMetadata, snapshot: &dyn Snapshot, plan: &ScanPlan) -> String {
    let mut out = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(out, "{name:<22} {}", escape_control(value, false));
    };
    line("table", &snapshot.table().to_string());
    line("format", &format!("iceberg v{}", metadata.format_version));
    line("location", &metadata.location);
    line("metadata file", snapshot.metadata_location());
    if let Some(uuid) = metadata.table_uuid {
        line("uuid", &uuid.to_string());
    }
    match metadata.snapshots.iter().find(|s| Some(s.snapshot_id) == snapshot.id()) {
        Some(s) => line(
            "snapshot",
            &format!("{} of {}, {}", s.snapshot_id, time(s.timestamp_ms), operation(s)),
        ),
        None => line("snapshot", "none"),
    }
    line("partitioned by", &partitioning(metadata, snapshot.columns()));

    let counts = Counts::of(&plan.tasks);
    line("data files", &counts.data_files.to_string());
    line("rows in data files", &counts.rows.to_string());
    line("deletion vectors", &counted(counts.vectors, "row"));
    line("position delete files", &counted(counts.positions, "position"));
    line("equality delete files", &counted(counts.equality, "key"));
    line("rows deleted", &counts.deleted());

    out.push_str("\ncolumns\n");
    let rows = snapshot.schema().fields().iter().map(|field| {
        let of = |key: &str| field.metadata().get(key).cloned();
        let data_type = of(TYPE_NAME_KEY).unwrap_or_else(|| field.data_type().to_string());
        let required = if field.is_nullable() { "" } else { "required" };
        vec![
            field.name().clone(),
            data_type,
            required.to_owned(),
            of(DOC_KEY).unwrap_or_default(),
        ]
    });
    out.push_str(&aligned("  ", &["name", "type", "", "comment"], rows));
    out
}

/// `sandur table files`
pub(super) fn files(metadata: &TableMetadata, plan: &ScanPlan) -> String {
    let header = ["records", "bytes", "vector", "position deletes", "equality deletes", "data file"];
    let rows = plan.tasks.iter().map(|task| {
        let deletes = &task.deletes;
        let positions = deletes.positions.iter().map(|f| f.record_count);
        let equality = deletes
            .equality
            .iter()
            .flat_map(|e| e.set.files.iter().filter(|f| applies(f.sequence_number, e)));
        let files = |count: usize, records: u64| match count {
            0 => "-".to_owned(),
            1 => format!("{records} in 1 file"),
            n => format!("{records} in {n} files"),
        };
        vec![
            task.record_count.map_or_else(|| "unknown".to_owned(), |count| count.to_string()),
            task.size.to_string(),
            deletes
                .vector
                .as_ref()
                .map_or_else(|| "-".to_owned(), |v| v.cardinality.to_string()),
            files(positions.len(), positions.sum()),
            files(equality.clone().count(), equality.map(|f| f.record_count).sum()),
            relative(&task.recorded_path, &metadata.location),
        ]
    });
    aligned("", &header, rows)
}

/// `sandur table history`
pub(super) fn history(metadata: &TableMetadata) -> String {
    let header = [
        "time",
        "snapshot",
        "parent",
        "operation",
        "added files",
        "added rows",
        "removed files",
        "removed rows",
        "added delete files",
        "removed delete files",
        "delete files",
        "refs",
    ];
    let mut snapshots: Vec<_> = metadata.snapshots.iter().collect();
    snapshots.sort_by_key(|s| (s.sequence_number, s.timestamp_ms));
    let rows = snapshots.into_iter().map(|s| {
        let counter = |key: &str| s.summary.get(key).cloned().unwrap_or_else(|| "-".to_owned());
        let refs: Vec<&str> = metadata
            .refs
            .iter()
            .filter(|(_, r)| r.snapshot_id == s.snapshot_id)
            .map(|(name, _)| name.as_str())
            .collect();
        vec![
            time(s.timestamp_ms),
            s.snapshot_id.to_string(),
            s.parent_snapshot_id.map_or_else(|| "-".to_owned(), |id| id.to_string()),
            operation(s).to_owned(),
            counter("added-data-files"),
            counter("added-records"),
            counter("deleted-data-files"),
            counter("deleted-records"),
            counter("added-delete-files"),
            counter("removed-delete-files"),
            counter("total-delete-files"),
            refs.join(", "),
        ]
    });
    aligned("", &header, rows)
}

/// An equality delete file applies to data that is older than it.
fn applies(sequence_number: i64, deletes: &crate::table::EqualityDeletes) -> bool {
    sequence_number > deletes.data_sequence_number
}

/// What a plan adds up to. Delete files that several data files share count once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) data_files: u64,
    pub(super) rows: u64,
    /// (files, records) of a kind; for vectors (vectors, deleted rows)
    pub(super) vectors: (u64, u64),
    pub(super) positions: (u64, u64),
    pub(super) equality: (u64, u64),
}

impl Counts {
    pub(super) fn of(tasks: &[Arc<FileScanTask>]) -> Self {
        let mut counts = Self::default();
        let mut vectors = HashMap::new();
        let mut positions = HashMap::new();
        let mut equality = HashMap::new();
        for task in tasks {
            counts.data_files += 1;
            counts.rows = counts.rows.saturating_add(task.record_count.unwrap_or(0));
            let DeleteSet {
                vector,
                positions: position_files,
                equality: sets,
                only: _,
            } = &task.deletes;
            if let Some(vector) = vector {
                vectors.insert((&vector.location, vector.offset), vector.cardinality);
            }
            for file in position_files {
                positions.insert(&file.location, file.record_count);
            }
            for set in sets {
                for file in set.set.files.iter().filter(|f| applies(f.sequence_number, set)) {
                    equality.insert(&file.location, file.record_count);
                }
            }
        }
        let sum = |records: u64, record: &u64| records.saturating_add(*record);
        counts.vectors = (vectors.len() as u64, vectors.values().fold(0, sum));
        counts.positions = (positions.len() as u64, positions.values().fold(0, sum));
        counts.equality = (equality.len() as u64, equality.values().fold(0, sum));
        counts
    }

    /// Only vectors say exactly how many rows they delete.
    pub(super) fn deleted(&self) -> String {
        match (self.vectors.1, self.positions.0 + self.equality.0) {
            (rows, 0) => rows.to_string(),
            (0, _) => "known only by reading: positions may repeat, a key may match any number of rows".to_owned(),
            (rows, _) => format!("{rows} by vectors; the rest is known only by reading"),
        }
    }
}

fn counted((files, records): (u64, u64), what: &str) -> String {
    match (files, records) {
        (0, _) => "0".to_owned(),
        (n, 1) => format!("{n} with 1 {what}"),
        (n, records) => format!("{n} with {records} {what}s"),
    }
}

fn operation(snapshot: &SnapshotMetadata) -> &str {
    snapshot.summary.get("operation").map_or("-", String::as_str)
}

fn partitioning(metadata: &TableMetadata, columns: &[Arc<Column>]) -> String {
    let spec = metadata.partition_specs.iter().find(|s| s.spec_id == metadata.default_spec_id);
    match spec {
        Some(spec) if !spec.fields.is_empty() => partition_fields(spec, columns),
        _ => "nothing".to_owned(),
    }
}

pub(super) fn partition_fields(spec: &PartitionSpec, columns: &[Arc<Column>]) -> String {
    let fields = spec.fields.iter().map(|field| {
        let names: Vec<String> = field
            .source_ids
            .iter()
            .map(|id| column_name(columns, *id).unwrap_or_else(|| format!("column {id}")))
            .collect();
        let source = names.join(", ");
        match &field.transform {
            Transform::Identity => source,
            Transform::Bucket(n) => format!("bucket({n}, {source})"),
            Transform::Truncate(width) => format!("truncate({width}, {source})"),
            Transform::Year => format!("year({source})"),
            Transform::Month => format!("month({source})"),
            Transform::Day => format!("day({source})"),
            Transform::Hour => format!("hour({source})"),
            Transform::Void => format!("void({source})"),
            Transform::Unknown(name) => format!("{name}({source})"),
        }
    });
    fields.collect::<Vec<_>>().join(", ")
}

/// The dotted name of a column or nested field.
fn column_name(columns: &[Arc<Column>], id: i32) -> Option<String> {
    columns.iter().find_map(|column| {
        let name = column.field.name();
        if column.id == id {
            return Some(name.clone());
        }
        column_name(&column.children, id).map(|inner| format!("{name}.{inner}"))
    })
}

fn time(ms: i64) -> String {
    match timestamp_ms_to_datetime(ms) {
        Some(time) => format!("{}Z", time.format("%Y-%m-%d %H:%M:%S%.3f")),
        None => format!("{ms} ms"),
    }
}

/// A metadata table as text.
///
/// Errors: none in practice; a value that has no text.
pub(super) fn rows(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<String> {
    let header: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    let options = FormatOptions::default().with_null("-").with_display_error(true);
    let mut lines = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        lines.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>()));
    }
    Ok(aligned("", &header, lines))
}

/// `path` below `root`, or as it is.
fn relative(path: &str, root: &str) -> String {
    let root = root.trim_end_matches('/');
    match path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !root.is_empty() => rest.to_owned(),
        _ => path.to_owned(),
    }
}

/// Columns of text with a header line, no trailing blanks and no line break at the end.
pub(super) fn aligned(indent: &str, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> = vec![header.iter().map(|h| (*h).to_owned()).collect()];
    lines.extend(
        rows.into_iter()
            .map(|row| row.iter().map(|cell| escape_control(cell, false)).collect::<Vec<_>>()),
    );
    let widths: Vec<usize> = (0..header.len())
        .map(|i| {
            lines
                .iter()
                .filter_map(|line| line.get(i))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let lines = lines.iter().map(|line| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{indent}{}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}
