//! Manifest lists of each version.

use apache_avro::Codec;
use apache_avro::types::Value;
use serde_json::json;

use super::super::{FieldSummary, ManifestContent, ManifestFile, read_manifest_list};
use super::writer::{Column, Style, binary, boolean, column, text};
use crate::error::ErrorKind;

const STYLE: Style = Style {
    null_last: false,
    reverse: false,
    narrow: false,
    wide: false,
    blocks: false,
};

fn v1_columns() -> Vec<Column> {
    vec![
        text(500, Some("file:/t/m.avro")).required(),
        STYLE.long(501, Some(123)).required(),
        STYLE.int(502, Some(1)).required(),
        STYLE.long(503, Some(77)),
        STYLE.int(504, Some(3)),
        STYLE.int(505, None),
        STYLE.int(506, Some(0)),
    ]
}

fn v3_columns() -> Vec<Column> {
    let mut columns = v1_columns();
    columns.extend([
        STYLE.int(517, Some(1)).required(),
        STYLE.long(515, Some(5)).required(),
        STYLE.long(516, Some(4)).required(),
        STYLE.long(512, Some(30)).required(),
        STYLE.long(520, Some(1000)),
        binary(519, Some(b"key")),
    ]);
    columns
}

fn list(metadata: &[(&str, &str)], columns: Vec<Column>) -> Vec<u8> {
    STYLE.container(metadata, Codec::Null, vec![STYLE.record("manifest_file", columns)])
}

fn read_one(bytes: &[u8]) -> ManifestFile {
    let mut manifests = read_manifest_list(bytes, "list").unwrap();
    assert_eq!(manifests.len(), 1);
    manifests.remove(0)
}

#[allow(clippy::needless_pass_by_value, reason = "callers make the column in place")]
fn replaced(columns: Vec<Column>, column: Column) -> Vec<Column> {
    columns
        .into_iter()
        .map(|c| if c.id() == column.id() { column.clone() } else { c })
        .collect()
}

#[test]
fn a_v1_list_has_data_manifests_of_sequence_number_0() {
    let expected = ManifestFile {
        location: "file:/t/m.avro".to_owned(),
        length: Some(123),
        partition_spec_id: Some(1),
        added_snapshot_id: Some(77),
        added_files_count: Some(3),
        deleted_files_count: Some(0),
        ..ManifestFile::bare("")
    };
    assert_eq!(expected.content, ManifestContent::Data);
    assert_eq!(expected.sequence_number, 0);
    assert_eq!(read_one(&list(&[("format-version", "1")], v1_columns())), expected);
    assert!(expected.may_have_live_files());
}

#[test]
fn the_columns_decide_where_no_version_is_stated() {
    for metadata in [&[][..], &[("format-version", "3")]] {
        let manifest = read_one(&list(metadata, v3_columns()));
        assert_eq!(manifest.content, ManifestContent::Deletes);
        assert_eq!((manifest.sequence_number, manifest.min_sequence_number), (5, 4));
        assert_eq!(manifest.added_rows_count, Some(30));
        assert_eq!(manifest.first_row_id, Some(1000));
        assert!(manifest.has_key_metadata);
    }
}

#[test]
fn summaries_keep_their_positions() {
    let summary = |null, nan, lower: Option<&[u8]>, upper: Option<&[u8]>| {
        STYLE.record(
            "r508",
            vec![
                boolean(509, Some(null)).required(),
                boolean(518, nan),
                binary(510, lower),
                binary(511, upper),
            ],
        )
    };
    let (json, first) = summary(true, None, None, None);
    let (_, second) = summary(false, Some(true), Some(b"a"), Some(b""));
    let mut columns = v1_columns();
    let partitions = json!({"type": "array", "items": json, "element-id": 508});
    columns.push(column(507, partitions, Some(Value::Array(vec![first, second]))));
    let expected = [
        FieldSummary {
            contains_null: true,
            contains_nan: None,
            lower_bound: None,
            upper_bound: None,
        },
        FieldSummary {
            contains_null: false,
            contains_nan: Some(true),
            lower_bound: Some("a".into()),
            upper_bound: Some("".into()),
        },
    ];
    assert_eq!(read_one(&list(&[], columns)).partitions.unwrap(), expected);
}

#[test]
fn unknown_columns_are_passed_over() {
    let mut columns = vec![column(
        9000,
        json!({"type": "map", "values": "long"}),
        Some(Value::Map([("a".to_owned(), Value::Long(1))].into())),
    )];
    columns.extend(v1_columns());
    columns.push(text(9001, Some("x")));
    assert_eq!(read_one(&list(&[], columns)), read_one(&list(&[], v1_columns())));
}

#[test]
fn a_list_with_impossible_values_is_refused() {
    let bad = [
        ("manifest content is 2", STYLE.int(517, Some(2)).required()),
        ("manifest length is -1", STYLE.long(501, Some(-1)).required()),
        ("sequence number is -1", STYLE.long(515, Some(-1)).required()),
        ("first row id is -1", STYLE.long(520, Some(-1))),
        ("no location", text(500, Some("")).required()),
        ("no partition spec id", STYLE.int(502, None)),
        ("int or long is expected", text(501, Some("1"))),
        ("string is expected", binary(500, Some(b"x"))),
    ];
    for (message, column) in bad {
        let error = read_manifest_list(&list(&[], replaced(v3_columns(), column)), "file:/t/list.avro").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.to_string().contains("file:/t/list.avro"), "{error}");
    }
}

#[test]
fn unknown_counts_are_not_zero() {
    let manifest = read_one(&list(&[], replaced(v1_columns(), STYLE.int(504, Some(-1)))));
    assert_eq!(manifest.added_files_count, None);
    assert!(manifest.may_have_live_files());
}

#[test]
fn a_file_that_is_no_list_is_refused() {
    for columns in [vec![text(1, Some("x"))], vec![text(500, Some("x"))]] {
        let error = read_manifest_list(&list(&[], columns), "list").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("not a manifest list"), "{error}");
    }
    let error = read_manifest_list(&list(&[("format-version", "4")], v1_columns()), "list").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_field_id_twice_is_refused() {
    let mut columns = v1_columns();
    let mut rows = STYLE.record("manifest_file", columns.clone());
    columns.truncate(1);
    rows.0["fields"][1]["field-id"] = json!(500);
    let bytes = STYLE.container(&[], Codec::Null, vec![rows]);
    let error = read_manifest_list(&bytes, "list").unwrap_err();
    assert!(error.to_string().contains("field id 500 twice"), "{error}");
}
