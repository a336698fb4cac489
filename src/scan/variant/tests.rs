//! Variants as text: values that the specification gives, files of Parquet's own test collection,
//! and bytes that are damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, StructArray};
use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet_variant::{Variant, VariantMetadata};
use parquet_variant_json::VariantToJson;
use serde_json::Value;

use super::to_json;
use crate::error::{ErrorKind, Result};

/// No names.
const EMPTY: &[u8] = &[0x01, 0x00, 0x00];

fn group(metadata: &[u8], value: &[u8]) -> StructArray {
    let fields = Fields::from(vec![
        Field::new("metadata", DataType::Binary, false),
        Field::new("value", DataType::Binary, true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(BinaryArray::from(vec![metadata])),
        Arc::new(BinaryArray::from(vec![Some(value)])),
    ];
    StructArray::new(fields, columns, None)
}

fn text(metadata: &[u8], value: &[u8]) -> Result<String> {
    Ok(to_json(&group(metadata, value))?.as_string::<i32>().value(0).to_owned())
}

#[test]
fn primitives_have_their_exact_digits() {
    let scaled = |kind: u8, scale: u8, unscaled: &[u8]| [&[kind << 2, scale], unscaled].concat();
    let plain = |kind: u8, bytes: &[u8]| [&[kind << 2], bytes].concat();
    for (value, expected) in [
        (plain(0, &[]), "null"),
        (plain(1, &[]), "true"),
        (plain(2, &[]), "false"),
        (plain(3, &[0x80]), "-128"),
        (plain(6, &i64::MAX.to_le_bytes()), "9223372036854775807"),
        (plain(7, &0.0_f64.to_le_bytes()), "0.0"),
        (plain(7, &(-0.0_f64).to_le_bytes()), "-0.0"),
        (plain(7, &1e16_f64.to_le_bytes()), "1.0e16"),
        (plain(7, &f64::NAN.to_le_bytes()), "\"NaN\""),
        (plain(7, &f64::NEG_INFINITY.to_le_bytes()), "\"-Infinity\""),
        (plain(14, &0.1_f32.to_le_bytes()), "0.1"),
        (scaled(8, 2, &(-5_i32).to_le_bytes()), "-0.05"),
        (scaled(8, 2, &120_i32.to_le_bytes()), "1.20"),
        (scaled(9, 0, &7_i64.to_le_bytes()), "7"),
        (
            scaled(10, 38, &(10_i128.pow(38) - 1).to_le_bytes()),
            "0.99999999999999999999999999999999999999",
        ),
        (plain(11, &(-1_i32).to_le_bytes()), "\"1969-12-31\""),
        (plain(12, &(-1_i64).to_le_bytes()), "\"1969-12-31T23:59:59.999999+00:00\""),
        (plain(13, &0_i64.to_le_bytes()), "\"1970-01-01T00:00:00.000000\""),
        (plain(18, &1_i64.to_le_bytes()), "\"1970-01-01T00:00:00.000000001+00:00\""),
        (plain(19, &(-1_i64).to_le_bytes()), "\"1969-12-31T23:59:59.999999999\""),
        (plain(17, &45_234_123_456_i64.to_le_bytes()), "\"12:33:54.123456\""),
        (plain(15, &[3, 0, 0, 0, 0x0a, 0x0b, 0x0c]), "\"CgsM\""),
        (plain(15, &[1, 0, 0, 0, 0xff]), "\"/w==\""),
        (plain(15, &[2, 0, 0, 0, 0xff, 0xff]), "\"//8=\""),
        (plain(15, &[0, 0, 0, 0]), "\"\""),
        (plain(16, &[3, 0, 0, 0, b'a', b'"', 0x01]), "\"a\\\"\\u0001\""),
        (plain(20, &(0..16).collect::<Vec<u8>>()), "\"00010203-0405-0607-0809-0a0b0c0d0e0f\""),
    ] {
        assert_eq!(text(EMPTY, &value).unwrap(), expected);
    }
    // a short string: the length stands in the header
    assert_eq!(text(EMPTY, &[2 << 2 | 1, 0xc3, 0xa9]).unwrap(), "\"é\"");
}

#[test]
fn damaged_bytes_are_an_error() {
    let object_of = |offset: u8| vec![0x02, 1, 0, offset, 1, 0x00];
    let names: &[u8] = &[0x01, 1, 0, 1, b'a'];
    assert_eq!(text(names, &object_of(0)).unwrap(), "{\"a\":null}");
    for (metadata, value) in [
        (EMPTY, vec![]),
        (&[][..], vec![0]),
        (&[0x02, 0, 0][..], vec![0]),
        (EMPTY, vec![3 << 2]),
        (EMPTY, vec![63 << 2]),
        (EMPTY, vec![16 << 2, 0xff, 0xff, 0xff, 0xff]),
        (EMPTY, vec![1 << 2 | 1, 0xff]),
        (EMPTY, vec![8 << 2, 39, 0, 0, 0, 0]),
        (EMPTY, vec![0b10011, 0xff, 0xff, 0xff, 0xff]),
        (EMPTY, vec![0x02, 1, 0, 0, 1, 0x00]),
        (names, object_of(9)),
        (&[0x01, 1, 0, 9, b'a'][..], object_of(0)),
        (&[0x01, 1, 0, 1, 0xff][..], object_of(0)),
        (&[0xc1, 0xff, 0xff, 0xff, 0xff][..], vec![0]),
        // dates and times that no calendar has
        (EMPTY, [&[11 << 2][..], &i32::MAX.to_le_bytes()].concat()),
        (EMPTY, [&[17 << 2][..], &(-1_i64).to_le_bytes()].concat()),
        (EMPTY, [&[12 << 2][..], &i64::MAX.to_le_bytes()].concat()),
    ] {
        let error = text(metadata, &value).expect_err("damaged");
        assert!(
            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
            "{value:?}: {error}"
        );
    }
}

#[test]
fn nesting_is_bounded() {
    let nest = |levels: usize| {
        (0..levels).fold(vec![0_u8], |inner, _| {
            // an array with offsets of four bytes
            let length = u32::try_from(inner.len()).unwrap().to_le_bytes();
            [&[0b1111, 1, 0, 0, 0, 0], &length[..], &inner].concat()
        })
    };
    assert_eq!(text(EMPTY, &nest(3)).unwrap(), "[[[null]]]");
    assert!(text(EMPTY, &nest(250)).is_ok());
    assert!(text(EMPTY, &nest(251)).unwrap_err().message().contains("nested deeper"));
    assert!(text(EMPTY, &nest(100_000)).is_err());
}

#[test]
fn values_that_overlap_are_refused() {
    // each level has two fields that point at the same value: the text would double with each
    let names: &[u8] = &[0x01, 2, 0, 1, 2, b'a', b'b'];
    let value = (0..40).fold(vec![0_u8], |inner, _| {
        let length = u16::try_from(inner.len()).unwrap().to_le_bytes();
        [&[0b000110, 2, 0, 1, 0, 0, 0, 0], &length[..], &inner].concat()
    });
    let error = text(names, &value).unwrap_err();
    assert!(error.message().contains("overlap"), "{error}");
}

#[test]
fn any_bytes_give_text_or_an_error() {
    use proptest::prelude::*;
    proptest!(|(metadata in prop::collection::vec(any::<u8>(), 0..24), value in prop::collection::vec(any::<u8>(), 0..48))| {
        if let Ok(text) = text(&metadata, &value) {
            serde_json::from_str::<Value>(&text).expect("text is JSON");
        }
    });
}

/// Folders of Parquet's test collection; without them one line says so, and with `CI` set it fails.
fn collection(name: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("SANDUR_CASES") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases"),
    };
    let dir = root.join("format/parquet").join(name);
    if dir.is_dir() {
        return Some(dir);
    }
    let line = format!("{name} was not read: the collection would have to be at {}", root.display());
    assert!(std::env::var_os("CI").is_none(), "{line}");
    eprintln!("{line}");
    None
}

/// The variants of a Parquet file's column `var`; null for a null row.
fn read(file: &Path) -> Result<Vec<Option<String>>> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(std::fs::File::open(file).unwrap(), options)?;
    let mut all = Vec::new();
    for batch in reader.build()? {
        let batch = batch?;
        let json = to_json(batch.column_by_name("var").expect("a column var").as_struct())?;
        all.extend(json.as_string::<i32>().iter().map(|v| v.map(str::to_owned)));
    }
    Ok(all)
}

/// Equal but for how many zeros stand behind a number's or a time's point.
fn same(ours: &Value, other: &Value) -> bool {
    match (ours, other) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|o| same(v, o))),
        _ => ours == other,
    }
}

#[test]
fn shredded_files_of_the_collection_are_read() {
    let Some(dir) = collection("parquet-testing-shredded-variant") else {
        return;
    };
    let cases: Value = serde_json::from_slice(&std::fs::read(dir.join("cases.json")).unwrap()).unwrap();
    let (mut right, mut refused) = (0, 0);
    for case in cases.as_array().unwrap() {
        let Some(file) = case["parquet_file"].as_str() else { continue };
        let read = read(&dir.join(file));
        let must_fail = case.get("error_message").is_some();
        // of invalid files a reader may give the shredded value, or nothing
        let read = match read {
            Err(error) if must_fail || file.contains("INVALID") => {
                let is_clear = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported);
                assert!(is_clear, "{file}: {error}");
                refused += 1;
                continue;
            }
            Err(error) => panic!("{file}: {error:?}"),
            Ok(_) if must_fail => panic!("{file} was read"),
            Ok(read) => read,
        };
        let names = match case["variant_files"].as_array() {
            Some(names) => names.iter().map(Value::as_str).collect::<Vec<_>>(),
            None => vec![case["variant_file"].as_str()],
        };
        assert_eq!(read.len(), names.len(), "{file}");
        for (ours, name) in read.iter().zip(names) {
            let Some(name) = name else {
                assert_eq!(*ours, None, "{file}");
                continue;
            };
            // metadata and value one after the other; where it parts, another reader says
            let bytes = std::fs::read(dir.join(name)).unwrap();
            let (metadata, value) = bytes.split_at(VariantMetadata::try_new(&bytes).unwrap().size());
            let ours = ours.as_deref().unwrap_or_else(|| panic!("{file}: null"));
            assert_eq!(ours, text(metadata, value).unwrap(), "{file}");
            let theirs = Variant::try_new(metadata, value).unwrap().to_json_string().unwrap();
            let theirs: Value = serde_json::from_str(&theirs).unwrap();
            assert!(
                same(&serde_json::from_str(ours).unwrap(), &theirs),
                "{file}: {ours} is not {theirs}"
            );
            right += 1;
        }
    }
    assert!(right > 130 && refused == 8, "{right} right, {refused} refused");
}

#[test]
fn values_of_the_collection_are_read() {
    let Some(dir) = collection("parquet-testing-variant") else { return };
    // The file has a comma too many.
    let dictionary = std::fs::read_to_string(dir.join("data_dictionary.json"))
        .unwrap()
        .replace(",\n}", "\n}");
    let expected: Value = serde_json::from_str(&dictionary).unwrap();
    for (name, expected) in expected.as_object().unwrap() {
        let bytes = |kind: &str| std::fs::read(dir.join(format!("{name}.{kind}"))).unwrap();
        let ours = text(&bytes("metadata"), &bytes("value")).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let ours: Value = serde_json::from_str(&ours).unwrap();
        // The dictionary shows times in a session's zone and without zeros at the end, floats as doubles.
        if !name.contains("time") && name != "primitive_float" {
            assert!(same(&ours, expected), "{name}: {ours} is not {expected}");
        }
    }
    let of = |name: &str| {
        let bytes = |kind: &str| std::fs::read(dir.join(format!("{name}.{kind}"))).unwrap();
        text(&bytes("metadata"), &bytes("value")).unwrap()
    };
    // the fewest digits that are this float, 1234567936
    assert_eq!(of("primitive_float"), "1234568000.0");
    assert_eq!(of("primitive_timestamp"), "\"2025-04-16T16:34:56.780000+00:00\"");
    assert_eq!(of("primitive_timestampntz"), "\"2025-04-16T12:34:56.780000\"");
    assert_eq!(of("primitive_decimal16"), "12345678912345678.90");
}
