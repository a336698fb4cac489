//! The rows that changed in a range of versions (PROTOCOL.md, "Change Data Files", "Reader Requirements for AddCDCFile").
//!
//! A commit with change files has its changes in them, and nowhere else. In any other commit the rows of an added file
//! are inserted and those of a removed one deleted; where one file is both, its deletion vector was replaced, and what
//! one vector has and the other has not is what changed. Files that were only moved about change no row.
//!
//! Rows are read with the columns of the last version of the range.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;

use super::commit::{Commit, FileAction};
use super::log::Log;
use super::partition_value;
use super::paths::locate;
use super::version::TableVersion;
use crate::error::{Error, Result, ResultExt};
use crate::table::{
    Column, DeleteSet, DeletionVectorRef, FIRST_RESERVED_ID, FileFormat, FileOrigin, FileScanTask, HiddenColumn, PlanCounts, ScanPlan,
    ScanRequest, Snapshot, TYPE_NAME_KEY, TableIdent,
};

/// Property of a table whose changes can be told.
const ENABLED: &str = "delta.enableChangeDataFeed";
/// Most versions of a range.
const MOST_VERSIONS: u64 = 100_000;

const CHANGE_TYPE: &str = "_change_type";
const COMMIT_VERSION: &str = "_commit_version";
const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// The changes of a range of versions, as a table.
#[derive(Debug, Clone)]
pub(super) struct DeltaChanges {
    ident: TableIdent,
    log: Log,
    since: Arc<TableVersion>,
    /// The last version of the range; its columns are those of the rows.
    until: Arc<TableVersion>,
    commit: String,
    schema: SchemaRef,
    columns: Vec<Arc<Column>>,
}

impl DeltaChanges {
    /// Errors: `InvalidInput` for a table that has columns of the names that are added.
    pub(super) fn new(ident: TableIdent, log: Log, since: Arc<TableVersion>, until: Arc<TableVersion>) -> Result<Self> {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let added = [
            (CHANGE_TYPE, DataType::Utf8, "string"),
            (COMMIT_VERSION, DataType::Int64, "long"),
            (COMMIT_TIMESTAMP, utc, "timestamp"),
        ];
        let mut columns = until.columns.clone();
        for (id, (name, data_type, type_name)) in (FIRST_RESERVED_ID..).zip(added) {
            if until.columns.iter().any(|c| c.field.name().eq_ignore_ascii_case(name)) {
                return Err(
                    Error::invalid(format!("the table has a column {name} itself: its changes cannot be told")).with("table", &ident),
                );
            }
            let metadata = HashMap::from([(TYPE_NAME_KEY.to_owned(), type_name.to_owned())]);
            columns.push(Arc::new(Column {
                id,
                field: Arc::new(Field::new(name, data_type, false).with_metadata(metadata)),
                names: vec![name.to_owned()],
                initial_default: None,
                children: Vec::new(),
            }));
        }
        let schema = Schema::new(columns.iter().map(|c| Arc::clone(&c.field)).collect::<Vec<_>>());
        Ok(Self {
            commit: log.commit(until.log.number()),
            schema: Arc::new(schema),
            columns,
            ident,
            log,
            since,
            until,
        })
    }

    async fn tasks(&self) -> Result<Vec<Arc<FileScanTask>>> {
        let (first, last) = (self.since.log.number(), self.until.log.number());
        if last - first >= MOST_VERSIONS {
            return Err(Error::invalid(format!("the range has more than {MOST_VERSIONS} versions")));
        }
        let files: HashMap<u64, i64> = self.log.commits(last).await?.into_iter().collect();
        let mut is_enabled = is_set(self.since.properties().get(ENABLED));
        let mut partition_columns = self.since.log.partition_columns.clone();
        let mut tasks = Vec::new();
        for number in first..=last {
            let commit = match files.get(&number) {
                Some(millis) => self.log.read_commit((number, *millis)).await?,
                None => None,
            };
            let gone = || {
                Error::not_found(format!(
                    "the changes of version {number} can no longer be told: its commit was cleaned away"
                ))
            };
            let commit = commit.ok_or_else(gone)?;
            if let Some(metadata) = &commit.metadata {
                is_enabled = is_set(metadata.configuration.get(ENABLED).and_then(Option::as_ref));
                partition_columns.clone_from(&metadata.partition_columns);
            }
            if !is_enabled {
                return Err(Error::invalid(format!(
                    "the changes of version {number} were not recorded: {ENABLED} was not set then"
                )));
            }
            if partition_columns.len() != self.until.log.partition_columns.len() {
                return Err(partitioned_otherwise(number));
            }
            self.add(&commit, &mut tasks).context("file", || self.log.commit(number))?;
        }
        Ok(tasks)
    }

    fn add(&self, commit: &Commit, tasks: &mut Vec<Arc<FileScanTask>>) -> Result<()> {
        let from = Told::of(commit)?;
        let mut push = |action: &FileAction, kind: Option<&str>, deletes: DeleteSet| {
            let task = self.task(action, kind, deletes, &from);
            tasks.push(Arc::new(task.context("file", || action.path.clone())?));
            Ok::<_, Error>(())
        };
        if !commit.changes.is_empty() {
            for action in &commit.changes {
                push(action, None, DeleteSet::default())?;
            }
            return Ok(());
        }
        let changed = |actions: &[FileAction]| -> Vec<FileAction> { actions.iter().filter(|a| a.data_change).cloned().collect() };
        let (added, removed) = (changed(&commit.added), changed(&commit.removed));
        for add in &added {
            let vector = self.vector(add)?;
            match removed.iter().find(|remove| remove.path == add.path) {
                None => push(add, Some("insert"), deletes(vector, None))?,
                Some(remove) => {
                    let older = self.vector(remove)?;
                    if vector == older {
                        continue;
                    }
                    if let Some(newer) = &vector {
                        push(add, Some("delete"), deletes(older.clone(), Some(Arc::clone(newer))))?;
                    }
                    if let Some(older) = older {
                        push(add, Some("insert"), deletes(vector, Some(older)))?;
                    }
                }
            }
        }
        for remove in removed.iter().filter(|remove| !added.iter().any(|add| add.path == remove.path)) {
            push(remove, Some("delete"), deletes(self.vector(remove)?, None))?;
        }
        Ok(())
    }

    fn vector(&self, of: &FileAction) -> Result<Option<Arc<DeletionVectorRef>>> {
        let Some(descriptor) = &of.deletion_vector else { return Ok(None) };
        let location = locate(&self.log.io, &self.log.root, &of.path)?;
        descriptor
            .reference(&self.log.io, &self.log.root, &location)
            .map(Arc::new)
            .map(Some)
    }

    fn task(&self, of: &FileAction, kind: Option<&str>, deletes: DeleteSet, told: &Told) -> Result<FileScanTask> {
        let mut constants: Vec<(i32, ArrayRef)> = Vec::new();
        for column in self.until.partition_columns() {
            let name = column.names.first().map_or("", String::as_str);
            // Without its value, the rows would have NULL for what another column was then.
            let text = of.partition_values.as_ref().and_then(|values| values.get(name));
            let text = text.ok_or_else(|| partitioned_otherwise(told.number))?;
            constants.push((column.id, partition_value::typed(vec![text.as_deref()], column)?));
        }
        if let Some(kind) = kind {
            constants.push((FIRST_RESERVED_ID, Arc::new(StringArray::from(vec![kind]))));
        }
        constants.push((FIRST_RESERVED_ID + 1, Arc::clone(&told.version)));
        constants.push((FIRST_RESERVED_ID + 2, Arc::clone(&told.time)));
        Ok(FileScanTask {
            location: locate(&self.log.io, &self.log.root, &of.path)?.into(),
            format: FileFormat::Parquet,
            recorded_path: of.path.clone(),
            size: of.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            record_count: of.record_count(),
            constants: Arc::new(constants),
            deletes,
            origin: FileOrigin::default(),
        })
    }
}

fn is_set(property: Option<&String>) -> bool {
    property.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn deletes(vector: Option<Arc<DeletionVectorRef>>, only: Option<Arc<DeletionVectorRef>>) -> DeleteSet {
    DeleteSet {
        vector,
        only,
        ..DeleteSet::default()
    }
}

fn partitioned_otherwise(number: u64) -> Error {
    Error::unsupported(format!(
        "the table was partitioned otherwise at version {number} than at the end of the range, or its commit does not say by which \
         values: ask for both parts apart"
    ))
}

/// What all rows of a commit's changes say of it.
struct Told {
    number: u64,
    version: ArrayRef,
    time: ArrayRef,
}

impl Told {
    fn of(commit: &Commit) -> Result<Self> {
        let number = i64::try_from(commit.number).map_err(|_| Error::corrupt("a version is out of range"))?;
        let time = TimestampMicrosecondArray::from(vec![commit.millis.saturating_mul(1000)]).with_timezone("UTC");
        Ok(Self {
            number: commit.number,
            version: Arc::new(Int64Array::from(vec![number])),
            time: Arc::new(time),
        })
    }
}

#[async_trait]
impl Snapshot for DeltaChanges {
    fn table(&self) -> &TableIdent {
        &self.ident
    }

    fn id(&self) -> Option<i64> {
        Some(self.until.number())
    }

    fn metadata_location(&self) -> &str {
        &self.commit
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn columns(&self) -> &[Arc<Column>] {
        &self.columns
    }

    fn hidden_column(&self, _: HiddenColumn) -> Result<Option<FieldRef>> {
        Ok(None)
    }

    fn identifier_columns(&self) -> Vec<String> {
        Vec::new()
    }

    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        Ok(ScanPlan {
            tasks: self.tasks().await.context("table", || &self.ident)?,
            io: self.log.io_of(&self.until),
            matching: self.until.matching,
            counts: PlanCounts::default(),
            proved: vec![false; request.misses.len()],
        })
    }
}
