//! The totals of a summary against the files (spec appendix F).

use super::{Finding, Rule};
use crate::iceberg::manifest::{EntryRef, FileContent};
use crate::iceberg::spec::Snapshot;

/// Sums over the live files.
#[derive(Debug, Default)]
pub(super) struct Totals {
    records: u64,
    bytes: u64,
    data_files: u64,
    delete_files: u64,
    position_deletes: u64,
    equality_deletes: u64,
}

impl Totals {
    pub(super) fn add(&mut self, entry: &EntryRef<'_>) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        let own_size = entry.content_size_in_bytes().filter(|_| entry.is_deletion_vector());
        add(&mut self.bytes, own_size.unwrap_or(entry.file_size_in_bytes()));
        match entry.content() {
            FileContent::Data => {
                self.data_files += 1;
                add(&mut self.records, entry.record_count());
            }
            FileContent::PositionDeletes => {
                self.delete_files += 1;
                add(&mut self.position_deletes, entry.record_count());
            }
            FileContent::EqualityDeletes => {
                self.delete_files += 1;
                add(&mut self.equality_deletes, entry.record_count());
            }
        }
    }

    /// Totals that the summary has and that differ.
    pub(super) fn finish(self, snapshot: &Snapshot) -> impl Iterator<Item = Finding> {
        let sums = [
            ("total-records", self.records),
            ("total-files-size", self.bytes),
            ("total-data-files", self.data_files),
            ("total-delete-files", self.delete_files),
            ("total-position-deletes", self.position_deletes),
            ("total-equality-deletes", self.equality_deletes),
        ];
        sums.into_iter().filter_map(|(key, sum)| {
            let told = snapshot.summary.get(key)?;
            (told.parse() != Ok(sum)).then(|| Finding {
                rule: Rule::Totals,
                subject: key.to_owned(),
                message: format!("the summary says {told}, the files make {sum}"),
            })
        })
    }
}
