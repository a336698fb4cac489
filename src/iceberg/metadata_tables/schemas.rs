//! Columns of the metadata tables, as Iceberg fields with the ids and documentation of Iceberg Java.

use std::collections::HashSet;
use std::sync::Arc;

use super::readable::ReadableColumn;
use super::table::Kind;
use crate::error::Result;
use crate::iceberg::partition_type;
use crate::iceberg::spec::{ListType, MapType, NestedField, PrimitiveType as P, Schema, StructType, TableMetadata, Type};

/// Id of `data_file` in `entries`.
pub(super) const DATA_FILE: i32 = 2;
/// Id of `partition` in the tables of files.
pub(super) const PARTITION: i32 = 102;
/// Id of `readable_metrics`.
pub(super) const READABLE_METRICS: i32 = 100_000;

fn field(id: i32, name: &str, required: bool, field_type: Type, doc: &str) -> Arc<NestedField> {
    Arc::new(NestedField {
        id,
        name: name.to_owned(),
        required,
        field_type,
        doc: (!doc.is_empty()).then(|| doc.to_owned()),
        initial_default: None,
        write_default: None,
    })
}

fn required(id: i32, name: &str, primitive: P) -> Arc<NestedField> {
    field(id, name, true, Type::Primitive(primitive), "")
}

fn optional(id: i32, name: &str, primitive: P) -> Arc<NestedField> {
    field(id, name, false, Type::Primitive(primitive), "")
}

fn map(key_id: i32, key: P, value_id: i32, value: P) -> Type {
    Type::Map(MapType {
        key: required(key_id, "key", key),
        value: required(value_id, "value", value),
    })
}

fn list(id: i32, element: Type) -> Type {
    Type::List(ListType {
        element: field(id, "element", true, element, ""),
    })
}

/// The columns of a metadata table of this table.
///
/// Errors: as [`partition_type`].
pub(super) fn schema(kind: Kind, metadata: &TableMetadata, readable: &[ReadableColumn]) -> Result<Schema> {
    let fields = match kind {
        Kind::Snapshots => vec![
            required(1, "committed_at", P::Timestamptz),
            required(2, "snapshot_id", P::Long),
            optional(3, "parent_id", P::Long),
            optional(4, "operation", P::String),
            optional(5, "manifest_list", P::String),
            field(6, "summary", false, map(7, P::String, 8, P::String), ""),
        ],
        Kind::History => vec![
            required(1, "made_current_at", P::Timestamptz),
            required(2, "snapshot_id", P::Long),
            optional(3, "parent_id", P::Long),
            required(4, "is_current_ancestor", P::Boolean),
        ],
        Kind::Refs => vec![
            required(1, "name", P::String),
            required(2, "type", P::String),
            required(3, "snapshot_id", P::Long),
            optional(4, "max_reference_age_in_ms", P::Long),
            optional(5, "min_snapshots_to_keep", P::Int),
            optional(6, "max_snapshot_age_in_ms", P::Long),
        ],
        Kind::MetadataLogEntries => vec![
            required(1, "timestamp", P::Timestamptz),
            required(2, "file", P::String),
            optional(3, "latest_snapshot_id", P::Long),
            optional(4, "latest_schema_id", P::Int),
            optional(5, "latest_sequence_number", P::Long),
        ],
        Kind::Properties => vec![required(1, "key", P::String), required(2, "value", P::String)],
        Kind::Manifests { all } => manifests(all),
        Kind::Files { .. } => with_metrics(files(&partition_type(metadata)?), readable),
        Kind::Entries { .. } => {
            let data_file = Type::Struct(StructType {
                fields: files(&partition_type(metadata)?),
            });
            let fields = vec![
                required(0, "status", P::Int),
                optional(1, "snapshot_id", P::Long),
                optional(3, "sequence_number", P::Long),
                optional(4, "file_sequence_number", P::Long),
                field(DATA_FILE, "data_file", true, data_file, ""),
            ];
            with_metrics(fields, readable)
        }
        Kind::Partitions => partitions(&partition_type(metadata)?),
    };
    Schema::new(0, StructType { fields }, Vec::new())
}

/// What old manifest lists may leave out (counts, the spec of a manifest that v1 metadata names itself)
/// is optional here.
fn manifests(all: bool) -> Vec<Arc<NestedField>> {
    let summary = Type::Struct(StructType {
        fields: vec![
            required(10, "contains_null", P::Boolean),
            optional(11, "contains_nan", P::Boolean),
            optional(12, "lower_bound", P::String),
            optional(13, "upper_bound", P::String),
        ],
    });
    let mut fields = vec![
        required(14, "content", P::Int),
        required(1, "path", P::String),
        optional(2, "length", P::Long),
        optional(3, "partition_spec_id", P::Int),
        optional(4, "added_snapshot_id", P::Long),
        optional(5, "added_data_files_count", P::Int),
        optional(6, "existing_data_files_count", P::Int),
        optional(7, "deleted_data_files_count", P::Int),
        optional(15, "added_delete_files_count", P::Int),
        optional(16, "existing_delete_files_count", P::Int),
        optional(17, "deleted_delete_files_count", P::Int),
        field(8, "partition_summaries", false, list(9, summary), ""),
    ];
    if all {
        fields.push(required(18, "reference_snapshot_id", P::Long));
        fields.push(optional(19, "key_metadata", P::Binary));
    }
    fields
}

fn partition_field(id: i32, partition: &StructType) -> Option<Arc<NestedField>> {
    // Not every reader takes a struct without fields, so there is none at all.
    let doc = "Partition data tuple, schema based on the partition spec";
    (!partition.fields.is_empty()).then(|| field(id, "partition", true, Type::Struct(partition.clone()), doc))
}

fn files(partition: &StructType) -> Vec<Arc<NestedField>> {
    let doc = |id, name, required, primitive, doc| field(id, name, required, Type::Primitive(primitive), doc);
    let counts = |id, name, key, value, doc| field(id, name, false, map(key, P::Int, value, P::Long), doc);
    let bounds = |id, name, key, value, doc| field(id, name, false, map(key, P::Int, value, P::Binary), doc);
    let mut fields = vec![
        doc(
            134,
            "content",
            false,
            P::Int,
            "Contents of the file: 0=data, 1=position deletes, 2=equality deletes",
        ),
        doc(100, "file_path", true, P::String, "Location URI with FS scheme"),
        doc(101, "file_format", true, P::String, "File format name: avro, orc, or parquet"),
        doc(141, "spec_id", false, P::Int, "Partition spec ID"),
    ];
    fields.extend(partition_field(PARTITION, partition));
    fields.extend([
        doc(103, "record_count", true, P::Long, "Number of records in the file"),
        doc(104, "file_size_in_bytes", true, P::Long, "Total file size in bytes"),
        counts(108, "column_sizes", 117, 118, "Map of column id to total size on disk"),
        counts(
            109,
            "value_counts",
            119,
            120,
            "Map of column id to total count, including null and NaN",
        ),
        counts(110, "null_value_counts", 121, 122, "Map of column id to null value count"),
        counts(
            137,
            "nan_value_counts",
            138,
            139,
            "Map of column id to number of NaN values in the column",
        ),
        bounds(125, "lower_bounds", 126, 127, "Map of column id to lower bound"),
        bounds(128, "upper_bounds", 129, 130, "Map of column id to upper bound"),
        doc(131, "key_metadata", false, P::Binary, "Encryption key metadata blob"),
        field(
            132,
            "split_offsets",
            false,
            list(133, Type::Primitive(P::Long)),
            "Splittable offsets",
        ),
        field(
            135,
            "equality_ids",
            false,
            list(136, Type::Primitive(P::Int)),
            "Equality comparison field IDs",
        ),
        doc(140, "sort_order_id", false, P::Int, "Sort order ID"),
        doc(
            142,
            "first_row_id",
            false,
            P::Long,
            "The first row ID assigned to the first row in the data file",
        ),
        doc(
            143,
            "referenced_data_file",
            false,
            P::String,
            "Fully qualified location (URI with FS scheme) of a data file that all deletes reference",
        ),
        doc(
            144,
            "content_offset",
            false,
            P::Long,
            "The offset in the file where the content starts",
        ),
        doc(
            145,
            "content_size_in_bytes",
            false,
            P::Long,
            "The length of referenced content stored in the file",
        ),
    ]);
    fields
}

/// Adds `readable_metrics`; its fields get ids that nothing else has.
fn with_metrics(mut fields: Vec<Arc<NestedField>>, readable: &[ReadableColumn]) -> Vec<Arc<NestedField>> {
    let mut next = READABLE_METRICS;
    let mut id = || {
        next += 1;
        next
    };
    let mut names = HashSet::new();
    let columns = readable.iter().filter(|column| names.insert(column.name.as_str())).map(|column| {
        let bound = Type::Primitive(column.primitive.clone());
        let metrics = StructType {
            fields: vec![
                field(id(), "column_size", false, Type::Primitive(P::Long), "Total size on disk"),
                field(
                    id(),
                    "value_count",
                    false,
                    Type::Primitive(P::Long),
                    "Total count, including null and NaN",
                ),
                field(id(), "null_value_count", false, Type::Primitive(P::Long), "Null value count"),
                field(id(), "nan_value_count", false, Type::Primitive(P::Long), "NaN value count"),
                field(id(), "lower_bound", false, bound.clone(), "Lower bound"),
                field(id(), "upper_bound", false, bound, "Upper bound"),
            ],
        };
        let doc = format!("Metrics for column {}", column.name);
        field(id(), &column.name, false, Type::Struct(metrics), &doc)
    });
    let metrics = Type::Struct(StructType { fields: columns.collect() });
    if !readable.is_empty() {
        fields.push(field(
            READABLE_METRICS,
            "readable_metrics",
            false,
            metrics,
            "Column metrics in readable form",
        ));
    }
    fields
}

/// Iceberg's columns, then the counts that tell deletion vectors from position delete files.
fn partitions(partition: &StructType) -> Vec<Arc<NestedField>> {
    let doc = |id, name, required, primitive, doc| field(id, name, required, Type::Primitive(primitive), doc);
    let mut fields = Vec::new();
    if let Some(partition) = partition_field(1, partition) {
        fields.push(partition);
        fields.push(required(4, "spec_id", P::Int));
    }
    fields.extend([
        doc(2, "record_count", true, P::Long, "Count of records in data files"),
        doc(3, "file_count", true, P::Int, "Count of data files"),
        doc(
            11,
            "total_data_file_size_in_bytes",
            true,
            P::Long,
            "Total size in bytes of data files",
        ),
        doc(
            5,
            "position_delete_record_count",
            false,
            P::Long,
            "Count of records in position delete files and deletion vectors; null where both are there, since a vector replaces the files",
        ),
        doc(
            6,
            "position_delete_file_count",
            true,
            P::Int,
            "Count of position delete files and deletion vectors",
        ),
        doc(
            7,
            "equality_delete_record_count",
            true,
            P::Long,
            "Count of records in equality delete files",
        ),
        doc(8, "equality_delete_file_count", true, P::Int, "Count of equality delete files"),
        doc(
            9,
            "last_updated_at",
            false,
            P::Timestamptz,
            "Commit time of snapshot that last updated this partition",
        ),
        doc(
            10,
            "last_updated_snapshot_id",
            false,
            P::Long,
            "Id of snapshot that last updated this partition",
        ),
        doc(
            101,
            "position_delete_record_count_without_dvs",
            true,
            P::Long,
            "Count of records in position delete files",
        ),
        doc(
            102,
            "position_delete_file_count_without_dvs",
            true,
            P::Int,
            "Count of position delete files",
        ),
        doc(103, "dv_record_count", true, P::Long, "Count of positions in deletion vectors"),
        doc(104, "dv_count", true, P::Int, "Count of deletion vectors"),
    ]);
    fields
}
