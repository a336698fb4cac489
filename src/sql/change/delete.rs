//! DELETE and TRUNCATE (architecture D4, reliability-security.md 2.4).
//!
//! The rows are found by an ordinary query for their data file and position. Data files of which no row stays go
//! by metadata alone; of others the rows are noted as deleted, or the files are written anew, as the table
//! declares.
//!
//! Invariants: rows that the statement is said to have deleted were there when it was committed; nothing is
//! committed where nothing is deleted; a statement that other commits stand against begins anew on the table as
//! it is then (IC-24), the last times alone with it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlanBuilder, ident};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::super::engine::{Defaults, Statement};
use super::super::errors::from_datafusion;
use super::super::literals::fit_literals;
use super::super::params::Values;
use super::super::prepare::Prepared;
use super::super::run;
use super::super::start::{PLACE, Start};
use super::delete_scope::Scope;
use super::execute::{Changes, Done, With, give_up};
use super::names;
use super::parse_delete::Delete;
use super::places::{by_file, positions};
use super::rewrite::{rows_of, rows_that_stay};
use crate::bitmap::RowSet;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::commit::{Change as TableChange, Operation, RemovedFile};
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::{MAIN_BRANCH, TableMetadata};
use crate::iceberg::{DeletePlan, DeleteTarget, IcebergSnapshot, IcebergTable};
use crate::table::{AsOf, HiddenColumn, Predicate, ScanRequest, Snapshot, Table, TableIdent};
use crate::write::commit::{Commits, TableGuard};
use crate::write::{
    DeleteMode, DeletedRows, PartlyDeleted, RowDelete, RowsByFile, data_folder, delete_isolation, delete_mode, write_position_deletes,
};

/// Most data files that a client names rows of at once.
const MOST_FILES: usize = 1_000_000;
/// How often a statement begins anew because of other commits.
const RERUNS: u32 = 3;

/// What a statement found, before it is committed.
struct Found {
    table: IcebergTable,
    branch: String,
    snapshot: IcebergSnapshot,
    scope: Scope,
    plan: DeletePlan,
    delete: RowDelete,
    /// Set where it is not for the table's properties to say.
    mode: Option<DeleteMode>,
}

impl Changes {
    /// The query for the rows, planned; nothing is done.
    pub(super) async fn plan_delete(&self, sql: &str, delete: &Delete, defaults: &Defaults) -> Result<Prepared> {
        let (ident, _) = names::written_table(&self.planner.catalogs, defaults, &delete.rows.table).await?;
        self.writing()?.commits.table(&ident).await?;
        let start = Start::Rows(delete.rows.clone());
        self.planner.prepare_query(sql, start, None, defaults, None).await
    }

    /// Deletes the rows that the statement is about.
    pub(super) async fn delete(&self, sql: &str, delete: &Delete, defaults: &Defaults, with: With<'_>) -> Result<Done> {
        let (ident, _) = names::written_table(&self.planner.catalogs, defaults, &delete.rows.table).await?;
        let commits = &self.writing()?.commits;
        let mut rerun = 0;
        loop {
            // Alone with the table it does not lose to other statements here again.
            let guard = if rerun > 0 { Some(commits.hold(&ident).await) } else { None };
            let done = async {
                let found = self.find(sql, delete, defaults, with).await?;
                self.carry_out(delete.verb, found, with.commit_id, guard.as_ref()).await
            };
            match done.await {
                Err(error) if error.kind() == ErrorKind::CommitConflict && rerun < RERUNS => {
                    tracing::debug!(table = %ident, %error, "the statement begins anew");
                    rerun += 1;
                }
                Err(error) => return Err(error),
                Ok(mut done) => {
                    done.reruns = rerun;
                    return Ok(done);
                }
            }
        }
    }

    /// Deletes rows that a client names by data file and position.
    pub(in super::super) async fn delete_positions(
        &self,
        name: &[String],
        snapshot: Option<i64>,
        mut rows: BoxStream<'_, Result<RecordBatch>>,
        defaults: &Defaults,
        commit_id: Option<&str>,
    ) -> Result<Done> {
        let (ident, _) = names::written_table(&self.planner.catalogs, defaults, name).await?;
        let commits = &self.writing()?.commits;
        // Before the stream is read, so that a wrong name is told at once.
        let table = commits.table(&ident).await?;
        let (_, branch) = names::written_table(&self.planner.catalogs, defaults, name).await?;
        if let Some(known) = self.done_before("DELETE", &table, &branch, commit_id).await? {
            // The client is still sending.
            while let Some(batch) = rows.next().await {
                batch?;
            }
            return Ok(known);
        }
        let named = named_positions(rows).await.context("table", || ident.clone())?;
        let mut rerun = 0;
        loop {
            let guard = if rerun > 0 { Some(commits.hold(&ident).await) } else { None };
            let done = async {
                let found = self.find_positions(name, snapshot, &named, defaults).await?;
                self.carry_out("DELETE", found, commit_id, guard.as_ref()).await
            };
            match done.await {
                Err(error) if error.kind() == ErrorKind::CommitConflict && rerun < RERUNS => rerun += 1,
                Err(error) => return Err(error),
                Ok(mut done) => {
                    done.reruns = rerun;
                    return Ok(done);
                }
            }
        }
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
        let snapshot = table
            .snapshot_at(&AsOf::Ref(branch.clone()))
            .or_else(|error| match branch.as_str() {
                MAIN_BRANCH => table.snapshot_at(&AsOf::Latest),
                _ => Err(error),
            })?;
        if let Some(since) = since {
            check_history(metadata, snapshot.id(), since).context("table", || ident.clone())?;
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
            let target = known.get(path.as_str()).or_else(other).ok_or_else(|| {
                let message = "rows are to be deleted of a data file that the table does not have, or no longer has";
                Error::invalid(message).with("table", &ident).with("file", path)
            })?;
            let of_file = rows.entry(target.task.recorded_path.clone()).or_default();
            of_file.union_with(positions);
        }
        for (path, live) in self.live_rows(&snapshot, &plan, &rows).await? {
            if let Some(rows) = rows.get_mut(&path) {
                check_range(&plan, &path, rows)?;
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

    /// Runs the query for the rows.
    async fn find(&self, sql: &str, delete: &Delete, defaults: &Defaults, with: With<'_>) -> Result<Found> {
        let catalogs = &self.planner.catalogs;
        let (ident, branch) = names::written_table(catalogs, defaults, &delete.rows.table).await?;
        let mut table = self.writing()?.commits.table(&ident).await?;
        names::check_branch(table.metadata(), &branch).context("table", || ident.clone())?;
        let start = Start::Rows(delete.rows.clone());
        let prepared = self.planner.prepare_query(sql, start, None, defaults, None).await?;
        let pins = prepared.statement.pins.iter();
        let pin = pins
            .filter(|pin| pin.table == ident && pin.part.is_none())
            .min_by_key(|pin| pin.mentions.first());
        let pin = pin.ok_or_else(|| Error::internal("the table that is changed is not read"))?;
        if pin.metadata_location != table.metadata_location() {
            // Another commit came between.
            let pinned = catalogs.table_at(&ident, &pin.metadata_location).await?;
            table = IcebergTable::of(pinned.as_ref())?.clone();
        }
        let snapshot = table.snapshot_at(&pin.as_of)?;
        let values = Values::new(&prepared.parameters, with.parameters)?;
        let scope = self.scope(&prepared, &values, &ident).await?;
        let pruning = self.writing()?.scan.pruning;
        let plan = snapshot.plan_delete(&scope.request(pruning)).await?;
        // Of one execution: that each condition holds for every row was asked for all of them together.
        let is_all = scope.misses.is_some() && plan.scan.proved.iter().all(|proved| *proved);
        let whole = if is_all { RowDelete::all(&plan) } else { None };
        let delete = match whole {
            Some(whole) => whole,
            None => {
                let rows = self.places(prepared, values).await?;
                RowDelete::of(&plan, rows, is_all, &self.writing()?.scan)
                    .await
                    .context("table", || ident.clone())?
            }
        };
        Ok(Found {
            table,
            branch,
            snapshot,
            scope,
            plan,
            delete,
            mode: None,
        })
    }

    /// What the statement asks of the table; of several executions it is not told.
    async fn scope(&self, prepared: &Prepared, values: &Values, ident: &TableIdent) -> Result<Scope> {
        if values.len() != 1 {
            return Ok(Scope::default());
        }
        let bound = match values.row(0)? {
            None => prepared.plan.clone(),
            Some(values) => {
                let bound = prepared.plan.clone().with_param_values(values).map_err(from_datafusion)?;
                fit_literals(bound).map_err(from_datafusion)?
            }
        };
        let (state, ident) = (Arc::clone(&self.planner.state), ident.clone());
        self.planner
            .pool
            .plan(move || {
                let plan = state.optimize(&bound).map_err(from_datafusion)?;
                Scope::of(&plan, &ident)
            })
            .await
    }

    /// Where the rows lie that a query gives.
    async fn places(&self, prepared: Prepared, values: Values) -> Result<RowsByFile> {
        let permit = Arc::clone(&self.admission).acquire_owned().await;
        let permit = permit.map_err(|e| Error::internal("admission has ended").with_source(e))?;
        let mut batches = run::start(&self.planner.pool, &self.planner.state, prepared, values, permit).await?;
        let mut rows = RowsByFile::new();
        while let Some(batch) = batches.next().await {
            gather(&batch.map_err(from_datafusion)?, &mut rows)?;
        }
        Ok(rows)
    }

    /// Writes and commits what is deleted.
    async fn carry_out(&self, verb: &'static str, found: Found, commit_id: Option<&str>, guard: Option<&TableGuard>) -> Result<Done> {
        let Found {
            table,
            branch,
            snapshot,
            scope,
            plan,
            delete,
            mode,
        } = found;
        let mut done = Done {
            verb,
            rows: delete.count,
            ..Done::default()
        };
        if delete.is_empty() {
            return Ok(done);
        }
        let ident = table.ident().clone();
        let metadata = table.metadata();
        let mode = match mode {
            Some(mode) => mode,
            None => delete_mode(metadata).context("table", || ident.clone())?,
        };
        let copies = mode == DeleteMode::CopyOnWrite && !delete.partly.is_empty();
        let operation = if copies { Operation::CopyOnWrite } else { Operation::DeleteRows };
        let commit_id = commit_id.map_or_else(Commits::new_id, str::to_owned);
        let mut change = TableChange::new(operation, Arc::clone(metadata), commit_id.clone()).on_branch(branch);
        change.start = snapshot.id();
        change.isolation = delete_isolation(metadata).context("table", || ident.clone())?;
        change.filter = scope.predicate.clone();
        change.counted = Some(delete.count);
        change.removed.extend(delete.removed());
        let empties = scope.predicate == Predicate::True
            && delete.partly.is_empty()
            && delete.whole.len() == plan.targets.len()
            && !plan.targets.is_empty();
        if empties {
            // No row is left that they could delete.
            let known: std::collections::HashSet<&RemovedFile> = change.removed.iter().collect();
            let rest: Vec<RemovedFile> = plan.delete_files.iter().filter(|file| !known.contains(file)).cloned().collect();
            change.removed.extend(rest);
        }
        done.removed_files = delete.whole.len() as u64;
        let partly = delete.partly.iter();
        change.referenced = partly.clone().map(|file| file.target.data_file.file_path.clone()).collect();
        match mode {
            _ if delete.partly.is_empty() => {}
            DeleteMode::CopyOnWrite => {
                let added = self
                    .copy(&table, &snapshot, &plan, &delete)
                    .await
                    .context("table", || ident.clone())?;
                for file in partly {
                    let target = &file.target;
                    change.removed.push(RemovedFile::data_file(&target.data_file.file_path));
                    change.removed.extend(target.vector.iter().chain(&target.scoped).cloned());
                }
                done.rewritten_files = delete.partly.len() as u64;
                done.data_files = added.len() as u64;
                done.bytes = added.iter().map(|file| file.file_size_in_bytes).sum();
                change.referenced.clear();
                change.created = added.iter().map(|file| file.file_path.clone()).collect();
                change.added = added;
            }
            DeleteMode::Positions => {
                let rows = partly.map(|file| DeletedRows {
                    data_file: file.target.data_file.file_path.clone(),
                    spec_id: file.target.data_file.spec_id,
                    partition: Arc::clone(&file.target.data_file.partition),
                    rows: Arc::clone(&file.rows),
                });
                let write_id = uuid::Uuid::new_v4().to_string();
                let written = write_position_deletes(table.io(), &self.writing()?.pool, metadata, &write_id, rows.collect()).await;
                change.added = written.context("table", || ident.clone())?;
                change.created = change.added.iter().map(|file| file.file_path.clone()).collect();
                done.delete_files = change.added.len() as u64;
                done.delete_bytes = change.added.iter().map(|file| file.file_size_in_bytes).sum();
            }
            DeleteMode::Vectors => {
                change.vectors = partly.map(PartlyDeleted::vector_rows).collect();
                change.vector_folder = data_folder(metadata);
                done.delete_files = change.vectors.len() as u64;
            }
        }
        let merges = !change.vectors.is_empty();
        let commits = &self.writing()?.commits;
        let partly_rows: u64 = delete.partly.iter().map(|file| file.rows.len()).sum();
        if merges {
            change.counted = Some(delete.count - partly_rows);
        }
        let committed = commits.commit_holding(&table, change, guard).await?;
        if merges && !committed.was_there {
            // Rows that another commit deleted first were not deleted by this one.
            done.rows = done.rows - partly_rows + committed.vectors.newly_deleted;
            done.delete_bytes = committed.vectors.bytes;
        }
        done.snapshot_id = Some(committed.snapshot_id);
        done.commit_id = Some(commit_id);
        Ok(done)
    }

    /// Writes the rows of files anew that stay.
    async fn copy(&self, table: &IcebergTable, snapshot: &IcebergSnapshot, plan: &DeletePlan, delete: &RowDelete) -> Result<Vec<DataFile>> {
        let lineage = table.metadata().format_version >= 3;
        let tasks = delete.partly.iter().map(|file| Arc::clone(&file.target.task)).collect();
        let rows = rows_of(snapshot.clone(), plan.scan.clone(), tasks, lineage)?;
        let deleted: HashMap<String, Arc<RowSet>> = delete
            .partly
            .iter()
            .map(|file| (file.target.task.recorded_path.clone(), Arc::clone(&file.rows)))
            .collect();
        let mut writer = self.writing()?.rewriter(table.io(), table.metadata(), lineage)?;
        let taken = async {
            let mut batches = self.read(rows, None).await?;
            while let Some(batch) = batches.next().await {
                writer.write(&rows_that_stay(&batch.map_err(from_datafusion)?, &deleted)?).await?;
            }
            Ok(())
        };
        match taken.await {
            Ok(()) => writer.finish().await,
            Err(error) => {
                give_up(writer).await;
                Err(error)
            }
        }
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
        let mut batches = self.read(rows, Some(PLACE.map(HiddenColumn::name))).await?;
        while let Some(batch) = batches.next().await {
            gather(&batch.map_err(from_datafusion)?, &mut live)?;
        }
        Ok(live)
    }

    /// The rows of a snapshot, all of their columns or these.
    async fn read(&self, rows: Arc<dyn Snapshot>, columns: Option<[&str; 2]>) -> Result<SendableRecordBatchStream> {
        let provider = Arc::clone(&self.planner.providers).provider(rows)?;
        let mut scan = LogicalPlanBuilder::scan("rows", provider_as_source(provider), None).map_err(from_datafusion)?;
        if let Some(columns) = columns {
            scan = scan.project(columns.map(ident)).map_err(from_datafusion)?;
        }
        let plan = scan.build().map_err(from_datafusion)?;
        let prepared = Prepared {
            statement: Statement {
                sql: String::new(),
                defaults: Defaults::default(),
                pins: Vec::new(),
            },
            schema: Arc::new(plan.schema().as_arrow().clone()),
            plan,
            parameters: Vec::new(),
        };
        let permit = Arc::clone(&self.admission).acquire_owned().await;
        let permit = permit.map_err(|e| Error::internal("admission has ended").with_source(e))?;
        run::start(&self.planner.pool, &self.planner.state, prepared, Values::new(&[], None)?, permit).await
    }
}

/// Refuses positions that a data file does not have.
fn check_range(plan: &DeletePlan, path: &str, rows: &RowSet) -> Result<()> {
    let target = plan.targets.iter().find(|target| target.task.recorded_path == path);
    let count = target.map_or(0, |target| target.task.record_count);
    match rows.max().filter(|last| *last >= count) {
        Some(last) => Err(Error::invalid(format!("row {last} is to be deleted of a data file of {count} rows")).with("file", path)),
        None => Ok(()),
    }
}

/// Refuses positions that were read from a snapshot that the branch does not come from.
fn check_history(metadata: &TableMetadata, head: Option<i64>, since: i64) -> Result<()> {
    let mut next = head;
    for _ in 0..=metadata.snapshots.len() {
        if next == Some(since) {
            return Ok(());
        }
        next = next
            .and_then(|id| metadata.snapshot_by_id(id))
            .and_then(|snapshot| snapshot.parent_snapshot_id);
    }
    Err(Error::invalid("the snapshot that the positions are of is not in the history of the branch").with("snapshot", since))
}

/// The rows that a stream names.
///
/// Errors: `InvalidInput` for other columns than `file_path` and `pos`, and for nulls and negative positions;
/// `ResourceExhausted` for too many files.
async fn named_positions(mut batches: BoxStream<'_, Result<RecordBatch>>) -> Result<RowsByFile> {
    let mut rows = RowsByFile::new();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let column = |name: &str, to: &DataType| {
            let values = batch.column_by_name(name).filter(|_| batch.num_columns() == 2);
            let values = values.ok_or_else(|| Error::invalid("DeletePositions takes the columns file_path and pos"))?;
            let of = values.data_type();
            let fits = if *to == DataType::Utf8 {
                of.is_string() || matches!(of, DataType::Dictionary(..))
            } else {
                of.is_integer()
            };
            let unfit = || Error::invalid(format!("column {name} of DeletePositions cannot be of type {of}"));
            if !fits || values.logical_null_count() > 0 {
                return Err(unfit());
            }
            super::super::casts::strict(values, to).map_err(|e| unfit().with_source(e))
        };
        let (files, pos) = (column("file_path", &DataType::Utf8)?, column("pos", &DataType::Int64)?);
        let positions: &Int64Array = pos.as_primitive();
        if let Some(negative) = positions.values().iter().find(|position| **position < 0) {
            return Err(Error::invalid(format!("column pos has the negative position {negative}")));
        }
        add_rows(&files, positions, &mut rows)?;
        if rows.len() > MOST_FILES {
            return Err(Error::resource_exhausted(format!(
                "rows of more than {MOST_FILES} data files are deleted at once"
            )));
        }
    }
    Ok(rows)
}

/// Adds the rows of a batch of data files and positions.
fn gather(batch: &RecordBatch, rows: &mut RowsByFile) -> Result<()> {
    add_rows(batch.column(0), positions(batch.column(1))?, rows)
}

fn add_rows(files: &ArrayRef, positions: &Int64Array, rows: &mut RowsByFile) -> Result<()> {
    for (path, range) in by_file(files)? {
        let of_file = match rows.get_mut(path) {
            Some(known) => known,
            None => rows.entry(path.to_owned()).or_default(),
        };
        let positions = positions.values().get(range).unwrap_or_default();
        if positions.iter().any(|position| *position < 0) {
            return Err(Error::internal("a row that is deleted has a negative position"));
        }
        of_file.extend_sorted(positions.iter().map(|position| position.cast_unsigned()));
    }
    Ok(())
}
