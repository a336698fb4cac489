//! Finding out what became of a swap whose answer is missing (IC-31, IC-32).
//!
//! A commit is found by its id in the snapshots, or by its metadata file as the current one or in the
//! metadata log. It is lost only by proof: the table went on from the same base in another way (by the
//! metadata log, the sequence numbers or the branch's ancestry), so that the swap can never match any
//! more. All else stays open.

use super::action::{Action, Cause, Committed, Event, JournalEntry, Loaded, NotCommitted, Outcome, SwapAnswer, VectorsMade};
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
pub fn same_place(a: &str, b: &str) -> bool {
    a == b || matches!((normalise(a), normalise(b)), (Ok(a), Ok(b)) if a == b)
}

impl Loaded {
    /// Whether a metadata file is the table's, or was: as far back as the metadata log goes.
    pub fn has_been(&self, location: &str) -> bool {
        let log = self.metadata.metadata_log.iter().map(|(_, known)| known);
        log.chain([&self.location]).any(|known| same_place(known, location))
    }
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
    if now.has_been(&entry.new) {
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
    let went_on = now.has_been(&entry.base);
    // One snapshot has each sequence number, so another one stands where this commit would.
    let taken = entry.sequence_number > 0
        && metadata
            .snapshots
            .iter()
            .any(|other| other.sequence_number == entry.sequence_number);
    if went_on || taken || went_past(entry, metadata) {
        Fate::Lost
    } else {
        Fate::Open
    }
}

/// Whether the branch has moved on from the snapshot that the commit would follow, and not through the
/// commit's own: had it been applied, all that came later would follow it.
fn went_past(entry: &JournalEntry, metadata: &TableMetadata) -> bool {
    let Some(branch) = metadata.refs.get(&entry.branch) else {
        return false;
    };
    let newest = Some(branch.snapshot_id);
    // A state from before the base has this snapshot, too.
    if newest == entry.parent_snapshot_id {
        return false;
    }
    let mut earlier = metadata.ancestors(newest);
    earlier.any(|snapshot| snapshot.parent_snapshot_id == entry.parent_snapshot_id)
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
            vectors: VectorsMade::default(),
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::iceberg::spec::{MAIN_BRANCH, MetadataBuilder, NewTable, SnapshotManifests, StructType};

    fn table(format_version: u8) -> Loaded {
        let request = NewTable {
            format_version,
            uuid: uuid::uuid!("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
            location: "file:/t".to_owned(),
            schema: StructType::default(),
            identifier_field_ids: Vec::new(),
            partition_fields: Vec::new(),
            sort_fields: Vec::new(),
            properties: BTreeMap::new(),
        };
        Loaded {
            metadata: Arc::new(MetadataBuilder::new_table(request, 1).unwrap().build().unwrap()),
            location: "file:/t/base".to_owned(),
        }
    }

    /// The table after one more snapshot.
    fn after(base: &Loaded, snapshot_id: i64, commit_id: &str, location: &str) -> Loaded {
        let mut builder = MetadataBuilder::from_base(Arc::clone(&base.metadata), Some(&base.location), 2);
        let table = builder.table();
        let summary = [("operation", "append"), (COMMIT_ID_PROPERTY, commit_id)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let snapshot = Snapshot {
            snapshot_id,
            parent_snapshot_id: table.current_snapshot_id,
            sequence_number: if table.format_version == 1 {
                0
            } else {
                table.last_sequence_number + 1
            },
            timestamp_ms: builder.timestamp_ms(),
            manifests: SnapshotManifests::List(format!("{location}.list")),
            summary: BTreeMap::from(summary),
            schema_id: Some(0),
            first_row_id: None,
            added_rows: None,
            key_id: None,
        };
        builder.commit_snapshot(snapshot, MAIN_BRANCH).unwrap();
        Loaded {
            metadata: Arc::new(builder.build().unwrap()),
            location: location.to_owned(),
        }
    }

    /// Snapshot 7 on top of `base`.
    fn ours(base: &Loaded) -> JournalEntry {
        JournalEntry {
            commit_id: "ours".to_owned(),
            run: "r".to_owned(),
            table_uuid: Some("9c12d441-03fe-4693-9a96-a0705ddf69c1".to_owned()),
            snapshot_id: 7,
            parent_snapshot_id: base.metadata.current_snapshot_id,
            branch: MAIN_BRANCH.to_owned(),
            sequence_number: if base.metadata.format_version == 1 {
                0
            } else {
                base.metadata.last_sequence_number + 1
            },
            attempt: 1,
            base: base.location.clone(),
            new: "file:/t/ours".to_owned(),
        }
    }

    fn without_log(mut table: Loaded) -> Loaded {
        let mut metadata = (*table.metadata).clone();
        metadata.metadata_log.clear();
        table.metadata = Arc::new(metadata);
        table
    }

    fn committed(snapshot_id: i64, location: &str) -> Fate {
        Fate::Committed {
            snapshot_id,
            sequence_number: 1,
            metadata_location: location.to_owned(),
        }
    }

    #[test]
    fn a_commit_is_found_however_deep_it_lies() {
        let base = table(2);
        let entry = ours(&base);
        let ours = after(&base, 7, "ours", "file:///t/ours");
        assert_eq!(fate_of(&entry, &ours), committed(7, "file:/t/ours"));
        let later = without_log(after(&ours, 8, "theirs", "file:/t/later"));
        assert_eq!(fate_of(&entry, &later), committed(7, "file:/t/ours"));
    }

    #[test]
    fn another_run_of_the_same_id_is_the_same_commit() {
        let base = table(2);
        let other = after(&base, 9, "ours", "file:/t/other");
        assert_eq!(fate_of(&ours(&base), &other), committed(9, "file:/t/other"));
    }

    #[test]
    fn a_commit_whose_snapshot_was_expired_is_found_in_the_log() {
        let base = table(2);
        let mut later = after(&base, 8, "theirs", "file:/t/later");
        let mut metadata = (*later.metadata).clone();
        metadata.metadata_log.push((2, "file:///t/ours".to_owned()));
        later.metadata = Arc::new(metadata);
        assert_eq!(fate_of(&ours(&base), &later), committed(7, "file:/t/ours"));
    }

    #[test]
    fn a_commit_is_open_while_its_base_is_current_or_nothing_proves_more() {
        let base = table(1);
        let first = after(&base, 1, "first", "file:/t/first");
        assert_eq!(fate_of(&ours(&first), &first), Fate::Open);
        // An older state, as a stale read would give it.
        assert_eq!(fate_of(&ours(&first), &base), Fate::Open);
        // Other metadata with the same snapshot: nothing tells what lies between.
        let mut altered = without_log(first.clone());
        altered.location = "file:/t/altered".to_owned();
        assert_eq!(fate_of(&ours(&first), &altered), Fate::Open);
        let mut other_table = after(&first, 8, "theirs", "file:/t/later");
        let mut metadata = (*other_table.metadata).clone();
        metadata.table_uuid = Some(uuid::uuid!("00000000-0000-4000-8000-000000000001"));
        other_table.metadata = Arc::new(metadata);
        assert_eq!(fate_of(&ours(&first), &other_table), Fate::Open);
    }

    #[test]
    fn a_commit_is_lost_once_the_table_went_on_without_it() {
        for format_version in [1, 2] {
            let first = after(&table(format_version), 1, "first", "file:/t/first");
            let later = after(&first, 8, "theirs", "file:/t/later");
            assert_eq!(fate_of(&ours(&first), &later), Fate::Lost, "by the log");
            // By the sequence number, or in v1 by the ancestry.
            assert_eq!(fate_of(&ours(&first), &without_log(later)), Fate::Lost);
        }
    }
}
