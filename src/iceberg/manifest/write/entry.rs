//! The encoding of one manifest entry. Fields are written in the order of `avro_schema`.

use std::collections::BTreeMap;

use super::partition::PartitionColumn;
use crate::error::{Error, Result};
use crate::iceberg::avro::Encoder;
use crate::iceberg::manifest::{DataFile, EntryStatus, FileContent, FileFormat};

/// What v1 has to say of every file and nobody reads.
const BLOCK_SIZE: i64 = 64 << 20;

/// Status and age of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracking {
    pub(super) status: EntryStatus,
    /// `None` is inherited; v1 must have it.
    pub(super) snapshot_id: Option<i64>,
    /// `None` is inherited, which only added files may.
    pub(super) sequence_number: Option<i64>,
    pub(super) file_sequence_number: Option<i64>,
}

pub(super) fn encode(version: u8, tracking: Tracking, file: &DataFile, columns: &[PartitionColumn], out: &mut Encoder) -> Result<()> {
    out.long(match tracking.status {
        EntryStatus::Existing => 0,
        EntryStatus::Added => 1,
        EntryStatus::Deleted => 2,
    });
    if version == 1 {
        let id = tracking.snapshot_id;
        out.long(id.ok_or_else(|| Error::invalid("format version 1 needs the snapshot of every file"))?);
    } else {
        out.optional(tracking.snapshot_id, Encoder::long);
        out.optional(tracking.sequence_number, Encoder::long);
        out.optional(tracking.file_sequence_number, Encoder::long);
        out.long(match file.content {
            FileContent::Data => 0,
            FileContent::PositionDeletes => 1,
            FileContent::EqualityDeletes => 2,
        });
    }
    out.string(&file.file_path);
    // In capitals, as other writers do.
    out.string(match file.file_format {
        FileFormat::Parquet => "PARQUET",
        FileFormat::Avro => "AVRO",
        FileFormat::Orc => "ORC",
        FileFormat::Puffin => "PUFFIN",
    });
    if file.partition.len() != columns.len() {
        return Err(Error::invalid(format!(
            "the partition spec has {} fields, the file {} values",
            columns.len(),
            file.partition.len()
        )));
    }
    for (column, value) in columns.iter().zip(file.partition.iter()) {
        column.encode(value.as_ref(), out)?;
    }
    out.long(long(file.record_count, "record count")?);
    out.long(long(file.file_size_in_bytes, "file size")?);
    if version == 1 {
        out.long(BLOCK_SIZE);
    }
    for counts in [
        &file.column_sizes,
        &file.value_counts,
        &file.null_value_counts,
        &file.nan_value_counts,
    ] {
        encode_map(counts, out, |out, count| {
            out.long(long(*count, "count of a column")?);
            Ok(())
        })?;
    }
    for bounds in [&file.lower_bounds, &file.upper_bounds] {
        encode_map(bounds, out, |out, bound| {
            out.bytes(bound);
            Ok(())
        })?;
    }
    out.optional(file.key_metadata.as_deref(), Encoder::bytes);
    out.optional(file.split_offsets.as_deref(), |out, offsets| {
        out.array(offsets.iter(), |out, offset| out.long(*offset));
    });
    if version > 1 {
        out.optional(file.equality_ids.as_deref(), |out, ids| {
            out.array(ids.iter(), |out, id| out.long(i64::from(*id)));
        });
    }
    out.optional(file.sort_order_id, |out, id| out.long(i64::from(id)));
    let optional_long = |value: Option<u64>, what| value.map(|value| long(value, what)).transpose();
    if version > 2 {
        out.optional(optional_long(file.first_row_id, "first row id")?, Encoder::long);
    }
    if version > 1 {
        out.optional(file.referenced_data_file.as_deref(), Encoder::string);
    }
    if version > 2 {
        out.optional(optional_long(file.content_offset, "content offset")?, Encoder::long);
        out.optional(optional_long(file.content_size_in_bytes, "content size")?, Encoder::long);
    }
    Ok(())
}

/// A map from field ids; null where there is nothing in it.
fn encode_map<V>(map: &BTreeMap<i32, V>, out: &mut Encoder, mut value: impl FnMut(&mut Encoder, &V) -> Result<()>) -> Result<()> {
    if map.is_empty() {
        out.long(0);
        return Ok(());
    }
    out.long(1);
    out.length(map.len());
    for (id, v) in map {
        out.long(i64::from(*id));
        value(out, v)?;
    }
    out.long(0);
    Ok(())
}

/// A number that Avro's long holds.
pub(super) fn long(value: u64, what: &str) -> Result<i64> {
    i64::try_from(value).map_err(|_| Error::invalid(format!("{what} {value} has more than 63 bits")))
}
