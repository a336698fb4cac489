//! Puffin files that other implementations wrote: group `puffin` of the case collection's
//! `format/expected.json`, and every Puffin file of its Iceberg tables.

use std::fs;

use sandur::bitmap::deletion_vector;
use sandur::iceberg::puffin::{DELETION_VECTOR_V1, Footer, FooterRead, decompress, parse_footer};
use serde_json::Value;

use crate::format_bitmap::{check_positions, check_set, format_cases, table_files};

fn footer(name: &str, bytes: &[u8]) -> Footer {
    match parse_footer(bytes, bytes.len() as u64) {
        Ok(FooterRead::Footer(footer)) => footer,
        other => panic!("{name}: {other:?}"),
    }
}

fn check_puffin(name: &str, bytes: &[u8], entry: &Value) {
    let footer = footer(name, bytes);
    let properties = entry["properties"].as_object().cloned().unwrap_or_default();
    assert_eq!(
        serde_json::to_value(&footer.properties).unwrap(),
        Value::Object(properties),
        "{name}"
    );
    let blobs = entry["blobs"].as_array().unwrap();
    assert_eq!(footer.blobs.len(), blobs.len(), "{name}");
    for (blob, expected) in footer.blobs.iter().zip(blobs) {
        let mut listed = expected.clone();
        let decoded = listed.as_object_mut().unwrap().remove("decoded");
        assert_eq!(serde_json::to_value(blob).unwrap(), listed, "{name}");
        let stored = &bytes[blob.offset as usize..(blob.offset + blob.length) as usize];
        let content = decompress(blob, stored).unwrap();
        if let Some(decoded) = decoded {
            assert_eq!(blob.blob_type, DELETION_VECTOR_V1, "{name}");
            let set = deletion_vector::decode_blob(&content, blob.properties["cardinality"].parse().ok()).unwrap();
            check_positions(name, &set, &decoded);
        }
    }
}

#[test]
fn files_of_other_implementations_read_as_listed() {
    for (name, bytes, entry) in format_cases("puffin") {
        if entry["kind"] == "puffin" {
            check_puffin(&name, &bytes, &entry);
        } else {
            check_set(&name, &bytes, &entry);
        }
    }
}

#[test]
fn compressed_blobs_hold_what_the_uncompressed_ones_hold() {
    // The same two blobs, plain in one file and compressed in the other (test data of the Java library).
    let content = |part: &str| -> Vec<Vec<u8>> {
        let cases = format_cases("puffin");
        let Some((name, bytes, _)) = cases.iter().find(|(name, ..)| name.contains(part)) else {
            return Vec::new();
        };
        let blobs = footer(name, bytes).blobs;
        blobs
            .iter()
            .map(|blob| decompress(blob, &bytes[blob.offset as usize..(blob.offset + blob.length) as usize]).unwrap())
            .collect()
    };
    let plain = content("iceberg-java-v1/sample-metric-data-uncompressed");
    assert_eq!(plain, content("iceberg-java-v1/sample-metric-data-compressed-zstd"));
    if let Some(first) = plain.first() {
        assert_eq!(first, b"abcdefghi");
    }
}

#[test]
fn puffin_files_of_tables_hold_readable_blobs() {
    for path in table_files(".puffin").into_iter().chain(table_files(".stats")) {
        let name = path.display().to_string();
        let bytes = fs::read(&path).unwrap();
        if name.contains("duckdb_legacy_bare_deletion_vector") {
            // DuckDB first wrote the blob alone, without the container.
            assert!(parse_footer(&bytes, bytes.len() as u64).is_err());
            check_vector(&name, &bytes, None);
            continue;
        }
        let footer = footer(&name, &bytes);
        assert!(!footer.blobs.is_empty(), "{name}");
        for blob in &footer.blobs {
            let content = decompress(blob, &bytes[blob.offset as usize..(blob.offset + blob.length) as usize]).unwrap();
            if blob.blob_type == DELETION_VECTOR_V1 {
                check_vector(&name, &content, Some(blob.properties["cardinality"].parse().unwrap()));
            }
        }
    }
}

fn check_vector(name: &str, blob: &[u8], cardinality: Option<u64>) {
    let set = deletion_vector::decode_blob(blob, cardinality).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(!set.is_empty(), "{name}");
    assert_eq!(
        deletion_vector::decode_blob(&deletion_vector::encode_blob(&set), Some(set.len())).unwrap(),
        set,
        "{name}"
    );
}

#[test]
fn the_end_of_a_file_is_enough_to_read_its_footer() {
    for (name, bytes, _) in format_cases("puffin").into_iter().filter(|(.., entry)| entry["kind"] == "puffin") {
        let size = bytes.len() as u64;
        let whole = footer(&name, &bytes);
        let Ok(FooterRead::NeedTail(need)) = parse_footer(&bytes[bytes.len() - 16..], size) else {
            panic!("{name}: the footer is longer than 16 bytes");
        };
        let tail = &bytes[(size - need) as usize..];
        assert_eq!(parse_footer(tail, size).unwrap(), FooterRead::Footer(whole), "{name}");
    }
}
