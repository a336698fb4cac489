//! Table metadata files of real writers, from the case collection: single files with what they
//! are meant to be (`format/expected.json`), and every metadata file of every Iceberg table.

#![allow(clippy::unwrap_used, reason = "a test file: a failure is a panic")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use sandur::error::ErrorKind;
use sandur::iceberg::spec::{NAME_MAPPING_PROPERTY, PartitionSpec, Schema, TableMetadata};
use serde_json::Value;

use crate::support::cases;

fn read(path: &Path) -> (Vec<u8>, sandur::error::Result<TableMetadata>) {
    let bytes = std::fs::read(path).unwrap();
    let parsed = TableMetadata::from_bytes(&bytes, &path.display().to_string());
    (bytes, parsed)
}

/// The JSON of a file by way of another reader than the one under test.
fn plain_json(bytes: &[u8]) -> Value {
    let mut text = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).unwrap();
    } else {
        text.extend_from_slice(bytes);
    }
    serde_json::from_slice(&text).unwrap()
}

/// Whether the file names a current snapshot that it does not list.
fn current_snapshot_dangles(bytes: &[u8]) -> bool {
    let json = plain_json(bytes);
    let current = json["current-snapshot-id"].as_i64().filter(|id| *id != -1);
    let listed = json["snapshots"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|s| s["snapshot-id"].as_i64() == current);
    current.is_some() && !listed
}

fn assert_lossless(bytes: &[u8], table: &TableMetadata, name: &str) {
    let written: Value = serde_json::from_slice(&table.to_json_bytes()).unwrap();
    assert_eq!(written, plain_json(bytes), "{name}");
}

/// Whether the table's name mapping, if it has one, is the list that it has to be; the first
/// metadata of one table holds an object instead.
fn mapping_is_a_list(table: &TableMetadata) -> bool {
    table
        .properties
        .get(NAME_MAPPING_PROPERTY)
        .is_none_or(|text| text.trim_start().starts_with('['))
}

/// Metadata files below `dir`, at any depth.
pub(crate) fn metadata_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            metadata_files(&path, found);
        } else if path.file_name().unwrap().to_string_lossy().contains(".metadata.json") {
            found.push(path);
        }
    }
}

#[test]
fn single_files_are_what_they_are_meant_to_be() {
    let Some(cases) = cases::dir_or_say() else { return };
    let expected: Value = serde_json::from_slice(&std::fs::read(cases.join("format/expected.json")).unwrap()).unwrap();
    let (mut valid, mut refused, mut wrong) = (0, 0, Vec::new());
    for (name, case) in expected.as_object().unwrap() {
        if !name.starts_with("metadata-json/") {
            continue;
        }
        let (bytes, parsed) = read(&cases.join("format").join(name));
        let meant = case["meant"].as_str().unwrap();
        match (meant == "valid", parsed) {
            (true, Ok(table)) => {
                valid += 1;
                // A file that does not list its current snapshot parses, but never reads as an empty table.
                assert_eq!(table.current_snapshot().is_err(), current_snapshot_dangles(&bytes), "{name}");
                assert_lossless(&bytes, &table, name);
                // The counts are those of another reader, which did not accept every valid file.
                for (key, count) in [
                    ("format_version", u64::from(table.format_version)),
                    ("schemas", table.schemas.len() as u64),
                    ("snapshots", table.snapshots.len() as u64),
                    ("partition_specs", table.partition_specs.len() as u64),
                ] {
                    if let Some(other) = case[key].as_u64().filter(|other| *other != count) {
                        wrong.push(format!("{name}: {key} is {count}, not {other}"));
                    }
                }
            }
            (true, Err(error)) => wrong.push(format!("{name} is valid, but: {error}")),
            (false, Ok(_)) => wrong.push(format!("{name} was accepted, but {meant}")),
            (false, Err(_)) => refused += 1,
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(valid >= 40 && refused >= 13, "{valid} valid and {refused} refused files");
}

#[test]
fn metadata_of_views_is_refused_as_such() {
    let Some(cases) = cases::dir_or_say() else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(cases.join("format/metadata-json/iceberg-java-view")).unwrap() {
        let path = entry.unwrap().path();
        let error = read(&path).1.err().unwrap_or_else(|| panic!("{} was accepted", path.display()));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.message().contains("view"), "{error}");
        files += 1;
    }
    assert_eq!(files, 6);
}

#[test]
fn metadata_of_every_table_reads_and_is_written_back_without_loss() {
    let Some(cases) = cases::dir_or_say() else { return };
    let mut files = Vec::new();
    metadata_files(&cases.join("iceberg"), &mut files);
    let (mut tables, mut stubs, mut wrong) = (0, Vec::new(), Vec::new());
    for path in &files {
        let (bytes, parsed) = read(path);
        match parsed {
            Ok(table) => {
                tables += 1;
                assert_lossless(&bytes, &table, &path.display().to_string());
                table.current_schema().unwrap();
                assert_eq!(table.name_mapping().is_ok(), mapping_is_a_list(&table), "{}", path.display());
                for schema in &table.schemas {
                    let written = schema.to_json().unwrap();
                    assert_eq!(&Schema::from_json(&written).unwrap(), schema.as_ref(), "{}", path.display());
                }
                for spec in &table.partition_specs {
                    let written = spec.to_json();
                    assert_eq!(&PartitionSpec::from_json(&written).unwrap(), spec.as_ref(), "{}", path.display());
                }
            }
            // A file that is no table metadata at all may lie among the others.
            Err(_) if plain_json(&bytes).get("format-version").is_none() => stubs.push(path.clone()),
            Err(error) => wrong.push(error.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tables >= 600, "{tables} tables");
    assert!(
        stubs.len() == 1 && stubs[0].ends_with("duckdb_big_query/table/metadata/v0.metadata.json"),
        "{stubs:?}"
    );
}
