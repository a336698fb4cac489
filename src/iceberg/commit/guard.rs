//! Whether files that were written before may still be committed to the table as it is now (IC-9, IC-10).

use super::change::{Change, Operation};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::iceberg::manifest::FileContent;
use crate::iceberg::spec::{RefKind, TableMetadata};

/// Table property of encrypted tables.
const ENCRYPTION_PROPERTY: &str = "encryption.key-id";

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::invalid(message))
}

/// Refuses a change whose table has moved under it. `now` is the table as it is.
///
/// Errors: `InvalidInput`, `Unsupported` or `CommitConflict`, naming what has changed; no further attempt of the same
/// change can succeed.
pub(super) fn check(change: &Change, now: &TableMetadata) -> Result<()> {
    let pinned = &change.pinned;
    if pinned.table_uuid != now.table_uuid {
        return refuse("the table was dropped and made anew since the statement began; run it again");
    }
    if now.properties.contains_key(ENCRYPTION_PROPERTY) {
        return Err(Error::unsupported("encrypted tables cannot be written"));
    }
    match now.refs.get(&change.branch).map(|reference| reference.kind) {
        Some(RefKind::Tag) => return Err(Error::invalid("a tag cannot be committed to").with("ref", &change.branch)),
        None if pinned.refs.contains_key(&change.branch) => {
            return Err(Error::invalid("the branch was dropped since the statement began").with("ref", &change.branch));
        }
        _ => {}
    }
    check_version(change, now)?;
    let added = change.added.iter().map(|file| (file.spec_id, &file.file_path));
    let vectors = change.vectors.iter().map(|rows| (rows.spec_id, &rows.data_file));
    for (spec_id, path) in added.chain(vectors) {
        let (then, today) = (pinned.spec_by_id(spec_id), now.spec_by_id(spec_id));
        if today.is_none() || then != today {
            return refuse(format!(
                "the table has no partition spec {spec_id} any more; run the statement again"
            ))
            .context("file", || path);
        }
    }
    check_schema(change, now)
}

fn check_version(change: &Change, now: &TableMetadata) -> Result<()> {
    let (then, today) = (change.pinned.format_version, now.format_version);
    if today < then {
        return refuse(format!(
            "the table has format version {today}, it had {then} when the statement began"
        ));
    }
    let adds_positions = change
        .added
        .iter()
        .any(|file| file.content == FileContent::PositionDeletes && !file.is_deletion_vector());
    if today > 2 && adds_positions {
        // Begun anew, the statement writes what the version takes.
        return Err(Error::new(
            ErrorKind::CommitConflict,
            "the table was upgraded to format version 3, which takes new position deletes as deletion vectors only; run the statement again",
        ));
    }
    if let Operation::Compact {
        sequence_number: Some(number),
    } = change.operation
        && number > now.last_sequence_number
    {
        return refuse(format!("the table has not reached sequence number {number}"));
    }
    Ok(())
}

/// Whether files of the pinned schema are files of the current one.
fn check_schema(change: &Change, now: &TableMetadata) -> Result<()> {
    let current = now.current_schema()?;
    let written = change.pinned.schema_by_id(change.schema_id);
    let written = written.ok_or_else(|| Error::invalid(format!("the table has no schema {}", change.schema_id)))?;
    for file in change.added.iter().filter(|file| file.content == FileContent::EqualityDeletes) {
        let mut ids = file.equality_ids.iter().flatten();
        if let Some(id) = ids.find(|id| current.field_by_id(**id).is_none()) {
            return refuse(format!(
                "column {id}, which rows are deleted by, was dropped since the statement began"
            ))
            .context("file", || &file.file_path);
        }
    }
    let adds_rows = change.added.iter().any(|file| file.content == FileContent::Data);
    if !adds_rows || current.schema_id() == written.schema_id() {
        return Ok(());
    }
    // Types may have been promoted and columns made optional. A column that the files lack must not be
    // required; one of another meaning never has the same id.
    current.check_follows(written, 0, now.format_version, &[]).map_err(|e| {
        Error::invalid("the table's columns changed since the statement began, and the written files do not fit them; run it again")
            .with_source(e)
    })
}
