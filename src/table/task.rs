//! What a scan asks for and what a format answers: data files with their deletes.

use std::sync::Arc;

use arrow::array::ArrayRef;

use super::{Column, ColumnMatching, FileOrigin, Predicate, Pruning};
use crate::io::TableIo;

/// What a query needs of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct ScanRequest {
    /// Terms that prune; never exact.
    pub predicate: Predicate,
    /// For each filter, what every row satisfies that it does not let through.
    pub misses: Vec<Predicate>,
    /// Tasks are to know their partition values ([`FileOrigin::partition`]).
    pub partition: bool,
    /// What may be pruned by.
    pub pruning: Pruning,
}

/// What planning left out, for EXPLAIN and counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanCounts {
    /// Manifests that were not read, because no partition in them can match.
    pub manifests_skipped: u64,
    /// Data files left out by their partition values.
    pub files_skipped_by_partition: u64,
    /// Data files left out by their counts and bounds.
    pub files_skipped_by_metrics: u64,
    /// Filters that every row of the files that are left passes.
    pub filters_proved: u64,
}

/// The files of a snapshot that a scan must read.
#[derive(Debug, Clone)]
pub struct ScanPlan {
    pub tasks: Vec<Arc<FileScanTask>>,
    /// Opens the files: knows the table's allowed roots.
    pub io: TableIo,
    /// How columns are found in the files.
    pub matching: ColumnMatching,
    /// What was left out.
    pub counts: PlanCounts,
    /// For each filter of [`ScanRequest::misses`], whether every row of these files passes it.
    pub proved: Vec<bool>,
}

/// How the rows of a data file or delete file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    Parquet,
    Avro,
    Orc,
}

impl FileFormat {
    /// The lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Avro => "avro",
            Self::Orc => "orc",
        }
    }
}

/// One data file to scan.
#[derive(Debug)]
pub struct FileScanTask {
    /// Resolved location.
    pub location: Arc<str>,
    pub format: FileFormat,
    /// The path as the metadata spells it.
    pub recorded_path: String,
    /// File size in bytes as recorded; 0 when unknown.
    pub size: u64,
    /// Rows in the file as recorded, before deletes; `None` where nothing tells.
    pub record_count: Option<u64>,
    /// Constants for columns that are not in the file (identity partition values): field id and an array of one row.
    pub constants: Arc<Vec<(i32, ArrayRef)>>,
    /// What is deleted in the file.
    pub deletes: DeleteSet,
    /// What hidden columns say of the file.
    pub origin: FileOrigin,
}

impl FileScanTask {
    /// Rows that the file shows, where metadata alone tells: recorded rows less what a vector
    /// deletes. Position delete files may name a row twice, and what equality deletes match is
    /// only known by reading; neither is counted on. So is no vector of more rows than the file has.
    pub fn known_rows(&self) -> Option<u64> {
        let deletes = &self.deletes;
        if !deletes.positions.is_empty() || !deletes.equality.is_empty() || deletes.only.is_some() {
            return None;
        }
        self.record_count?.checked_sub(deletes.vector.as_ref().map_or(0, |v| v.cardinality))
    }

    /// About as many rows as the file shows.
    pub fn estimated_rows(&self) -> u64 {
        let vector = self.deletes.vector.as_ref().map_or(0, |v| v.cardinality);
        self.record_count.unwrap_or(0).saturating_sub(vector)
    }
}

/// All deletes that apply to one data file. A vector excludes position deletes (the vector has
/// replaced them); equality deletes apply to what is left.
#[derive(Debug, Clone, Default)]
pub struct DeleteSet {
    pub vector: Option<Arc<DeletionVectorRef>>,
    /// Every row counts as deleted that this vector does not hold: what is asked for is what it deleted.
    pub only: Option<Arc<DeletionVectorRef>>,
    pub positions: Vec<Arc<PositionDeleteFile>>,
    pub equality: Vec<EqualityDeletes>,
}

impl DeleteSet {
    /// True when nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.vector.is_none() && self.only.is_none() && self.positions.is_empty() && self.equality.is_empty()
    }
}

/// A deletion vector inside a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeletionVectorRef {
    /// The file that holds it; of a vector that stands in a log, the data file that it is for.
    pub location: String,
    pub offset: u64,
    /// Length of the blob with its length prefix and checksum.
    pub length: u64,
    /// Deleted rows, checked against the blob.
    pub cardinality: u64,
    pub container: VectorContainer,
}

/// What a deletion vector lies in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VectorContainer {
    /// A Puffin file (Iceberg).
    Puffin,
    /// A file that begins with the version of its format (Delta).
    Versioned,
    /// The log (Delta): magic and vector, without length and checksum.
    Inline(Arc<[u8]>),
}

/// A position delete file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PositionDeleteFile {
    pub location: String,
    pub format: FileFormat,
    pub size: u64,
    pub record_count: u64,
}

/// Equality deletes of one scope and one set of key columns, and the age of the data file.
#[derive(Debug, Clone)]
pub struct EqualityDeletes {
    pub set: Arc<EqualityDeleteSet>,
    /// A key deletes a row when its sequence number is greater than this.
    pub data_sequence_number: i64,
}

/// Equality delete files that share scope and key columns; loaded into one hash set.
#[derive(Debug)]
pub struct EqualityDeleteSet {
    /// One top-level column per key, cut down to the single path that leads to the key field, in
    /// order of the key's field id. Types are those of the table now or, for a dropped field, its last.
    pub keys: Vec<Arc<Column>>,
    pub files: Vec<EqualityDeleteFile>,
}

/// An equality delete file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EqualityDeleteFile {
    pub location: String,
    pub format: FileFormat,
    pub size: u64,
    pub record_count: u64,
    pub sequence_number: i64,
}
