//! `manifests` and `all_manifests`: what manifest lists say.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::DataType;

use super::arrays::{binaries, bools, count, ints, lists, longs, small_count, structs, texts};
use super::table::{IcebergMetadataTable, Wanted};
use crate::error::{Error, Result};
use crate::iceberg::human::human;
use crate::iceberg::manifest::{FieldSummary, ManifestContent, ManifestFile};
use crate::iceberg::spec::{Literal, PartitionField, PrimitiveType, TableMetadata};

/// Manifests of one snapshot, or of each snapshot with its id.
pub(super) async fn manifests(table: &IcebergMetadataTable, all: bool, wanted: &Wanted) -> Result<Vec<RecordBatch>> {
    let snapshots = table.snapshots(all);
    let lists = table.manifest_lists(&snapshots).await?;
    let batches = snapshots.iter().zip(&lists).map(|(snapshot, list)| {
        wanted.batch(list.len(), |id, field| {
            column(id, field.data_type(), snapshot.snapshot_id, list, &table.table.metadata)
        })
    });
    batches.collect()
}

fn column(id: i32, data_type: &DataType, snapshot_id: i64, list: &[ManifestFile], metadata: &TableMetadata) -> Result<ArrayRef> {
    let content = |m: &ManifestFile| match m.content {
        ManifestContent::Data => 0,
        ManifestContent::Deletes => 1,
    };
    // Counts of the other kind of files are zero.
    let files = |of: ManifestContent, get: fn(&ManifestFile) -> Option<u64>| {
        ints(
            list.iter()
                .map(move |m| if m.content == of { get(m).map(small_count) } else { Some(0) }),
        )
    };
    Ok(match id {
        14 => ints(list.iter().map(|m| Some(content(m)))),
        1 => texts(list.iter().map(|m| Some(&m.location))),
        2 => longs(list.iter().map(|m| m.length.map(count))),
        3 => ints(list.iter().map(|m| m.partition_spec_id)),
        4 => longs(list.iter().map(|m| m.added_snapshot_id)),
        5 => files(ManifestContent::Data, |m| m.added_files_count),
        6 => files(ManifestContent::Data, |m| m.existing_files_count),
        7 => files(ManifestContent::Data, |m| m.deleted_files_count),
        15 => files(ManifestContent::Deletes, |m| m.added_files_count),
        16 => files(ManifestContent::Deletes, |m| m.existing_files_count),
        17 => files(ManifestContent::Deletes, |m| m.deleted_files_count),
        8 => summaries(data_type, list, metadata)?,
        18 => longs(list.iter().map(|_| Some(snapshot_id))),
        19 => binaries(list.iter().map(|m| m.key_metadata.as_deref())),
        other => return Err(Error::internal(format!("metadata column {other} is not known"))),
    })
}

fn summaries(data_type: &DataType, list: &[ManifestFile], metadata: &TableMetadata) -> Result<ArrayRef> {
    let DataType::List(element) = data_type else {
        return Err(Error::internal("partition summaries are no list"));
    };
    let mut lengths = Vec::with_capacity(list.len());
    let mut rows: Vec<&FieldSummary> = Vec::new();
    let mut texts_of: Vec<[Option<String>; 2]> = Vec::new();
    for manifest in list {
        let Some(fields) = &manifest.partitions else {
            lengths.push(None);
            continue;
        };
        lengths.push(Some(fields.len()));
        let spec = manifest.partition_spec_id.and_then(|id| metadata.spec_by_id(id));
        for (at, summary) in fields.iter().enumerate() {
            let field = spec.and_then(|spec| spec.fields.get(at));
            let bound = |bytes: Option<&[u8]>| text(field, bytes, metadata).map_err(|e| e.with("manifest", &manifest.location));
            texts_of.push([bound(summary.lower_bound.as_deref())?, bound(summary.upper_bound.as_deref())?]);
            rows.push(summary);
        }
    }
    let children = vec![
        bools(rows.iter().map(|s| Some(s.contains_null))),
        bools(rows.iter().map(|s| s.contains_nan)),
        texts(texts_of.iter().map(|[lower, _]| lower.as_deref())),
        texts(texts_of.iter().map(|[_, upper]| upper.as_deref())),
    ];
    lists(data_type, &lengths, structs(element.data_type(), children, rows.len())?)
}

/// The text of a bound; `None` where the type of the partition field is not known any more.
fn text(field: Option<&PartitionField>, bytes: Option<&[u8]>, metadata: &TableMetadata) -> Result<Option<String>> {
    let Some((field, primitive)) = field.and_then(|field| Some((field, partition_primitive(field, metadata)?))) else {
        return Ok(None);
    };
    if primitive == PrimitiveType::Unknown {
        return Ok(Some("null".to_owned()));
    }
    let value = bytes.map(|bytes| Literal::from_bytes(&primitive, bytes)).transpose()?;
    Ok(Some(human(&field.transform, &primitive, value.as_ref())))
}

/// The type of a partition field's values, also where its column has been dropped since.
fn partition_primitive(field: &PartitionField, metadata: &TableMetadata) -> Option<PrimitiveType> {
    let current = metadata.current_schema().ok().into_iter();
    let mut schemas = current.chain(metadata.schemas.iter().rev());
    let source = schemas.find_map(|schema| schema.field_by_id(field.source_id))?;
    field.transform.result_type(&source.field_type)
}
