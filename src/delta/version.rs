//! One version of a table, as it was read: what the log says and what follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{Schema, SchemaRef};

use super::kernel::LogVersion;
use super::live_files::FileSchema;
use super::schema::{Mapping, columns};
use crate::error::{Error, Result};
use crate::table::{Column, ColumnMatching, HiddenColumn};

const ROW_TRACKING: &str = "delta.enableRowTracking";
const ROW_ID_COLUMN: &str = "delta.rowTracking.materializedRowIdColumnName";
const COMMIT_VERSION_COLUMN: &str = "delta.rowTracking.materializedRowCommitVersionColumnName";

/// A version's columns and how its files are read.
#[derive(Debug)]
pub(super) struct TableVersion {
    /// No two that were read have the same.
    pub(super) serial: u64,
    pub(super) log: LogVersion,
    pub(super) columns: Vec<Arc<Column>>,
    pub(super) schema: SchemaRef,
    pub(super) matching: ColumnMatching,
    pub(super) files: FileSchema,
}

impl TableVersion {
    /// Errors: `Corrupt` for a schema or partition columns that break the protocol; `Unsupported` for a type that
    /// cannot be read, naming the column.
    pub(super) fn new(log: LogVersion) -> Result<Self> {
        let mapping = Mapping::of(log.properties.get("delta.columnMapping.mode").map(String::as_str))?;
        let columns = columns(&log.schema, mapping)?;
        let partition = log.partition_columns.iter().map(|name| {
            let found = columns.iter().find(|column| column.field.name() == name);
            let found = found.ok_or_else(|| Error::corrupt(format!("partition column \"{name}\" is not in the schema")))?;
            match found.field.data_type().is_nested() {
                false => Ok(Arc::clone(found)),
                true => Err(Error::corrupt(format!("partition column \"{name}\" is of a nested type"))),
            }
        });
        let partition = partition.collect::<Result<Vec<_>>>()?;
        let schema = Schema::new(columns.iter().map(|c| Arc::clone(&c.field)).collect::<Vec<_>>());
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Ok(Self {
            serial: NEXT.fetch_add(1, Ordering::Relaxed),
            files: FileSchema::new(&columns, partition),
            schema: Arc::new(schema),
            matching: match mapping {
                Mapping::Id => ColumnMatching::IdsOrNames,
                Mapping::None | Mapping::Name => ColumnMatching::Names,
            },
            columns,
            log,
        })
    }

    /// The version's number as SQL has it.
    pub(super) fn number(&self) -> i64 {
        i64::try_from(self.log.number()).unwrap_or(i64::MAX)
    }

    /// Whether files of both are described in the same way, so that what was read of them holds for both.
    pub(super) fn reads_files_like(&self, other: &Self) -> bool {
        self.log.schema == other.log.schema
            && self.log.partition_columns == other.log.partition_columns
            && self.matching == other.matching
            && self.log.id == other.log.id
    }

    /// The columns that the table is partitioned by.
    pub(super) fn partition_columns(&self) -> &[Arc<Column>] {
        self.files.partition()
    }

    /// Whether rows have ids that are kept through changes.
    pub(super) fn tracks_rows(&self) -> bool {
        self.properties().get(ROW_TRACKING).is_some_and(|v| v.eq_ignore_ascii_case("true"))
    }

    pub(super) fn properties(&self) -> &BTreeMap<String, String> {
        &self.log.properties
    }

    /// Names that a hidden column has in files that keep it.
    pub(super) fn hidden_names(&self, kind: HiddenColumn) -> Vec<String> {
        let property = match kind {
            HiddenColumn::RowId => ROW_ID_COLUMN,
            HiddenColumn::RowCommitVersion => COMMIT_VERSION_COLUMN,
            _ => return Vec::new(),
        };
        self.properties().get(property).cloned().into_iter().collect()
    }

    /// Bytes that this holds, about.
    pub(super) fn memory_size(&self) -> usize {
        self.log.memory_size() + self.columns.len() * 512
    }
}
