//! Where the deletion vectors of a log's files lie (PROTOCOL.md, "Deletion Vectors").

use std::sync::Arc;

use arrow::array::{Array, AsArray, StructArray};
use arrow::datatypes::{Int32Type, Int64Type};

use serde::Deserialize;

use super::paths::locate;
use crate::error::{Error, Result};
use crate::io::TableIo;
use crate::table::{DeletionVectorRef, VectorContainer};

/// A deletion vector as the log describes it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    /// `u`: a file by its id, below the table; `p`: a file by its path; `i`: the vector itself.
    #[serde(rename = "storageType")]
    pub(super) storage: String,
    #[serde(rename = "pathOrInlineDv")]
    pub(super) path_or_inline: String,
    #[serde(default)]
    pub(super) offset: Option<i32>,
    #[serde(rename = "sizeInBytes")]
    pub(super) size: i32,
    pub(super) cardinality: i64,
}

/// Characters that spell an id of a file at the end of a path.
const ID_LENGTH: usize = 20;
/// Length and checksum around magic and vector.
const FRAME: u64 = 8;

impl Descriptor {
    /// From a row of a column of descriptors; `None` for null.
    ///
    /// Errors: `Corrupt` for one that lacks a part.
    pub(super) fn at(array: &StructArray, row: usize) -> Result<Option<Self>> {
        if array.is_null(row) {
            return Ok(None);
        }
        let broken = || Error::corrupt("a deletion vector's description lacks a part");
        let text = |name: &str| {
            let column = array.column_by_name(name)?.as_string_opt::<i32>()?;
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let int = |name: &str| {
            let column = array.column_by_name(name)?.as_primitive_opt::<Int32Type>()?;
            column.is_valid(row).then(|| column.value(row))
        };
        let cardinality = array.column_by_name("cardinality").and_then(|c| c.as_primitive_opt::<Int64Type>());
        let cardinality = cardinality.filter(|c| c.is_valid(row)).map(|c| c.value(row));
        Ok(Some(Self {
            storage: text("storageType").ok_or_else(broken)?,
            path_or_inline: text("pathOrInlineDv").ok_or_else(broken)?,
            offset: int("offset"),
            size: int("sizeInBytes").ok_or_else(broken)?,
            cardinality: cardinality.ok_or_else(broken)?,
        }))
    }

    /// The vector's unique id, with its data file's path the key of a file action.
    pub(super) fn unique_id(&self) -> String {
        let (storage, path) = (&self.storage, &self.path_or_inline);
        self.offset
            .map_or_else(|| format!("{storage}{path}"), |offset| format!("{storage}{path}@{offset}"))
    }

    /// The file that holds the vector, as a location; `None` for one that stands in the log.
    ///
    /// Errors: `Unsupported` for a kind of storage that is not known; `Corrupt` for a path that is none.
    pub(super) fn location(&self, io: &TableIo, root: &str) -> Result<Option<String>> {
        match self.storage.as_str() {
            "u" => {
                let path = &self.path_or_inline;
                let broken = || Error::corrupt(format!("deletion vector id \"{}\" is none", path.escape_debug()));
                let at = path
                    .len()
                    .checked_sub(ID_LENGTH)
                    .filter(|at| path.is_char_boundary(*at))
                    .ok_or_else(broken)?;
                let (prefix, id) = path.split_at(at);
                let id: [u8; 16] = z85::decode(id).ok().and_then(|id| id.try_into().ok()).ok_or_else(broken)?;
                let name = format!("deletion_vector_{}.bin", uuid::Uuid::from_bytes(id));
                let folder = if prefix.is_empty() {
                    root.to_owned()
                } else {
                    format!("{root}/{prefix}")
                };
                io.resolve(&format!("{folder}/{name}")).map(Some)
            }
            "p" => locate(io, root, &self.path_or_inline).map(Some),
            "i" => Ok(None),
            other => Err(Error::unsupported(format!(
                "deletion vector storage type \"{}\" is not known",
                other.escape_debug()
            ))),
        }
    }

    /// What a scan needs to load it. `data_file` is the location of the file that it is for.
    ///
    /// Errors: as [`Self::location`].
    pub(super) fn reference(&self, io: &TableIo, root: &str, data_file: &str) -> Result<DeletionVectorRef> {
        let negative = || Error::corrupt("a deletion vector's description has a negative number");
        let size = u64::try_from(self.size).map_err(|_| negative())?;
        let cardinality = u64::try_from(self.cardinality).map_err(|_| negative())?;
        let Some(location) = self.location(io, root)? else {
            let bytes = self.inline(usize::try_from(size).unwrap_or(usize::MAX))?;
            return Ok(DeletionVectorRef {
                // Its own id is part of the place, so that a cache tells vectors of one file apart.
                location: format!("{data_file}#{}", self.path_or_inline),
                offset: 0,
                length: size,
                cardinality,
                container: VectorContainer::Inline(bytes),
            });
        };
        Ok(DeletionVectorRef {
            location,
            // Behind the version of the file's format, where it is left out.
            offset: u64::try_from(self.offset.unwrap_or(1)).map_err(|_| negative())?,
            length: size + FRAME,
            cardinality,
            container: VectorContainer::Versioned,
        })
    }

    /// The bytes that stand in the log: padding to whole groups of characters is cut off.
    fn inline(&self, size: usize) -> Result<Arc<[u8]>> {
        let broken = || Error::corrupt("a deletion vector that stands in the log is not encoded as it should be");
        let mut bytes = z85::decode(&self.path_or_inline).map_err(|_| broken())?;
        if size > bytes.len() || bytes.len() - size >= 4 {
            return Err(Error::corrupt(format!(
                "a deletion vector of {size} bytes stands in the log with {}",
                bytes.len()
            )));
        }
        bytes.truncate(size);
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{PathMap, Storage};

    fn descriptor(storage: &str, path: &str, offset: Option<i32>, size: i32) -> Descriptor {
        Descriptor {
            storage: storage.to_owned(),
            path_or_inline: path.to_owned(),
            offset,
            size,
            cardinality: 2,
        }
    }

    fn reference(of: &Descriptor) -> Result<DeletionVectorRef> {
        let io = TableIo::new(Arc::new(Storage::default()), PathMap::default(), ["/t".to_owned()])?;
        of.reference(&io, "/t", "/t/a.parquet")
    }

    /// The first of them is an example of PROTOCOL.md, "Deletion Vector Descriptor Schema".
    #[test]
    fn vectors_are_found_by_id_by_path_and_in_place() {
        let by_id = reference(&descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", Some(4), 40)).unwrap();
        assert_eq!(by_id.location, "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        assert_eq!((by_id.offset, by_id.length, by_id.cardinality), (4, 48, 2));
        let by_path = reference(&descriptor("p", "file:/t/x%20y.bin", Some(1), 40)).unwrap();
        assert_eq!(by_path.location, "/t/x y.bin");
        // Of a table that Spark wrote: 38 bytes in characters for 40.
        let inline = reference(&descriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000625c8Xg0rrx94/=Of", None, 38)).unwrap();
        let VectorContainer::Inline(bytes) = &inline.container else {
            panic!("{inline:?}")
        };
        assert_eq!((bytes.len(), &bytes[..4]), (38, &[0xd1, 0xd3, 0x39, 0x64][..]));
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for (storage, path, size) in [
            ("x", "y", 1),
            ("u", "short", 1),
            ("u", "ab^-aqEH.-t@S}K{vb[*k~", 1),
            ("i", "wi5b=", 40),
            ("p", "/etc/x", 1),
        ] {
            assert!(reference(&descriptor(storage, path, None, size)).is_err(), "{storage} {path}");
        }
        assert!(reference(&descriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", Some(-4), 40)).is_err());
    }
}
