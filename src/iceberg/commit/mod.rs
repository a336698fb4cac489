//! The commit engine (spec "Commit Conflict Resolution and Retry"; reliability-security.md 2).
//!
//! A [`Committer`] turns a [`Change`] into a snapshot. It does no I/O and knows no clock: it says what
//! is to be done next ([`Action`]) and is told what came of it ([`Event`]). Whoever runs it, a server
//! or a simulation, does nothing of its own accord.
//!
//! ```text
//! let mut event = Event::Start;
//! loop {
//!     event = match committer.step(event, now_ms) {
//!         Action::Load => ...                       // Event::Loaded or Event::Failed
//!         Action::Swap { base, new } => ...         // Event::Swapped
//!         Action::Finished(outcome) => return outcome,
//!         ...
//!     };
//! }
//! ```
//!
//! Invariants: an outcome is one of three, and "not committed" is said only where it is certain; a
//! commit id is applied at most once; a file is deleted only if this run created it and nothing that
//! is or may become visible names it.

mod action;
mod attempt;
mod change;
mod checks;
mod cleanup;
mod engine;
mod files;
mod guard;
#[cfg(test)]
#[cfg(feature = "testing")]
mod histories;
mod history;
#[cfg(test)]
#[cfg(feature = "testing")]
mod lab;
mod live;
mod manifests;
mod matching;
#[cfg(test)]
#[cfg(feature = "testing")]
mod matrix;
mod names;
mod parent;
mod random;
mod reconcile;
mod settings;
#[cfg(test)]
#[cfg(feature = "testing")]
mod sim;
mod validate;
mod vectors;
mod verdict;

pub use action::{
    Action, Cause, Committed, Event, FileToRead, JournalEntry, Loaded, NewFile, NotCommitted, Outcome, ReadKind, SwapAnswer, VectorsMade,
    WriteKind,
};
pub use change::{AFFECTED_ROWS_PROPERTY, COMMIT_ID_PROPERTY, Change, Isolation, Operation, RemovedFile};
pub use checks::Check;
pub use engine::Committer;
pub use names::next_metadata_location;
pub use random::Random;
pub use reconcile::{Fate, Reconciler, committed_as, fate_of, same_place};
pub use settings::Backoff;
pub use vectors::VectorRows;
