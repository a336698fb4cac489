//! The manifests of the snapshot that a commit follows, as the next manifest list needs them.

use super::files::Files;
use crate::error::{Error, Result};
use crate::iceberg::manifest::ManifestFile;
use crate::iceberg::spec::{Snapshot, SnapshotManifests, TableMetadata};

/// The manifests that a snapshot lists; `None` while files are missing. What an old list did not tell
/// stays untold: see [`complete`].
pub(super) fn listed(files: &mut Files, snapshot: &Snapshot) -> Result<Option<Vec<ManifestFile>>> {
    snapshot.check_readable()?;
    let list = match &snapshot.manifests {
        SnapshotManifests::List(location) => files.list(location).map(|list| list.as_ref().clone()),
        SnapshotManifests::Inline(locations) => Some(locations.iter().map(ManifestFile::bare).collect()),
    };
    if list.iter().flatten().any(|manifest| manifest.has_key_metadata) {
        return Err(Error::unsupported("encrypted tables cannot be written").with("snapshot", snapshot.snapshot_id));
    }
    Ok(list)
}

/// The same with all that a new list must tell: where an old one did not, the manifests themselves do.
pub(super) fn complete(files: &mut Files, metadata: &TableMetadata, snapshot: &Snapshot) -> Result<Option<Vec<ManifestFile>>> {
    let Some(mut list) = listed(files, snapshot)? else {
        return Ok(None);
    };
    let mut is_whole = true;
    for manifest in list.iter_mut().filter(|manifest| !manifest.is_complete()) {
        match files.manifest(manifest) {
            Some((parsed, length)) => {
                let first = oldest_that_lists(metadata, &manifest.location).unwrap_or(snapshot.snapshot_id);
                manifest.complete(&parsed, length, first);
            }
            None => is_whole = false,
        }
    }
    Ok(is_whole.then_some(list))
}

/// The oldest snapshot that names the manifest itself.
fn oldest_that_lists(metadata: &TableMetadata, location: &str) -> Option<i64> {
    let names_it = |snapshot: &&Snapshot| match &snapshot.manifests {
        SnapshotManifests::Inline(locations) => locations.iter().any(|named| named == location),
        SnapshotManifests::List(_) => false,
    };
    let snapshots = metadata.snapshots.iter().map(AsRef::as_ref).filter(names_it);
    snapshots
        .min_by_key(|snapshot| snapshot.timestamp_ms)
        .map(|snapshot| snapshot.snapshot_id)
}
