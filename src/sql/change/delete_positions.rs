//! DeletePositions: rows that a client names by data file and position.
//!
//! Invariants: a row that is in no file is refused as it comes, so that memory is bounded by the table's rows;
//! rows that were deleted before, by whatever kind of delete, do not count.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::super::casts::strict;
use super::super::engine::Defaults;
use super::super::start::PLACE;
use super::delete::{Found, add_rows, gather};
use super::delete_scope::Scope;
use super::execute::{Changes, Done};
use super::names;
use super::places::by_file;
use super::rewrite::rows_of;
use crate::bitmap::RowSet;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::MAIN_BRANCH;
use crate::iceberg::{DeletePlan, DeleteTarget, IcebergSnapshot, IcebergTable};
use crate::table::{AsOf, HiddenColumn, Predicate, ScanRequest, Snapshot, Table};
use crate::write::{DeleteMode, RowDelete, RowsByFile};

impl Changes {
    /// Deletes rows that a client names by data file and position.
    pub(in super::super) async fn delete_positions(
        &self,
        name: &[String],
        snapshot: Option<i64>,
        mut rows: BoxStream<'_, Result<RecordBatch>>,
        defaults: &Defaults,
        commit_id: Option<&str>,
    ) -> Result<Done> {
        // Before the stream is read, so that a wrong name is told at once.
        let (ident, branch) = names::written_table(&self.planner.catalogs, defaults, name).await?;
        let table = self.writing()?.commits.table(&ident).await?;
        if let Some(known) = self.done_before("DELETE", &table, &branch, commit_id).await? {
            // The client is still sending.
            while let Some(batch) = rows.next().await {
                batch?;
            }
            return Ok(known);
        }
        // A row that is in no file is refused as it comes, before there is memory for many of them.
        let files = file_lengths(&table, &branch).await?;
        let length = |path: &str| {
            let place = || files.get(table.io().comparable(path).ok()?.as_str()).copied();
            files.get(path).copied().or_else(place)
        };
        let named = named_positions(rows, length).await.context("table", || ident.clone())?;
        let find = || self.find_positions(name, snapshot, &named, defaults);
        self.find_and_delete(&ident, "DELETE", commit_id, find).await
    }

    /// Finds the data files of rows that are named.
    async fn find_positions(&self, name: &[String], since: Option<i64>, named: &RowsByFile, defaults: &Defaults) -> Result<Found> {
        let (ident, branch) = names::written_table(&self.planner.catalogs, defaults, name).await?;
        let table = self.writing()?.commits.table(&ident).await?;
        let metadata = table.metadata();
        names::check_branch(metadata, &branch).context("table", || ident.clone())?;
        let mode = match metadata.format_version {
            1 => {
                let message = "tables of format version 1 hold no position deletes: set format-version to 2, or use DELETE";
                return Err(Error::unsupported(message).with("table", &ident));
            }
            2 => DeleteMode::Positions,
            _ => DeleteMode::Vectors,
        };
        let snapshot = head_of(&table, &branch)?;
        if let Some(since) = since
            && !metadata.is_ancestor(snapshot.id(), since)
        {
            let message = "the snapshot that the positions are of is not in the history of the branch";
            return Err(Error::invalid(message).with("snapshot", since).with("table", &ident));
        }
        let plan = snapshot.plan_delete(&ScanRequest::default()).await?;
        let known: HashMap<&str, &DeleteTarget> = plan
            .targets
            .iter()
            .map(|target| (target.task.recorded_path.as_str(), target))
            .collect();
        let places: HashMap<&str, &DeleteTarget> = plan.targets.iter().map(|target| (&*target.task.location, target)).collect();
        let mut rows = RowsByFile::new();
        for (path, positions) in named {
            let place = table.io().comparable(path).ok();
            let other = || place.as_deref().and_then(|place| places.get(place));
            let target = known
                .get(path.as_str())
                .or_else(other)
                .ok_or_else(|| no_such_file(path).with("table", &ident))?;
            let of_file = rows.entry(target.task.recorded_path.clone()).or_default();
            of_file.union_with(positions);
        }
        for (path, live) in self.live_rows(&snapshot, &plan, &rows).await? {
            if let Some(rows) = rows.get_mut(&path) {
                rows.keep_common(&live);
            }
        }
        let delete = RowDelete::of(&plan, rows, false, &self.writing()?.scan)
            .await
            .context("table", || ident.clone())?;
        // Rows that come later are not named.
        let scope = Scope {
            predicate: Predicate::False,
            misses: None,
            depends: false,
        };
        Ok(Found {
            table,
            branch,
            snapshot,
            scope,
            plan,
            delete,
            mode: Some(mode),
        })
    }

    /// The rows that are there of data files that equality deletes are about: only reading tells.
    async fn live_rows(&self, snapshot: &IcebergSnapshot, plan: &DeletePlan, named: &RowsByFile) -> Result<RowsByFile> {
        let doubtful = |target: &&DeleteTarget| !target.task.deletes.equality.is_empty() && named.contains_key(&target.task.recorded_path);
        let tasks: Vec<_> = plan
            .targets
            .iter()
            .filter(doubtful)
            .map(|target| Arc::clone(&target.task))
            .collect();
        let mut live = RowsByFile::new();
        if tasks.is_empty() {
            return Ok(live);
        }
        live.extend(tasks.iter().map(|task| (task.recorded_path.clone(), RowSet::new())));
        let rows = rows_of(snapshot.clone(), plan.scan.clone(), tasks, false)?;
        gather(self.read(rows, Some(PLACE.map(HiddenColumn::name))).await?, &mut live).await?;
        Ok(live)
    }
}

/// The newest snapshot of a branch.
fn head_of(table: &IcebergTable, branch: &str) -> Result<IcebergSnapshot> {
    table.snapshot_at(&AsOf::Ref(branch.to_owned())).or_else(|error| match branch {
        MAIN_BRANCH => table.snapshot_at(&AsOf::Latest),
        _ => Err(error),
    })
}

/// Rows of each data file, by its path as it is recorded and by the place that it means.
async fn file_lengths(table: &IcebergTable, branch: &str) -> Result<HashMap<String, u64>> {
    names::check_branch(table.metadata(), branch).context("table", || table.ident().clone())?;
    let plan = head_of(table, branch)?.plan_delete(&ScanRequest::default()).await?;
    let tasks = plan.targets.iter().map(|target| &target.task);
    let lengths = tasks.flat_map(|task| {
        let names = [task.recorded_path.clone(), task.location.to_string()];
        names.into_iter().filter_map(|name| Some((name, task.record_count?)))
    });
    Ok(lengths.collect())
}

fn no_such_file(path: &str) -> Error {
    Error::invalid("rows are to be deleted of a data file that the table does not have, or no longer has").with("file", path)
}

fn no_such_row(row: u64, path: &str, count: u64) -> Error {
    Error::invalid(format!("row {row} is to be deleted of a data file of {count} rows")).with("file", path)
}

/// The rows that a stream names. `length` gives the rows of a data file.
///
/// Errors: `InvalidInput` for other columns than `file_path` and `pos`, for nulls, and for rows that are in no file.
async fn named_positions(mut batches: BoxStream<'_, Result<RecordBatch>>, length: impl Fn(&str) -> Option<u64>) -> Result<RowsByFile> {
    let mut rows = RowsByFile::new();
    let mut lengths: HashMap<String, u64> = HashMap::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let column = |name: &str, to: &DataType| {
            let fields = batch.schema_ref().fields();
            let named = fields.iter().position(|field| field.name().eq_ignore_ascii_case(name));
            let values = named.filter(|_| batch.num_columns() == 2).map(|place| batch.column(place));
            let values = values.ok_or_else(|| Error::invalid("DeletePositions takes the columns file_path and pos"))?;
            let of = values.data_type();
            let fits = if *to == DataType::Utf8 {
                of.is_string() || matches!(of, DataType::Dictionary(..))
            } else {
                of.is_integer()
            };
            let unfit = || Error::invalid(format!("column {name} of DeletePositions cannot be of type {of}"));
            if !fits {
                return Err(unfit());
            }
            if values.logical_null_count() > 0 {
                return Err(Error::invalid(format!("column {name} of DeletePositions has a NULL")));
            }
            strict(values, to).map_err(|e| unfit().with_source(e))
        };
        let (files, pos) = (column("file_path", &DataType::Utf8)?, column("pos", &DataType::Int64)?);
        let positions: &Int64Array = pos.as_primitive();
        if let Some(negative) = positions.values().iter().find(|position| **position < 0) {
            return Err(Error::invalid(format!("column pos has the negative position {negative}")));
        }
        for (path, range) in by_file(&files)? {
            let count = match lengths.get(path) {
                Some(count) => *count,
                None => {
                    let count = length(path).ok_or_else(|| no_such_file(path))?;
                    lengths.insert(path.to_owned(), count);
                    count
                }
            };
            let last = positions.values().get(range).unwrap_or_default().iter().max();
            if let Some(last) = last.map(|last| last.cast_unsigned()).filter(|last| *last >= count) {
                return Err(no_such_row(last, path, count));
            }
        }
        add_rows(&files, positions, &mut rows)?;
    }
    Ok(rows)
}
