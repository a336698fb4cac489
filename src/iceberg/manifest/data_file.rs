//! A file as a writer describes it (spec "Data File Fields"): what goes into a manifest.

use std::collections::BTreeMap;

use super::{EntryRef, FileContent, FileFormat};
use crate::iceberg::spec::PartitionValues;

/// A data file or delete file with all that a manifest says of it, apart from its status.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    pub content: FileContent,
    /// Location as it is written.
    pub file_path: String,
    pub file_format: FileFormat,
    /// The partition spec that `partition` belongs to.
    pub spec_id: i32,
    /// In the order of the spec's fields.
    pub partition: PartitionValues,
    /// Rows, or the cardinality of a deletion vector.
    pub record_count: u64,
    /// Size of the whole file.
    pub file_size_in_bytes: u64,
    /// Bytes of each column, by field id.
    pub column_sizes: BTreeMap<i32, u64>,
    /// Values of each field, nulls and NaN included.
    pub value_counts: BTreeMap<i32, u64>,
    pub null_value_counts: BTreeMap<i32, u64>,
    pub nan_value_counts: BTreeMap<i32, u64>,
    /// In the binary single-value form of the field's type.
    pub lower_bounds: BTreeMap<i32, Vec<u8>>,
    pub upper_bounds: BTreeMap<i32, Vec<u8>>,
    pub key_metadata: Option<Vec<u8>>,
    /// Where the file may be split, ascending.
    pub split_offsets: Option<Vec<i64>>,
    /// Key of an equality delete file.
    pub equality_ids: Option<Vec<i32>>,
    pub sort_order_id: Option<i32>,
    /// Row id of the first row (v3); never set for a new file, which inherits it.
    pub first_row_id: Option<u64>,
    /// The one data file that a delete file is about; required for a deletion vector.
    pub referenced_data_file: Option<String>,
    /// Where a deletion vector starts in its file.
    pub content_offset: Option<u64>,
    /// Length of a deletion vector.
    pub content_size_in_bytes: Option<u64>,
}

impl DataFile {
    /// A file with nothing but what every file has.
    pub fn new(
        content: FileContent,
        file_path: impl Into<String>,
        file_format: FileFormat,
        spec_id: i32,
        partition: PartitionValues,
    ) -> Self {
        Self {
            content,
            file_path: file_path.into(),
            file_format,
            spec_id,
            partition,
            record_count: 0,
            file_size_in_bytes: 0,
            column_sizes: BTreeMap::new(),
            value_counts: BTreeMap::new(),
            null_value_counts: BTreeMap::new(),
            nan_value_counts: BTreeMap::new(),
            lower_bounds: BTreeMap::new(),
            upper_bounds: BTreeMap::new(),
            key_metadata: None,
            split_offsets: None,
            equality_ids: None,
            sort_order_id: None,
            first_row_id: None,
            referenced_data_file: None,
            content_offset: None,
            content_size_in_bytes: None,
        }
    }

    /// Whether this is a deletion vector in a Puffin file.
    pub fn is_deletion_vector(&self) -> bool {
        self.file_format == FileFormat::Puffin
    }

    /// Bytes that belong to the entry alone: of a deletion vector its blob, else the whole file.
    pub fn content_bytes(&self) -> u64 {
        match self.content_size_in_bytes {
            Some(size) if self.is_deletion_vector() => size,
            _ => self.file_size_in_bytes,
        }
    }
}

impl EntryRef<'_> {
    /// The entry's file as an object of its own. Sizes of columns are there only if the manifest
    /// was read by [`Manifest::parse_in_full`](super::Manifest::parse_in_full).
    pub fn to_data_file(&self) -> DataFile {
        let owned = |(id, bytes): (i32, &[u8])| (id, bytes.to_vec());
        DataFile {
            content: self.content(),
            file_path: self.file_path().to_owned(),
            file_format: self.file_format(),
            spec_id: self.spec_id(),
            partition: self.partition().clone(),
            record_count: self.record_count(),
            file_size_in_bytes: self.file_size_in_bytes(),
            column_sizes: self.column_sizes().iter().collect(),
            value_counts: self.value_counts().iter().collect(),
            null_value_counts: self.null_value_counts().iter().collect(),
            nan_value_counts: self.nan_value_counts().iter().collect(),
            lower_bounds: self.lower_bounds().map(owned).collect(),
            upper_bounds: self.upper_bounds().map(owned).collect(),
            key_metadata: self.key_metadata().map(<[u8]>::to_vec),
            split_offsets: self.split_offsets().map(<[i64]>::to_vec),
            equality_ids: self.equality_ids().map(<[i32]>::to_vec),
            sort_order_id: self.sort_order_id(),
            first_row_id: self.first_row_id(),
            referenced_data_file: self.referenced_data_file().map(str::to_owned),
            content_offset: self.content_offset(),
            content_size_in_bytes: self.content_size_in_bytes(),
        }
    }
}
