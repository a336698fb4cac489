//! Snapshots, branches and tags (spec "Snapshots", "Snapshot Row IDs", "Snapshot References").

use std::sync::Arc;

use super::MetadataBuilder;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{RefKind, Snapshot, SnapshotManifests, SnapshotRef};

/// The branch that is a table's current state.
pub const MAIN_BRANCH: &str = "main";

impl MetadataBuilder {
    /// Adds a snapshot that no branch shows yet.
    ///
    /// Errors: `InvalidInput` naming the rule: an id that is taken; a sequence number other than
    /// the table's next one; row ids that do not start at the table's next one (v3); no manifest
    /// list, operation or schema; a time before the table's last change.
    pub fn add_snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        let id = snapshot.snapshot_id;
        self.check_snapshot(&snapshot).context("snapshot", || id)?;
        self.table.last_sequence_number = snapshot.sequence_number;
        self.table.last_updated_ms = self.table.last_updated_ms.max(snapshot.timestamp_ms);
        if let (Some(next), Some(rows)) = (self.table.next_row_id, snapshot.added_rows) {
            self.table.next_row_id = Some(next + rows);
        }
        self.table.snapshots.push(Arc::new(snapshot));
        self.added_snapshots.insert(id);
        self.is_changed = true;
        Ok(())
    }

    fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        let table = &self.table;
        let refuse = |message: String| Err(Error::invalid(message));
        if snapshot.snapshot_id < 0 || table.snapshot_by_id(snapshot.snapshot_id).is_some() {
            return refuse("the snapshot id is taken or negative".to_owned());
        }
        let next = if table.format_version == 1 {
            0
        } else {
            table.last_sequence_number.saturating_add(1)
        };
        if snapshot.sequence_number != next {
            return refuse(format!(
                "the snapshot's sequence number is {}, the table's next one is {next}",
                snapshot.sequence_number
            ));
        }
        if snapshot.timestamp_ms < self.timestamp_ms() {
            return refuse(format!(
                "the snapshot's time {} lies before the change's, {}",
                snapshot.timestamp_ms,
                self.timestamp_ms()
            ));
        }
        if !matches!(snapshot.manifests, SnapshotManifests::List(_)) {
            return refuse("a new snapshot needs a manifest list".to_owned());
        }
        if snapshot.operation().is_none() {
            return refuse("the snapshot's summary lacks its operation".to_owned());
        }
        match snapshot.schema_id {
            Some(id) if table.schema_by_id(id).is_some() => {}
            other => return refuse(format!("the snapshot's schema is {other:?}, which the table does not have")),
        }
        if snapshot.key_id.is_some() {
            return Err(Error::unsupported("encrypted snapshots cannot be written"));
        }
        match (table.next_row_id, snapshot.first_row_id, snapshot.added_rows) {
            (None, None, None) => Ok(()),
            (None, ..) => refuse(format!("format version {} has no row ids", table.format_version)),
            (Some(next), Some(first), Some(rows)) if first == next => match next.checked_add(rows).map(i64::try_from) {
                Some(Ok(_)) => Ok(()),
                _ => refuse("row ids have more than 63 bits".to_owned()),
            },
            (Some(next), first, rows) => refuse(format!(
                "the snapshot's row ids start at {first:?} and are {rows:?}; the table's next one is {next}"
            )),
        }
    }

    /// Adds a snapshot and makes it the newest of a branch. A branch that does not exist is made.
    ///
    /// Errors: as for [`Self::add_snapshot`], and `InvalidInput` where the snapshot's parent is not
    /// the branch's newest snapshot, or the name is that of a tag.
    pub fn commit_snapshot(&mut self, snapshot: Snapshot, branch: &str) -> Result<()> {
        let id = snapshot.snapshot_id;
        let (expected, reference) = match self.table.refs.get(branch) {
            Some(reference) if reference.kind == RefKind::Tag => {
                return Err(Error::invalid("a tag cannot be committed to").with("ref", branch));
            }
            Some(reference) => {
                let moved = SnapshotRef {
                    snapshot_id: id,
                    ..reference.clone()
                };
                (Some(reference.snapshot_id), moved)
            }
            // A new branch starts at the table's current state.
            None => (self.table.current_snapshot_id, SnapshotRef::branch(id)),
        };
        if snapshot.parent_snapshot_id != expected {
            let parent = snapshot.parent_snapshot_id;
            let message = format!("the snapshot's parent is {parent:?}, the branch's newest snapshot {expected:?}");
            return Err(Error::invalid(message).with("ref", branch).with("snapshot", id));
        }
        self.add_snapshot(snapshot)?;
        self.set_ref(branch, reference)
    }

    /// Makes or moves a branch or tag.
    ///
    /// Errors: `InvalidInput` for a snapshot that the table does not have, for `main` as a tag, for
    /// a branch that would become a tag or the other way round, and for retention that is not positive.
    pub fn set_ref(&mut self, name: &str, reference: SnapshotRef) -> Result<()> {
        self.check_ref(name, &reference).context("ref", || name)?;
        let old = self.table.refs.get(name);
        if old == Some(&reference) {
            return Ok(());
        }
        if name == MAIN_BRANCH && self.table.current_snapshot_id != Some(reference.snapshot_id) {
            self.table.current_snapshot_id = Some(reference.snapshot_id);
            self.log_current(reference.snapshot_id);
        }
        self.table.refs.insert(name.to_owned(), reference);
        self.is_changed = true;
        Ok(())
    }

    fn check_ref(&self, name: &str, reference: &SnapshotRef) -> Result<()> {
        let refuse = |message: &str| Err(Error::invalid(message));
        if name.is_empty() {
            return refuse("a branch or tag needs a name");
        }
        if self.table.snapshot_by_id(reference.snapshot_id).is_none() {
            return Err(Error::invalid("the table has no such snapshot").with("snapshot", reference.snapshot_id));
        }
        if name == MAIN_BRANCH && reference.kind == RefKind::Tag {
            return refuse("main must be a branch");
        }
        if self.table.refs.get(name).is_some_and(|old| old.kind != reference.kind) {
            return refuse("a branch cannot become a tag, nor a tag a branch; drop it first");
        }
        if reference.kind == RefKind::Tag && (reference.min_snapshots_to_keep.is_some() || reference.max_snapshot_age_ms.is_some()) {
            return refuse("a tag keeps one snapshot and cannot say how many");
        }
        let limits = [
            reference.min_snapshots_to_keep.map(i64::from),
            reference.max_snapshot_age_ms,
            reference.max_ref_age_ms,
        ];
        match limits.iter().flatten().all(|limit| *limit > 0) {
            true => Ok(()),
            false => refuse("retention limits must be positive"),
        }
    }

    /// Enters a new current snapshot into the log. One that was current only within this change
    /// never was for anybody else.
    fn log_current(&mut self, snapshot_id: i64) {
        let log = &mut self.table.snapshot_log;
        if log.len() > self.logged_before && log.last().is_some_and(|(_, last)| self.added_snapshots.contains(last)) {
            log.pop();
        }
        log.push((self.table.last_updated_ms, snapshot_id));
    }

    /// Removes a branch or tag; its snapshots stay. Without `main` the table is empty.
    pub fn remove_ref(&mut self, name: &str) {
        let removed = self.table.refs.remove(name).is_some();
        if name == MAIN_BRANCH {
            self.is_changed |= self.table.current_snapshot_id.take().is_some();
        }
        self.is_changed |= removed;
    }
}
