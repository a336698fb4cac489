//! The engine: one per process.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use futures::stream::BoxStream;

use super::admission::Admission;
use super::change::{self, Changes, Done, With, Writing};
use super::params::Values;
use super::plans::Plans;
use super::pool::Pool;
use super::prepare::{Planner, Prepared};
use super::providers::TableProviders;
use super::{memory, run, session};
use crate::catalog::Catalogs;
use crate::config::Config;
use crate::crash;
use crate::error::{Error, Result};
use crate::table::{AsOf, TableIdent};
use crate::write::commit::{CommitStatus, Commits};

/// Session defaults that names are resolved against.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Defaults {
    pub catalog: Option<String>,
    pub schema: Option<String>,
    /// Branch that tables without version are read at.
    pub branch: Option<String>,
    /// Snapshot id or time that tables without version are read at; excludes `branch`.
    pub as_of: Option<String>,
}

/// A table as a statement sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pin {
    pub table: TableIdent,
    /// Metadata file that was current when the statement was planned.
    pub metadata_location: String,
    /// `None` for a table without snapshot.
    pub snapshot_id: Option<i64>,
    /// The version that was asked for. With the metadata file it gives the same snapshot and schema again.
    pub as_of: AsOf,
    /// The metadata table that was asked for.
    pub part: Option<String>,
    /// Positions, among the distinct tables of the statement, of those that this is.
    pub mentions: Vec<u32>,
}

impl Pin {
    /// Whether this is the same table, version and part, whatever names it.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let mentions = self.mentions.clone();
        *self == Self { mentions, ..other.clone() }
    }
}

/// A statement with its tables pinned: all that is needed to run it on any replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Statement {
    pub sql: String,
    pub defaults: Defaults,
    pub pins: Vec<Pin>,
}

/// A placeholder of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// `1`, `2`, ... for `?` and `$1`; the name for `$name`.
    pub name: String,
    /// Inferred; `Utf8` where nothing says otherwise; integers are `Int64`.
    pub data_type: DataType,
}

/// A planned statement.
#[derive(Debug, Clone)]
pub struct Planned {
    pub statement: Statement,
    /// Schema of the result as the engine computes it (the wire schema is the server's affair).
    pub schema: SchemaRef,
    pub parameters: Vec<Parameter>,
    /// Whether the statement changes something: [`Engine::change`] carries it out, [`Engine::run`] does not.
    pub is_change: bool,
}

/// Plans and runs statements.
#[derive(Debug)]
pub struct Engine {
    planner: Planner,
    changes: Changes,
    admission: Admission,
}

impl Engine {
    /// An engine over the catalogs that reads only; `providers` scans snapshots.
    ///
    /// Errors: `InvalidInput` for limits that make no sense.
    pub fn new(config: &Config, catalogs: Arc<Catalogs>, providers: Arc<dyn TableProviders>) -> Result<Self> {
        Self::with_writing(config, catalogs, providers, None)
    }

    /// As [`Self::new`], with what tables are written with.
    ///
    /// Errors: as [`Self::new`].
    pub fn with_writing(
        config: &Config,
        catalogs: Arc<Catalogs>,
        providers: Arc<dyn TableProviders>,
        writing: Option<Writing>,
    ) -> Result<Self> {
        if config.limits.queries == 0 {
            return Err(Error::invalid("limits.queries must be at least 1"));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = config.limits.memory.unwrap_or_else(memory::default_limit);
        let state = session::base_state(memory, cores)?;
        let planner = Planner {
            catalogs,
            providers,
            state: Arc::new(state),
            pool: Arc::new(Pool::new(cores)?),
            plans: Plans::new(),
        };
        let admission = Admission::new(config.limits.queries);
        Ok(Self {
            changes: Changes {
                planner: planner.clone(),
                writing,
                admission: admission.clone(),
            },
            planner,
            admission,
        })
    }

    /// Commits to the tables of all catalogs.
    ///
    /// Errors: `Unsupported` for an engine that reads only.
    pub fn commits(&self) -> Result<&Arc<Commits>> {
        Ok(&self.changes.writing()?.commits)
    }

    /// The catalogs that statements see.
    pub fn catalogs(&self) -> &Arc<Catalogs> {
        &self.planner.catalogs
    }

    /// Parses, checks and plans; reads metadata, runs nothing.
    ///
    /// Errors: `InvalidInput` for a wrong statement, `Unsupported` for one that is not run,
    /// `NotFound` for a table that is not there, what loading a table says.
    pub async fn plan(&self, sql: &str, defaults: &Defaults) -> Result<Planned> {
        if let Some(change) = change::read(sql)? {
            let prepared = self.changes.plan(sql, &change, defaults).await?;
            return Ok(Planned {
                parameters: prepared.as_ref().map(announced).unwrap_or_default(),
                schema: change::count_schema(),
                statement: Statement {
                    sql: sql.to_owned(),
                    defaults: defaults.clone(),
                    pins: Vec::new(),
                },
                is_change: true,
            });
        }
        let prepared = self.planner.prepare(sql, defaults, None).await?;
        Ok(Planned {
            parameters: announced(&prepared),
            schema: prepared.schema,
            statement: prepared.statement,
            is_change: false,
        })
    }

    /// Carries out a statement that changes something, once. `parameters` as for [`Self::run`]: all rows together
    /// are one change. A future that is dropped leaves the change made or not made, never in part.
    ///
    /// Errors: `InvalidInput` for a statement that changes nothing; as [`Self::plan`]; `CommitConflict`: not made;
    /// `CommitStateUnknown`: it may have been made.
    pub async fn change(&self, sql: &str, defaults: &Defaults, with: With<'_>) -> Result<Done> {
        let Some(change) = change::read(sql)? else {
            // What is no query either says so itself.
            self.planner.prepare(sql, defaults, None).await?;
            return Err(Error::invalid(
                "the statement is a query and was sent as an update; run it as a query",
            ));
        };
        let done = self.changes.run(sql, &change, defaults, with).await;
        crash::point("answer");
        done
    }

    /// Appends rows to a table of this name (one to three parts, maybe with `branch_x` behind), all in one commit;
    /// columns are matched by name. With a `commit_id` that the table has already nothing is appended, and what was
    /// done then is told again.
    ///
    /// Errors: those of the stream; `InvalidInput` for columns that do not fit, and for a `commit_id` that the table has on
    /// another branch; as [`Self::change`].
    pub async fn append(
        &self,
        name: &[String],
        rows: BoxStream<'_, Result<RecordBatch>>,
        defaults: &Defaults,
        commit_id: Option<&str>,
    ) -> Result<Done> {
        let done = self.changes.append(name, rows, defaults, commit_id).await;
        crash::point("answer");
        done
    }

    /// Deletes rows of a table by data file (`file_path`) and position (`pos`), all in one commit. `snapshot` is the one
    /// that they were read from. With a `commit_id` that the table has already nothing is deleted.
    ///
    /// Errors: those of the stream; `InvalidInput` for rows that are not in the table; `CommitConflict` for a data file
    /// that was replaced since; as [`Self::change`].
    pub async fn delete_positions(
        &self,
        name: &[String],
        snapshot: Option<i64>,
        rows: BoxStream<'_, Result<RecordBatch>>,
        defaults: &Defaults,
        commit_id: Option<&str>,
    ) -> Result<Done> {
        let done = self.changes.delete_positions(name, snapshot, rows, defaults, commit_id).await;
        crash::point("answer");
        done
    }

    /// What became of the commit of an id; `name` is the table that it was for, where the id may be of several.
    ///
    /// Errors: `NotFound` for the table; as [`Commits::status`].
    pub async fn commit_status(&self, commit_id: &str, name: Option<&[String]>, defaults: &Defaults) -> Result<CommitStatus> {
        self.changes.status(commit_id, name, defaults).await
    }

    /// Runs a statement on its pinned snapshots. `parameters`: a batch with one column per
    /// placeholder and one row per execution; the results of the rows follow one another.
    /// Dropping the stream stops the query.
    ///
    /// Errors: as [`Self::plan`]; `InvalidInput` for parameters that do not fit. Errors of the
    /// stream are ours inside the engine's: [`super::from_datafusion`] takes them out.
    pub async fn run(&self, statement: &Statement, parameters: Option<&RecordBatch>) -> Result<SendableRecordBatchStream> {
        let Statement { sql, defaults, pins } = statement;
        let prepared = self.planner.prepare(sql, defaults, Some(pins)).await?;
        let values = Values::new(&prepared.parameters, parameters)?;
        run::start(&self.planner.pool, &self.planner.state, &self.admission, prepared, values).await
    }
}

fn announced(prepared: &Prepared) -> Vec<Parameter> {
    let parameters = prepared.parameters.iter().map(|p| Parameter {
        name: p.name.clone(),
        data_type: p.announced.clone(),
    });
    parameters.collect()
}
