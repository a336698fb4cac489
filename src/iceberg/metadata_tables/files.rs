//! `files`, `entries` and their kin: what manifests say of each file.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field};

use super::arrays::{binaries, count, ints, lists, literals, longs, maps, structs, texts};
use super::read::flatten;
use super::readable::{ReadableColumn, readable_metrics};
use super::schemas::{DATA_FILE, PARTITION, READABLE_METRICS};
use super::table::{IcebergMetadataTable, Wanted};
use crate::error::{Error, Result};
use crate::iceberg::manifest::{Counts, EntryRef, EntryStatus, FileContent, Manifest, ManifestContent};
use crate::iceberg::partition_type;
use crate::iceberg::partition_type::positions;
use crate::iceberg::spec::{Literal, StructType, TableMetadata, Type};

/// Rows of a batch.
const BATCH: usize = 4096;

/// Live files of one or all snapshots; of all, a file is listed as often as manifests name it.
pub(super) async fn files(
    table: &IcebergMetadataTable,
    all: bool,
    content: Option<ManifestContent>,
    wanted: &Wanted,
) -> Result<Vec<RecordBatch>> {
    let mut manifests = table.distinct_manifests(all).await?;
    manifests.retain(|m| content.is_none_or(|content| m.content == content) && m.may_have_live_files());
    let (wanted, readable) = (wanted.clone(), Arc::clone(&table.readable));
    let batches = table.each_manifest(manifests, move |manifest, metadata| {
        let live: Vec<_> = manifest.live().collect();
        batches(&live, manifest, metadata, &readable, &wanted)
    });
    Ok(flatten(batches.await?))
}

/// Entries of manifests of one or all snapshots, those of deleted files included.
pub(super) async fn entries(table: &IcebergMetadataTable, all: bool, wanted: &Wanted) -> Result<Vec<RecordBatch>> {
    let manifests = table.distinct_manifests(all).await?;
    let (wanted, readable) = (wanted.clone(), Arc::clone(&table.readable));
    let batches = table.each_manifest(manifests, move |manifest, metadata| {
        let all: Vec<_> = manifest.entries().collect();
        batches(&all, manifest, metadata, &readable, &wanted)
    });
    Ok(flatten(batches.await?))
}

fn batches(
    entries: &[EntryRef<'_>],
    manifest: &Manifest,
    metadata: &TableMetadata,
    readable: &[ReadableColumn],
    wanted: &Wanted,
) -> Result<Vec<RecordBatch>> {
    let spec = metadata
        .spec_by_id(manifest.spec_id())
        .ok_or_else(|| Error::corrupt(format!("the table has no partition spec {}", manifest.spec_id())))?;
    let partition = partition_type(metadata)?;
    let rows = Rows {
        positions: positions(&partition, spec),
        partition,
        readable,
    };
    let chunks = entries.chunks(BATCH);
    chunks
        .map(|chunk| wanted.batch(chunk.len(), |id, field| rows.column(id, field, chunk)))
        .collect()
}

/// What the columns of one manifest's entries are made with.
struct Rows<'a> {
    partition: StructType,
    /// Of each field of `partition` in the manifest's partition values.
    positions: Vec<Option<usize>>,
    readable: &'a [ReadableColumn],
}

impl Rows<'_> {
    /// A top-level column.
    fn column(&self, id: i32, field: &Field, entries: &[EntryRef<'_>]) -> Result<ArrayRef> {
        let status = |status: EntryStatus| match status {
            EntryStatus::Existing => 0,
            EntryStatus::Added => 1,
            EntryStatus::Deleted => 2,
        };
        Ok(match id {
            0 => ints(entries.iter().map(|e| Some(status(e.status())))),
            1 => longs(entries.iter().map(EntryRef::snapshot_id)),
            3 => longs(entries.iter().map(|e| Some(e.sequence_number()))),
            4 => longs(entries.iter().map(EntryRef::file_sequence_number)),
            DATA_FILE => self.data_file(field.data_type(), entries)?,
            READABLE_METRICS => readable_metrics(field.data_type(), self.readable, entries)?,
            _ => self.of_file(id, field.data_type(), entries)?,
        })
    }

    fn data_file(&self, data_type: &DataType, entries: &[EntryRef<'_>]) -> Result<ArrayRef> {
        let DataType::Struct(fields) = data_type else {
            return Err(Error::internal("data_file is no struct"));
        };
        let children = fields
            .iter()
            .map(|field| self.of_file(file_field(field.name())?, field.data_type(), entries));
        structs(data_type, children.collect::<Result<_>>()?, entries.len())
    }

    /// A column of a data file.
    fn of_file(&self, id: i32, data_type: &DataType, entries: &[EntryRef<'_>]) -> Result<ArrayRef> {
        let content = |content: FileContent| match content {
            FileContent::Data => 0,
            FileContent::PositionDeletes => 1,
            FileContent::EqualityDeletes => 2,
        };
        let rows = || entries.iter();
        Ok(match id {
            134 => ints(rows().map(|e| Some(content(e.content())))),
            100 => texts(rows().map(|e| Some(e.file_path()))),
            101 => texts(rows().map(|e| Some(e.file_format().as_str().to_ascii_uppercase()))),
            141 => ints(rows().map(|e| Some(e.spec_id()))),
            PARTITION => self.partition_column(data_type, entries)?,
            103 => longs(rows().map(|e| Some(count(e.record_count())))),
            104 => longs(rows().map(|e| Some(count(e.file_size_in_bytes())))),
            108 => counts(data_type, rows().map(EntryRef::column_sizes))?,
            109 => counts(data_type, rows().map(EntryRef::value_counts))?,
            110 => counts(data_type, rows().map(EntryRef::null_value_counts))?,
            137 => counts(data_type, rows().map(EntryRef::nan_value_counts))?,
            125 => bounds(data_type, rows().map(|e| e.lower_bounds().collect()))?,
            128 => bounds(data_type, rows().map(|e| e.upper_bounds().collect()))?,
            131 => binaries(rows().map(EntryRef::key_metadata)),
            132 => {
                let lengths: Vec<_> = rows().map(|e| e.split_offsets().map(<[i64]>::len)).collect();
                let items = rows().flat_map(|e| e.split_offsets().unwrap_or_default());
                lists(data_type, &lengths, longs(items.copied().map(Some)))?
            }
            135 => {
                let lengths: Vec<_> = rows().map(|e| e.equality_ids().map(<[i32]>::len)).collect();
                let items = rows().flat_map(|e| e.equality_ids().unwrap_or_default());
                lists(data_type, &lengths, ints(items.copied().map(Some)))?
            }
            140 => ints(rows().map(EntryRef::sort_order_id)),
            142 => longs(rows().map(|e| e.first_row_id().map(count))),
            143 => texts(rows().map(EntryRef::referenced_data_file)),
            144 => longs(rows().map(|e| e.content_offset().map(count))),
            145 => longs(rows().map(|e| e.content_size_in_bytes().map(count))),
            other => return Err(Error::internal(format!("metadata column {other} is not known"))),
        })
    }

    fn partition_column(&self, data_type: &DataType, entries: &[EntryRef<'_>]) -> Result<ArrayRef> {
        let children = self.partition.fields.iter().zip(&self.positions).map(|(field, position)| {
            let Type::Primitive(primitive) = &field.field_type else {
                return Err(Error::internal("a partition field is not primitive"));
            };
            let value = |e: &EntryRef<'_>| -> Option<Literal> { position.and_then(|at| e.partition().get(at).cloned()).flatten() };
            let values: Vec<_> = entries.iter().map(value).collect();
            literals(&values, primitive).map_err(|e| e.with("partition_field", &field.name))
        });
        structs(data_type, children.collect::<Result<_>>()?, entries.len())
    }
}

/// The id of a field of `data_file`.
fn file_field(name: &str) -> Result<i32> {
    const FIELDS: &[(&str, i32)] = &[
        ("content", 134),
        ("file_path", 100),
        ("file_format", 101),
        ("spec_id", 141),
        ("partition", PARTITION),
        ("record_count", 103),
        ("file_size_in_bytes", 104),
        ("column_sizes", 108),
        ("value_counts", 109),
        ("null_value_counts", 110),
        ("nan_value_counts", 137),
        ("lower_bounds", 125),
        ("upper_bounds", 128),
        ("key_metadata", 131),
        ("split_offsets", 132),
        ("equality_ids", 135),
        ("sort_order_id", 140),
        ("first_row_id", 142),
        ("referenced_data_file", 143),
        ("content_offset", 144),
        ("content_size_in_bytes", 145),
    ];
    let found = FIELDS.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, id)| *id)
        .ok_or_else(|| Error::internal(format!("data_file has no field {name}")))
}

/// Counts by field id; null where a file tells none.
fn counts<'a>(data_type: &DataType, rows: impl Iterator<Item = Counts<'a>>) -> Result<ArrayRef> {
    let pairs: Vec<Vec<(i32, u64)>> = rows.map(|counts| counts.iter().collect()).collect();
    let lengths: Vec<_> = pairs.iter().map(|pairs| (!pairs.is_empty()).then_some(pairs.len())).collect();
    let keys = ints(pairs.iter().flatten().map(|(id, _)| Some(*id)));
    let values = longs(pairs.iter().flatten().map(|(_, value)| Some(count(*value))));
    maps(data_type, &lengths, keys, values)
}

/// Bounds by field id; null where a file tells none.
fn bounds<'a>(data_type: &DataType, rows: impl Iterator<Item = Vec<(i32, &'a [u8])>>) -> Result<ArrayRef> {
    let pairs: Vec<Vec<(i32, &[u8])>> = rows.collect();
    let lengths: Vec<_> = pairs.iter().map(|pairs| (!pairs.is_empty()).then_some(pairs.len())).collect();
    let keys = ints(pairs.iter().flatten().map(|(id, _)| Some(*id)));
    let values = binaries(pairs.iter().flatten().map(|(_, value)| Some(*value)));
    maps(data_type, &lengths, keys, values)
}
