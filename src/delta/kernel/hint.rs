//! What the hint to the newest checkpoint says of it (PROTOCOL.md, "Last Checkpoint File").
//!
//! It is a hint: where it is missing, cannot be read, or is of another version, it says nothing. What it says of the
//! very checkpoint that was read must be so, since a checkpoint has no checksum of its own
//! (docs/adr/0018-counts-beside-a-delta-log.md).

use serde::Deserialize;

use super::files::LogAccess;
use super::seen::Seen;
use super::storage::HINT;
use crate::error::{Error, Result};

/// Largest hint that is read; it may repeat the table's schema.
const LIMIT: u64 = 64 << 20;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hint {
    version: u64,
    num_of_add_files: Option<u64>,
}

/// Checks the files that a checkpoint added against their number in the hint.
///
/// Errors: `Corrupt` where they differ, naming the hint.
pub(super) fn check(seen: &Seen, access: &LogAccess) -> Result<()> {
    let Some((version, adds)) = seen.checkpoint()? else { return Ok(()) };
    let log = format!("{}/_delta_log", access.root());
    let location = format!("{log}/{HINT}");
    let Ok(data) = access.read(&location, LIMIT) else { return Ok(()) };
    let Ok(hint) = serde_json::from_slice::<Hint>(&data) else {
        return Ok(());
    };
    match hint.num_of_add_files {
        Some(said) if hint.version == version && said != adds => {
            let text = format!("the checkpoint of version {version} lists {adds} files, where the last checkpoint's hint says {said}");
            let checkpoint = format!("{log}/{version:020}.checkpoint");
            Err(Error::corrupt(text).with("file", location).with("checkpoint", checkpoint))
        }
        _ => Ok(()),
    }
}
