//! The state machine of a commit (IC-2, IC-7, IC-30 to IC-34, AT-20).
//!
//! Load, plan, write, note in the journal, swap; after a definite conflict wait and begin again; after
//! an answer that is missing find out. Once the fate is known the journal is closed, and then what is
//! surely of no use is deleted.

use super::action::{Action, Cause, Committed, Event, Loaded, NotCommitted, Outcome, SwapAnswer};
use super::attempt::{Attempt, Plan, Run};
use super::change::Change;
use super::checks::Check;
#[cfg(feature = "testing")]
use super::checks::Checks;
use super::cleanup::{Made, Sent};
use super::random::Random;
use super::reconcile::{Inquiry, Progress, Verdict, committed_as};
use super::settings::Backoff;
use crate::error::{Error, ErrorKind};
use crate::iceberg::avro::Codec;
use crate::iceberg::spec::{Snapshot, SnapshotManifests};

/// What the last action was for.
#[derive(Debug)]
enum State {
    Idle,
    /// Before an attempt.
    Loading,
    Reading,
    Writing,
    Journalling,
    Swapping,
    Inquiring(Box<Inquiry>),
    /// Between two attempts.
    Pausing,
    /// Before it is said that nothing was committed, though a swap was sent.
    LastLook(NotCommitted),
    Closing(Outcome),
    /// Before clean-up after a commit.
    Reviewing(Outcome),
    Deleting(Outcome),
    Ended,
}

/// Commits one [`Change`].
#[derive(Debug)]
pub struct Committer {
    run: Run,
    state: State,
    base: Option<Loaded>,
    attempt: Option<Box<Attempt>>,
    number: u32,
    started_ms: i64,
    made: Made,
    has_journal: bool,
    /// No swap was sent since the table was last seen without the commit.
    is_verified: bool,
}

impl Committer {
    /// A commit that has not begun.
    pub fn new(change: Change, random: Random) -> Self {
        Self::with_codec(change, Codec::Deflate, random)
    }

    /// The same with another codec for manifests and manifest lists.
    pub fn with_codec(change: Change, codec: Codec, random: Random) -> Self {
        Self {
            run: Run::new(change, codec, random),
            state: State::Idle,
            base: None,
            attempt: None,
            number: 0,
            started_ms: 0,
            made: Made::default(),
            has_journal: false,
            is_verified: true,
        }
    }

    /// The same without one check: shows that a test notices.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn without(mut self, check: Check) -> Self {
        self.run.checks = Checks::without(check);
        self
    }

    /// The id that the commit can be asked for by.
    pub fn commit_id(&self) -> &str {
        &self.run.change.commit_id
    }

    /// Tells this run apart from others of the same commit id; journal entries carry it.
    pub fn run(&self) -> String {
        self.run.run_id()
    }

    /// The next action. The first event is [`Event::Start`]; each further one answers the last action.
    /// `now_ms` is the time in milliseconds since the epoch.
    pub fn step(&mut self, event: Event, now_ms: i64) -> Action {
        match (std::mem::replace(&mut self.state, State::Ended), event) {
            (State::Idle, Event::Start) => {
                self.started_ms = now_ms;
                self.load()
            }
            (State::Pausing, Event::Done | Event::Failed(_)) => self.load(),
            (State::Loading, Event::Loaded(loaded)) => {
                if let Some(committed) = self.found(&loaded) {
                    return self.end(Outcome::Committed(committed));
                }
                self.base = Some(loaded);
                self.number += 1;
                self.plan(now_ms)
            }
            (State::Reading, Event::Read(read)) => {
                let Some(base) = &self.base else {
                    return self.lost_track("files were read before the table");
                };
                match self.run.files.take(read, &base.metadata) {
                    Ok(()) => self.plan(now_ms),
                    Err(error) => self.give_up(error.into()),
                }
            }
            (State::Writing, Event::Done) => match &self.attempt {
                Some(attempt) => {
                    self.run.written.extend(attempt.parts.iter().cloned());
                    if !self.run.checks.makes(Check::Journal) {
                        return self.swap();
                    }
                    self.has_journal = true;
                    self.state = State::Journalling;
                    Action::OpenJournal(attempt.entry.clone())
                }
                None => self.lost_track("files were written without an attempt"),
            },
            (State::Journalling, Event::Done) => self.swap(),
            (State::Loading | State::Reading | State::Writing | State::Journalling, Event::Failed(error)) => self.give_up(error.into()),
            (State::Swapping, Event::Swapped(answer)) => self.answered(answer, now_ms),
            (State::Swapping, Event::Failed(error)) => self.answered(SwapAnswer::Unknown(error), now_ms),
            (State::Inquiring(mut inquiry), event) => match inquiry.step(event, now_ms, &mut self.run.random) {
                Progress::Do(action) => {
                    self.state = State::Inquiring(inquiry);
                    action
                }
                Progress::Known(verdict) => self.judged(verdict, now_ms),
            },
            (State::LastLook(reason), Event::Loaded(loaded)) => match self.found(&loaded) {
                Some(committed) => self.end(Outcome::Committed(committed)),
                None => self.end(Outcome::NotCommitted(reason)),
            },
            (State::LastLook(reason), Event::Failed(_)) => self.end(Outcome::NotCommitted(reason)),
            (State::Closing(outcome), Event::Done | Event::Failed(_)) => self.clean_up(outcome),
            (State::Reviewing(outcome), Event::Loaded(loaded)) => {
                let surplus = match &outcome {
                    Outcome::Committed(committed) => self.made.after_commit(self.winner(committed), committed.snapshot_id, &loaded),
                    _ => Vec::new(),
                };
                self.delete(surplus, outcome)
            }
            (State::Reviewing(outcome), Event::Failed(_)) | (State::Deleting(outcome), Event::Done | Event::Failed(_)) => {
                Action::Finished(outcome)
            }
            (state, event) => self.lost_track(&format!("{event:?} is no answer in state {state:?}")),
        }
    }

    fn swap(&mut self) -> Action {
        let Some(attempt) = &self.attempt else {
            return self.lost_track("the journal was written without an attempt");
        };
        self.made.set(self.number, Sent::Open);
        self.is_verified = false;
        self.state = State::Swapping;
        Action::Swap {
            base: attempt.entry.base.clone(),
            new: attempt.entry.new.clone(),
        }
    }

    fn load(&mut self) -> Action {
        self.state = State::Loading;
        Action::Load
    }

    /// The commit in the table's history, by this run or by another one with its id.
    fn found(&mut self, now: &Loaded) -> Option<Committed> {
        let snapshot = committed_as(&now.metadata, &self.run.change.commit_id);
        let snapshot = snapshot.filter(|_| self.run.checks.makes(Check::CommitId));
        self.is_verified |= snapshot.is_none();
        let snapshot = snapshot?;
        let ours = self.attempt.as_ref().filter(|attempt| is_of(attempt, snapshot));
        let new = ours.map_or(&now.location, |attempt| &attempt.entry.new);
        Some(Committed {
            snapshot_id: snapshot.snapshot_id,
            sequence_number: snapshot.sequence_number,
            metadata_location: new.clone(),
            attempts: self.number,
            was_there: ours.is_none(),
            vectors: ours.map(|attempt| attempt.vectors).unwrap_or_default(),
        })
    }

    fn plan(&mut self, now_ms: i64) -> Action {
        let Some(base) = &self.base else {
            return self.lost_track("an attempt was planned without the table");
        };
        match self.run.plan(base, self.number, now_ms) {
            Ok(Plan::Read(wanted)) => {
                self.state = State::Reading;
                Action::Read(wanted)
            }
            Ok(Plan::Commit(mut attempt)) => {
                self.made.record(&attempt);
                let files = std::mem::take(&mut attempt.files);
                self.attempt = Some(attempt);
                self.state = State::Writing;
                Action::Write(files)
            }
            Err(reason) => self.give_up(reason),
        }
    }

    fn answered(&mut self, answer: SwapAnswer, now_ms: i64) -> Action {
        let Some(attempt) = &self.attempt else {
            return self.lost_track("a swap was answered that was not sent");
        };
        match answer {
            SwapAnswer::Done => {
                let entry = &attempt.entry;
                let committed = Committed {
                    snapshot_id: entry.snapshot_id,
                    sequence_number: entry.sequence_number,
                    metadata_location: entry.new.clone(),
                    attempts: self.number,
                    was_there: false,
                    vectors: attempt.vectors,
                };
                self.end(Outcome::Committed(committed))
            }
            SwapAnswer::Conflict => {
                self.made.set(self.number, Sent::Lost);
                self.again(
                    NotCommitted::conflict("other commits to the table came first, time and again"),
                    now_ms,
                )
            }
            SwapAnswer::Failed(error) => {
                self.made.set(self.number, Sent::Lost);
                match error.kind() {
                    ErrorKind::Unavailable => self.again(error.into(), now_ms),
                    _ => self.give_up(error.into()),
                }
            }
            SwapAnswer::Unknown(_) if !self.run.checks.makes(Check::Unknown) => self.answered(SwapAnswer::Conflict, now_ms),
            SwapAnswer::Unknown(error) => {
                let mut inquiry = Box::new(Inquiry::new(attempt.entry.clone(), error));
                let action = inquiry.ask_catalog(now_ms);
                self.state = State::Inquiring(inquiry);
                action
            }
        }
    }

    fn judged(&mut self, verdict: Verdict, now_ms: i64) -> Action {
        match verdict {
            Verdict::Committed(mut committed) => {
                committed.vectors = self.winner(&committed).map(|attempt| attempt.vectors).unwrap_or_default();
                self.end(Outcome::Committed(committed))
            }
            Verdict::Failed(error) => self.answered(SwapAnswer::Failed(error), now_ms),
            Verdict::Lost { fenced: true } => self.answered(SwapAnswer::Conflict, now_ms),
            // Its files stay: the swap matches again if the table is turned back to its base.
            Verdict::Lost { fenced: false } => self.again(
                NotCommitted::conflict("other commits to the table came first, time and again"),
                now_ms,
            ),
            Verdict::Open(error) => self.end(Outcome::Unknown {
                commit_id: self.run.change.commit_id.clone(),
                error,
            }),
        }
    }

    /// The next attempt, after a wait; or the end, for `reason`, when there were enough.
    fn again(&mut self, reason: NotCommitted, now_ms: i64) -> Action {
        let backoff = self.base.as_ref().map(|base| Backoff::of_attempts(&base.metadata));
        let backoff = match backoff {
            Some(Ok(backoff)) => backoff,
            Some(Err(error)) => return self.give_up(error.into()),
            None => return self.give_up(reason),
        };
        let passed = now_ms.saturating_sub(self.started_ms);
        match backoff.before(self.number, passed, &mut self.run.random) {
            Some(wait) => {
                self.state = State::Pausing;
                Action::Sleep(wait)
            }
            None => self.give_up(reason.with("attempts", self.number)),
        }
    }

    fn give_up(&mut self, reason: NotCommitted) -> Action {
        if self.is_verified {
            return self.end(Outcome::NotCommitted(reason));
        }
        self.state = State::LastLook(reason);
        Action::Load
    }

    fn end(&mut self, outcome: Outcome) -> Action {
        let committed = match &outcome {
            Outcome::Unknown { .. } => return Action::Finished(outcome),
            Outcome::Committed(committed) => Some(committed.snapshot_id),
            Outcome::NotCommitted(_) => None,
        };
        if !self.has_journal {
            return self.clean_up(outcome);
        }
        self.state = State::Closing(outcome);
        Action::CloseJournal {
            commit_id: self.run.change.commit_id.clone(),
            run: self.run.run_id(),
            committed,
        }
    }

    /// The attempt that became the snapshot.
    fn winner(&self, committed: &Committed) -> Option<&Attempt> {
        let attempt = self.attempt.as_deref()?;
        (!committed.was_there && attempt.entry.snapshot_id == committed.snapshot_id).then_some(attempt)
    }

    fn clean_up(&mut self, outcome: Outcome) -> Action {
        match &outcome {
            Outcome::Committed(committed) => {
                let winner = self.winner(committed);
                if let Some(number) = winner.map(|attempt| attempt.entry.attempt) {
                    self.made.set(number, Sent::Open);
                }
                if !self.made.has_surplus(self.winner(committed)) {
                    return Action::Finished(outcome);
                }
                self.state = State::Reviewing(outcome);
                Action::Load
            }
            Outcome::NotCommitted(_) if self.is_verified => {
                let surplus = self.made.after_loss(&self.run.change.created);
                self.delete(surplus, outcome)
            }
            _ => Action::Finished(outcome),
        }
    }

    fn delete(&mut self, surplus: Vec<String>, outcome: Outcome) -> Action {
        if surplus.is_empty() {
            return Action::Finished(outcome);
        }
        self.state = State::Deleting(outcome);
        Action::Delete(surplus)
    }

    /// Ends a run whose caller broke the protocol, saying no more than is certain.
    fn lost_track(&mut self, what: &str) -> Action {
        let error = Error::internal(format!("the commit engine was driven wrongly: {what}"));
        self.state = State::Ended;
        Action::Finished(if self.is_verified {
            Outcome::NotCommitted(NotCommitted {
                cause: Cause::Refused,
                error,
            })
        } else {
            Outcome::Unknown {
                commit_id: self.run.change.commit_id.clone(),
                error,
            }
        })
    }
}

/// Whether the snapshot is what the attempt wrote.
fn is_of(attempt: &Attempt, snapshot: &Snapshot) -> bool {
    matches!(&snapshot.manifests, SnapshotManifests::List(list) if *list == attempt.list)
}
