//! Row ids of a snapshot's data files (spec "Row Lineage").

use super::{Finding, Rule};
use crate::iceberg::manifest::EntryRef;
use crate::iceberg::spec::{Snapshot, TableMetadata};

/// The ids of the live data files.
#[derive(Debug)]
pub(super) struct RowIds {
    /// Ids below this were handed out; `None` before v3.
    next: Option<u64>,
    /// Whether the snapshot was written as v3, with ids for all.
    expects_all: bool,
    /// First id, first id behind, path.
    ranges: Vec<(u64, u64, String)>,
    findings: Vec<Finding>,
}

impl RowIds {
    pub(super) fn new(metadata: &TableMetadata, snapshot: &Snapshot) -> Self {
        let next = metadata.next_row_id.filter(|_| metadata.format_version > 2);
        let mut findings = Vec::new();
        let end = snapshot.first_row_id.unwrap_or(0).saturating_add(snapshot.added_rows.unwrap_or(0));
        if let Some(next) = next
            && end > next
        {
            findings.push(Finding {
                rule: Rule::RowIds,
                subject: format!("snapshot {}", snapshot.snapshot_id),
                message: format!("the snapshot has row ids up to {end}, the table has handed out those below {next}"),
            });
        }
        Self {
            next,
            expects_all: snapshot.first_row_id.is_some(),
            ranges: Vec::new(),
            findings,
        }
    }

    /// Takes in a live data file.
    pub(super) fn add(&mut self, entry: &EntryRef<'_>) {
        let Some(next) = self.next else { return };
        let mut find = |message: String| {
            self.findings.push(Finding {
                rule: Rule::RowIds,
                subject: entry.file_path().to_owned(),
                message,
            });
        };
        match entry.first_row_id() {
            None if self.expects_all => find("the file has no row ids".to_owned()),
            None => {}
            Some(first) => {
                let end = first.saturating_add(entry.record_count());
                if end > next {
                    find(format!(
                        "the file has row ids up to {end}, the table has handed out those below {next}"
                    ));
                }
                if end > first {
                    self.ranges.push((first, end, entry.file_path().to_owned()));
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.ranges.sort();
        let pairs = self.ranges.iter().zip(self.ranges.iter().skip(1));
        let overlaps = pairs.filter(|(before, after)| after.0 < before.1).map(|(before, after)| Finding {
            rule: Rule::RowIds,
            subject: after.2.clone(),
            message: format!(
                "the file's row ids start at {}, but {} has those below {}",
                after.0, before.2, before.1
            ),
        });
        let overlaps: Vec<Finding> = overlaps.collect();
        self.findings.extend(overlaps);
        self.findings
    }
}
