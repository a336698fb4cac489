//! One entry of a manifest: a data file or delete file with its status (spec "Manifest Entry
//! Fields", "Data File Fields"). Everything that is inherited has been filled in.

use std::fmt;

use super::Manifest;
use crate::error::Result;
use crate::iceberg::spec::PartitionValues;

/// What the snapshot that wrote the manifest did with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryStatus {
    Existing,
    Added,
    /// Not part of the table any more; informational.
    Deleted,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileContent {
    Data,
    /// A position delete file, or a deletion vector where the format is Puffin.
    PositionDeletes,
    EqualityDeletes,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileFormat {
    Parquet,
    Avro,
    Orc,
    Puffin,
}

impl FileFormat {
    /// From the name in a manifest, in any case.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Parquet, Self::Avro, Self::Orc, Self::Puffin]
            .into_iter()
            .find(|format| name.eq_ignore_ascii_case(format.as_str()))
    }

    /// The lower-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Avro => "avro",
            Self::Orc => "orc",
            Self::Puffin => "puffin",
        }
    }
}

/// Small enums of an entry in one byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flags {
    pub(super) status: EntryStatus,
    pub(super) content: FileContent,
    pub(super) format: FileFormat,
    pub(super) has_key_metadata: bool,
}

impl Flags {
    pub(super) fn pack(self) -> u8 {
        self.status as u8 | (self.content as u8) << 2 | (self.format as u8) << 4 | u8::from(self.has_key_metadata) << 6
    }

    pub(super) fn unpack(byte: u8) -> Self {
        Self {
            status: match byte & 3 {
                0 => EntryStatus::Existing,
                1 => EntryStatus::Added,
                _ => EntryStatus::Deleted,
            },
            content: match byte >> 2 & 3 {
                0 => FileContent::Data,
                1 => FileContent::PositionDeletes,
                _ => FileContent::EqualityDeletes,
            },
            format: match byte >> 4 & 3 {
                0 => FileFormat::Parquet,
                1 => FileFormat::Avro,
                2 => FileFormat::Orc,
                _ => FileFormat::Puffin,
            },
            has_key_metadata: byte >> 6 & 1 == 1,
        }
    }
}

/// Counts by field id, ids ascending.
#[derive(Debug, Clone, Copy)]
pub struct Counts<'a> {
    ids: &'a [i32],
    values: &'a [u64],
}

impl<'a> Counts<'a> {
    /// The count of one field; `None` if the file does not tell it.
    pub fn get(&self, field_id: i32) -> Option<u64> {
        let at = self.ids.binary_search(&field_id).ok()?;
        self.values.get(at).copied()
    }

    /// All (field id, count) pairs.
    pub fn iter(&self) -> impl Iterator<Item = (i32, u64)> + 'a {
        self.ids.iter().copied().zip(self.values.iter().copied())
    }
}

/// View of one entry of a [`Manifest`]. Cheap to copy.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    manifest: &'a Manifest,
    row: usize,
}

impl fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryRef")
            .field("row", &self.row)
            .field("status", &self.status())
            .field("content", &self.content())
            .field("file_path", &self.file_path())
            .finish_non_exhaustive()
    }
}

impl<'a> EntryRef<'a> {
    /// `row` is below the manifest's length.
    pub(super) fn new(manifest: &'a Manifest, row: usize) -> Self {
        Self { manifest, row }
    }

    fn flags(&self) -> Flags {
        Flags::unpack(at(&self.manifest.columns.flags, self.row))
    }

    /// Whether the entry holds all that its manifest's file says of it.
    pub(super) fn check_complete(&self) -> Result<()> {
        self.manifest.check_complete()
    }

    /// Position of the entry in its manifest, from 0.
    pub fn index(&self) -> usize {
        self.row
    }

    /// Existing, added or deleted.
    pub fn status(&self) -> EntryStatus {
        self.flags().status
    }

    /// Whether the file is part of the table: existing or added.
    pub fn is_live(&self) -> bool {
        self.status() != EntryStatus::Deleted
    }

    /// The snapshot that added (or deleted) the file. `None` only if neither entry nor list tells it.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.manifest.columns.snapshot_id.get(self.row)
    }

    /// Data sequence number: how old the rows are, against those of delete files.
    pub fn sequence_number(&self) -> i64 {
        at(&self.manifest.columns.sequence_number, self.row)
    }

    /// Sequence number of the commit that added the file. `None` for existing files of early v2 writers.
    pub fn file_sequence_number(&self) -> Option<i64> {
        self.manifest.columns.file_sequence_number.get(self.row)
    }

    /// Data, position deletes or equality deletes.
    pub fn content(&self) -> FileContent {
        self.flags().content
    }

    /// Location as written in the manifest.
    pub fn file_path(&self) -> &'a str {
        self.manifest.columns.arena.text(at(&self.manifest.columns.path, self.row))
    }

    /// File format.
    pub fn file_format(&self) -> FileFormat {
        self.flags().format
    }

    /// Whether this is a deletion vector in a Puffin file; then [`Self::referenced_data_file`],
    /// [`Self::content_offset`] and [`Self::content_size_in_bytes`] are there.
    pub fn is_deletion_vector(&self) -> bool {
        self.file_format() == FileFormat::Puffin
    }

    /// Partition values in the order of the fields of the spec [`Self::spec_id`].
    pub fn partition(&self) -> &'a PartitionValues {
        self.manifest.partition(at(&self.manifest.columns.partition, self.row))
    }

    /// Partition spec id, the same for all entries of a manifest.
    pub fn spec_id(&self) -> i32 {
        self.manifest.spec_id()
    }

    /// Rows of the file, or cardinality of the deletion vector.
    pub fn record_count(&self) -> u64 {
        at(&self.manifest.columns.record_count, self.row)
    }

    /// Size of the whole file.
    pub fn file_size_in_bytes(&self) -> u64 {
        at(&self.manifest.columns.file_size, self.row)
    }

    /// Bytes per column in the file; empty unless the manifest was read by [`Manifest::parse_in_full`].
    pub fn column_sizes(&self) -> Counts<'a> {
        let (ids, values) = self.manifest.columns.column_sizes.get(self.row);
        Counts { ids, values }
    }

    /// Values per field, nulls and NaN included.
    pub fn value_counts(&self) -> Counts<'a> {
        let (ids, values) = self.manifest.columns.value_counts.get(self.row);
        Counts { ids, values }
    }

    /// Nulls per field.
    pub fn null_value_counts(&self) -> Counts<'a> {
        let (ids, values) = self.manifest.columns.null_value_counts.get(self.row);
        Counts { ids, values }
    }

    /// NaN values per field.
    pub fn nan_value_counts(&self) -> Counts<'a> {
        let (ids, values) = self.manifest.columns.nan_value_counts.get(self.row);
        Counts { ids, values }
    }

    /// Lower bound of one field in the binary single-value form of the type the field had when
    /// the file was written; `None` means unknown.
    pub fn lower_bound(&self, field_id: i32) -> Option<&'a [u8]> {
        let columns = &self.manifest.columns;
        columns.lower_bounds.find(self.row, field_id).map(|span| columns.arena.get(span))
    }

    /// Upper bound of one field, like [`Self::lower_bound`].
    pub fn upper_bound(&self, field_id: i32) -> Option<&'a [u8]> {
        let columns = &self.manifest.columns;
        columns.upper_bounds.find(self.row, field_id).map(|span| columns.arena.get(span))
    }

    /// All lower bounds with their field ids, ids ascending.
    pub fn lower_bounds(&self) -> impl Iterator<Item = (i32, &'a [u8])> + 'a {
        let columns = &self.manifest.columns;
        let (ids, spans) = columns.lower_bounds.get(self.row);
        ids.iter().zip(spans).map(|(id, span)| (*id, columns.arena.get(*span)))
    }

    /// All upper bounds with their field ids, ids ascending.
    pub fn upper_bounds(&self) -> impl Iterator<Item = (i32, &'a [u8])> + 'a {
        let columns = &self.manifest.columns;
        let (ids, spans) = columns.upper_bounds.get(self.row);
        ids.iter().zip(spans).map(|(id, span)| (*id, columns.arena.get(*span)))
    }

    /// Offsets where the file may be split, for example of row groups; as written, not checked.
    pub fn split_offsets(&self) -> Option<&'a [i64]> {
        self.manifest.columns.split_offsets.get(self.row)
    }

    /// Field ids of the key of an equality delete file; there and not empty for live ones.
    pub fn equality_ids(&self) -> Option<&'a [i32]> {
        self.manifest.columns.equality_ids.get(self.row)
    }

    /// Sort order of the file's rows.
    pub fn sort_order_id(&self) -> Option<i32> {
        let id = self.manifest.columns.sort_order_id.get(self.row)?;
        i32::try_from(id).ok()
    }

    /// Row id of the file's first row (v3), inherited where the file had none.
    pub fn first_row_id(&self) -> Option<u64> {
        self.manifest.columns.first_row_id.get(self.row).map(i64::cast_unsigned)
    }

    /// The one data file that a delete file is about.
    pub fn referenced_data_file(&self) -> Option<&'a str> {
        let bytes = self.manifest.columns.referenced.get(self.row)?;
        std::str::from_utf8(bytes).ok()
    }

    /// Where the deletion vector starts in its file.
    pub fn content_offset(&self) -> Option<u64> {
        self.manifest.columns.content_offset.get(self.row).map(i64::cast_unsigned)
    }

    /// Length of the deletion vector.
    pub fn content_size_in_bytes(&self) -> Option<u64> {
        self.manifest.columns.content_size.get(self.row).map(i64::cast_unsigned)
    }

    /// Key metadata as written.
    pub fn key_metadata(&self) -> Option<&'a [u8]> {
        self.manifest.columns.key_metadata.get(self.row)
    }

    /// Whether the entry has key metadata: the file may be encrypted. Some writers set it for
    /// plain files too, so the file's own bytes decide.
    pub fn has_key_metadata(&self) -> bool {
        self.flags().has_key_metadata
    }
}

/// Columns are as long as the manifest, so the default is never seen.
fn at<T: Copy + Default>(column: &[T], row: usize) -> T {
    column.get(row).copied().unwrap_or_default()
}
