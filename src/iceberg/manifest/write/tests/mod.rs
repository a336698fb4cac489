//! Manifests and manifest lists as they are written, read back by us and by the apache-avro crate.

mod lists;
mod manifests;
mod refusals;
mod round_trip;

use std::collections::HashMap;
use std::sync::Arc;

use apache_avro::types::Value;

use super::super::tests::table;
use super::super::{DataFile, FileContent, FileFormat, Manifest, ManifestContent, ManifestFile};
use super::{AvroLayout, ManifestWriter};
use crate::iceberg::spec::{Literal, TableMetadata};

const SNAPSHOT: i64 = 77;
const LOCATION: &str = "file:/t/metadata/m1.avro";

fn layout() -> AvroLayout {
    AvroLayout::deflate(*b"0123456789abcdef")
}

/// The table of the manifest tests, of another format version.
fn table_of(version: u8) -> TableMetadata {
    TableMetadata {
        format_version: version,
        ..table()
    }
}

fn writer(version: u8, spec_id: i32, content: ManifestContent) -> ManifestWriter {
    ManifestWriter::new(&table_of(version), spec_id, content, SNAPSHOT, layout()).unwrap()
}

/// A data file of 10 rows and 1000 bytes of an unpartitioned spec.
fn data_file(path: &str) -> DataFile {
    DataFile {
        record_count: 10,
        file_size_in_bytes: 1000,
        ..DataFile::new(FileContent::Data, path, FileFormat::Parquet, 0, Arc::from([]))
    }
}

/// The same in spec 1: id identity, name bucket.
fn partitioned(path: &str, id: Option<i64>, bucket: Option<i32>) -> DataFile {
    DataFile {
        spec_id: 1,
        partition: Arc::from([id.map(Literal::Long), bucket.map(Literal::Int)]),
        ..data_file(path)
    }
}

fn deletion_vector(path: &str, data_file_path: &str) -> DataFile {
    DataFile {
        content: FileContent::PositionDeletes,
        file_format: FileFormat::Puffin,
        referenced_data_file: Some(data_file_path.to_owned()),
        content_offset: Some(4),
        content_size_in_bytes: Some(44),
        ..data_file(path)
    }
}

/// The list's entry once the commit has its sequence number.
fn committed(listed: ManifestFile, sequence_number: i64) -> ManifestFile {
    ManifestFile {
        sequence_number,
        min_sequence_number: sequence_number,
        ..listed
    }
}

fn read(version: u8, bytes: &[u8], listed: &ManifestFile) -> Manifest {
    Manifest::parse_in_full(bytes, listed, &table_of(version)).unwrap()
}

/// What the apache-avro crate sees: rows as maps of field names, unions taken off, and the file's metadata.
fn oracle(bytes: &[u8]) -> (Vec<HashMap<String, Value>>, HashMap<String, String>) {
    fn plain(value: Value) -> Value {
        match value {
            Value::Union(_, inner) => plain(*inner),
            other => other,
        }
    }
    let reader = apache_avro::Reader::new(bytes).unwrap();
    let text = |(key, value): (&String, &Vec<u8>)| (key.clone(), String::from_utf8(value.clone()).unwrap());
    let metadata = reader.user_metadata().iter().map(text).collect();
    let row = |value| match value {
        Value::Record(fields) => fields.into_iter().map(|(name, value)| (name, plain(value))).collect(),
        other => panic!("{other:?}"),
    };
    (reader.map(|value| row(value.unwrap())).collect(), metadata)
}
