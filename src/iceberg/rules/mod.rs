//! Rules that every snapshot must keep, whoever wrote it (spec "Manifests", "Sequence Number
//! Inheritance", "Row Lineage", "Delete Formats"; reliability-security.md 2.3).
//!
//! Pure: manifests that were read go in, findings come out. The commit engine asks before it
//! publishes a snapshot, a check of a table asks of snapshots that are there. A rule that needs all
//! manifests of the snapshot is judged only where all were given.

mod finding;
mod row_ids;
mod snapshot;
#[cfg(test)]
mod tests;
mod totals;

pub use finding::{Finding, Rule};
pub use snapshot::SnapshotRules;
