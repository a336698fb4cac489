//! Rows of real tables, read by the engine, written into a new table of the same columns, partition spec and
//! sort order, and read again.

use std::collections::BTreeMap;
use std::path::Path;

use sandur::error::ErrorKind;
use sandur::iceberg::SummaryBuilder;
use sandur::iceberg::manifest::{AvroLayout, DataFile, ManifestContent, ManifestListWriter, ManifestWriter};
use sandur::iceberg::spec::{
    MAIN_BRANCH, MetadataBuilder, MetadataCompression, NewTable, Snapshot, SnapshotManifests, TableMetadata, UnboundPartitionField,
};
use std::sync::Arc;

use super::{own_cases, write};
use crate::format_write::Files;
use crate::support::read::{Reader, Target, block_on};

const NOW: i64 = 1_700_000_000_000;

/// An empty table like another.
fn table_like(other: &TableMetadata, location: &Path) -> TableMetadata {
    let spec = other.spec_by_id(other.default_spec_id).unwrap();
    let schema = other.current_schema().unwrap();
    let fields = spec.fields.iter().filter(|field| schema.field_by_id(field.source_id).is_some());
    let fields = fields.map(|field| UnboundPartitionField {
        source_id: field.source_id,
        transform: field.transform.clone(),
        name: field.name.clone(),
    });
    empty_table(other, location, fields.collect(), BTreeMap::new())
}

/// An empty table of the columns and sort order of another.
pub(super) fn empty_table(
    other: &TableMetadata,
    location: &Path,
    partition_fields: Vec<UnboundPartitionField>,
    properties: BTreeMap<String, String>,
) -> TableMetadata {
    let schema = other.current_schema().unwrap();
    let order = other.sort_orders.iter().find(|order| order.order_id == other.default_sort_order_id);
    let new = NewTable {
        format_version: other.format_version,
        uuid: uuid::uuid!("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
        location: location.to_str().unwrap().to_owned(),
        schema: schema.root().clone(),
        identifier_field_ids: Vec::new(),
        partition_fields,
        sort_fields: order.map(|order| order.fields.clone()).unwrap_or_default(),
        properties,
    };
    MetadataBuilder::new_table(new, NOW).unwrap().build().unwrap()
}

/// Adds files to an empty table; its metadata file.
pub(super) fn commit(metadata: TableMetadata, files: &[DataFile]) -> String {
    let layout = AvroLayout::deflate(*b"0123456789abcdef");
    let folder = format!("{}/metadata", metadata.location);
    std::fs::create_dir_all(&folder).unwrap();
    let mut manifest = ManifestWriter::new(&metadata, metadata.default_spec_id, ManifestContent::Data, 1, layout).unwrap();
    let mut summary = SummaryBuilder::new(&metadata).unwrap();
    for file in files {
        manifest.add(file).unwrap();
        summary.added(file).unwrap();
    }
    let (bytes, listed) = manifest.finish(format!("{folder}/m0.avro")).unwrap();
    std::fs::write(&listed.location, bytes).unwrap();
    let sequence_number = i64::from(metadata.format_version > 1);
    let mut list = ManifestListWriter::new(metadata.format_version, 1, None, sequence_number, metadata.next_row_id, layout).unwrap();
    list.add(&listed).unwrap();
    let list = list.finish().unwrap();
    let list_file = format!("{folder}/snap-1.avro");
    std::fs::write(&list_file, &list.bytes).unwrap();
    let summary = summary.build("append", None).unwrap();
    let mut builder = MetadataBuilder::from_base(Arc::new(metadata), None, NOW);
    let snapshot = Snapshot {
        snapshot_id: 1,
        parent_snapshot_id: None,
        sequence_number,
        timestamp_ms: builder.timestamp_ms(),
        manifests: SnapshotManifests::List(list_file),
        summary,
        schema_id: Some(builder.table().current_schema_id),
        first_row_id: builder.table().next_row_id,
        added_rows: list.assigned_rows,
        key_id: None,
    };
    builder.commit_snapshot(snapshot, MAIN_BRANCH).unwrap();
    let file = format!("{folder}/v1.metadata.json");
    std::fs::write(&file, builder.build().unwrap().to_file_bytes(MetadataCompression::None).unwrap()).unwrap();
    file
}

#[test]
fn rows_of_real_tables_come_back() {
    let (mut tables, mut refused) = (0, Vec::new());
    for case in own_cases().into_iter().filter(|case| case.status() == "rows") {
        let name = &case.name;
        let Some(files) = Files::of(&case) else { continue };
        let dir = tempfile::tempdir().unwrap();
        let metadata = table_like(&files.metadata, dir.path());
        let reader = Reader::open(&case).unwrap();
        let batches = reader.batches("SELECT * FROM t").unwrap_or_else(|e| panic!("{name}: {e}"));
        let written = match block_on(write(&metadata, &batches)) {
            Ok(written) => written,
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                refused.push(format!("{name}: {e}"));
                continue;
            }
            Err(e) => panic!("{name}: {e}"),
        };
        if written.is_empty() {
            continue;
        }
        let target = Target {
            location: commit(metadata, &written),
            path_map: Vec::new(),
        };
        let read = Reader::open(target)
            .unwrap()
            .query("SELECT * FROM t")
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        if let Some(difference) = case.difference(&read) {
            panic!("{name}: {difference}");
        }
        tables += 1;
    }
    println!("{tables} tables came back, refused: {refused:#?}");
    assert!(tables >= 40, "{tables} tables");
}
