//! Puffin files made by the writer, and hand-broken ones.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::codec::{compress_frame, decompress_frame};
use super::*;
use crate::bitmap::{RowSet, deletion_vector};
use crate::error::{ErrorKind, Result};

fn blob(blob_type: &str, codec: Option<&str>) -> BlobMetadata {
    BlobMetadata {
        blob_type: blob_type.to_owned(),
        fields: vec![1, 2],
        snapshot_id: 17,
        sequence_number: 3,
        offset: 0,
        length: 0,
        compression_codec: codec.map(str::to_owned),
        properties: BTreeMap::new(),
    }
}

fn parse(bytes: &[u8]) -> Result<Footer> {
    match parse_footer(bytes, bytes.len() as u64)? {
        FooterRead::Footer(footer) => Ok(footer),
        FooterRead::NeedTail(_) => panic!("the whole file was given"),
    }
}

fn stored<'a>(bytes: &'a [u8], blob: &BlobMetadata) -> &'a [u8] {
    &bytes[blob.offset as usize..(blob.offset + blob.length) as usize]
}

/// A file around a footer payload of the caller's making.
fn file(payload: &str) -> Vec<u8> {
    let mut bytes = b"PFA1blobPFA1".to_vec();
    bytes.extend(payload.bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(b"PFA1");
    bytes
}

fn failure(bytes: &[u8]) -> (ErrorKind, String) {
    let e = parse(bytes).unwrap_err();
    (e.kind(), e.to_string())
}

#[test]
fn a_file_reads_back_with_plain_and_with_compressed_footer() {
    let vectors: [RowSet; 2] = [(0..100).collect(), [7, 1 << 33].into_iter().collect()];
    let text = "abc".repeat(5000);
    for compress_footer in [false, true] {
        let mut writer = PuffinWriter::new("sandur test");
        writer.set_property("k", "v");
        assert_eq!(writer.add_deletion_vector("s3://b/f1.parquet", &vectors[0]).unwrap().offset, 4);
        writer.add_blob(blob("text", Some("zstd")), text.as_bytes()).unwrap();
        writer.add_blob(blob("text", Some("lz4")), text.as_bytes()).unwrap();
        writer.add_blob(blob("text", None), b"").unwrap();
        writer.add_deletion_vector("s3://b/f2.parquet", &vectors[1]).unwrap();
        let (bytes, footer) = writer.finish(compress_footer).unwrap();
        assert_eq!(parse(&bytes).unwrap(), footer);
        assert_eq!(
            footer.properties,
            BTreeMap::from([("created-by".into(), "sandur test".into()), ("k".into(), "v".into())])
        );

        let contents: Vec<_> = footer
            .blobs
            .iter()
            .map(|blob| decompress(blob, stored(&bytes, blob)).unwrap())
            .collect();
        assert_eq!(contents[0].len() as u64, footer.blobs[0].length);
        assert_eq!(deletion_vector::decode_blob(&contents[0], Some(100)).unwrap(), vectors[0]);
        assert_eq!(contents[1], text.as_bytes());
        assert_eq!(contents[2], text.as_bytes());
        assert!(footer.blobs[1].length < 1000 && footer.blobs[2].length < 1000);
        assert_eq!(contents[3], b"");
        assert_eq!(deletion_vector::decode_blob(&contents[4], Some(2)).unwrap(), vectors[1]);
        assert_eq!(footer.blobs[4].properties["referenced-data-file"], "s3://b/f2.parquet");
        assert_eq!(footer.blobs[4].properties["cardinality"], "2");
        assert_eq!((footer.blobs[4].snapshot_id, footer.blobs[4].sequence_number), (-1, -1));
    }
}

#[test]
fn a_short_tail_names_the_bytes_that_are_missing() {
    let (bytes, footer) = PuffinWriter::new("sandur test").finish(false).unwrap();
    let size = bytes.len() as u64;
    // The file is its magic and the footer.
    let missing = FooterRead::NeedTail(size - 4);
    assert_eq!(parse_footer(&bytes[bytes.len() - 12..], size).unwrap(), missing);
    assert_eq!(parse_footer(&bytes[5..], size).unwrap(), missing);
    assert_eq!(parse_footer(&bytes[bytes.len() - 3..], size).unwrap(), FooterRead::NeedTail(20));
    assert_eq!(parse_footer(&bytes[4..], size).unwrap(), FooterRead::Footer(footer));
}

#[test]
fn sizes_magic_and_flags_are_checked() {
    let good = file(r#"{"blobs": []}"#);
    assert_eq!(parse(&good).unwrap(), Footer::default());
    let change = |from_end: usize, to: u8| {
        let mut bytes = good.clone();
        let at = bytes.len() - from_end;
        bytes[at] = to;
        failure(&bytes)
    };
    assert_eq!(
        change(1, b'2'),
        (
            ErrorKind::Corrupt,
            "puffin file is broken: it does not end with the magic PFA1".into()
        )
    );
    assert_eq!(change(8, 2), (ErrorKind::Unsupported, "puffin footer has unknown flags 0x2".into()));
    assert_eq!(
        change(5, 1),
        (ErrorKind::Unsupported, "puffin footer has unknown flags 0x1000000".into())
    );
    assert!(change(8, 1).1.contains("lz4 frame does not start with its magic"));
    assert!(change(9, 0x80).1.contains("declares -2147483635 bytes"));
    assert!(change(10, 1).1.contains("declares 65549 bytes in a file of 37"));
    assert!(change(12, 12).1.contains("the footer does not start with the magic"));
    assert!(change(good.len(), b'p').1.contains("it does not start with the magic"));
    assert!(failure(b"PFA1PFA1").1.contains("too small"));
    // The declared size is beyond the limit and within the file, of which the end alone is at hand.
    let mut huge = good;
    let at = huge.len() - 12;
    huge[at..at + 4].copy_from_slice(&(MAX_FOOTER_BYTES as u32 + 1).to_le_bytes());
    assert_eq!(parse_footer(&huge, 1 << 40).unwrap_err().kind(), ErrorKind::ResourceExhausted);
}

#[test]
fn blobs_must_lie_before_the_footer() {
    let with = |offset: i64, length: i64| {
        file(&format!(
            r#"{{"blobs": [{{"type": "t", "fields": [], "snapshot-id": 1, "sequence-number": 1, "offset": {offset}, "length": {length}, "new": {{}}}}], "properties": null}}"#
        ))
    };
    assert_eq!(parse(&with(4, 4)).unwrap().blobs[0].length, 4);
    assert_eq!(parse(&with(8, 0)).unwrap().blobs[0].offset, 8);
    for (offset, length) in [(4, 5), (3, 2), (9, 0), (5, i64::MAX), (i64::MAX, i64::MAX), (-4, 4), (4, -1)] {
        assert_eq!(failure(&with(offset, length)).0, ErrorKind::Corrupt, "{offset} {length}");
    }
}

#[test]
fn a_footer_must_be_complete_json() {
    for bad in [
        "",
        "{}",
        "[]",
        "{\"blobs\": [{}]}",
        "{\"blobs\": []} x",
        "{\"blobs\": [], \"properties\": {\"a\": 1}}",
    ] {
        assert_eq!(failure(&file(bad)).0, ErrorKind::Corrupt, "{bad}");
    }
}

#[test]
fn an_unknown_codec_is_an_error_when_its_blob_is_read() {
    let mut odd = blob("t", Some("snappy"));
    odd.length = 3;
    let e = decompress(&odd, b"abc").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert_eq!(e.to_string(), "puffin compression codec 'snappy' is unknown (blob: t at 0)");
    odd.compression_codec = None;
    assert_eq!(decompress(&odd, b"abc").unwrap(), b"abc");
    assert_eq!(decompress(&odd, b"ab").unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(PuffinWriter::new("sandur test").add_blob(blob("t", Some("gzip")), b"").is_err());
}

#[test]
fn frames_are_bounded_single_and_whole() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let content = vec![7; 100_000];
        let frame = compress_frame(codec, &content).unwrap();
        assert!(frame.len() < 1000);
        assert_eq!(decompress_frame(codec, &frame, 100_000).unwrap(), content);
        assert_eq!(
            decompress_frame(codec, &frame, 99_999).unwrap_err().kind(),
            ErrorKind::ResourceExhausted
        );
        let twice = [frame.as_slice(), frame.as_slice()].concat();
        assert!(
            decompress_frame(codec, &twice, 1 << 20)
                .unwrap_err()
                .to_string()
                .contains("is followed by")
        );
        assert!(decompress_frame(codec, &frame[..frame.len() - 8], 1 << 20).is_err());
        assert!(decompress_frame(codec, b"", 1 << 20).is_err());
    }
    // A frame whose header declares less than its blocks hold: the content size is bytes 6 to 13 of an LZ4 frame.
    let mut liar = compress_frame(Codec::Lz4, &[7; 100_000]).unwrap();
    liar[6..14].copy_from_slice(&1000u64.to_le_bytes());
    assert_eq!(decompress_frame(Codec::Lz4, &liar, 1 << 20).unwrap_err().kind(), ErrorKind::Corrupt);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_file_is_read_or_refused_without_a_panic(compress: bool, at: prop::sample::Index, flip in 1..=255u8, cut: prop::sample::Index) {
        let mut writer = PuffinWriter::new("sandur test");
        writer.add_deletion_vector("f", &(5..900).collect()).unwrap();
        writer.add_blob(blob("text", Some("zstd")), &[b'x'; 3000]).unwrap();
        writer.add_blob(blob("text", Some("lz4")), &[b'x'; 3000]).unwrap();
        let (mut bytes, _) = writer.finish(compress).unwrap();
        let cut = cut.index(bytes.len());
        prop_assert!(parse(&bytes[..cut]).is_err());
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(footer) = parse(&bytes) {
            for blob in &footer.blobs {
                let _ = decompress(blob, stored(&bytes, blob));
            }
        }
    }
}
