//! What is wrong with a snapshot.

use std::fmt;

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A file is live once.
    DuplicateFile,
    /// A data file has one live deletion vector.
    TwoVectors,
    /// A deletion vector belongs to a live data file.
    DanglingVector,
    /// A delete file about one data file has that file's spec and partition.
    DeletePartition,
    /// A delete file about one data file is not older than it.
    DeleteAge,
    /// Sequence numbers do not exceed those of file, manifest and snapshot.
    SequenceNumber,
    /// What a manifest adds or deletes is the work of the snapshot that wrote it.
    SnapshotId,
    /// The manifest list counts what the manifest has.
    ListCounts,
    /// Deletion vectors are of format version 3.
    FormatVersion,
    /// Rows have ids that were handed out, and none twice.
    RowIds,
    /// The totals of the summary are those of the files.
    Totals,
}

impl Rule {
    /// The rule's stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuplicateFile => "duplicate-file",
            Self::TwoVectors => "two-vectors",
            Self::DanglingVector => "dangling-vector",
            Self::DeletePartition => "delete-partition",
            Self::DeleteAge => "delete-age",
            Self::SequenceNumber => "sequence-number",
            Self::SnapshotId => "snapshot-id",
            Self::ListCounts => "list-counts",
            Self::FormatVersion => "format-version",
            Self::RowIds => "row-ids",
            Self::Totals => "totals",
        }
    }
}

/// One rule that a snapshot breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub rule: Rule,
    /// The file, manifest or key of the summary that it is about.
    pub subject: String,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.message, self.rule.as_str(), self.subject)
    }
}
