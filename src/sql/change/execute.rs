//! Carrying out statements that change something.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::StreamExt;
use futures::stream::BoxStream;

use super::super::admission::Admission;
use super::super::engine::Defaults;
use super::super::errors::from_datafusion;
use super::super::params::Values;
use super::super::prepare::{Planner, Prepared};
use super::super::run;
use super::super::source::{begins_with, tokenize};
use super::insert::{Target, Written};
use super::names;
use super::parse::{CHANGES, Change, CreateTable, Insert, parse};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::commit::Change as TableChange;
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::{FORMAT_VERSION_PROPERTY, TableMetadata};
use crate::iceberg::{IcebergTable, written_columns};
use crate::io::TableIo;
use crate::runtime::DecodePool;
use crate::scan::ScanContext;
use crate::table::{Table, TableIdent};
use crate::write::commit::{Added, CommitStatus, Commits};
use crate::write::{DataWriter, WriterLimits};

/// What a statement did.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// What it is called, in capitals: `INSERT`, `CREATE TABLE`.
    pub verb: &'static str,
    /// Rows that were changed; 0 for statements about tables.
    pub rows: u64,
    /// The snapshot that it made.
    pub snapshot_id: Option<i64>,
    /// The id that the commit can be asked for by.
    pub commit_id: Option<String>,
    /// Data files that were added.
    pub data_files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Delete files or deletion vectors that were added.
    pub delete_files: u64,
    /// Bytes of these.
    pub delete_bytes: u64,
    /// Data files that were written anew.
    pub rewritten_files: u64,
    /// Data files that went as a whole.
    pub removed_files: u64,
    /// How often the statement began anew because of other commits.
    pub reruns: u32,
}

/// What a change that adds rows is called.
const INSERT: &str = "INSERT";

/// What tables are written with.
#[derive(Debug, Clone)]
pub struct Writing {
    pub commits: Arc<Commits>,
    /// Encodes data files.
    pub pool: Arc<DecodePool>,
    /// Reads what was deleted before.
    pub scan: Arc<ScanContext>,
}

impl Writing {
    /// A writer of rows of a table, for the commit of an id.
    fn writer(&self, io: &TableIo, metadata: &TableMetadata) -> Result<DataWriter> {
        let id = uuid::Uuid::new_v4().to_string();
        DataWriter::new(io.clone(), Arc::clone(&self.pool), metadata, &id, 0, WriterLimits::default())
    }

    /// A writer of rows that were in the table before; with `lineage` their row ids come with them.
    pub(super) fn rewriter(&self, io: &TableIo, metadata: &TableMetadata, lineage: bool) -> Result<DataWriter> {
        if !lineage {
            return self.writer(io, metadata);
        }
        let id = uuid::Uuid::new_v4().to_string();
        DataWriter::with_lineage(io.clone(), Arc::clone(&self.pool), metadata, &id, 0, WriterLimits::default())
    }
}

/// What carries out changes.
#[derive(Debug)]
pub(in super::super) struct Changes {
    pub(in super::super) planner: Planner,
    pub(in super::super) writing: Option<Writing>,
    pub(in super::super) admission: Admission,
}

/// The values of a statement's parameters, and the id of its commit where the client gave one.
#[derive(Debug, Clone, Copy, Default)]
pub struct With<'a> {
    pub parameters: Option<&'a RecordBatch>,
    pub commit_id: Option<&'a str>,
}

impl Changes {
    /// What tables are written with.
    ///
    /// Errors: `Unsupported` where nothing is.
    pub(in super::super) fn writing(&self) -> Result<&Writing> {
        self.writing
            .as_ref()
            .ok_or_else(|| Error::unsupported("tables are served read-only here"))
    }

    /// The query inside, planned for its parameters and errors; nothing is done.
    pub(in super::super) async fn plan(&self, sql: &str, change: &Change, defaults: &Defaults) -> Result<Option<Prepared>> {
        self.writing()?;
        let catalogs = &self.planner.catalogs;
        match change {
            Change::Insert(insert) => {
                let (ident, _) = names::written_table(catalogs, defaults, &insert.table).await?;
                let table = self.writing()?.commits.table(&ident).await?;
                let target = Target::new(written(table.metadata())?, &insert.columns, insert.by_name)?;
                let prepared = self.planner.prepare_query(sql, insert.query, Some(target), defaults, None).await?;
                return Ok(Some(prepared));
            }
            Change::Delete(delete) => return self.plan_delete(sql, delete, defaults).await.map(Some),
            Change::CreateTable(create) => {
                let ident = names::new_table(catalogs, defaults, &create.name).await?;
                catalogs.writable(&ident.catalog)?;
                if let Some(query) = create.query {
                    return Ok(Some(self.planner.prepare_query(sql, query, None, defaults, None).await?));
                }
            }
            Change::DropTable { name, if_exists, .. } => match names::find(catalogs, defaults, name).await {
                Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => {}
                found => catalogs.writable(&found?.catalog).map(|_| ())?,
            },
            Change::AlterProperties { name, .. } => {
                let ident = names::find(catalogs, defaults, name).await?;
                catalogs.writable(&ident.catalog)?;
            }
            Change::CreateSchema { name, .. } | Change::DropSchema { name, .. } => {
                let (catalog, _) = names::schema(catalogs, defaults, name)?;
                catalogs.writable(catalog.name())?;
            }
        }
        Ok(None)
    }

    /// Carries the statement out.
    pub(in super::super) async fn run(&self, sql: &str, change: &Change, defaults: &Defaults, with: With<'_>) -> Result<Done> {
        let takes_values = change.query().is_some() || matches!(change, Change::Delete(_));
        if !takes_values && with.parameters.is_some_and(|values| values.num_columns() > 0) {
            return Err(Error::invalid("the statement takes no parameters"));
        }
        let catalogs = &self.planner.catalogs;
        match change {
            Change::Insert(insert) => self.insert(sql, insert, defaults, with).await,
            Change::Delete(delete) => self.delete(sql, delete, defaults, with).await,
            Change::CreateTable(create) => self.create_table(sql, create, defaults, with).await,
            Change::DropTable { name, if_exists, purge } => {
                if *purge {
                    return Err(Error::unsupported(
                        "DROP TABLE .. PURGE is not built yet; DROP TABLE takes the name away and leaves the files",
                    ));
                }
                let done = Done {
                    verb: "DROP TABLE",
                    ..Done::default()
                };
                let ident = match names::find(catalogs, defaults, name).await {
                    Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => return Ok(done),
                    found => found?,
                };
                match self.writing()?.commits.drop_table(&ident).await {
                    Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => Ok(done),
                    dropped => dropped.map(|()| done),
                }
            }
            Change::AlterProperties {
                name,
                set,
                unset,
                if_exists,
            } => {
                let ident = names::find(catalogs, defaults, name).await?;
                let commits = &self.writing()?.commits;
                if !if_exists {
                    let table = commits.table(&ident).await?;
                    let missing = unset.iter().find(|name| !table.metadata().properties.contains_key(*name));
                    // Reserved names are refused as such.
                    if let Some(missing) = missing.filter(|name| *name != FORMAT_VERSION_PROPERTY) {
                        let message = format!("the table has no property {missing}: UNSET TBLPROPERTIES IF EXISTS passes over it");
                        return Err(Error::invalid(message).with("table", ident));
                    }
                }
                commits.set_properties(&ident, set.clone(), unset.clone()).await?;
                Ok(Done {
                    verb: "ALTER TABLE",
                    ..Done::default()
                })
            }
            Change::CreateSchema {
                name,
                if_not_exists,
                properties,
            } => {
                let (catalog, schema) = names::schema(catalogs, defaults, name)?;
                names::check_new_schema(&schema)?;
                let created = catalogs.writable(catalog.name())?.create_namespace(&schema, properties).await;
                match created {
                    Err(e) if *if_not_exists && e.kind() == ErrorKind::AlreadyExists => {}
                    created => created.context("schema", || schema)?,
                }
                Ok(Done {
                    verb: "CREATE SCHEMA",
                    ..Done::default()
                })
            }
            Change::DropSchema { name, if_exists, cascade } => {
                let (catalog, schema) = names::schema(catalogs, defaults, name)?;
                let writable = catalogs.writable(catalog.name())?;
                let schema = names::stored_schema(catalog, &schema).await?.unwrap_or(schema);
                if *cascade {
                    for ident in catalog.list_tables(&schema).await? {
                        self.writing()?.commits.drop_table(&ident).await?;
                    }
                }
                match writable.drop_namespace(&schema).await {
                    Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => {}
                    dropped => dropped.context("schema", || schema)?,
                }
                Ok(Done {
                    verb: "DROP SCHEMA",
                    ..Done::default()
                })
            }
        }
    }

    async fn insert(&self, sql: &str, insert: &Insert, defaults: &Defaults, with: With<'_>) -> Result<Done> {
        let (ident, branch) = names::written_table(&self.planner.catalogs, defaults, &insert.table).await?;
        let table = self.writing()?.commits.table(&ident).await?;
        let metadata = table.metadata();
        names::check_branch(metadata, &branch).context("table", || ident.clone())?;
        let target = Target::new(written(metadata)?, &insert.columns, insert.by_name)?;
        let prepared = self.planner.prepare_query(sql, insert.query, Some(target), defaults, None).await?;
        if let Some(done) = self.done_before(INSERT, &table, &branch, with.commit_id).await? {
            return Ok(done);
        }
        let writer = self.writing()?.writer(table.io(), metadata)?;
        let files = self.write(prepared, writer, with.parameters).await;
        self.commit(&table, branch, files, with.commit_id).await
    }

    /// Adds data files to a table.
    async fn commit(&self, table: &IcebergTable, branch: String, files: Result<Vec<DataFile>>, commit_id: Option<&str>) -> Result<Done> {
        let files = files.context("table", || table.ident().clone())?;
        let done = of_added(INSERT, Added::of_files(&files));
        // Nothing to say to other readers: as Postgres, no rows are no error.
        if files.is_empty() {
            return Ok(done);
        }
        let id = commit_id.map_or_else(Commits::new_id, str::to_owned);
        let change = TableChange::append(Arc::clone(table.metadata()), id.clone(), files).on_branch(&branch);
        let committed = self.writing()?.commits.commit(table, change).await?;
        // By a request that came at the same time.
        if committed.was_there
            && let Some(before) = self.done_before(INSERT, table, &branch, commit_id).await?
        {
            return Ok(before);
        }
        Ok(of_commit(done, committed.snapshot_id, id))
    }

    /// What the commit of an id that the client gave did, where the table has it.
    pub(super) async fn done_before(
        &self,
        verb: &'static str,
        table: &IcebergTable,
        branch: &str,
        commit_id: Option<&str>,
    ) -> Result<Option<Done>> {
        let Some(commit_id) = commit_id else { return Ok(None) };
        let known = self.writing()?.commits.known(table, branch, commit_id).await?;
        let other = known.filter(|known| known.appended.is_some_and(|appended| appended != (verb == INSERT)));
        if let Some(other) = other {
            let message = "the idempotency key was used for another kind of change of the table: take a key of its own for each";
            let error = Error::invalid(message).with("table", table.ident());
            return Err(error.with("snapshot", other.snapshot_id));
        }
        Ok(known.map(|known| of_commit(of_added(verb, known.added), known.snapshot_id, commit_id.to_owned())))
    }

    /// Appends rows that come with the names of their columns, all in one commit.
    pub(in super::super) async fn append(
        &self,
        name: &[String],
        mut rows: BoxStream<'_, Result<RecordBatch>>,
        defaults: &Defaults,
        commit_id: Option<&str>,
    ) -> Result<Done> {
        let (ident, branch) = names::written_table(&self.planner.catalogs, defaults, name).await?;
        let table = self.writing()?.commits.table(&ident).await?;
        let metadata = table.metadata();
        names::check_branch(metadata, &branch).context("table", || ident.clone())?;
        let target = Target::new(written(metadata)?, &[], true)?;
        if let Some(done) = self.done_before(INSERT, &table, &branch, commit_id).await? {
            // The client is still sending.
            while let Some(batch) = rows.next().await {
                batch?;
            }
            return Ok(done);
        }
        let permit = self.admission.enter().await?;
        let writer = self.writing()?.writer(table.io(), metadata)?;
        let rows = rows.map(|batch| target.rows(&batch?)).boxed();
        let files = fill(writer, rows).await;
        // Who holds the table may be waiting for admission.
        drop(permit);
        self.commit(&table, branch, files, commit_id).await
    }

    /// What became of the commit of an id; `name` is the table that it was for.
    pub(in super::super) async fn status(&self, commit_id: &str, name: Option<&[String]>, defaults: &Defaults) -> Result<CommitStatus> {
        let ident = match name {
            Some(name) => Some(names::find(&self.planner.catalogs, defaults, name).await?),
            None => None,
        };
        self.writing()?.commits.status(commit_id, ident.as_ref()).await
    }

    async fn create_table(&self, sql: &str, create: &CreateTable, defaults: &Defaults, with: With<'_>) -> Result<Done> {
        let catalogs = &self.planner.catalogs;
        let ident = names::new_table(catalogs, defaults, &create.name).await?;
        let catalog = catalogs.catalog(Some(&ident.catalog))?;
        let verb = if create.query.is_some() {
            "CREATE TABLE AS"
        } else {
            "CREATE TABLE"
        };
        if let Some(there) = catalog.find_table(&ident.schema, &ident.table).await? {
            return match create.if_not_exists {
                true => Ok(Done { verb, ..Done::default() }),
                false => Err(Error::new(ErrorKind::AlreadyExists, format!("table \"{there}\" exists already"))),
            };
        }
        let writable = catalogs.writable(&ident.catalog)?;
        let location = match &create.location {
            Some(location) => location.clone(),
            None => writable.new_location(&ident).await?,
        };
        let made = match create.query {
            None => {
                let creation = self
                    .writing()?
                    .commits
                    .stage_table(&ident, create.new_table(location, None)?)
                    .await?;
                self.writing()?
                    .commits
                    .create_table(&creation)
                    .await
                    .map(|()| Done { verb, ..Done::default() })
            }
            Some(query) => self.create_table_as(sql, create, query, &ident, location, defaults, with).await,
        };
        match made {
            Err(e) if create.if_not_exists && e.kind() == ErrorKind::AlreadyExists => Ok(Done { verb, ..Done::default() }),
            made => made,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one statement's parts")]
    async fn create_table_as(
        &self,
        sql: &str,
        create: &CreateTable,
        query: usize,
        ident: &TableIdent,
        location: String,
        defaults: &Defaults,
        with: With<'_>,
    ) -> Result<Done> {
        let planned = self.planner.prepare_query(sql, query, None, defaults, None).await?;
        let new = create.new_table(location, Some(&planned.schema))?;
        let creation = self.writing()?.commits.stage_table(ident, new).await?;
        let metadata = creation.metadata();
        let made = async {
            let target = Target::new(written(metadata)?, &[], false)?;
            let pins = Some(planned.statement.pins.as_slice());
            let prepared = self.planner.prepare_query(sql, query, Some(target), defaults, pins).await?;
            let writer = self.writing()?.writer(creation.io(), metadata)?;
            self.write(prepared, writer, with.parameters).await
        };
        let files = match made.await {
            Ok(files) => files,
            Err(error) => {
                self.writing()?.commits.forget(&creation).await;
                return Err(error).context("table", || ident.clone());
            }
        };
        let done = of_added("CREATE TABLE AS", Added::of_files(&files));
        if files.is_empty() {
            return self.writing()?.commits.create_table(&creation).await.map(|()| done);
        }
        let commit_id = with.commit_id.map_or_else(Commits::new_id, str::to_owned);
        let change = TableChange::append(Arc::clone(metadata), commit_id.clone(), files);
        let committed = self.writing()?.commits.create_table_with(&creation, change).await?;
        Ok(of_commit(done, committed.snapshot_id, commit_id))
    }

    /// Runs a query into files.
    async fn write(&self, prepared: Prepared, writer: DataWriter, parameters: Option<&RecordBatch>) -> Result<Vec<DataFile>> {
        let values = Values::new(&prepared.parameters, parameters)?;
        fill(writer, self.rows(prepared, values).await?).await
    }

    /// Runs a query.
    pub(super) async fn rows(&self, prepared: Prepared, values: Values) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let Planner { pool, state, .. } = &self.planner;
        let rows = run::start(pool, state, &self.admission, prepared, values).await?;
        Ok(rows.map(|batch| batch.map_err(from_datafusion)).boxed())
    }
}

/// Writes rows into files; of a stream that fails none is left.
pub(super) async fn fill(mut writer: DataWriter, mut rows: BoxStream<'_, Result<RecordBatch>>) -> Result<Vec<DataFile>> {
    let taken = async {
        while let Some(batch) = rows.next().await {
            writer.write(&batch?).await?;
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

/// The schema of what a change answers with where an answer has columns.
pub(in super::super) fn count_schema() -> SchemaRef {
    use arrow::datatypes::{DataType, Field, Schema};
    Arc::new(Schema::new(vec![Field::new("count", DataType::Int64, false)]))
}

async fn give_up(writer: DataWriter) {
    if let Err(error) = writer.abort().await {
        tracing::warn!(%error, "data files of a statement that failed could not be deleted");
    }
}

fn of_added(verb: &'static str, added: Added) -> Done {
    Done {
        verb,
        rows: added.rows,
        data_files: added.data_files,
        bytes: added.bytes,
        ..Done::default()
    }
}

fn of_commit(mut done: Done, snapshot_id: i64, commit_id: String) -> Done {
    done.snapshot_id = Some(snapshot_id);
    done.commit_id = Some(commit_id);
    done
}

/// The columns of a table as an INSERT fills them.
fn written(metadata: &TableMetadata) -> Result<Vec<Written>> {
    written_columns(metadata.current_schema()?)?.into_iter().map(Written::new).collect()
}

/// Reads a statement that changes something; `None` for one that does not.
pub(in super::super) fn read(sql: &str) -> Result<Option<Change>> {
    let tokens = tokenize(sql)?.tokens;
    begins_with(&tokens, CHANGES).then(|| parse(&tokens)).transpose()
}
