//! Snapshot summaries (spec appendix F, "Optional Snapshot Summary Fields"), with the keys and the
//! arithmetic of the reference implementation.
//!
//! Totals continue those of the branch's last snapshot. Where that one lacks a total, or it would
//! become negative, it is left out: no number is better than a wrong one.

mod counts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use counts::Counts;

use super::manifest::DataFile;
use super::partition_path::partition_path;
use super::spec::{Snapshot, TableMetadata};
use crate::error::{Error, Result};

/// Table property: up to how many changed partitions the summary lists each.
pub const PARTITION_LIMIT_PROPERTY: &str = "write.summary.partition-limit";

/// Total, and the keys of what is added to and taken from it.
const TOTALS: [[&str; 3]; 6] = [
    ["total-records", "added-records", "deleted-records"],
    ["total-files-size", "added-files-size", "removed-files-size"],
    ["total-data-files", "added-data-files", "deleted-data-files"],
    ["total-delete-files", "added-delete-files", "removed-delete-files"],
    ["total-position-deletes", "added-position-deletes", "removed-position-deletes"],
    ["total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"],
];

/// Collects what a snapshot adds and removes.
#[derive(Debug)]
pub struct SummaryBuilder<'a> {
    metadata: &'a TableMetadata,
    partition_limit: usize,
    counts: Counts,
    partitions: BTreeMap<String, Counts>,
    properties: BTreeMap<String, String>,
}

impl<'a> SummaryBuilder<'a> {
    /// A summary of no change.
    ///
    /// Errors: `InvalidInput` for a limit of partitions that is no number.
    pub fn new(metadata: &'a TableMetadata) -> Result<Self> {
        let limit = metadata.number_property(PARTITION_LIMIT_PROPERTY)?.unwrap_or(0);
        let partition_limit = usize::try_from(limit.max(0)).unwrap_or(usize::MAX);
        Ok(Self {
            metadata,
            partition_limit,
            counts: Counts::default(),
            partitions: BTreeMap::new(),
            properties: BTreeMap::new(),
        })
    }

    /// A file that the snapshot adds.
    ///
    /// Errors: `InvalidInput` for a file of a partition spec that the table does not have.
    pub fn added(&mut self, file: &DataFile) -> Result<()> {
        self.counts.added(file);
        self.partition(file)?.added(file);
        Ok(())
    }

    /// A file that the snapshot removes. Errors as for [`Self::added`].
    pub fn removed(&mut self, file: &DataFile) -> Result<()> {
        self.counts.removed(file);
        self.partition(file)?.removed(file);
        Ok(())
    }

    fn partition(&mut self, file: &DataFile) -> Result<&mut Counts> {
        let spec = self.metadata.spec_by_id(file.spec_id);
        let spec =
            spec.ok_or_else(|| Error::invalid(format!("the table has no partition spec {}", file.spec_id)).with("file", &file.file_path))?;
        let path = partition_path(spec, self.metadata.current_schema()?, &file.partition);
        Ok(self.partitions.entry(path).or_default())
    }

    /// Sets a key of the caller's own, for example a commit id. Computed keys win over it.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.properties.insert(key.into(), value.into());
    }

    /// The summary of a snapshot of this operation that follows `parent` (none: the branch is new
    /// and empty, and totals start at 0).
    ///
    /// Errors: `InvalidInput` for a `replace` that adds rows.
    pub fn build(self, operation: &str, parent: Option<&Snapshot>) -> Result<BTreeMap<String, String>> {
        let mut summary = self.properties;
        for [total, added, removed] in TOTALS {
            for key in [total, added, removed] {
                summary.remove(key);
            }
        }
        self.counts.write(|key, value| {
            summary.insert(key.to_owned(), value.to_string());
        });
        summary.insert("changed-partition-count".to_owned(), self.partitions.len().to_string());
        if self.partitions.len() <= self.partition_limit && !self.partitions.is_empty() {
            summary.insert("partition-summaries-included".to_owned(), "true".to_owned());
            for (path, counts) in self.partitions.iter().filter(|(path, _)| !path.is_empty()) {
                let mut parts = Vec::new();
                counts.write(|key, value| parts.push(format!("{key}={value}")));
                summary.insert(format!("partitions.{path}"), parts.join(","));
            }
        }
        if operation == "replace" && self.counts.adds_rows() {
            return Err(Error::invalid("a replace operation must not add more rows than it removes"));
        }
        for [total, added, removed] in TOTALS {
            let number = |key: &str| summary.get(key).map_or(Some(0), |text| text.parse::<i64>().ok());
            let before = match parent {
                None => Some(0),
                Some(parent) => parent.summary.get(total).and_then(|text| text.parse::<i64>().ok()),
            };
            let after = before
                .filter(|before| *before >= 0)
                .and_then(|before| before.checked_add(number(added)?)?.checked_sub(number(removed)?))
                .filter(|after| *after >= 0);
            if let Some(after) = after {
                summary.insert(total.to_owned(), after.to_string());
            }
        }
        summary.insert("operation".to_owned(), operation.to_owned());
        Ok(summary)
    }
}
