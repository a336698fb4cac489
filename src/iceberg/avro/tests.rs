//! Tests of the container, the codecs, schemas and primitive encodings; bytes are written by hand.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use crate::error::{ErrorKind, Result};

const SYNC: [u8; 16] = *b"0123456789abcdef";

fn number(out: &mut Vec<u8>, value: i64) {
    let mut n = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    number(out, value.len() as i64);
    out.extend_from_slice(value);
}

fn header(schema: &str, codec: &str) -> Vec<u8> {
    let mut out = b"Obj\x01".to_vec();
    number(&mut out, 2);
    bytes(&mut out, b"avro.schema");
    bytes(&mut out, schema.as_bytes());
    bytes(&mut out, b"avro.codec");
    bytes(&mut out, codec.as_bytes());
    number(&mut out, 0);
    out.extend(SYNC);
    out
}

fn file(codec: &str, blocks: &[(i64, &[u8])]) -> Vec<u8> {
    let mut out = header("\"string\"", codec);
    for (count, block) in blocks {
        number(&mut out, *count);
        bytes(&mut out, block);
        out.extend(SYNC);
    }
    out
}

fn strings(values: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    values.iter().for_each(|v| bytes(&mut out, v.as_bytes()));
    out
}

/// Reads a file of strings.
fn read(file: &[u8]) -> Result<Vec<String>> {
    let mut container = Container::open(file)?;
    assert_eq!(container.schema()?.node(NodeId(0))?.kind, Kind::String);
    let mut buffer = BlockBuffer::default();
    let mut out = Vec::new();
    while let Some(block) = container.next_block(&mut buffer)? {
        let mut cursor = Cursor::new(block.bytes);
        for _ in 0..block.count {
            out.push(cursor.string()?.to_owned());
        }
        block.finish(&cursor)?;
    }
    Ok(out)
}

fn deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn snappy(data: &[u8]) -> Vec<u8> {
    let mut out = snap::raw::Encoder::new().compress_vec(data).unwrap();
    out.extend(crc32fast::hash(data).to_be_bytes());
    out
}

fn assert_corrupt<T: std::fmt::Debug>(result: Result<T>, message: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(message), "{error} lacks {message}");
}

#[test]
fn blocks_of_every_codec_are_read() {
    let first = strings(&["a", "bc"]);
    let second = strings(&["d"]);
    let packers: [(&str, fn(&[u8]) -> Vec<u8>); 4] = [
        ("null", <[u8]>::to_vec),
        ("deflate", deflate),
        ("snappy", snappy),
        ("zstandard", |data| zstd::encode_all(data, 3).unwrap()),
    ];
    for (codec, pack) in packers {
        let file = file(codec, &[(2, &pack(&first)), (0, &pack(&[])), (1, &pack(&second))]);
        assert_eq!(read(&file).unwrap(), ["a", "bc", "d"], "{codec}");
    }
}

#[test]
fn a_file_without_blocks_is_empty() {
    assert_eq!(read(&file("null", &[])).unwrap(), Vec::<String>::new());
}

#[test]
fn an_unknown_codec_is_unsupported_and_named() {
    let error = read(&file("bzip2", &[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("bzip2"));
}

#[test]
fn bytes_behind_the_end_of_a_deflate_stream_are_ignored() {
    let mut block = deflate(&strings(&["a"]));
    block.extend([1, 2, 3]);
    assert_eq!(read(&file("deflate", &[(1, &block)])).unwrap(), ["a"]);
}

#[test]
fn a_deflate_stream_that_stops_early_is_refused() {
    let long = "x".repeat(100_000);
    let block = deflate(&strings(&[&long]));
    assert_eq!(read(&file("deflate", &[(1, &block)])).unwrap(), [long]);
    assert_corrupt(read(&file("deflate", &[(1, &block[..block.len() - 2])])), "deflate");
    assert_corrupt(read(&file("deflate", &[(1, &[])])), "deflate");
}

#[test]
fn blocks_that_expand_too_far_are_refused() {
    let zeros = vec![0; MAX_BLOCK_BYTES + 1];
    // 64 MiB and one byte, of which snappy never gets to see more than the declaration.
    let declared = [0x81, 0x80, 0x80, 0x20, 0, 0, 0, 0, 0];
    for (codec, block) in [
        ("deflate", deflate(&zeros)),
        ("zstandard", zstd::encode_all(zeros.as_slice(), 1).unwrap()),
        ("snappy", declared.to_vec()),
    ] {
        assert_corrupt(read(&file(codec, &[(1, &block)])), "larger than 64 MiB");
    }
    let most = deflate(&zeros[1..]);
    let file = file("deflate", &[(1, &most)]);
    let mut container = Container::open(&file).unwrap();
    let mut buffer = BlockBuffer::default();
    assert_eq!(container.next_block(&mut buffer).unwrap().unwrap().bytes.len(), MAX_BLOCK_BYTES);
}

#[test]
fn a_snappy_block_is_checked() {
    let good = snappy(&strings(&["abc"]));
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_corrupt(read(&file("snappy", &[(1, &bad)])), "checksum");
    assert_corrupt(read(&file("snappy", &[(1, &good[..3])])), "checksum");
    // A few bytes that declare 60 MiB.
    let declared = [0x80, 0x80, 0x80, 0x1e, 0, 0, 0, 0, 0];
    assert_corrupt(read(&file("snappy", &[(1, &declared)])), "declares");
}

#[test]
fn a_wrong_sync_marker_is_refused() {
    let mut file = file("null", &[(1, &strings(&["a"]))]);
    *file.last_mut().unwrap() ^= 1;
    assert_corrupt(read(&file), "sync marker");
}

#[test]
fn counts_and_sizes_are_checked_against_the_bytes() {
    assert_corrupt(read(b"PAR1"), "magic");
    assert_corrupt(read(b"Ob"), "magic");
    assert_corrupt(read(&file("null", &[(-1, b"")])), "declares -1 values");
    assert_corrupt(read(&file("null", &[(1, &strings(&["a", "b"]))])), "more than they take");
    assert_corrupt(read(&file("null", &[(i64::MAX, &strings(&["a"]))])), "too early");
    let mut huge = header("\"string\"", "null");
    number(&mut huge, 1);
    number(&mut huge, i64::MAX);
    assert_corrupt(read(&huge), "too early");
    let mut negative = header("\"string\"", "null");
    number(&mut negative, 1);
    number(&mut negative, -5);
    assert_corrupt(read(&negative), "negative");
    let mut entries = b"Obj\x01".to_vec();
    number(&mut entries, 1 << 50);
    assert_corrupt(read(&entries), "items");
}

#[test]
fn every_cut_of_a_file_but_between_blocks_is_refused() {
    let whole = file("null", &[(1, &strings(&["a"])), (1, &strings(&["b"]))]);
    let block = 1 + 1 + 2 + 16;
    let complete = [whole.len() - 2 * block, whole.len() - block];
    for len in (0..whole.len()).filter(|len| !complete.contains(len)) {
        assert!(read(&whole[..len]).is_err(), "{len}");
    }
}

#[test]
fn metadata_may_come_in_blocks_with_sizes() {
    let mut body = Vec::new();
    bytes(&mut body, b"avro.schema");
    bytes(&mut body, b"\"string\"");
    let mut file = b"Obj\x01".to_vec();
    number(&mut file, -1);
    number(&mut file, body.len() as i64);
    file.extend(&body);
    number(&mut file, 0);
    file.extend(SYNC);
    assert_eq!(Container::open(&file).unwrap().codec(), Codec::Null);
    assert!(read(&file).unwrap().is_empty());
}

#[test]
fn numbers_are_zigzag_of_at_most_64_bits() {
    for value in [0, 1, -1, 63, -64, 64, i64::from(i32::MAX), i64::MAX, i64::MIN] {
        let mut out = Vec::new();
        number(&mut out, value);
        let mut cursor = Cursor::new(&out);
        assert_eq!(cursor.long().unwrap(), value);
        assert_eq!(cursor.remaining(), 0);
        assert_corrupt(Cursor::new(&out[..out.len() - 1]).long(), "too early");
    }
    assert_eq!(Cursor::new(&[0x02]).long().unwrap(), 1);
    assert_eq!(Cursor::new(&[0x01]).long().unwrap(), -1);
    assert_eq!(Cursor::new(&[0x80, 0x01]).long().unwrap(), 64);
    let eleven = [0x80; 11];
    assert_corrupt(Cursor::new(&eleven).long(), "64 bits");
    let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
    assert_corrupt(Cursor::new(&too_large).long(), "64 bits");
    let mut beyond_int = Vec::new();
    number(&mut beyond_int, 1 << 31);
    assert_corrupt(Cursor::new(&beyond_int).int(), "32 bits");
}

#[test]
fn text_must_be_utf8_and_booleans_0_or_1() {
    assert_corrupt(Cursor::new(&[2, 0xff]).string(), "utf-8");
    assert_corrupt(Cursor::new(&[2]).boolean(), "boolean is 2");
}

fn parse(json: &str) -> Result<AvroSchema> {
    AvroSchema::parse(json.as_bytes())
}

fn skip(schema: &str, data: &[u8]) -> Result<usize> {
    let schema = parse(schema)?;
    let mut cursor = Cursor::new(data);
    schema.skip(schema.root(), &mut cursor)?;
    Ok(cursor.remaining())
}

#[test]
fn ids_and_logical_types_are_read() {
    let schema = parse(
        r#"{"type": "record", "name": "r", "namespace": "n", "fields": [
            {"name": "a.b", "type": ["null", {"type": "array", "items": "long", "element-id": 7}], "field-id": 1},
            {"name": "m", "type": {"type": "map", "values": "int", "key-id": 8, "value-id": 9}, "field-id": 2},
            {"name": "d", "type": {"type": "fixed", "name": "dec", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "d2", "type": "dec", "field-id": 4},
            {"name": "d3", "type": "n.dec", "field-id": 5},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": true}, "field-id": 6},
            {"name": "w", "type": {"type": {"type": "int", "logicalType": "date"}}, "field-id": 10},
            {"name": "x", "type": {"type": "string", "logicalType": "own"}, "field-id": 11}]}"#,
    )
    .unwrap();
    let fields = schema.record(schema.root()).unwrap().unwrap();
    assert_eq!(
        fields.iter().map(|f| f.id).collect::<Vec<_>>(),
        [Some(1), Some(2), None, Some(4), Some(5), Some(6), Some(10), Some(11)]
    );
    let node = |at: usize| schema.optional(fields[at].node).unwrap();
    assert_eq!(node(0).presence, Presence::Nullable { null_branch: 0 });
    assert!(matches!(node(0).node.kind, Kind::Array { element_id: Some(7), .. }));
    assert!(matches!(
        node(1).node.kind,
        Kind::Map {
            key_id: Some(8),
            value_id: Some(9),
            ..
        }
    ));
    let decimal = Some(Logical::Decimal { precision: 9, scale: 2 });
    assert_eq!([2, 3, 4].map(|at| node(at).node.logical), [decimal; 3]);
    assert_eq!(node(5).node.logical, Some(Logical::TimestampMicros { utc: true }));
    assert_eq!(node(6).node.logical, Some(Logical::Date));
    assert_eq!(node(7).node.logical, None);
    assert!(schema.contains_field(schema.root(), 6) && !schema.contains_field(schema.root(), 3));
}

#[test]
fn bad_schemas_are_refused() {
    for (json, message) in [
        ("", "json"),
        ("3", "not a type"),
        ("\"unknown\"", "not defined"),
        ("{}", "no \"type\""),
        (r#"{"type": "record", "name": "r"}"#, "no fields"),
        (r#"{"type": "record", "name": "r", "fields": [{"name": "a"}]}"#, "no type"),
        (
            r#"{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "field-id": "1"}]}"#,
            "field-id",
        ),
        (r#"{"type": "fixed", "name": "f", "size": -1}"#, "no size"),
        (r#"{"type": "array"}"#, "no items"),
        (r#"{"type": "map"}"#, "no values"),
        (r#"{"type": "enum", "name": "e"}"#, "no symbols"),
    ] {
        assert_corrupt(parse(json), message);
    }
}

#[test]
fn schemas_nest_only_so_deep() {
    let nested = |depth: usize| format!("{}\"int\"{}", r#"{"type": "array", "items": "#.repeat(depth), "}".repeat(depth));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    assert_corrupt(parse(&nested(MAX_DEPTH + 1)), "nests deeper");
    assert!(parse(&nested(100_000)).is_err());
}

#[test]
fn values_of_every_type_are_skipped() {
    let all = r#"{"type": "record", "name": "r", "fields": [
        {"name": "a", "type": "null"}, {"name": "b", "type": "boolean"}, {"name": "c", "type": "int"},
        {"name": "d", "type": "float"}, {"name": "e", "type": "double"}, {"name": "f", "type": "bytes"},
        {"name": "g", "type": {"type": "fixed", "name": "x", "size": 3}},
        {"name": "h", "type": {"type": "enum", "name": "y", "symbols": ["p", "q"]}},
        {"name": "i", "type": {"type": "array", "items": "string"}},
        {"name": "j", "type": {"type": "map", "values": ["null", "int"]}}]}"#;
    let mut data = vec![1, 0x80, 0x01];
    data.extend([0; 12]);
    data.extend([4, 9, 9]);
    data.extend([7, 7, 7]);
    data.push(2);
    // Two strings in one block; then one in a block with its size; then the end.
    data.extend([4, 2, b'a', 0, 1, 4, 2, b'b', 0]);
    data.extend([4, 2, b'k', 0, 2, b'l', 2, 6, 0]);
    data.push(0x55);
    assert_eq!(skip(all, &data).unwrap(), 1);
    for len in 0..data.len() - 1 {
        assert!(skip(all, &data[..len]).is_err(), "{len}");
    }
}

#[test]
fn skipping_checks_unions_counts_and_sizes() {
    assert_corrupt(skip(r#"["null", "int"]"#, &[4]), "no branch 2");
    assert_corrupt(skip(r#"["null", "int"]"#, &[1]), "no branch -1");
    let list = r#"{"type": "array", "items": "int"}"#;
    assert_corrupt(skip(list, &[0x80, 0x80, 0x80, 0x02, 0]), "items");
    assert_corrupt(skip(list, &[1, 100, 0]), "block of 50 bytes");
    assert_corrupt(skip(list, &[1, 1, 0]), "block of -1 bytes");
    let mut lowest = Vec::new();
    number(&mut lowest, i64::MIN);
    number(&mut lowest, 0);
    lowest.push(0);
    assert_eq!(skip(list, &lowest).unwrap(), 0);
}

#[test]
fn values_without_bytes_cost_nothing() {
    let mut data = Vec::new();
    number(&mut data, i64::MAX);
    data.push(0);
    assert_eq!(skip(r#"{"type": "array", "items": "null"}"#, &data).unwrap(), 0);
    // Each record holds the one before it twice: 2^40 nulls.
    let mut json = r#"{"type": "record", "name": "r0", "fields": [{"name": "a", "type": "null"}]}"#.to_owned();
    for i in 1..40 {
        json = format!(
            r#"{{"type": "record", "name": "r{i}", "fields": [{{"name": "a", "type": {json}}}, {{"name": "b", "type": "r{}"}}]}}"#,
            i - 1
        );
    }
    assert_eq!(skip(&json, &[]).unwrap(), 0);
}

#[test]
fn recursive_types_stop_at_the_depth_limit() {
    let list = r#"{"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]}"#;
    assert_eq!(skip(list, &[2, 2, 0]).unwrap(), 0);
    assert_corrupt(skip(list, &[2; 1000]), "nests deeper");
    assert_corrupt(
        skip(
            r#"{"type": "record", "name": "r", "fields": [{"name": "a", "type": "r"}, {"name": "b", "type": "r"}]}"#,
            &[],
        ),
        "nests deeper",
    );
}

#[test]
fn nullable_means_null_and_one_other_type_in_either_order() {
    let optional = |json: &str| {
        let schema = parse(json).unwrap();
        schema.optional(schema.root()).map(|o| (o.presence, o.node.kind.name()))
    };
    assert_eq!(
        optional(r#"["null", "int"]"#).unwrap(),
        (Presence::Nullable { null_branch: 0 }, "int")
    );
    assert_eq!(
        optional(r#"["int", "null"]"#).unwrap(),
        (Presence::Nullable { null_branch: 1 }, "int")
    );
    assert_eq!(optional(r#""int""#).unwrap(), (Presence::Required, "int"));
    assert_eq!(optional(r#""null""#).unwrap(), (Presence::Never, "null"));
    for bad in [
        r#"["null", "int", "long"]"#,
        r#"["int"]"#,
        r#"["int", "long"]"#,
        r#"["null", "null"]"#,
    ] {
        assert_corrupt(optional(bad), "avro union");
    }
    let presence = Presence::Nullable { null_branch: 1 };
    assert_eq!(presence.integer(&mut Cursor::new(&[0, 2])).unwrap(), Some(1));
    assert_eq!(presence.integer(&mut Cursor::new(&[2])).unwrap(), None);
    assert_corrupt(presence.integer(&mut Cursor::new(&[4])), "no branch 2");
}

proptest! {
    #[test]
    fn any_number_comes_back(value in any::<i64>()) {
        let mut out = Vec::new();
        number(&mut out, value);
        prop_assert_eq!(Cursor::new(&out).long().unwrap(), value);
    }

    #[test]
    fn any_bytes_give_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), codec in 0..4_usize) {
        let codec = ["null", "deflate", "snappy", "zstandard"][codec];
        let _ = read(&file(codec, &[(1, &bytes)]));
        let mut raw = header("\"string\"", codec);
        raw.extend(bytes);
        let _ = read(&raw);
    }
}
