//! What a [`Committer`](super::Committer) asks for, and what it is told.
//!
//! Every action but [`Action::Finished`] is answered by exactly one event.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::iceberg::spec::TableMetadata;

/// One step for the world outside.
#[derive(Debug)]
pub enum Action {
    /// Read the table's current metadata, past every cache. Answer: [`Event::Loaded`].
    Load,
    /// Read files. Answer: [`Event::Read`] in the same order.
    Read(Vec<FileToRead>),
    /// Create files that are not there yet, durable when answered. Answer: [`Event::Done`].
    Write(Vec<NewFile>),
    /// Note durably that a swap is about to be sent. Answer: [`Event::Done`].
    OpenJournal(JournalEntry),
    /// Make `new` the table's metadata if it is still `base`. Answer: [`Event::Swapped`].
    Swap { base: String, new: String },
    /// Find out what became of the swap, and if possible make sure that it cannot be applied any more.
    /// Answer: [`Event::Swapped`]; [`SwapAnswer::Unknown`] where the catalog cannot tell.
    Settle { base: String, new: String },
    /// Wait. Answer: [`Event::Done`].
    Sleep(Duration),
    /// The fate of the run is known: its entries in the journal are closed. Answer: [`Event::Done`].
    CloseJournal {
        commit_id: String,
        run: String,
        /// The snapshot that the commit id became.
        committed: Option<i64>,
    },
    /// Delete files that this run created. Answer: [`Event::Done`], also where some are gone already.
    Delete(Vec<String>),
    /// The end.
    Finished(Outcome),
}

/// What came of an action.
#[derive(Debug)]
pub enum Event {
    /// Begins the first step.
    Start,
    Loaded(Loaded),
    Read(Vec<Bytes>),
    Swapped(SwapAnswer),
    Done,
    /// The action failed. What it was to create may be there in part.
    Failed(Error),
}

/// A table as its catalog names it now.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub metadata: Arc<TableMetadata>,
    /// The metadata file, as the catalog spells it.
    pub location: String,
}

/// What a file holds that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    ManifestList,
    Manifest,
    DeletionVector,
}

/// A file to be read, by its recorded location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileToRead {
    pub kind: ReadKind,
    pub location: String,
    /// Of a deletion vector, which shares its file with others; else the whole file is read.
    pub range: Option<Range<u64>>,
}

/// What a file holds that is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// Deletion vectors.
    Vectors,
    Manifest,
    ManifestList,
    Metadata,
}

/// A file to be created; its name is this run's alone.
#[derive(Debug, Clone)]
pub struct NewFile {
    pub kind: WriteKind,
    pub location: String,
    pub bytes: Bytes,
}

/// What is known of a commit before its swap is sent: enough to find out its fate after a restart.
/// Of several entries of one run only the last is open: the swaps before it were refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub commit_id: String,
    /// Tells apart runs of one commit id.
    pub run: String,
    pub table_uuid: Option<String>,
    pub snapshot_id: i64,
    /// The snapshot that it follows.
    pub parent_snapshot_id: Option<i64>,
    pub branch: String,
    /// 0 in v1.
    pub sequence_number: i64,
    /// From 1.
    pub attempt: u32,
    /// The metadata file that the swap replaces.
    pub base: String,
    /// The metadata file that it puts there.
    pub new: String,
}

/// What became of a swap.
#[derive(Debug)]
pub enum SwapAnswer {
    /// Applied, durable.
    Done,
    /// Not applied: the catalog names other metadata than the base.
    Conflict,
    /// Not applied, and it never will be. `Unavailable` may be tried again.
    Failed(Error),
    /// May or may not have been applied, or may still be.
    Unknown(Error),
}

/// How a commit ended.
#[derive(Debug)]
pub enum Outcome {
    Committed(Committed),
    /// Not applied, and it never will be.
    NotCommitted(NotCommitted),
    /// Not known. Nothing was deleted; the journal entry stays open.
    Unknown {
        commit_id: String,
        error: Error,
    },
}

/// A commit that is part of the table's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub snapshot_id: i64,
    /// 0 in v1.
    pub sequence_number: i64,
    /// A metadata file that has the snapshot.
    pub metadata_location: String,
    /// Attempts of this run.
    pub attempts: u32,
    /// The commit id was in the table's history already, by another run.
    pub was_there: bool,
    /// The vectors of this run.
    pub vectors: VectorsMade,
}

/// What the vectors of a commit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorsMade {
    /// Rows that they delete and no other commit had deleted by then.
    pub newly_deleted: u64,
    /// Bytes of their files.
    pub bytes: u64,
}

/// Why a commit was not made.
#[derive(Debug)]
pub struct NotCommitted {
    pub cause: Cause,
    pub error: Error,
}

impl NotCommitted {
    /// Other commits stand against this one.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self {
            cause: Cause::Conflict,
            error: Error::new(ErrorKind::CommitConflict, message),
        }
    }

    /// Adds to the error's context.
    #[must_use]
    pub(super) fn with(mut self, key: &'static str, value: impl std::fmt::Display) -> Self {
        self.error = self.error.with(key, value);
        self
    }
}

impl From<Error> for NotCommitted {
    fn from(error: Error) -> Self {
        let cause = match error.kind() {
            ErrorKind::CommitConflict => Cause::Conflict,
            _ => Cause::Refused,
        };
        Self { cause, error }
    }
}

/// Whether the same statement may do better on the table as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Other commits came first.
    Conflict,
    /// The change does not fit the table, or something failed.
    Refused,
}
