//! What a write wants of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::vectors::VectorRows;
use crate::iceberg::manifest::{DataFile, EntryRef, FileContent};
use crate::iceberg::spec::{MAIN_BRANCH, RefKind, TableMetadata};
use crate::table::Predicate;

/// Key of a snapshot's summary that holds the id of its commit.
pub const COMMIT_ID_PROPERTY: &str = "sandur.commit-id";

/// Key of a snapshot's summary that holds the number of rows that the statement was said to have changed.
pub const AFFECTED_ROWS_PROPERTY: &str = "sandur.affected-rows";

/// The kinds of writes, which differ in what concurrent commits they bear (reliability-security.md 2.2).
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Adds data files.
    Append,
    /// Removes data files by name.
    DeleteFiles,
    /// Removes the data files of which every row matches the filter, as the table is at the commit.
    DeleteWhere,
    /// DELETE, UPDATE or MERGE that writes the rows that stay anew.
    CopyOnWrite,
    /// Replaces the rows that match the filter; the files that hold them are found at the commit.
    OverwriteWhere,
    /// Replaces the partitions that the added files are in; without partitions the whole table.
    OverwritePartitions,
    /// DELETE that adds delete files.
    DeleteRows,
    /// UPDATE or MERGE that adds delete files and data files.
    UpdateRows,
    /// Adds data files and equality deletes of the same keys.
    Upsert,
    /// Replaces data files by others with the same rows.
    Compact {
        /// The data sequence number of the new files: that of the snapshot that was read.
        sequence_number: Option<i64>,
    },
    /// Replaces delete files by others that delete the same rows.
    CompactDeletes,
    /// Replaces these manifests by fewer ones with the same files.
    RewriteManifests(Vec<String>),
}

/// What may happen between reading and committing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// The commit is as good as one that read at its own time.
    #[default]
    Serializable,
    /// New rows that match the filter do no harm.
    Snapshot,
}

/// A file that is removed by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemovedFile {
    /// As the manifest spells it.
    pub path: String,
    /// Of a deletion vector, which shares its file with others.
    pub content_offset: Option<u64>,
}

impl RemovedFile {
    /// A live entry by its name.
    pub fn of(entry: &EntryRef<'_>) -> Self {
        Self {
            path: entry.file_path().to_owned(),
            content_offset: entry.content_offset().filter(|_| entry.is_deletion_vector()),
        }
    }

    /// A data file.
    pub fn data_file(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content_offset: None,
        }
    }
}

/// One change of a table, decided on the metadata it was planned with.
#[derive(Debug, Clone)]
pub struct Change {
    /// UUIDv7, or what the client gave.
    pub commit_id: String,
    /// The table as the statement saw it: its schema, specs and version are those of the files.
    pub pinned: Arc<TableMetadata>,
    /// The schema that the files were written with; the pinned table's current one.
    pub schema_id: i32,
    pub branch: String,
    /// The snapshot that the statement read; `None` where the branch had none.
    pub start: Option<i64>,
    pub operation: Operation,
    pub isolation: Isolation,
    /// Rows that the statement read or replaces; [`Predicate::True`] where it cannot be said. Every row
    /// that the statement looked for satisfies it.
    pub filter: Predicate,
    /// Which rows the statement is about depends on other rows of the table, whether they satisfy the filter or not: under
    /// serializable isolation no row may have come or gone since it was read.
    pub depends: bool,
    /// New data files and delete files.
    pub added: Vec<DataFile>,
    pub removed: Vec<RemovedFile>,
    /// Rows that are deleted by vectors, which are made at the commit (v3).
    pub vectors: Vec<VectorRows>,
    /// The folder of new files of vectors.
    pub vector_folder: String,
    /// How many rows are deleted besides those of `vectors`, where somebody is told: other deletes of the same data files
    /// must not make it wrong.
    pub counted: Option<u64>,
    /// Data files that the added delete files are about.
    pub referenced: Vec<String>,
    /// Files that were created for this change alone, and are deleted if it is surely not committed.
    pub created: Vec<String>,
    /// More for the snapshot's summary.
    pub summary: BTreeMap<String, String>,
}

impl Change {
    /// A change of `main` without files, of a statement that read the newest snapshot of `pinned`.
    pub fn new(operation: Operation, pinned: Arc<TableMetadata>, commit_id: impl Into<String>) -> Self {
        Self {
            commit_id: commit_id.into(),
            schema_id: pinned.current_schema_id,
            branch: MAIN_BRANCH.to_owned(),
            start: pinned.current_snapshot_id,
            pinned,
            operation,
            isolation: Isolation::default(),
            filter: Predicate::True,
            depends: false,
            added: Vec::new(),
            removed: Vec::new(),
            vectors: Vec::new(),
            vector_folder: String::new(),
            counted: None,
            referenced: Vec::new(),
            created: Vec::new(),
            summary: BTreeMap::new(),
        }
    }

    /// The change on another branch, read at its newest snapshot.
    #[must_use]
    pub fn on_branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = branch.into();
        self.start = head_of(&self.pinned, &self.branch);
        self
    }

    /// What the snapshot's summary calls the change, by what it really does. `removes` is whether data
    /// files go away.
    pub(super) fn operation_name(&self, removes: bool) -> &'static str {
        let adds = |content: fn(FileContent) -> bool| self.added.iter().any(|file| content(file.content));
        let adds_rows = adds(|content| content == FileContent::Data);
        let adds_deletes = !self.vectors.is_empty() || adds(|content| content != FileContent::Data);
        match self.operation {
            Operation::Append => "append",
            Operation::DeleteFiles | Operation::DeleteWhere => "delete",
            Operation::OverwritePartitions => "overwrite",
            Operation::CopyOnWrite | Operation::OverwriteWhere => match (adds_rows, removes) {
                (false, true) => "delete",
                (true, false) => "append",
                _ => "overwrite",
            },
            Operation::DeleteRows | Operation::UpdateRows | Operation::Upsert => match (adds_rows, adds_deletes) {
                (false, true) => "delete",
                (false, false) if removes => "delete",
                (true, false) if !removes => "append",
                _ => "overwrite",
            },
            Operation::Compact { .. } | Operation::CompactDeletes | Operation::RewriteManifests(_) => "replace",
        }
    }

    /// An append of files that were written with the current schema of `pinned`.
    pub fn append(pinned: Arc<TableMetadata>, commit_id: impl Into<String>, files: Vec<DataFile>) -> Self {
        let created = files.iter().map(|file| file.file_path.clone()).collect();
        Self {
            added: files,
            created,
            ..Self::new(Operation::Append, pinned, commit_id)
        }
    }
}

/// The snapshot that a commit to the branch follows: a branch that is new starts at the current one.
pub(super) fn head_of(metadata: &TableMetadata, branch: &str) -> Option<i64> {
    match metadata.refs.get(branch) {
        Some(reference) if reference.kind == RefKind::Branch => Some(reference.snapshot_id),
        _ => metadata.current_snapshot_id,
    }
}
