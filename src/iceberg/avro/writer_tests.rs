//! What the writer writes is read back equal by our reader and by the apache-avro crate.

use apache_avro::types::Value as Avro;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::iceberg::avro::{BlockBuffer, Container, Cursor};

const SYNC: SyncMarker = *b"0123456789abcdef";
const CODECS: [Codec; 4] = [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard];

#[derive(Debug, Clone, PartialEq)]
struct Row {
    number: i64,
    text: Option<String>,
    flag: bool,
    float: f32,
    double: f64,
    bytes: Vec<u8>,
    fixed: [u8; 3],
    list: Vec<i32>,
}

fn schema() -> Value {
    json!({"type": "record", "name": "row", "fields": [
        {"name": "number", "type": "long", "field-id": 1},
        {"name": "text", "type": ["null", "string"], "default": null, "field-id": 2},
        {"name": "flag", "type": "boolean", "field-id": 3},
        {"name": "float", "type": "float", "field-id": 4},
        {"name": "double", "type": "double", "field-id": 5},
        {"name": "bytes", "type": "bytes", "field-id": 6},
        {"name": "fixed", "type": {"type": "fixed", "name": "fixed_3", "size": 3}, "field-id": 7},
        {"name": "list", "type": {"type": "array", "items": "int", "element-id": 9}, "field-id": 8}]})
}

fn encode(row: &Row, out: &mut Encoder) {
    out.long(row.number);
    out.optional(row.text.as_deref(), Encoder::string);
    out.boolean(row.flag);
    out.float(row.float);
    out.double(row.double);
    out.bytes(&row.bytes);
    out.raw(&row.fixed);
    out.array(row.list.iter(), |out, item| out.long(i64::from(*item)));
}

fn write(rows: &[Row], codec: Codec, block_bytes: usize) -> Vec<u8> {
    let mut writer = ContainerWriter::new(&schema(), &[("key", "välue"), ("empty", "")], codec, SYNC).with_block_bytes(block_bytes);
    for row in rows {
        writer
            .append(|out| {
                encode(row, out);
                Ok(())
            })
            .unwrap();
    }
    writer.finish().unwrap()
}

/// The rows and the number of blocks.
fn read(file: &[u8]) -> (Vec<Row>, usize) {
    let mut container = Container::open(file).unwrap();
    assert_eq!(container.metadata_text("key").unwrap(), Some("välue"));
    assert_eq!(container.metadata_text("empty").unwrap(), Some(""));
    let fields = container.schema().unwrap();
    let fields = fields.record(fields.root()).unwrap().unwrap().to_vec();
    assert_eq!(fields.iter().map(|f| f.id.unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let mut buffer = BlockBuffer::default();
    let (mut rows, mut blocks) = (Vec::new(), 0);
    while let Some(block) = container.next_block(&mut buffer).unwrap() {
        blocks += 1;
        let mut cursor = Cursor::new(block.bytes);
        for _ in 0..block.count {
            let number = cursor.long().unwrap();
            let text = (cursor.long().unwrap() == 1).then(|| cursor.string().unwrap().to_owned());
            let mut row = Row {
                number,
                text,
                flag: cursor.boolean().unwrap(),
                float: cursor.float().unwrap(),
                double: cursor.double().unwrap(),
                bytes: cursor.bytes().unwrap().to_vec(),
                fixed: cursor.take(3).unwrap().try_into().unwrap(),
                list: Vec::new(),
            };
            cursor
                .items(|cursor| {
                    row.list.push(cursor.int()?);
                    Ok(())
                })
                .unwrap();
            rows.push(row);
        }
        block.finish(&cursor).unwrap();
    }
    (rows, blocks)
}

fn read_with_oracle(file: &[u8]) -> Vec<Row> {
    let reader = apache_avro::Reader::new(file).unwrap();
    assert_eq!(reader.user_metadata().get("key").unwrap(), "välue".as_bytes());
    let row = |value: Result<Avro, apache_avro::Error>| {
        let Avro::Record(fields) = value.unwrap() else { panic!("a record") };
        let [number, text, flag, float, double, bytes, fixed, list] = fields.try_into().unwrap();
        let text = match text.1 {
            Avro::Union(0, _) => None,
            Avro::Union(1, text) => match *text {
                Avro::String(text) => Some(text),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        match (number.1, flag.1, float.1, double.1, bytes.1, fixed.1, list.1) {
            (
                Avro::Long(number),
                Avro::Boolean(flag),
                Avro::Float(float),
                Avro::Double(double),
                Avro::Bytes(bytes),
                Avro::Fixed(3, fixed),
                Avro::Array(list),
            ) => Row {
                number,
                text,
                flag,
                float,
                double,
                bytes,
                fixed: fixed.try_into().unwrap(),
                list: list
                    .into_iter()
                    .map(|item| match item {
                        Avro::Int(item) => item,
                        other => panic!("{other:?}"),
                    })
                    .collect(),
            },
            other => panic!("{other:?}"),
        }
    };
    reader.map(row).collect()
}

prop_compose! {
    fn row()(
        number: i64, text in of(".{0,20}"), flag: bool, float in -1e30_f32..1e30, double: i32,
        bytes in vec(any::<u8>(), 0..30), fixed: [u8; 3], list in vec(any::<i32>(), 0..5),
    ) -> Row {
        Row { number, text, flag, float, double: f64::from(double) / 3.0, bytes, fixed, list }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_readers_read_what_was_written(rows in vec(row(), 0..40), codec in 0..4_usize, block_bytes in 1..2_000_usize) {
        let file = write(&rows, CODECS[codec], block_bytes);
        let (read, blocks) = read(&file);
        prop_assert_eq!(&read, &rows);
        prop_assert!(blocks <= rows.len() && (blocks == 0) == rows.is_empty());
        prop_assert_eq!(read_with_oracle(&file), rows);
    }
}

/// Rows of one string.
fn strings() -> ContainerWriter {
    ContainerWriter::new(&json!("string"), &[], Codec::Null, SYNC)
}

#[test]
fn the_first_bytes_are_those_of_the_specification() {
    let mut writer = strings();
    writer
        .append(|out| {
            out.string("ab");
            Ok(())
        })
        .unwrap();
    let mut expected = b"Obj\x01\x04\x16avro.schema\x10\"string\"\x14avro.codec\x08null\x00".to_vec();
    expected.extend(SYNC);
    // One row of three bytes: a length of two and two letters.
    expected.extend(b"\x02\x06\x04ab");
    expected.extend(SYNC);
    assert_eq!(writer.finish().unwrap(), expected);
}

#[test]
fn numbers_of_all_sizes() {
    let mut out = Encoder::default();
    let bytes = [(0, vec![0]), (-1, vec![1]), (1, vec![2]), (-64, vec![0x7f]), (64, vec![0x80, 1])];
    for (number, bytes) in bytes {
        out.clear();
        out.long(number);
        assert_eq!(out.as_slice(), bytes);
    }
    for number in [i64::MIN, i64::MAX, i64::from(i32::MIN)] {
        out.clear();
        out.long(number);
        assert_eq!(Cursor::new(out.as_slice()).long().unwrap(), number);
    }
}

#[test]
fn a_row_that_fails_leaves_nothing_behind() {
    let mut writer = strings();
    let failed = writer.append(|out| {
        out.string("lost");
        Err(Error::invalid("no"))
    });
    assert!(failed.is_err());
    writer
        .append(|out| {
            out.string("kept");
            Ok(())
        })
        .unwrap();
    let file = writer.finish().unwrap();
    let rows: Vec<_> = apache_avro::Reader::new(file.as_slice()).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, [Avro::String("kept".to_owned())]);
}

#[test]
fn blocks_stay_below_what_the_reader_takes() {
    let mut writer = strings().with_block_bytes(MAX_BLOCK_BYTES);
    let large = "x".repeat(MAX_BLOCK_BYTES / 2);
    for _ in 0..3 {
        writer
            .append(|out| {
                out.string(&large);
                Ok(())
            })
            .unwrap();
    }
    let too_large = writer.append(|out| {
        out.raw(&vec![0; MAX_BLOCK_BYTES + 1]);
        Ok(())
    });
    assert_eq!(too_large.unwrap_err().kind(), crate::error::ErrorKind::ResourceExhausted);
    let file = writer.finish().unwrap();
    let mut container = Container::open(&file).unwrap();
    let mut buffer = BlockBuffer::default();
    let mut counts = Vec::new();
    while let Some(block) = container.next_block(&mut buffer).unwrap() {
        counts.push(block.count);
    }
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn codecs_of_the_table_property() {
    assert_eq!(Codec::from_property("gzip").unwrap(), Codec::Deflate);
    assert_eq!(Codec::from_property("ZSTD").unwrap(), Codec::Zstandard);
    assert_eq!(Codec::from_property("uncompressed").unwrap(), Codec::Null);
    assert!(Codec::from_property("lzo").is_err());
    for codec in CODECS {
        assert_eq!(Codec::from_name(codec.name().as_bytes()).unwrap(), codec);
    }
}
