//! Partition values: matched by id, typed by the spec.

use apache_avro::Codec;
use apache_avro::types::Value;
use serde_json::json;

use super::super::{Manifest, ManifestFile};
use super::writer::{Column, Entry, Style, column, manifest, text};
use super::{assert_corrupt, listed, parse};
use crate::iceberg::spec::Literal;

fn listed_spec(id: i32) -> ManifestFile {
    ManifestFile {
        partition_spec_id: Some(id),
        ..listed()
    }
}

fn entry(path: &str, partition: Vec<Column>) -> Entry {
    Entry {
        partition,
        ..Entry::added(path)
    }
}

fn values(manifest: &Manifest) -> Vec<Vec<Option<Literal>>> {
    manifest.entries().map(|e| e.partition().to_vec()).collect()
}

const PLAIN: Style = Style {
    null_last: false,
    reverse: false,
    narrow: false,
    wide: false,
    blocks: false,
};

#[test]
fn values_are_matched_by_field_id_and_shared() {
    let partition = |id, bucket| vec![PLAIN.int(1001, bucket), PLAIN.long(1000, id)];
    let entries = [
        entry("a", partition(Some(7), Some(3))),
        entry("b", partition(None, None)),
        entry("c", partition(Some(7), Some(3))),
    ];
    let manifest = parse(&manifest(&entries), &listed_spec(1));
    let first = vec![Some(Literal::Long(7)), Some(Literal::Int(3))];
    assert_eq!(values(&manifest), [first.clone(), vec![None, None], first]);
    assert_eq!(manifest.partitions().len(), 2);
    assert!(std::sync::Arc::ptr_eq(manifest.entry(0).partition(), manifest.entry(2).partition()));
}

#[test]
fn an_int_of_a_column_that_became_long_is_a_long() {
    let manifest = parse(&manifest(&[entry("a", vec![PLAIN.int(1000, Some(-3))])]), &listed_spec(1));
    assert_eq!(values(&manifest), [[Some(Literal::Long(-3)), None]]);
}

#[test]
fn fields_that_the_spec_lacks_are_passed_over() {
    let partition = vec![text(1999, Some("x")), PLAIN.long(1000, Some(1)), text(1001, None).with_id(1998)];
    let manifest = parse(&manifest(&[entry("a", partition)]), &listed_spec(1));
    assert_eq!(values(&manifest), [[Some(Literal::Long(1)), None]]);
}

#[test]
fn day_partitions_are_dates_or_ints_on_disk() {
    let date = json!({"type": "int", "logicalType": "date"});
    for json in [json!("int"), date] {
        let value = if json == "int" { Value::Int(19_000) } else { Value::Date(19_000) };
        let manifest = parse(&manifest(&[entry("a", vec![column(1003, json, Some(value))])]), &listed_spec(3));
        assert_eq!(values(&manifest), [[Some(Literal::Int(19_000)), None]]);
    }
}

#[test]
fn decimals_are_unscaled_values() {
    let json = json!({"type": "fixed", "name": "decimal_9_2", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2});
    let value = Value::Decimal(apache_avro::Decimal::from([0xff, 0xff, 0xff, 0x85]));
    let manifest = parse(&manifest(&[entry("a", vec![column(1004, json, Some(value))])]), &listed_spec(3));
    assert_eq!(values(&manifest), [[None, Some(Literal::Decimal(-123))]]);
}

#[test]
fn a_dropped_source_column_leaves_the_type_to_the_file() {
    let cases = [
        (json!("string"), Value::String("x".into()), Literal::String("x".into())),
        (json!("boolean"), Value::Boolean(true), Literal::Boolean(true)),
        (json!("double"), Value::Double(0.5), Literal::Double(0.5)),
        (json!("int"), Value::Int(3), Literal::Int(3)),
        (json!("long"), Value::Long(3), Literal::Long(3)),
        (json!("bytes"), Value::Bytes(vec![1]), Literal::Binary(vec![1])),
        (
            json!({"type": "long", "logicalType": "timestamp-millis"}),
            Value::TimestampMillis(3),
            Literal::Long(3_000),
        ),
        (json!({"type": "int", "logicalType": "date"}), Value::Date(3), Literal::Int(3)),
    ];
    for (json, value, expected) in cases {
        let manifest = parse(&manifest(&[entry("a", vec![column(1005, json, Some(value))])]), &listed_spec(4));
        assert_eq!(values(&manifest), [[Some(expected)]]);
    }
}

#[test]
fn all_nan_are_one_partition() {
    let nan = |bits| entry("a", vec![column(1005, "double", Some(Value::Double(f64::from_bits(bits))))]);
    let manifest = parse(
        &manifest(&[nan(0x7ff8_0000_0000_0000), nan(0xfff8_0000_0000_0001)]),
        &listed_spec(4),
    );
    assert_eq!(manifest.partitions().len(), 1);
}

#[test]
fn a_bucket_that_is_no_number_is_refused() {
    let bytes = manifest(&[entry("a", vec![text(1001, Some("x"))])]);
    assert_corrupt(&bytes, &listed_spec(1), "partition value");
}

/// A manifest of spec 2 where a fixed value has its length in front, as Iceberg Java writes it:
/// the same bytes as those of a `bytes` column.
fn length_first(values: &[Option<&[u8]>], record_count: i64) -> Vec<u8> {
    let rows = values.iter().map(|value| {
        let entry = Entry {
            partition: vec![column(1002, "bytes", value.map(|v| Value::Bytes(v.to_vec())))],
            record_count,
            ..Entry::added("a")
        };
        entry.row(PLAIN, &[])
    });
    let bytes = PLAIN.container(&[("format-version", "2")], Codec::Null, rows.collect());
    claim_fixed(&bytes)
}

/// Exchanges the type of the partition field in the file's schema.
fn claim_fixed(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.windows(11).position(|w| w == b"avro.schema").unwrap() + 11;
    let (length, length_bytes) = varint(&bytes[start..]);
    let text = start + length_bytes;
    let schema = std::str::from_utf8(&bytes[text..text + length]).unwrap();
    let at = schema.find("f1002").unwrap();
    let (before, after) = schema.split_at(at);
    let after = after.replacen("\"bytes\"", r#"{"type": "fixed", "name": "fixed_3", "size": 3}"#, 1);
    let schema = format!("{before}{after}");
    let mut out = bytes[..start].to_vec();
    let mut n = schema.len() << 1;
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out.extend_from_slice(schema.as_bytes());
    out.extend_from_slice(&bytes[text + length..]);
    out
}

fn varint(bytes: &[u8]) -> (usize, usize) {
    let len = bytes.iter().position(|b| *b < 0x80).unwrap() + 1;
    let value = bytes[..len]
        .iter()
        .rev()
        .fold(0_usize, |value, b| value << 7 | usize::from(b & 0x7f));
    (value >> 1, len)
}

fn plain_fixed(value: &[u8], record_count: i64) -> Vec<u8> {
    let fixed = json!({"type": "fixed", "name": "fixed_3", "size": 3});
    let entry = Entry {
        record_count,
        ..entry("a", vec![column(1002, fixed, Some(Value::Fixed(3, value.to_vec())))])
    };
    manifest(&[entry])
}

#[test]
fn fixed_values_are_read_with_and_without_a_length_in_front() {
    let binary = |v: &[u8]| vec![Some(Literal::Binary(v.to_vec()))];
    assert_eq!(values(&parse(&plain_fixed(b"abc", 10), &listed_spec(2))), [binary(b"abc")]);
    let manifest = parse(&length_first(&[Some(b"abc"), None, Some(b"xyz")], 10), &listed_spec(2));
    assert_eq!(values(&manifest), [binary(b"abc"), vec![None], binary(b"xyz")]);
    let manifest = parse(&length_first(&[None], 10), &listed_spec(2));
    assert_eq!(values(&manifest), [vec![None]]);
}

#[test]
fn fixed_values_that_can_be_read_in_two_ways_are_told_apart_by_row_counts_or_refused() {
    // Behind the length stand 00 ff and the byte 80, which may also start the number of rows.
    let ambiguous = length_first(&[Some(&[0, 0xff, 0x80])], 3);
    assert_corrupt(&ambiguous, &listed_spec(2), "read in two ways");
    let with_rows = |rows| ManifestFile {
        added_rows_count: Some(rows),
        ..listed_spec(2)
    };
    let manifest = parse(&ambiguous, &with_rows(3));
    assert_eq!(values(&manifest), [[Some(Literal::Binary(vec![0, 0xff, 0x80]))]]);
    assert_eq!(manifest.entry(0).record_count(), 3);
    // The other way round: a value that starts like a length, and many rows.
    let manifest = parse(&plain_fixed(&[6, 0, 0xff], 384), &with_rows(384));
    assert_eq!(values(&manifest), [[Some(Literal::Binary(vec![6, 0, 0xff]))]]);
    assert_eq!(manifest.entry(0).record_count(), 384);
}
