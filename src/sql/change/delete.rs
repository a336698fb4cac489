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

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Volatility, ident};
use futures::StreamExt;
use futures::stream::BoxStream;

use super::super::engine::{Defaults, Statement};
use super::super::errors::from_datafusion;
use super::super::literals::fit_literals;
use super::super::params::Values;
use super::super::prepare::Prepared;
use super::super::start::Start;
use super::delete_scope::{Scope, check_limits, depends_on_other_rows};
use super::execute::{Changes, Done, With, fill};
use super::names;
use super::parse_delete::Delete;
use super::places::{by_file, positions};
use super::rewrite::{rows_of, rows_that_stay};
use crate::bitmap::RowSet;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::commit::{Change as TableChange, Operation, RemovedFile};
use crate::iceberg::manifest::DataFile;
use crate::iceberg::{DeletePlan, IcebergSnapshot, IcebergTable};
use crate::table::{Predicate, Snapshot, Table, TableIdent};
use crate::write::commit::{Commits, TableGuard};
use crate::write::{
    DeleteMode, DeletedRows, PartlyDeleted, RowDelete, RowsByFile, data_folder, delete_isolation, delete_mode, write_position_deletes,
};

/// How often a statement begins anew because of other commits.
const RERUNS: u32 = 3;

/// What a statement found, before it is committed.
pub(super) struct Found {
    pub(super) table: IcebergTable,
    pub(super) branch: String,
    pub(super) snapshot: IcebergSnapshot,
    pub(super) scope: Scope,
    pub(super) plan: DeletePlan,
    pub(super) delete: RowDelete,
    /// Set where it is not for the table's properties to say.
    pub(super) mode: Option<DeleteMode>,
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
        let find = || self.find(sql, delete, defaults, with);
        self.find_and_delete(&ident, delete.verb, with.commit_id, find).await
    }

    /// Finds rows and deletes them, anew where other commits stand against it.
    pub(super) async fn find_and_delete<F>(
        &self,
        ident: &TableIdent,
        verb: &'static str,
        commit_id: Option<&str>,
        find: impl Fn() -> F,
    ) -> Result<Done>
    where
        F: Future<Output = Result<Found>>,
    {
        let commits = &self.writing()?.commits;
        let mut reruns = 0;
        loop {
            // Alone with the table it does not lose to other statements here again.
            let guard = if reruns > 0 { Some(commits.hold(ident).await) } else { None };
            let deleted = async {
                let found = find().await?;
                let (table, branch) = (found.table.clone(), found.branch.clone());
                let (done, was_there) = self.carry_out(verb, found, commit_id, guard.as_ref()).await?;
                Ok((done, was_there.then_some((table, branch))))
            };
            let deleted: Result<_> = deleted.await;
            // What comes next may have to hold the table, too.
            drop(guard);
            match deleted {
                Err(error) if error.kind() == ErrorKind::CommitConflict && reruns < RERUNS => {
                    tracing::debug!(table = %ident, %error, "the statement begins anew");
                    reruns += 1;
                }
                Err(error) => return Err(error),
                Ok((done, None)) => return Ok(Done { reruns, ..done }),
                // By a request that came at the same time.
                Ok((done, Some((table, branch)))) => {
                    let before = self.done_before(verb, &table, &branch, commit_id).await?;
                    return Ok(before.unwrap_or(done));
                }
            }
        }
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
        check_limits(&prepared.plan, &values)?;
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

    /// What the statement asks of the table; of several executions it is not told, nor of one that depends on when
    /// it is worked out.
    async fn scope(&self, prepared: &Prepared, values: &Values, ident: &TableIdent) -> Result<Scope> {
        let depends = depends_on_other_rows(&prepared.plan, ident)?;
        let unknown = Scope {
            depends,
            ..Scope::default()
        };
        if values.len() != 1 || !is_the_same_each_time(&prepared.plan)? {
            return Ok(unknown);
        }
        let bound = match values.row(0)? {
            None => prepared.plan.clone(),
            Some(values) => {
                let bound = prepared.plan.clone().with_param_values(values).map_err(from_datafusion)?;
                fit_literals(bound).map_err(from_datafusion)?
            }
        };
        let (state, ident) = (Arc::clone(&self.planner.state), ident.clone());
        let scope = self.planner.pool.plan(move || {
            let plan = state.optimize(&bound).map_err(from_datafusion)?;
            Scope::of(&plan, &ident)
        });
        Ok(Scope { depends, ..scope.await? })
    }

    /// Where the rows lie that a query gives.
    async fn places(&self, prepared: Prepared, values: Values) -> Result<RowsByFile> {
        let mut rows = RowsByFile::new();
        gather(self.rows(prepared, values).await?, &mut rows).await?;
        Ok(rows)
    }

    /// Writes and commits what is deleted. Gives also whether the table had the commit already.
    async fn carry_out(
        &self,
        verb: &'static str,
        found: Found,
        commit_id: Option<&str>,
        guard: Option<&TableGuard>,
    ) -> Result<(Done, bool)> {
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
            return Ok((done, false));
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
        change.depends = scope.depends;
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
        Ok((done, committed.was_there))
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
        let writer = self.writing()?.rewriter(table.io(), table.metadata(), lineage)?;
        let rows = self.read(rows, None).await?;
        fill(writer, rows.map(|batch| rows_that_stay(&batch?, &deleted)).boxed()).await
    }

    /// The rows of a snapshot, all of their columns or these.
    pub(super) async fn read(
        &self,
        rows: Arc<dyn Snapshot>,
        columns: Option<[&str; 2]>,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
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
        self.rows(prepared, Values::new(&[], None)?).await
    }
}

/// Whether a plan has no function whose value depends on when it is called.
fn is_the_same_each_time(plan: &LogicalPlan) -> Result<bool> {
    let mut same = true;
    let walk = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            same &= !expr.exists(|part| {
                let is_fixed = |function: &ScalarFunction| function.func.signature().volatility == Volatility::Immutable;
                Ok(matches!(part, Expr::ScalarFunction(function) if !is_fixed(function)))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    });
    walk.map(|_| same).map_err(from_datafusion)
}

/// Adds the rows of batches of data files and positions.
pub(super) async fn gather(mut batches: BoxStream<'_, Result<RecordBatch>>, rows: &mut RowsByFile) -> Result<()> {
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        add_rows(batch.column(0), positions(batch.column(1))?, rows)?;
    }
    Ok(())
}

pub(super) fn add_rows(files: &ArrayRef, positions: &Int64Array, rows: &mut RowsByFile) -> Result<()> {
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
