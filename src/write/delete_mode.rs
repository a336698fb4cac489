//! How rows of a table are deleted (interface.md 4, "write mode").
//!
//! Invariant: a mode that the table declares is the one that is used, or the statement is refused by the name of
//! the property.

use crate::error::{Error, Result};
use crate::iceberg::commit::Isolation;
use crate::iceberg::spec::TableMetadata;

const MODE: &str = "write.delete.mode";
const ISOLATION: &str = "write.delete.isolation-level";

/// What a delete of single rows writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteMode {
    /// The data files without the rows.
    CopyOnWrite,
    /// Position delete files (v2).
    Positions,
    /// Deletion vectors (v3).
    Vectors,
}

/// The mode of DELETE; merge-on-read where the table declares none and can have it.
///
/// Errors: `Unsupported` for a mode that the table's format version cannot have, `InvalidInput` for one that is
/// not known.
pub fn delete_mode(metadata: &TableMetadata) -> Result<DeleteMode> {
    let declared = metadata.properties.get(MODE).map(String::as_str);
    match (declared, metadata.format_version) {
        (Some("copy-on-write"), _) | (None, 1) => Ok(DeleteMode::CopyOnWrite),
        (Some("merge-on-read"), 1) => Err(Error::unsupported(format!(
            "property {MODE} is merge-on-read, which tables of format version 1 cannot have: set it to copy-on-write, or format-version to 2"
        ))),
        (Some("merge-on-read") | None, 2) => Ok(DeleteMode::Positions),
        (Some("merge-on-read") | None, _) => Ok(DeleteMode::Vectors),
        (Some(other), _) => Err(Error::invalid(format!(
            "property {MODE} is \"{other}\": it is merge-on-read or copy-on-write"
        ))),
    }
}

/// What may happen between reading and committing a DELETE.
///
/// Errors: `InvalidInput` for a level that is not known.
pub fn delete_isolation(metadata: &TableMetadata) -> Result<Isolation> {
    match metadata.properties.get(ISOLATION).map(String::as_str) {
        None | Some("serializable") => Ok(Isolation::Serializable),
        Some("snapshot") => Ok(Isolation::Snapshot),
        Some(other) => Err(Error::invalid(format!(
            "property {ISOLATION} is \"{other}\": it is serializable or snapshot"
        ))),
    }
}
