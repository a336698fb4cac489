//! A Delta table and its versions as the engine sees them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use async_trait::async_trait;

use super::changes::DeltaChanges;
use super::log::Log;
use super::metadata_tables::metadata_table;
use super::plan::plan;
use super::version::TableVersion;
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::table::{
    AsOf, ChangeRange, Column, HiddenColumn, MetadataTable, Moment, ScanPlan, ScanRequest, Snapshot, TYPE_NAME_KEY, Table, TableIdent,
};

/// A table at one version of its log.
#[derive(Debug, Clone)]
pub struct DeltaTable {
    ident: TableIdent,
    log: Log,
    version: Arc<TableVersion>,
}

impl DeltaTable {
    pub(super) fn new(ident: TableIdent, log: Log, version: Arc<TableVersion>) -> Self {
        Self { ident, log, version }
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Where the newest version's commit is.
    pub(super) fn newest_commit(&self) -> String {
        self.log.commit(self.version.log.number())
    }

    /// The version asked for.
    ///
    /// Errors: `NotFound` for one that never was or can no longer be made, naming the oldest one that can.
    pub(super) async fn version_of(&self, at: &AsOf) -> Result<Arc<TableVersion>> {
        let number = match at {
            AsOf::Latest => return Ok(Arc::clone(&self.version)),
            AsOf::Version(number) => {
                let none = |_| Error::not_found(format!("version {number} does not exist: versions count from 0"));
                u64::try_from(*number).map_err(none)?
            }
            AsOf::Timestamp(micros) => match self.log.number_at(&self.version, *micros).await {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let oldest = self.oldest().await;
                    return Err(Error::not_found(format!(
                        "no version is as old as the time that was asked for: the oldest one that is left is {oldest}"
                    )));
                }
                number => number?,
            },
            AsOf::Changes(_) => return Err(Error::internal("changes are no version")),
            AsOf::Ref(name) => {
                return Err(Error::unsupported(format!(
                    "\"{name}\" cannot be a branch or tag: Delta tables have none; ask for a version by its number"
                )));
            }
        };
        let newest = self.version.log.number();
        if number > newest {
            return Err(Error::not_found(format!("version {number} does not exist: the newest is {newest}")));
        }
        if number == newest {
            return Ok(Arc::clone(&self.version));
        }
        let found = self.log.version(number).await;
        let Err(error) = found else { return found };
        let oldest = self.oldest().await;
        // Commits below the oldest checkpoint may be left over.
        match error.kind() == ErrorKind::NotFound || number < oldest {
            true => Err(Error::not_found(format!(
                "version {number} can no longer be read: its log was cleaned away; the oldest one that is left is {oldest}"
            ))),
            false => Err(error),
        }
    }

    /// The oldest version that is left. Without any commit the log is one checkpoint, which is the newest version.
    async fn oldest(&self) -> u64 {
        self.log.oldest().await.unwrap_or(self.version.log.number())
    }

    /// The changes of a range; times stand for the first version not before the one and the last not after the other.
    async fn changes(&self, range: &ChangeRange) -> Result<DeltaChanges> {
        let negative = |number: i64| Error::not_found(format!("version {number} does not exist: versions count from 0"));
        let newest = self.version.log.number();
        let since = match range.since {
            Moment::Version(number) => u64::try_from(number).map_err(|_| negative(number))?,
            Moment::Timestamp(micros) => match self.log.number_after(&self.version, micros).await {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    return Err(Error::not_found(format!(
                        "no version is as young as the time that the range begins with: the newest is {newest}"
                    )));
                }
                number => number?,
            },
        };
        let until = match range.until {
            None => Arc::clone(&self.version),
            Some(Moment::Version(number)) => self.version_of(&AsOf::Version(number)).await?,
            Some(Moment::Timestamp(micros)) => self.version_of(&AsOf::Timestamp(micros)).await?,
        };
        if since > newest {
            return Err(Error::not_found(format!("version {since} does not exist: the newest is {newest}")));
        }
        if since > until.log.number() {
            let last = until.log.number();
            return Err(Error::invalid(format!(
                "the range begins at version {since} and ends before, at {last}"
            )));
        }
        let since = self.version_of(&AsOf::Version(i64::try_from(since).unwrap_or(i64::MAX))).await?;
        DeltaChanges::new(self.ident.clone(), self.log.clone(), since, until)
    }
}

#[async_trait]
impl Table for DeltaTable {
    fn ident(&self) -> &TableIdent {
        &self.ident
    }

    fn format(&self) -> &'static str {
        "delta"
    }

    async fn snapshot(&self, at: &AsOf) -> Result<Arc<dyn Snapshot>> {
        if let AsOf::Changes(range) = at {
            let changes = self.changes(range).await.context("table", || &self.ident)?;
            return Ok(Arc::new(changes));
        }
        let version = self.version_of(at).await.context("table", || &self.ident)?;
        Ok(Arc::new(DeltaSnapshot {
            ident: self.ident.clone(),
            commit: self.log.commit(version.log.number()),
            log: self.log.clone(),
            version,
        }))
    }

    fn metadata_table(&self, name: &str, at: &AsOf) -> Result<Arc<dyn MetadataTable>> {
        metadata_table(self, name, at)
    }
}

/// One version of a Delta table.
#[derive(Debug, Clone)]
pub struct DeltaSnapshot {
    ident: TableIdent,
    log: Log,
    version: Arc<TableVersion>,
    commit: String,
}

#[async_trait]
impl Snapshot for DeltaSnapshot {
    fn table(&self) -> &TableIdent {
        &self.ident
    }

    fn id(&self) -> Option<i64> {
        Some(self.version.number())
    }

    fn metadata_location(&self) -> &str {
        &self.commit
    }

    fn is_same(&self, other: &dyn Snapshot) -> bool {
        let any: &dyn Any = other;
        any.downcast_ref::<Self>()
            .is_some_and(|other| Arc::ptr_eq(&self.version, &other.version))
    }

    fn schema(&self) -> &SchemaRef {
        &self.version.schema
    }

    fn columns(&self) -> &[Arc<Column>] {
        &self.version.columns
    }

    fn hidden_column(&self, kind: HiddenColumn) -> Result<Option<FieldRef>> {
        let (data_type, name, nullable) = match kind {
            HiddenColumn::File => (DataType::Utf8, "string", false),
            HiddenColumn::Position => (DataType::Int64, "long", false),
            HiddenColumn::RowId | HiddenColumn::RowCommitVersion if self.version.tracks_rows() => (DataType::Int64, "long", true),
            HiddenColumn::RowId | HiddenColumn::RowCommitVersion => {
                let name = kind.name();
                let error = Error::unsupported(format!("rows of the table have no {name}: delta.enableRowTracking is not set"));
                return Err(error.with("table", &self.ident));
            }
            HiddenColumn::SpecId | HiddenColumn::Partition | HiddenColumn::LastUpdatedSequenceNumber => return Ok(None),
        };
        let metadata = HashMap::from([(TYPE_NAME_KEY.to_owned(), name.to_owned())]);
        Ok(Some(Arc::new(Field::new(kind.name(), data_type, nullable).with_metadata(metadata))))
    }

    fn hidden_names(&self, kind: HiddenColumn) -> Vec<String> {
        self.version.hidden_names(kind)
    }

    fn identifier_columns(&self) -> Vec<String> {
        Vec::new()
    }

    async fn plan_scan(&self, request: &ScanRequest) -> Result<ScanPlan> {
        let planned = async {
            let files = self.log.files(&self.version).await?;
            match plan(&self.log, &self.version, &files, request) {
                Err(e) => Err(self.log.placed(e, self.version.log.number()).await),
                planned => planned,
            }
        };
        planned.await.context("table", || &self.ident)
    }
}
