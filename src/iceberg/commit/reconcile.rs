//! Finding out what became of a swap whose answer is missing (IC-31, IC-32).
//!
//! A commit is found by its id in the snapshots, or by its metadata file as the current one or in the
//! metadata log. It is lost only by proof: the table went on from the same base in another way, so
//! that the swap can never match any more. All else stays open.

use super::action::{Action, Cause, Committed, Event, JournalEntry, Loaded, NotCommitted, Outcome, SwapAnswer};
use super::change::COMMIT_ID_PROPERTY;
use super::random::Random;
use super::settings::Backoff;
use crate::error::{Error, ErrorKind};
use crate::iceberg::spec::{Snapshot, TableMetadata};
use crate::io::normalise;

/// What a table's metadata says about a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Committed {
        snapshot_id: i64,
        sequence_number: i64,
        metadata_location: String,
    },
    /// It was not applied, and cannot be.
    Lost,
    /// Nothing is proved.
    Open,
}

/// The snapshot that a commit id became, of all that the metadata still has.
pub fn committed_as<'a>(metadata: &'a TableMetadata, commit_id: &str) -> Option<&'a Snapshot> {
    let has_id = |snapshot: &&Snapshot| snapshot.summary.get(COMMIT_ID_PROPERTY).is_some_and(|id| id == commit_id);
    metadata.snapshots.iter().map(AsRef::as_ref).find(has_id)
}

/// Whether two locations are the same place, as far as spelling tells.
pub(super) fn same_place(a: &str, b: &str) -> bool {
    a == b || matches!((normalise(a), normalise(b)), (Ok(a), Ok(b)) if a == b)
}

/// What became of the swap of a journal entry, from the table as it is now.
pub fn fate_of(entry: &JournalEntry, now: &Loaded) -> Fate {
    let metadata = &now.metadata;
    if entry.table_uuid != metadata.table_uuid.map(|uuid| uuid.to_string()) {
        return Fate::Open;
    }
    if let Some(snapshot) = committed_as(metadata, &entry.commit_id) {
        let is_this = snapshot.snapshot_id == entry.snapshot_id;
        return Fate::Committed {
            snapshot_id: snapshot.snapshot_id,
            sequence_number: snapshot.sequence_number,
            metadata_location: if is_this { entry.new.clone() } else { now.location.clone() },
        };
    }
    let log: Vec<&str> = metadata.metadata_log.iter().map(|(_, location)| location.as_str()).collect();
    if same_place(&now.location, &entry.new) || log.iter().any(|location| same_place(location, &entry.new)) {
        return Fate::Committed {
            snapshot_id: entry.snapshot_id,
            sequence_number: entry.sequence_number,
            metadata_location: entry.new.clone(),
        };
    }
    if same_place(&now.location, &entry.base) {
        return Fate::Open;
    }
    // The log goes back to the base, so what followed it is known, and it was not this commit.
    let went_on = log.iter().any(|location| same_place(location, &entry.base));
    // One snapshot has each sequence number, so another one stands where this commit would.
    let taken = entry.sequence_number > 0
        && metadata
            .snapshots
            .iter()
            .any(|other| other.sequence_number == entry.sequence_number);
    if went_on || taken { Fate::Lost } else { Fate::Open }
}

/// What an inquiry has found out.
#[derive(Debug)]
pub(super) enum Verdict {
    Committed(Committed),
    /// Not applied. `fenced` where the catalog made sure that it never will be, whatever happens to the table.
    Lost {
        fenced: bool,
    },
    /// Not applied, for this reason.
    Failed(Error),
    Open(Error),
}

#[derive(Debug)]
pub(super) enum Progress {
    Do(Action),
    Known(Verdict),
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Catalog,
    Table,
    Nothing,
}

/// Asks the catalog, then looks at the table, several times.
#[derive(Debug)]
pub(super) struct Inquiry {
    pub(super) entry: JournalEntry,
    cause: Error,
    asked: Asked,
    looks: u32,
    started_ms: Option<i64>,
}

impl Inquiry {
    /// `cause` is what went wrong.
    pub(super) fn new(entry: JournalEntry, cause: Error) -> Self {
        Self {
            entry,
            cause,
            asked: Asked::Nothing,
            looks: 0,
            started_ms: None,
        }
    }

    pub(super) fn ask_catalog(&mut self, now_ms: i64) -> Action {
        self.started_ms.get_or_insert(now_ms);
        self.asked = Asked::Catalog;
        Action::Settle {
            base: self.entry.base.clone(),
            new: self.entry.new.clone(),
        }
    }

    fn committed(&self, snapshot_id: i64, sequence_number: i64, metadata_location: String) -> Progress {
        Progress::Known(Verdict::Committed(Committed {
            was_there: snapshot_id != self.entry.snapshot_id,
            snapshot_id,
            sequence_number,
            metadata_location,
            attempts: self.entry.attempt,
        }))
    }

    pub(super) fn step(&mut self, event: Event, now_ms: i64, random: &mut Random) -> Progress {
        match (self.asked, event) {
            (Asked::Catalog, Event::Swapped(SwapAnswer::Done)) => {
                self.committed(self.entry.snapshot_id, self.entry.sequence_number, self.entry.new.clone())
            }
            (Asked::Catalog, Event::Swapped(SwapAnswer::Conflict)) => Progress::Known(Verdict::Lost { fenced: true }),
            (Asked::Catalog, Event::Swapped(SwapAnswer::Failed(error))) => Progress::Known(Verdict::Failed(error)),
            (Asked::Catalog, Event::Swapped(SwapAnswer::Unknown(_)) | Event::Failed(_)) => {
                self.asked = Asked::Table;
                Progress::Do(Action::Load)
            }
            (Asked::Table, Event::Loaded(now)) => match fate_of(&self.entry, &now) {
                Fate::Committed {
                    snapshot_id,
                    sequence_number,
                    metadata_location,
                } => self.committed(snapshot_id, sequence_number, metadata_location),
                Fate::Lost => Progress::Known(Verdict::Lost { fenced: false }),
                Fate::Open => {
                    let backoff = Backoff::of_looks(&now.metadata).unwrap_or(Backoff::LOOKS);
                    self.look_again(backoff, now_ms, random)
                }
            },
            (Asked::Table, Event::Failed(_)) => self.look_again(Backoff::LOOKS, now_ms, random),
            (Asked::Nothing, Event::Done | Event::Start) => Progress::Do(self.ask_catalog(now_ms)),
            (asked, event) => {
                let message = format!("{event:?} is no answer to {asked:?}");
                Progress::Known(Verdict::Open(Error::internal(message)))
            }
        }
    }

    fn look_again(&mut self, backoff: Backoff, now_ms: i64, random: &mut Random) -> Progress {
        self.looks += 1;
        self.asked = Asked::Nothing;
        let passed = now_ms.saturating_sub(self.started_ms.unwrap_or(now_ms));
        match backoff.before(self.looks, passed, random) {
            Some(wait) => Progress::Do(Action::Sleep(wait)),
            None => Progress::Known(Verdict::Open(self.unknown())),
        }
    }

    fn unknown(&self) -> Error {
        Error::new(
            ErrorKind::CommitStateUnknown,
            "it is not known whether the commit was applied; ask for the state of its commit id before you try again",
        )
        .with("commit_id", &self.entry.commit_id)
        .with_source(self.cause.share())
    }
}

/// Finds out the fate of a commit that a process left open when it ended.
#[derive(Debug)]
pub struct Reconciler {
    inquiry: Inquiry,
    random: Random,
    outcome: Option<Outcome>,
}

impl Reconciler {
    /// For the last journal entry of a run.
    pub fn new(entry: JournalEntry, random: Random) -> Self {
        let cause = Error::new(ErrorKind::CommitStateUnknown, "the process ended while it committed");
        Self {
            inquiry: Inquiry::new(entry, cause),
            random,
            outcome: None,
        }
    }

    /// The next action; the first event is [`Event::Start`]. Asks for [`Action::Settle`],
    /// [`Action::Load`], [`Action::Sleep`], [`Action::CloseJournal`] and ends. Deletes nothing.
    pub fn step(&mut self, event: Event, now_ms: i64) -> Action {
        if let Some(outcome) = self.outcome.take() {
            return Action::Finished(outcome);
        }
        let verdict = match self.inquiry.step(event, now_ms, &mut self.random) {
            Progress::Do(action) => return action,
            Progress::Known(verdict) => verdict,
        };
        let (commit_id, run) = (self.inquiry.entry.commit_id.clone(), self.inquiry.entry.run.clone());
        let (outcome, committed) = match verdict {
            Verdict::Open(error) => return Action::Finished(Outcome::Unknown { commit_id, error }),
            Verdict::Committed(committed) => {
                let id = committed.snapshot_id;
                (Outcome::Committed(committed), Some(id))
            }
            Verdict::Lost { .. } => {
                let lost = NotCommitted::conflict("the process ended while it committed, and another commit came first");
                (Outcome::NotCommitted(lost), None)
            }
            Verdict::Failed(error) => {
                let cause = Cause::Refused;
                (Outcome::NotCommitted(NotCommitted { cause, error }), None)
            }
        };
        self.outcome = Some(outcome);
        Action::CloseJournal { commit_id, run, committed }
    }
}
