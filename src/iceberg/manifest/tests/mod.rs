//! Tests of manifest lists and manifests written by the apache-avro crate.

mod inheritance;
mod list;
mod partitions;
mod random;
pub(super) mod writer;

use super::{Manifest, ManifestContent, ManifestFile};
use crate::error::{Error, ErrorKind};
use crate::iceberg::spec::TableMetadata;

/// A v3 table with columns 1 id long, 2 name string, 3 day date, 4 hash fixed(3), 5 price
/// decimal(9,2), and specs 0 without fields, 1 identity(id) 1000 and bucket[4](name) 1001,
/// 2 identity(hash) 1002, 3 day(day) 1003 and identity(price) 1004, 4 identity of a dropped
/// column 1005.
pub(super) fn table() -> TableMetadata {
    let json = r#"{
        "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:/t",
        "last-sequence-number": 9, "last-updated-ms": 1, "last-column-id": 5, "next-row-id": 0,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": false, "type": "long"},
            {"id": 2, "name": "name", "required": false, "type": "string"},
            {"id": 3, "name": "day", "required": false, "type": "date"},
            {"id": 4, "name": "hash", "required": false, "type": "fixed[3]"},
            {"id": 5, "name": "price", "required": false, "type": "decimal(9,2)"}]}],
        "default-spec-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {"spec-id": 1, "fields": [
                {"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"},
                {"source-id": 2, "field-id": 1001, "name": "name_bucket", "transform": "bucket[4]"}]},
            {"spec-id": 2, "fields": [{"source-id": 4, "field-id": 1002, "name": "hash", "transform": "identity"}]},
            {"spec-id": 3, "fields": [
                {"source-id": 3, "field-id": 1003, "name": "day_day", "transform": "day"},
                {"source-id": 5, "field-id": 1004, "name": "price", "transform": "identity"}]},
            {"spec-id": 4, "fields": [{"source-id": 99, "field-id": 1005, "name": "gone", "transform": "identity"}]}],
        "last-partition-id": 1005, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}]
    }"#;
    TableMetadata::from_bytes(json.as_bytes(), "test").unwrap()
}

/// A list entry of a data manifest of spec 0, added by snapshot 77 with sequence number 5.
pub(super) fn listed() -> ManifestFile {
    ManifestFile {
        partition_spec_id: Some(0),
        sequence_number: 5,
        min_sequence_number: 5,
        added_snapshot_id: Some(77),
        ..ManifestFile::bare("file:/t/metadata/m0.avro")
    }
}

pub(super) fn listed_deletes() -> ManifestFile {
    ManifestFile {
        content: ManifestContent::Deletes,
        ..listed()
    }
}

pub(super) fn parse(bytes: &[u8], listed: &ManifestFile) -> Manifest {
    Manifest::parse(bytes, listed, &table()).unwrap()
}

/// The error of a manifest that must not be read, which names the manifest.
pub(super) fn refused(bytes: &[u8], listed: &ManifestFile) -> Error {
    let error = Manifest::parse(bytes, listed, &table()).unwrap_err();
    assert!(error.to_string().contains("file:/t/metadata/m0.avro"), "{error}");
    error
}

pub(super) fn assert_corrupt(bytes: &[u8], listed: &ManifestFile, message: &str) {
    let error = refused(bytes, listed);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}
