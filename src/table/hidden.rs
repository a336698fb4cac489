//! Columns that every table has beside its own: where a row lies, and what it is known by.
//!
//! Invariants: a hidden column is never part of a table's schema and never in `SELECT *`; it is
//! known by a reserved field id (Iceberg spec "Reserved Field IDs"), which no column of a table
//! has. Its values come from the file's task and from physical positions, so nothing that a file
//! or manifest says of a column of that id (bounds, counts) may decide which rows are read.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;

use super::Column;

/// Field ids from here on are no table's: they mean what a scan makes of itself.
pub const FIRST_RESERVED_ID: i32 = 2_147_483_447;

/// A kind of hidden column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HiddenColumn {
    /// Path of the data file as the table's metadata spells it.
    File,
    /// Physical position of the row in its file, from 0.
    Position,
    /// Id of the partition spec that the file was written with.
    SpecId,
    /// Partition values as one struct over all specs of the table.
    Partition,
    /// The row's id, kept through updates and rewrites.
    RowId,
    /// Sequence number of the commit that last changed the row.
    LastUpdatedSequenceNumber,
    /// Version of the commit that last changed the row (Delta).
    RowCommitVersion,
}

impl HiddenColumn {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::File,
        Self::Position,
        Self::SpecId,
        Self::Partition,
        Self::RowId,
        Self::LastUpdatedSequenceNumber,
        Self::RowCommitVersion,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "_file",
            Self::Position => "_pos",
            Self::SpecId => "_spec_id",
            Self::Partition => "_partition",
            Self::RowId => "_row_id",
            Self::LastUpdatedSequenceNumber => "_last_updated_sequence_number",
            Self::RowCommitVersion => "_row_commit_version",
        }
    }

    /// Its reserved field id.
    pub fn id(self) -> i32 {
        match self {
            Self::File => 2_147_483_646,
            Self::Position => 2_147_483_645,
            Self::SpecId => 2_147_483_643,
            Self::Partition => 2_147_483_642,
            Self::RowId => 2_147_483_540,
            Self::LastUpdatedSequenceNumber => 2_147_483_539,
            // Of the reserved range; no format gives it a meaning.
            Self::RowCommitVersion => 2_147_483_500,
        }
    }

    /// The kind of a reserved field id.
    pub fn from_id(id: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// The kind of a name, without regard to case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The column that a scan is asked for, with its names in files that keep it. Files need not have it, so it is
    /// nullable here.
    pub fn column(self, field: &FieldRef, names: Vec<String>) -> Arc<Column> {
        Arc::new(Column {
            id: self.id(),
            field: Arc::new(field.as_ref().clone().with_nullable(true)),
            names,
            initial_default: None,
            children: Vec::new(),
        })
    }
}

/// What hidden columns need to know of a data file.
#[derive(Debug, Clone, Default)]
pub struct FileOrigin {
    /// Id of the partition spec.
    pub spec_id: i32,
    /// Partition values, an array of one row; only where the scan asks for them.
    pub partition: Option<ArrayRef>,
    /// Row id of the first row. Files without it have no row lineage.
    pub first_row_id: Option<u64>,
    /// Data sequence number; version of the commit that added the file's rows (Delta).
    pub sequence_number: i64,
}
