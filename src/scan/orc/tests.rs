//! Columns and stripes of ORC files; files are written by the writer of `orc-rust`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use bytes::Bytes;
use orc_rust::ArrowWriterBuilder;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::proto::{StringPair, Type};
use super::stripe::StripeUnit;
use super::tail::{OrcFile, parse_file};
use super::types::{columns, kind};
use crate::error::ErrorKind;
use crate::scan::Steps;
use crate::scan::open::{Decode, Step};

fn of(kind: i32, attributes: &[(&str, &str)]) -> Type {
    let pair = |(key, value): &(&str, &str)| StringPair {
        key: Some((*key).to_owned()),
        value: Some((*value).to_owned()),
    };
    Type {
        kind: Some(kind),
        attributes: attributes.iter().map(pair).collect(),
        ..Type::default()
    }
}

fn root(children: Vec<Type>) -> Vec<Type> {
    let root = Type {
        kind: Some(kind::STRUCT),
        subtypes: (1..=children.len() as u32).collect(),
        field_names: (1..=children.len()).map(|i| format!("c{i}")).collect(),
        ..Type::default()
    };
    std::iter::once(root).chain(children).collect()
}

#[test]
fn attributes_tell_ids_and_types() {
    let cases = [
        (
            of(kind::LONG, &[("iceberg.id", "1"), ("iceberg.long-type", "TIME")]),
            DataType::Time64(TimeUnit::Microsecond),
        ),
        (
            of(kind::LONG, &[("iceberg.id", "1"), ("iceberg.long-type", "LONG")]),
            DataType::Int64,
        ),
        (
            of(kind::BINARY, &[("iceberg.id", "1"), ("iceberg.binary-type", "UUID")]),
            DataType::FixedSizeBinary(16),
        ),
        (
            of(
                kind::BINARY,
                &[("iceberg.id", "1"), ("iceberg.binary-type", "FIXED"), ("iceberg.length", "3")],
            ),
            DataType::FixedSizeBinary(3),
        ),
        (
            of(kind::TIMESTAMP, &[("iceberg.id", "1")]),
            DataType::Timestamp(TimeUnit::Microsecond, None),
        ),
        (
            of(kind::TIMESTAMP_INSTANT, &[("iceberg.id", "1"), ("iceberg.timestamp-unit", "NANOS")]),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        ),
    ];
    for (of, data_type) in cases {
        let nodes = columns(&root(vec![of.clone()])).unwrap();
        assert_eq!(nodes[0].field.data_type(), &data_type, "{of:?}");
        assert_eq!(nodes[0].field.metadata()[PARQUET_FIELD_ID_META_KEY], "1");
    }
    let fixed = of(kind::BINARY, &[("iceberg.binary-type", "FIXED")]);
    assert_eq!(columns(&root(vec![fixed])).unwrap_err().kind(), ErrorKind::Corrupt);
    let id = of(kind::INT, &[("iceberg.id", "x")]);
    assert_eq!(columns(&root(vec![id])).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(columns(&root(vec![of(99, &[])])).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn types_that_are_no_tree_are_refused() {
    let mut list = of(kind::LIST, &[]);
    for target in [0, 1, 3, u32::MAX] {
        list.subtypes = vec![target];
        let mut types = root(vec![list.clone()]);
        types.push(of(kind::INT, &[]));
        assert_eq!(columns(&types).unwrap_err().kind(), ErrorKind::Corrupt, "{target}");
    }
    let mut types = root(vec![of(kind::INT, &[])]);
    types.push(of(kind::INT, &[]));
    assert!(columns(&types).is_err(), "a type of no column");
    assert!(columns(&[]).is_err());
    assert!(columns(&[of(kind::INT, &[])]).is_err(), "rows are structs");
}

#[test]
fn columns_are_cut_down_to_the_wanted_leaves() {
    // struct<c1 int, c2 struct<x int, y list<string>>, c3 map<int, int>>
    let types = vec![
        Type {
            kind: Some(kind::STRUCT),
            subtypes: vec![1, 2, 6],
            field_names: ["c1", "c2", "c3"].map(str::to_owned).to_vec(),
            ..Type::default()
        },
        of(kind::INT, &[]),
        Type {
            subtypes: vec![3, 4],
            field_names: ["x", "y"].map(str::to_owned).to_vec(),
            ..of(kind::STRUCT, &[])
        },
        of(kind::INT, &[]),
        Type {
            subtypes: vec![5],
            ..of(kind::LIST, &[])
        },
        of(kind::STRING, &[]),
        Type {
            subtypes: vec![7, 8],
            ..of(kind::MAP, &[])
        },
        of(kind::INT, &[]),
        of(kind::INT, &[]),
    ];
    let nodes = columns(&types).unwrap();
    assert_eq!(nodes.iter().map(super::types::Node::leaf_count).collect::<Vec<_>>(), [1, 2, 2]);
    let kept = nodes[1].project(&[0, 2], 1).unwrap();
    let DataType::Struct(fields) = kept.field.data_type() else {
        panic!()
    };
    assert_eq!(fields.iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["y"]);
    assert!(nodes[1].project(&[0, 3], 1).is_none());
    assert_eq!(nodes[2].project(&[3], 3).unwrap(), nodes[2], "keys and values go together");
}

/// Three stripes of 4, 4 and 2 rows.
fn file() -> Bytes {
    let numbers = Int64Array::from_iter((0..10).map(|i| (i != 3).then_some(i * 10)));
    let texts = StringArray::from_iter((0..10).map(|i| (i % 4 != 0).then(|| format!("t{i}"))));
    let schema = Arc::new(Schema::new(vec![
        Field::new("n", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]));
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts)];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut out = Vec::new();
    let mut writer = ArrowWriterBuilder::new(&mut out, schema)
        .with_batch_size(4)
        .with_stripe_byte_size(0)
        .try_build()
        .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out.into()
}

/// The live rows of a stripe's columns.
fn read(
    bytes: &Bytes,
    file: &Arc<OrcFile>,
    leaves: &[usize],
    stripe: usize,
    keep: Option<BooleanBuffer>,
) -> crate::error::Result<Vec<ArrayRef>> {
    let mut unit = StripeUnit::new(file, leaves, stripe, keep, Steps::default())?;
    let mut found = Vec::new();
    loop {
        match unit.step()? {
            Step::Needs(ranges) => {
                let part = |range: &std::ops::Range<u64>| bytes.slice(range.start as usize..range.end as usize);
                unit.supply(ranges.iter().map(part).collect())?;
            }
            Step::Rows { columns, .. } => found = columns,
            Step::Finished => return Ok(found),
        }
    }
}

#[test]
fn a_stripe_gives_its_live_rows_of_the_wanted_columns() {
    let bytes = file();
    let file = Arc::new(parse_file(&bytes).unwrap());
    assert_eq!(file.stripe_rows().collect::<Vec<_>>(), [4, 4, 2]);
    let numbers = |columns: &[ArrayRef]| columns[0].as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(
        numbers(&read(&bytes, &file, &[0], 0, None).unwrap()),
        [Some(0), Some(10), Some(20), None]
    );
    let keep = BooleanBuffer::from(vec![false, true, false, true]);
    let columns = read(&bytes, &file, &[0, 1], 1, Some(keep)).unwrap();
    assert_eq!(numbers(&columns), [Some(50), Some(70)]);
    let texts: Vec<_> = read(&bytes, &file, &[1], 2, None).unwrap()[0]
        .as_string::<i32>()
        .iter()
        .map(|t| t.map(str::to_owned))
        .collect();
    assert_eq!(texts, [None, Some("t9".to_owned())]);
}

#[test]
fn every_byte_of_a_stripe_may_be_wrong_without_a_panic() {
    let bytes = file();
    let good = Arc::new(parse_file(&bytes).unwrap());
    let end = usize::try_from(good.stripe_bytes(0) + 3).unwrap();
    for at in 3..end {
        for value in [0u8, 0xff, 0x80, bytes[at] ^ 1] {
            let mut broken = bytes.to_vec();
            broken[at] = value;
            if let Err(error) = read(&broken.into(), &good, &[0, 1], 0, None) {
                assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::ResourceExhausted
                    ),
                    "{error:?}"
                );
                assert!(!error.to_string().contains("panicked"), "{error}");
            }
        }
    }
}
