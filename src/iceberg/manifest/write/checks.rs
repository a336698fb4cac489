//! What a file must have to be written into a manifest of a table's format version, and what that
//! version cannot hold.

use crate::error::{Error, Result};
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat, ManifestContent};

fn refuse(what: &str) -> Result<()> {
    Err(Error::invalid(what))
}

/// Whether the file can be in such a manifest at all, without loss.
///
/// Errors: `InvalidInput`.
pub(super) fn fits(file: &DataFile, content: ManifestContent, version: u8) -> Result<()> {
    match (content, file.content) {
        (ManifestContent::Data, FileContent::Data)
        | (ManifestContent::Deletes, FileContent::PositionDeletes | FileContent::EqualityDeletes) => {}
        (ManifestContent::Data, _) => return refuse("a delete file cannot be in a data manifest"),
        (ManifestContent::Deletes, _) => return refuse("a data file cannot be in a delete manifest"),
    }
    if file.file_path.is_empty() {
        return refuse("a file needs a path");
    }
    let is_vector = file.file_format == FileFormat::Puffin;
    if is_vector && file.content != FileContent::PositionDeletes {
        return refuse("only deletion vectors are in puffin files");
    }
    if is_vector && (file.referenced_data_file.is_none() || file.content_offset.is_none() || file.content_size_in_bytes.is_none()) {
        return refuse("a deletion vector needs its data file, offset and size");
    }
    match (file.content, &file.equality_ids) {
        (FileContent::EqualityDeletes, Some(ids)) if !ids.is_empty() => {}
        (FileContent::EqualityDeletes, _) => return refuse("an equality delete file needs its key columns"),
        _ => {}
    }
    if version < 3 && (file.first_row_id.is_some() || file.content_offset.is_some() || file.content_size_in_bytes.is_some()) {
        return refuse("row ids and deletion vectors need format version 3");
    }
    if version < 2 && (file.equality_ids.is_some() || file.referenced_data_file.is_some()) {
        return refuse("delete files need format version 2");
    }
    Ok(())
}

/// Whether the file may be added: what later readers rely on, and what new files must not have.
///
/// Errors: `InvalidInput`.
pub(super) fn may_be_added(file: &DataFile, version: u8) -> Result<()> {
    if file.file_size_in_bytes == 0 {
        return refuse("a file of no bytes was never written");
    }
    if file.first_row_id.is_some() {
        return refuse("a new file inherits its row ids");
    }
    if file.content != FileContent::EqualityDeletes && file.equality_ids.is_some() {
        return refuse("only an equality delete file has key columns");
    }
    match file.content {
        FileContent::Data if file.referenced_data_file.is_some() => refuse("a data file refers to no other"),
        FileContent::EqualityDeletes if file.referenced_data_file.is_some() => {
            refuse("an equality delete file is never about one data file alone")
        }
        FileContent::PositionDeletes if file.sort_order_id.is_some() => refuse("position deletes have no sort order of the table"),
        FileContent::PositionDeletes if version > 2 && !file.is_deletion_vector() => {
            refuse("format version 3 takes new position deletes as deletion vectors only")
        }
        FileContent::PositionDeletes | FileContent::EqualityDeletes if file.record_count == 0 => refuse("a delete file deletes something"),
        _ if !file.is_deletion_vector() && file.content_offset.is_some() => refuse("only a deletion vector lies within a file"),
        _ if file.split_offsets.as_ref().is_some_and(|offsets| !offsets.is_sorted()) => refuse("split offsets must ascend"),
        _ => Ok(()),
    }
}
