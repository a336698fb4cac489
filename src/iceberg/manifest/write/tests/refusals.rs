//! Files that a manifest does not take, each with the reason in the message.

use super::*;
use crate::error::ErrorKind;
use crate::iceberg::manifest::tests::listed;
use crate::iceberg::manifest::tests::writer::{Entry, Style, text};

fn equality_delete() -> DataFile {
    DataFile {
        content: FileContent::EqualityDeletes,
        equality_ids: Some(vec![1]),
        ..data_file("e")
    }
}

fn position_delete() -> DataFile {
    DataFile {
        content: FileContent::PositionDeletes,
        ..data_file("p")
    }
}

#[test]
#[rustfmt::skip]
fn each_rule_has_its_message() {
    use ManifestContent::{Data, Deletes};
    let vector = || deletion_vector("v", "a");
    let refused: Vec<(u8, ManifestContent, DataFile, &str)> = vec![
        (2, Data, position_delete(), "delete file cannot be in a data manifest"),
        (2, Deletes, data_file("a"), "data file cannot be in a delete manifest"),
        (2, Data, data_file(""), "needs a path"),
        (2, Data, DataFile { file_format: FileFormat::Puffin, ..data_file("a") }, "only deletion vectors"),
        (3, Deletes, DataFile { content_offset: None, ..vector() }, "data file, offset and size"),
        (3, Deletes, DataFile { referenced_data_file: None, ..vector() }, "data file, offset and size"),
        (3, Deletes, DataFile { record_count: 0, ..vector() }, "deletes something"),
        (3, Deletes, DataFile { sort_order_id: Some(1), ..vector() }, "no sort order"),
        (2, Deletes, vector(), "need format version 3"),
        (3, Deletes, position_delete(), "as deletion vectors only"),
        (2, Deletes, DataFile { equality_ids: Some(vec![]), ..equality_delete() }, "needs its key columns"),
        (2, Deletes, DataFile { referenced_data_file: Some("a".into()), ..equality_delete() }, "one data file alone"),
        (2, Data, DataFile { equality_ids: Some(vec![1]), ..data_file("a") }, "only an equality delete"),
        (3, Data, DataFile { first_row_id: Some(1), ..data_file("a") }, "inherits its row ids"),
        (3, Data, DataFile { content_offset: Some(1), ..data_file("a") }, "only a deletion vector lies within"),
        (2, Data, DataFile { referenced_data_file: Some("b".into()), ..data_file("a") }, "refers to no other"),
        (2, Data, DataFile { file_size_in_bytes: 0, ..data_file("a") }, "no bytes"),
        (2, Data, DataFile { split_offsets: Some(vec![4, 1]), ..data_file("a") }, "must ascend"),
        (2, Data, partitioned("a", None, None), "of partition spec 0, the file of 1"),
        (2, Data, DataFile { record_count: u64::MAX, ..data_file("a") }, "2^63"),
        (2, Data, DataFile { partition: Arc::from([None]), ..data_file("a") }, "has 0 fields, the file 1 values"),
    ];
    for (version, content, file, message) in refused {
        let mut manifest = writer(version, 0, content);
        let error = manifest.add(&file).unwrap_err();
        assert!(error.message().contains(message), "{message}: {error}");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(manifest.is_empty());
    }
}

#[test]
fn a_value_of_another_type_than_its_partition_field() {
    let mut manifest = writer(2, 1, ManifestContent::Data);
    let file = DataFile {
        partition: Arc::from([Some(Literal::Int(1)), None]),
        ..partitioned("a", None, None)
    };
    let error = manifest.add(&file).unwrap_err();
    assert!(error.to_string().contains("Int(1) is not of type long"), "{error}");
    assert!(error.to_string().contains("partition field: id"), "{error}");
    let mut manifest = writer(2, 3, ManifestContent::Data);
    let file = DataFile {
        spec_id: 3,
        partition: Arc::from([None, Some(Literal::Decimal(1_000_000_000))]),
        ..data_file("a")
    };
    assert!(manifest.add(&file).is_err(), "a decimal of more digits than its precision");
}

#[test]
fn manifests_that_cannot_be() {
    let refused = |version, spec_id, content| ManifestWriter::new(&table_of(version), spec_id, content, 1, layout()).unwrap_err();
    assert!(refused(1, 0, ManifestContent::Deletes).message().contains("format version 2"));
    assert!(refused(2, 9, ManifestContent::Data).message().contains("no partition spec 9"));
    assert!(writer(2, 0, ManifestContent::Data).finish("m").is_err(), "one without entries");
    let mut v1 = writer(1, 0, ManifestContent::Data);
    assert!(v1.add_with_sequence_number(&data_file("a"), 1).is_err());
    let mut metadata = table_of(2);
    let mut spec = (*metadata.partition_specs[1]).clone();
    spec.fields[0].transform = "zorder".parse().unwrap();
    metadata.partition_specs[1] = Arc::new(spec);
    let unknown = ManifestWriter::new(&metadata, 1, ManifestContent::Data, 1, layout()).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unsupported);
}

/// The one entry of a foreign manifest, or the error when it is carried over.
fn carry(bytes: &[u8], full: bool) -> Result<(), crate::error::Error> {
    let parse = if full { Manifest::parse_in_full } else { Manifest::parse };
    let manifest = parse(bytes, &listed(), &table_of(2)).unwrap();
    writer(2, 0, ManifestContent::Data).existing(&manifest.entry(0))
}

#[test]
fn what_would_be_lost_is_not_carried_over() {
    let style = Style::default();
    let entry = Entry::added("file:/t/data/a.parquet");
    let file = |extra: Vec<_>| {
        let mut row = entry.row_with(style, extra, &[]);
        row.0["name"] = serde_json::json!("manifest_entry");
        style.container(&[("format-version", "2")], apache_avro::Codec::Null, vec![row])
    };
    carry(&file(vec![]), true).unwrap();
    // Deprecated: nobody reads it any more.
    carry(&file(vec![style.long(105, Some(1))]), true).unwrap();
    let error = carry(&file(vec![text(9000, Some("x"))]), true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("would be lost: f9000"), "{error}");
    assert!(error.to_string().contains("file:/t/metadata/m0.avro"), "{error}");
    assert_eq!(carry(&file(vec![]), false).unwrap_err().kind(), ErrorKind::Internal);
    let unknown_partition = Entry {
        partition: vec![text(1999, Some("x"))],
        ..entry.clone()
    };
    let bytes = crate::iceberg::manifest::tests::writer::manifest(&[unknown_partition]);
    assert!(carry(&bytes, true).unwrap_err().message().contains("partition.f1999"));
}

#[test]
fn a_deleted_file_is_never_revived() {
    let deleted = Entry {
        status: 2,
        ..Entry::existing("file:/t/data/a.parquet", 3)
    };
    let bytes = crate::iceberg::manifest::tests::writer::manifest(&[deleted]);
    assert!(carry(&bytes, true).unwrap_err().message().contains("deleted file"));
}
