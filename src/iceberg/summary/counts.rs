//! What is counted of the files that a snapshot adds and removes, over all and in each partition.

use crate::iceberg::manifest::{DataFile, FileContent};

/// Files, rows and bytes of one direction.
#[derive(Debug, Default, Clone, Copy)]
struct Side {
    bytes: u64,
    data_files: u64,
    records: u64,
    equality_delete_files: u64,
    equality_deletes: u64,
    position_delete_files: u64,
    vectors: u64,
    position_deletes: u64,
}

impl Side {
    fn take(&mut self, file: &DataFile) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        // Several vectors share one file, so each counts for its own part.
        add(&mut self.bytes, file.content_bytes());
        match file.content {
            FileContent::Data => {
                self.data_files += 1;
                add(&mut self.records, file.record_count);
            }
            FileContent::PositionDeletes => {
                if file.is_deletion_vector() {
                    self.vectors += 1;
                } else {
                    self.position_delete_files += 1;
                }
                add(&mut self.position_deletes, file.record_count);
            }
            FileContent::EqualityDeletes => {
                self.equality_delete_files += 1;
                add(&mut self.equality_deletes, file.record_count);
            }
        }
    }

    fn delete_files(&self) -> u64 {
        self.equality_delete_files + self.position_delete_files + self.vectors
    }
}

/// Both directions.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    added: Side,
    removed: Side,
}

impl Counts {
    pub(super) fn added(&mut self, file: &DataFile) {
        self.added.take(file);
    }

    pub(super) fn removed(&mut self, file: &DataFile) {
        self.removed.take(file);
    }

    /// Whether there are more rows afterwards.
    pub(super) fn adds_rows(&self) -> bool {
        self.added.records > self.removed.records
    }

    /// Hands out the counts that are not zero, in the order of the reference implementation.
    pub(super) fn write(&self, mut set: impl FnMut(&str, u64)) {
        let (added, removed) = (&self.added, &self.removed);
        for (key, value) in [
            ("added-data-files", added.data_files),
            ("deleted-data-files", removed.data_files),
            ("added-equality-delete-files", added.equality_delete_files),
            ("removed-equality-delete-files", removed.equality_delete_files),
            ("added-position-delete-files", added.position_delete_files),
            ("removed-position-delete-files", removed.position_delete_files),
            ("added-delete-files", added.delete_files()),
            ("removed-delete-files", removed.delete_files()),
            ("added-dvs", added.vectors),
            ("removed-dvs", removed.vectors),
            ("added-records", added.records),
            ("deleted-records", removed.records),
            ("added-files-size", added.bytes),
            ("removed-files-size", removed.bytes),
            ("added-position-deletes", added.position_deletes),
            ("removed-position-deletes", removed.position_deletes),
            ("added-equality-deletes", added.equality_deletes),
            ("removed-equality-deletes", removed.equality_deletes),
        ] {
            if value > 0 {
                set(key, value);
            }
        }
    }
}
