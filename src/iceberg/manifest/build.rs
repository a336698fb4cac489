//! Checks entries and fills in what they inherit (spec "Sequence Number Inheritance", "First
//! Row ID Inheritance"), then stores them as columns.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::{Columns, Span};
use super::entry::Flags;
use super::plan::{RawEntry, fits};
use super::{EntryStatus, FileContent, FileFormat, ManifestContent, ManifestFile};
use crate::error::{Error, Result};
use crate::iceberg::spec::PartitionValues;

/// What entries without a sequence number get.
#[derive(Debug, Clone, Copy)]
struct SequenceRule {
    /// For added files.
    added: i64,
    /// For existing and deleted files; `None` means that they must have their own.
    others: Option<i64>,
}

impl SequenceRule {
    /// `is_v1`: the manifest says that it is v1. `lacks_columns`: it has no column that only v2
    /// has, and may be v1 without saying so.
    fn new(listed: i64, is_v1: bool, lacks_columns: bool) -> Self {
        if is_v1 {
            // Whatever the version of the table.
            return Self { added: 0, others: Some(0) };
        }
        Self {
            added: listed,
            others: (lacks_columns || listed == 0).then_some(0),
        }
    }

    fn inherit(self, own: Option<i64>, status: EntryStatus) -> Option<i64> {
        own.or(match status {
            EntryStatus::Added => Some(self.added),
            EntryStatus::Existing | EntryStatus::Deleted => self.others,
        })
    }
}

/// Collects entries into columns.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    list_entry: &'a ManifestFile,
    sequence: SequenceRule,
    /// Id of the next row without one; `None` where the manifest list assigns none.
    next_row_id: Option<u64>,
    /// Fields of the partition spec.
    width: usize,
    columns: Columns,
    partitions: Vec<PartitionValues>,
    partition_ids: HashMap<PartitionValues, u32>,
    spans: Vec<(i32, Span)>,
}

fn status(raw: Option<i64>) -> Result<EntryStatus> {
    match raw {
        Some(0) => Ok(EntryStatus::Existing),
        Some(1) => Ok(EntryStatus::Added),
        Some(2) => Ok(EntryStatus::Deleted),
        Some(other) => Err(Error::corrupt(format!("entry status is {other}"))),
        None => Err(Error::corrupt("entry has no status")),
    }
}

fn count(raw: Option<i64>, what: &str) -> Result<u64> {
    fits(raw.ok_or_else(|| Error::corrupt(format!("entry has no {what}")))?, what)
}

/// An optional number that must not be negative.
fn natural(raw: Option<i64>, what: &str) -> Result<Option<i64>> {
    match raw {
        Some(value) if value < 0 => Err(Error::corrupt(format!("{what} is {value}"))),
        other => Ok(other),
    }
}

impl<'a> Builder<'a> {
    pub(super) fn new(list_entry: &'a ManifestFile, width: usize, is_v1: bool, lacks_columns: bool) -> Self {
        Self {
            list_entry,
            sequence: SequenceRule::new(list_entry.sequence_number, is_v1, lacks_columns),
            next_row_id: list_entry.first_row_id.filter(|_| list_entry.content == ManifestContent::Data),
            width,
            columns: Columns::default(),
            partitions: Vec::new(),
            partition_ids: HashMap::new(),
            spans: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.columns.flags.len()
    }

    fn content(&self, raw: Option<i64>) -> Result<FileContent> {
        let content = match (raw, self.list_entry.content) {
            (Some(0), _) | (None, ManifestContent::Data) => FileContent::Data,
            (Some(1), _) => FileContent::PositionDeletes,
            (Some(2), _) => FileContent::EqualityDeletes,
            (Some(other), _) => return Err(Error::corrupt(format!("file content is {other}"))),
            (None, ManifestContent::Deletes) => return Err(Error::corrupt("a delete file does not say which kind it is")),
        };
        match (self.list_entry.content, content) {
            (ManifestContent::Data, FileContent::Data)
            | (ManifestContent::Deletes, FileContent::PositionDeletes | FileContent::EqualityDeletes) => Ok(content),
            (ManifestContent::Data, _) => Err(Error::corrupt("a data manifest holds a delete file")),
            (ManifestContent::Deletes, _) => Err(Error::corrupt("a delete manifest holds a data file")),
        }
    }

    /// Assigns the next row ids to a live data file without its own.
    fn first_row_id(&mut self, flags: Flags, own: Option<i64>, rows: u64) -> Result<Option<i64>> {
        let Some(next) = self.next_row_id.filter(|_| flags.content == FileContent::Data) else {
            return Ok(None);
        };
        if own.is_some() || flags.status == EntryStatus::Deleted {
            return natural(own, "first row id");
        }
        let after = next.checked_add(rows).filter(|after| i64::try_from(*after).is_ok());
        self.next_row_id = Some(after.ok_or_else(|| Error::corrupt("row ids have more than 63 bits"))?);
        Ok(i64::try_from(next).ok())
    }

    fn partition_index(&mut self, raw: &mut RawEntry<'_>) -> Result<u32> {
        // A file without partition struct belongs to the partition of nulls.
        raw.partition.resize(self.width, None);
        if let Some(index) = self.partition_ids.get(raw.partition.as_slice()) {
            return Ok(*index);
        }
        let index = u32::try_from(self.partitions.len()).map_err(|_| Error::corrupt("too many partitions"))?;
        let values: PartitionValues = Arc::from(raw.partition.as_slice());
        self.partitions.push(values.clone());
        self.partition_ids.insert(values, index);
        Ok(index)
    }

    /// Checks an entry and stores it.
    pub(super) fn push(&mut self, raw: &mut RawEntry<'_>) -> Result<()> {
        if raw.path.is_empty() {
            return Err(Error::corrupt("entry has no file path"));
        }
        self.checked_push(raw).map_err(|e| e.with("file", raw.path))
    }

    fn checked_push(&mut self, raw: &mut RawEntry<'_>) -> Result<()> {
        let flags = Flags {
            status: status(raw.status)?,
            content: self.content(raw.content)?,
            format: FileFormat::from_name(raw.format)
                .ok_or_else(|| Error::unsupported(format!("file format \"{}\" is not supported", raw.format)))?,
            has_key_metadata: raw.key_metadata.is_some(),
        };
        let record_count = count(raw.record_count, "record count")?;
        let file_size = count(raw.file_size, "file size")?;
        if flags.status != EntryStatus::Deleted {
            check_live(flags, raw)?;
        }
        let own = natural(raw.sequence_number, "sequence number")?;
        let sequence_number = self.sequence.inherit(own, flags.status).ok_or_else(|| {
            Error::corrupt(format!(
                "a file of status {:?} has no sequence number; only added files inherit it",
                flags.status
            ))
        })?;
        let own = natural(raw.file_sequence_number, "file sequence number")?;
        let file_sequence_number = self.sequence.inherit(own, flags.status);
        let first_row_id = self.first_row_id(flags, raw.first_row_id, record_count)?;
        let partition = self.partition_index(raw)?;

        let row = self.len();
        let columns = &mut self.columns;
        columns.path.push(columns.arena.push(raw.path.as_bytes())?);
        columns.partition.push(partition);
        columns.sequence_number.push(sequence_number);
        columns.record_count.push(record_count);
        columns.file_size.push(file_size);
        columns.snapshot_id.set(row, raw.snapshot_id.or(self.list_entry.added_snapshot_id));
        columns.file_sequence_number.set(row, file_sequence_number);
        let sort_order_id = raw.sort_order_id.map(|id| fits::<i32>(id, "sort order id")).transpose()?;
        columns.sort_order_id.set(row, sort_order_id.map(i64::from));
        columns.first_row_id.set(row, first_row_id);
        columns.content_offset.set(row, natural(raw.content_offset, "content offset")?);
        columns.content_size.set(row, natural(raw.content_size, "content size")?);
        columns.referenced.set(row, raw.referenced.map(str::as_bytes))?;
        columns.split_offsets.set(row, raw.split_offsets.as_deref())?;
        columns.equality_ids.set(row, raw.equality_ids.as_deref())?;
        columns.key_metadata.set(row, raw.key_metadata)?;
        columns.column_sizes.set(row, &mut raw.column_sizes)?;
        columns.value_counts.set(row, &mut raw.value_counts)?;
        columns.null_value_counts.set(row, &mut raw.null_value_counts)?;
        columns.nan_value_counts.set(row, &mut raw.nan_value_counts)?;
        for (bounds, column) in [
            (&raw.lower_bounds, &mut columns.lower_bounds),
            (&raw.upper_bounds, &mut columns.upper_bounds),
        ] {
            self.spans.clear();
            for (id, bytes) in bounds {
                self.spans.push((*id, columns.arena.push(bytes)?));
            }
            column.set(row, &mut self.spans)?;
        }
        // Last: the number of flags is the number of entries.
        columns.flags.push(flags.pack());
        Ok(())
    }

    pub(super) fn finish(mut self) -> (Columns, Vec<PartitionValues>) {
        self.columns.shrink();
        self.partitions.shrink_to_fit();
        (self.columns, self.partitions)
    }
}

/// What a file that is part of the table must have.
fn check_live(flags: Flags, raw: &RawEntry<'_>) -> Result<()> {
    let is_puffin = flags.format == FileFormat::Puffin;
    match flags.content {
        FileContent::Data | FileContent::EqualityDeletes if is_puffin => Err(Error::corrupt(
            "only deletion vectors are in puffin files, and they are position deletes",
        )),
        FileContent::PositionDeletes
            if is_puffin && (raw.referenced.is_none() || raw.content_offset.is_none() || raw.content_size.is_none()) =>
        {
            Err(Error::corrupt("a deletion vector needs its data file, offset and size"))
        }
        FileContent::EqualityDeletes if raw.equality_ids.as_ref().is_none_or(Vec::is_empty) => {
            Err(Error::corrupt("an equality delete file names no key columns"))
        }
        _ => Ok(()),
    }
}
