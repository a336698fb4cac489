//! Roaring bitmaps and deletion vectors that other implementations wrote (group `roaring` of the case
//! collection's `format/expected.json`): each decodes to the positions another library found in it, or
//! is refused where it must be.

use std::fs;
use std::path::{Path, PathBuf};

use sandur::bitmap::{RowSet, deletion_vector, portable};
use serde_json::Value;

use crate::support::cases;

/// Where the case collection lies; `None` (after a line about it) when it is absent outside of CI.
/// The files of one group of `format/expected.json`: name, bytes and entry. Empty when the collection is absent.
pub(crate) fn format_cases(group: &str) -> Vec<(String, Vec<u8>, Value)> {
    let listed = cases::format(group).into_iter().filter(|file| !file.json.is_null());
    listed.map(|file| (file.name, fs::read(&file.path).unwrap(), file.json)).collect()
}

/// All files below the collection's Iceberg tables whose names end in `suffix`.
pub(crate) fn table_files(suffix: &str) -> Vec<PathBuf> {
    fn visit(dir: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, suffix, found);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    if let Some(dir) = cases::dir_or_say() {
        visit(&dir.join("iceberg"), suffix, &mut found);
        assert!(!found.is_empty(), "no file *{suffix}");
    }
    found
}

/// Checks a file of kind roaring or deletion vector against its entry.
pub(crate) fn check_set(name: &str, bytes: &[u8], entry: &Value) {
    let kind = entry["kind"].as_str().unwrap();
    let decoded = match kind {
        "roaring 32-bit" => portable::decode_32(bytes),
        "roaring 64-bit portable" => portable::decode_64(bytes),
        "iceberg deletion-vector-v1 blob" => deletion_vector::decode_blob(bytes, entry["cardinality"].as_u64()),
        other => panic!("{name}: unknown kind {other}"),
    };
    if entry
        .get("meant")
        .is_some_and(|meant| meant.as_str().unwrap().starts_with("must be refused"))
    {
        assert_eq!(decoded.unwrap_err().kind(), sandur::error::ErrorKind::Corrupt, "{name}");
        return;
    }
    let set = decoded.unwrap_or_else(|e| panic!("{name}: {e}"));
    check_positions(name, &set, entry);
    let (again, encoded) = match kind {
        "roaring 32-bit" => {
            let encoded = portable::encode_32(&set).unwrap();
            (portable::decode_32(&encoded), encoded)
        }
        "roaring 64-bit portable" => {
            let encoded = portable::encode_64(&set);
            (portable::decode_64(&encoded), encoded)
        }
        _ => {
            check_frame(name, bytes, entry);
            let encoded = deletion_vector::encode_blob(&set);
            (deletion_vector::decode_blob(&encoded, Some(set.len())), encoded)
        }
    };
    assert_eq!(again.unwrap(), set, "{name}");
    assert!(
        encoded.len() <= bytes.len(),
        "{name}: {} bytes became {}",
        bytes.len(),
        encoded.len()
    );
}

/// Checks the positions of a set against the figures of an entry.
pub(crate) fn check_positions(name: &str, set: &RowSet, entry: &Value) {
    assert_eq!(set.len(), entry["cardinality"].as_u64().unwrap(), "{name}");
    assert_eq!(set.iter().next(), entry["min"].as_u64(), "{name}");
    assert_eq!(set.max(), entry["max"].as_u64(), "{name}");
    let first: Vec<u64> = entry["first"].as_array().unwrap().iter().map(|p| p.as_u64().unwrap()).collect();
    assert!(set.iter().take(first.len()).eq(first), "{name}");
    let sum = set.iter().fold(0u64, u64::wrapping_add);
    assert_eq!(sum.to_string(), entry["sum_mod_2_64"], "{name}");
}

/// Every change of one byte and every cut of a blob is found by its length, magic or checksum.
fn check_frame(name: &str, bytes: &[u8], entry: &Value) {
    assert_eq!(entry["magic_ok"], true, "{name}");
    assert_eq!(entry["crc_ok"], true, "{name}");
    assert_eq!(entry["length_field"].as_u64(), Some(bytes.len() as u64 - 8), "{name}");
    for at in 0..bytes.len() {
        assert!(deletion_vector::decode_blob(&bytes[..at], None).is_err(), "{name} cut at {at}");
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.to_vec();
            changed[at] ^= flip;
            assert!(deletion_vector::decode_blob(&changed, None).is_err(), "{name} changed at {at}");
        }
    }
}

#[test]
fn bitmaps_of_other_implementations_decode_as_listed() {
    for (name, bytes, entry) in format_cases("roaring") {
        check_set(&name, &bytes, &entry);
    }
}

#[test]
fn a_bitmap_of_another_implementation_survives_no_cut_and_no_panic() {
    for (name, bytes, entry) in format_cases("roaring") {
        let step = bytes.len() / 200 + 1;
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            if entry["kind"] == "roaring 32-bit" {
                assert!(portable::decode_32(&bytes[..at]).is_err(), "{name} cut at {at}");
                let _ = portable::decode_32(&changed);
            } else {
                assert!(portable::decode_64(&bytes[..at]).is_err(), "{name} cut at {at}");
                let _ = portable::decode_64(&changed);
            }
        }
    }
}

#[test]
fn the_specification_example_has_the_positions_its_text_lists() {
    // RoaringFormatSpec, testdata: multiples of 1000 below 100,000, of 3 from 100,000 to 200,000 * 3, and 700,000 to 799,999.
    for (name, bytes, _) in format_cases("roaring")
        .into_iter()
        .filter(|(name, ..)| name.contains("format-spec-32"))
    {
        let set = portable::decode_32(&bytes).unwrap();
        let listed = (0..100_000)
            .step_by(1000)
            .chain((100_000..200_000).map(|i| i * 3))
            .chain(700_000..800_000);
        assert!(set.iter().eq(listed), "{name}");
    }
}
