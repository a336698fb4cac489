//! Which files may be deleted when a commit has ended (IC-34).
//!
//! Only files that this run created, and of those only what belongs to attempts that were surely not
//! applied. An attempt whose swap might still match, should somebody turn the table back, keeps all it names.

use std::collections::HashSet;

use super::action::Loaded;
use super::attempt::Attempt;
use crate::iceberg::spec::SnapshotManifests;

/// What is known of an attempt's swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// It was not sent, or surely not applied.
    Lost,
    /// It was sent, and may be or become visible.
    Open,
}

#[derive(Debug)]
struct MadeAttempt {
    number: u32,
    list: String,
    metadata: String,
    sent: Sent,
}

/// The files that a run has created, as far as it asked for them.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Manifests and files of vectors.
    parts: HashSet<String>,
    attempts: Vec<MadeAttempt>,
}

impl Made {
    /// Takes note of an attempt before its files are written.
    pub(super) fn record(&mut self, attempt: &Attempt) {
        self.parts.extend(attempt.parts.iter().cloned());
        self.attempts.push(MadeAttempt {
            number: attempt.entry.attempt,
            list: attempt.list.clone(),
            metadata: attempt.entry.new.clone(),
            sent: Sent::Lost,
        });
    }

    pub(super) fn set(&mut self, number: u32, sent: Sent) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.number == number) {
            attempt.sent = sent;
        }
    }

    fn lost(&self) -> impl Iterator<Item = &MadeAttempt> {
        self.attempts.iter().filter(|attempt| attempt.sent == Sent::Lost)
    }

    /// Whether there is something to delete besides what `won` needs.
    pub(super) fn has_surplus(&self, won: Option<&Attempt>) -> bool {
        self.lost().next().is_some()
            || (won.is_none() && !self.parts.is_empty())
            || won.is_some_and(|won| self.unused(won).next().is_some())
    }

    fn unused<'a>(&'a self, won: &'a Attempt) -> impl Iterator<Item = &'a String> {
        self.parts.iter().filter(|manifest| !won.parts.contains(*manifest))
    }

    /// After a commit, by this run's attempt `won` or by another run: what nothing names. `now` is the
    /// table as it is; where it does not show the snapshot, nothing is deleted.
    pub(super) fn after_commit(&self, won: Option<&Attempt>, snapshot_id: i64, now: &Loaded) -> Vec<String> {
        let metadata = &now.metadata;
        let Some(snapshot) = metadata.snapshot_by_id(snapshot_id) else {
            return Vec::new();
        };
        let is_list = |location: &str| matches!(&snapshot.manifests, SnapshotManifests::List(list) if list == location);
        if won.is_some_and(|won| !is_list(&won.list)) {
            return Vec::new();
        }
        let named: HashSet<&str> = metadata
            .snapshots
            .iter()
            .filter_map(|snapshot| match &snapshot.manifests {
                SnapshotManifests::List(list) => Some(list.as_str()),
                SnapshotManifests::Inline(_) => None,
            })
            .collect();
        let is_named = |location: &str| named.contains(location) || now.has_been(location);
        let mut surplus: Vec<String> = self.losers().filter(|location| !is_named(location)).collect();
        // Attempts share manifests and vectors.
        if self
            .attempts
            .iter()
            .all(|attempt| attempt.sent == Sent::Lost || won.is_some_and(|won| won.entry.attempt == attempt.number))
        {
            match won {
                Some(won) => surplus.extend(self.unused(won).cloned()),
                None => surplus.extend(self.parts.iter().cloned()),
            }
        }
        surplus.sort();
        surplus
    }

    /// After a commit that surely did not happen: all, with the files that were written for the change.
    pub(super) fn after_loss(&self, created: &[String]) -> Vec<String> {
        let mut surplus: Vec<String> = self.losers().collect();
        if self.attempts.iter().all(|attempt| attempt.sent == Sent::Lost) {
            surplus.extend(self.parts.iter().chain(created).cloned());
        }
        surplus.sort();
        surplus.dedup();
        surplus
    }

    fn losers(&self) -> impl Iterator<Item = String> {
        self.lost().flat_map(|attempt| [attempt.list.clone(), attempt.metadata.clone()])
    }
}
