//! Completing what an old manifest list did not tell of a manifest, from the manifest itself.

use super::{EntryStatus, Manifest, ManifestFile};

impl ManifestFile {
    /// Whether something is missing that manifest lists of v2 and later must tell.
    pub fn is_complete(&self) -> bool {
        let counts = [
            self.length,
            self.added_files_count,
            self.existing_files_count,
            self.deleted_files_count,
            self.added_rows_count,
            self.existing_rows_count,
            self.deleted_rows_count,
        ];
        counts.iter().all(Option::is_some) && self.partition_spec_id.is_some() && self.added_snapshot_id.is_some()
    }

    /// Fills in what is missing: counts and spec from the manifest's entries, its `length` in
    /// bytes, and as the snapshot that added it `snapshot_id`, the oldest one that is known to list it.
    pub fn complete(&mut self, manifest: &Manifest, length: u64, snapshot_id: i64) {
        let mut files = [0_u64; 3];
        for entry in manifest.entries() {
            files[entry.status() as usize] += 1;
        }
        let rows = manifest.columns.rows_by_status();
        let [existing, added, deleted] = [EntryStatus::Existing, EntryStatus::Added, EntryStatus::Deleted].map(|status| status as usize);
        self.length.get_or_insert(length);
        self.partition_spec_id.get_or_insert(manifest.spec_id());
        self.added_snapshot_id.get_or_insert(snapshot_id);
        self.added_files_count.get_or_insert(files[added]);
        self.existing_files_count.get_or_insert(files[existing]);
        self.deleted_files_count.get_or_insert(files[deleted]);
        self.added_rows_count.get_or_insert(rows[added]);
        self.existing_rows_count.get_or_insert(rows[existing]);
        self.deleted_rows_count.get_or_insert(rows[deleted]);
    }
}
