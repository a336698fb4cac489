//! What table metadata itself says: snapshots, history, refs, metadata log, properties.

use std::collections::HashSet;

use arrow::array::RecordBatch;

use super::arrays::{bools, ints, longs, maps, texts, times};
use super::table::Wanted;
use crate::error::{Error, Result};
use crate::iceberg::spec::{RefKind, Snapshot, SnapshotManifests, TableMetadata};
use crate::iceberg::time_travel::snapshot_as_of;

fn unknown(id: i32) -> Error {
    Error::internal(format!("metadata column {id} is not known"))
}

/// One row for each snapshot, in the order of the metadata.
pub(super) fn snapshots(metadata: &TableMetadata, wanted: &Wanted) -> Result<RecordBatch> {
    let all = &metadata.snapshots;
    let list = |s: &Snapshot| match &s.manifests {
        SnapshotManifests::List(location) => Some(location.clone()),
        SnapshotManifests::Inline(_) => None,
    };
    wanted.batch(all.len(), |id, field| {
        Ok(match id {
            1 => times(all.iter().map(|s| Some(s.timestamp_ms))),
            2 => longs(all.iter().map(|s| Some(s.snapshot_id))),
            3 => longs(all.iter().map(|s| s.parent_snapshot_id)),
            4 => texts(all.iter().map(|s| s.operation())),
            5 => texts(all.iter().map(|s| list(s))),
            6 => {
                // The operation has a column of its own. A snapshot of v1 may have no summary at all.
                let counters = |s: &Snapshot| s.summary.iter().filter(|(key, _)| *key != "operation").count();
                let lengths: Vec<_> = all.iter().map(|s| (!s.summary.is_empty()).then(|| counters(s))).collect();
                let pairs = || all.iter().flat_map(|s| s.summary.iter()).filter(|(key, _)| *key != "operation");
                let (keys, values) = (texts(pairs().map(|(k, _)| Some(k))), texts(pairs().map(|(_, v)| Some(v))));
                maps(field.data_type(), &lengths, keys, values)?
            }
            other => return Err(unknown(other)),
        })
    })
}

/// One row for each entry of the snapshot log: what was made current when.
pub(super) fn history(metadata: &TableMetadata, wanted: &Wanted) -> Result<RecordBatch> {
    let log = &metadata.snapshot_log;
    let newest = metadata.current_snapshot()?.map(|snapshot| snapshot.snapshot_id);
    let ancestors: HashSet<i64> = metadata.ancestors(newest).map(|snapshot| snapshot.snapshot_id).collect();
    let parent = |id: i64| metadata.snapshot_by_id(id).and_then(|s| s.parent_snapshot_id);
    wanted.batch(log.len(), |id, _| {
        Ok(match id {
            1 => times(log.iter().map(|(at, _)| Some(*at))),
            2 => longs(log.iter().map(|(_, id)| Some(*id))),
            3 => longs(log.iter().map(|(_, id)| parent(*id))),
            4 => bools(log.iter().map(|(_, id)| Some(ancestors.contains(id)))),
            other => return Err(unknown(other)),
        })
    })
}

/// One row for each branch and tag.
pub(super) fn refs(metadata: &TableMetadata, wanted: &Wanted) -> Result<RecordBatch> {
    let refs = &metadata.refs;
    let kind = |kind: RefKind| match kind {
        RefKind::Branch => "BRANCH",
        RefKind::Tag => "TAG",
    };
    wanted.batch(refs.len(), |id, _| {
        Ok(match id {
            1 => texts(refs.keys().map(Some)),
            2 => texts(refs.values().map(|r| Some(kind(r.kind)))),
            3 => longs(refs.values().map(|r| Some(r.snapshot_id))),
            4 => longs(refs.values().map(|r| r.max_ref_age_ms)),
            5 => ints(refs.values().map(|r| r.min_snapshots_to_keep)),
            6 => longs(refs.values().map(|r| r.max_snapshot_age_ms)),
            other => return Err(unknown(other)),
        })
    })
}

/// One row for each metadata file that is remembered, the current one last.
pub(super) fn metadata_log(metadata: &TableMetadata, current: &str, wanted: &Wanted) -> Result<RecordBatch> {
    let log = metadata.metadata_log.iter().map(|(at, file)| (*at, file.as_str()));
    let log: Vec<(i64, &str)> = log.chain([(metadata.last_updated_ms, current)]).collect();
    // A file from before the first snapshot has none.
    let latest: Vec<Option<i64>> = log.iter().map(|(at, _)| snapshot_as_of(metadata, *at).ok()).collect();
    let snapshot = |id: &Option<i64>| id.and_then(|id| metadata.snapshot_by_id(id));
    wanted.batch(log.len(), |id, _| {
        Ok(match id {
            1 => times(log.iter().map(|(at, _)| Some(*at))),
            2 => texts(log.iter().map(|(_, file)| Some(file))),
            3 => longs(latest.iter().copied()),
            4 => ints(latest.iter().map(|id| snapshot(id).and_then(|s| s.schema_id))),
            5 => longs(latest.iter().map(|id| snapshot(id).map(|s| s.sequence_number))),
            other => return Err(unknown(other)),
        })
    })
}

/// The table's properties.
pub(super) fn properties(metadata: &TableMetadata, wanted: &Wanted) -> Result<RecordBatch> {
    let properties = &metadata.properties;
    wanted.batch(properties.len(), |id, _| {
        Ok(match id {
            1 => texts(properties.keys().map(Some)),
            2 => texts(properties.values().map(Some)),
            other => return Err(unknown(other)),
        })
    })
}
