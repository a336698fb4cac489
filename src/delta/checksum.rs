//! What the checksum file of a version says of its files (PROTOCOL.md, "Version Checksum File").
//!
//! Writers may leave it out, and one that cannot be read says nothing. Commits have no checksum of their own, so what
//! it says must be so: a log whose files it does not count right has lost some, or has some too many
//! (docs/adr/0018-counts-beside-a-delta-log.md).

use serde::Deserialize;

use super::live_files::LiveFiles;
use crate::error::{Error, Result};
use crate::io::{FileKind, TableIo};

/// Largest checksum file that is read; it may list all files of a small table.
const LIMIT: u64 = 256 << 20;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    num_files: Option<u64>,
    table_size_bytes: Option<u64>,
    #[serde(rename = "numDeletionVectorsOpt")]
    deletion_vectors: Option<u64>,
    #[serde(rename = "numDeletedRecordsOpt")]
    deleted_rows: Option<u64>,
}

/// Checks a version's files against its checksum file at `location`, where there is one.
///
/// Errors: `Corrupt` where they differ, naming it and what differs.
pub(super) async fn check(files: &LiveFiles, io: &TableIo, location: &str) -> Result<()> {
    let Ok(data) = io.read(location, FileKind::Metadata, LIMIT).await else {
        return Ok(());
    };
    let Ok(said) = serde_json::from_slice::<Checksum>(&data) else {
        return Ok(());
    };
    said.check(files).map_err(|e| e.with("file", location))
}

impl Checksum {
    fn check(&self, files: &LiveFiles) -> Result<()> {
        let sum = |of: &mut dyn Iterator<Item = i64>| of.fold(0_i64, i64::saturating_add).unsigned_abs();
        let vectors = || files.files.iter().filter_map(|file| file.vector.as_ref());
        let counts = [
            ("files", self.num_files, sum(&mut files.files.iter().map(|_| 1))),
            (
                "bytes of files",
                self.table_size_bytes,
                sum(&mut files.files.iter().map(|f| f.size)),
            ),
            ("deletion vectors", self.deletion_vectors, sum(&mut vectors().map(|_| 1))),
            ("deleted rows", self.deleted_rows, sum(&mut vectors().map(|v| v.cardinality))),
        ];
        for (what, said, found) in counts {
            if let Some(said) = said.filter(|said| *said != found) {
                return Err(Error::corrupt(format!(
                    "the log has {found} {what}, where the version's checksum file says {said}"
                )));
            }
        }
        Ok(())
    }
}
