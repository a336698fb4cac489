//! Which tables there are and what columns they have; rows are tested end to end, over tables.

use serde_json::json;

use super::schemas::schema;
use super::table::Kind;
use crate::iceberg::metadata_tables::readable::readable_columns;
use crate::iceberg::spec::{Schema, TableMetadata};

fn metadata(spec: &serde_json::Value) -> TableMetadata {
    let value = json!({
        "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
        "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 7,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "z", "required": true, "type": "long"},
            {"id": 2, "name": "s", "required": false, "type": {"type": "struct", "fields": [
                {"id": 3, "name": "x", "required": false, "type": "decimal(9,2)"}]}},
            {"id": 4, "name": "l", "required": false, "type": {"type": "list", "element-id": 5, "element": "string", "element-required": false}}]}],
        "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": spec}], "default-spec-id": 0,
        "last-partition-id": 1000, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0, "snapshots": []
    });
    TableMetadata::from_bytes(value.to_string().as_bytes(), "m.json").unwrap()
}

fn names(schema: &Schema) -> Vec<&str> {
    schema.fields().iter().map(|f| f.name.as_str()).collect()
}

#[test]
fn files_have_the_columns_of_iceberg_java() {
    let metadata = metadata(&json!([{"field-id": 1000, "source-id": 1, "name": "z_bucket", "transform": "bucket[4]"}]));
    let readable = readable_columns(metadata.current_schema().unwrap());
    let of = |kind| schema(kind, &metadata, &readable).unwrap();
    let files = of(Kind::Files { all: false, content: None });
    assert_eq!(
        names(&files),
        [
            "content",
            "file_path",
            "file_format",
            "spec_id",
            "partition",
            "record_count",
            "file_size_in_bytes",
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
            "key_metadata",
            "split_offsets",
            "equality_ids",
            "sort_order_id",
            "first_row_id",
            "referenced_data_file",
            "content_offset",
            "content_size_in_bytes",
            "readable_metrics"
        ]
    );
    let metrics = files.fields().last().unwrap().field_type.as_struct().unwrap();
    let columns: Vec<&str> = metrics.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(columns, ["l.element", "s.x", "z"]);
    assert_eq!(
        names(&of(Kind::Entries { all: true })),
        [
            "status",
            "snapshot_id",
            "sequence_number",
            "file_sequence_number",
            "data_file",
            "readable_metrics"
        ]
    );
    assert_eq!(names(&of(Kind::Partitions))[..3], ["partition", "spec_id", "record_count"]);
}

#[test]
fn an_unpartitioned_table_has_no_partition_column() {
    let metadata = metadata(&json!([]));
    let of = |kind| schema(kind, &metadata, &[]).unwrap();
    assert_eq!(
        names(&of(Kind::Files { all: false, content: None }))[3..5],
        ["spec_id", "record_count"]
    );
    assert_eq!(
        names(&of(Kind::Partitions)),
        [
            "record_count",
            "file_count",
            "total_data_file_size_in_bytes",
            "position_delete_record_count",
            "position_delete_file_count",
            "equality_delete_record_count",
            "equality_delete_file_count",
            "last_updated_at",
            "last_updated_snapshot_id",
            "position_delete_record_count_without_dvs",
            "position_delete_file_count_without_dvs",
            "dv_record_count",
            "dv_count"
        ]
    );
}
