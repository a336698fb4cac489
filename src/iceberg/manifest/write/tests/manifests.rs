//! What stands in a manifest: inheritance, header, partition values, counts and summaries.

use std::collections::BTreeMap;

use apache_avro::types::Value;
use serde_json::json;

use super::super::UNASSIGNED_SEQUENCE_NUMBER;
use super::*;
use crate::iceberg::manifest::{EntryStatus, FieldSummary};

#[test]
fn added_files_inherit_snapshot_and_sequence_numbers() {
    let mut manifest = writer(2, 0, ManifestContent::Data);
    manifest.add(&data_file("a")).unwrap();
    manifest.add_with_sequence_number(&data_file("b"), 3).unwrap();
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();

    let (rows, metadata) = oracle(&bytes);
    let nulls = ["snapshot_id", "sequence_number", "file_sequence_number"].map(|name| rows[0][name] == Value::Null);
    assert_eq!((&rows[0]["status"], nulls), (&Value::Int(1), [true; 3]));
    assert_eq!(rows[1]["sequence_number"], Value::Long(3));
    assert_eq!(rows[1]["file_sequence_number"], Value::Null);
    for (key, value) in [
        ("schema-id", "0"),
        ("partition-spec", "[]"),
        ("partition-spec-id", "0"),
        ("format-version", "2"),
        ("content", "data"),
    ] {
        assert_eq!(metadata[key], value, "{key}");
    }
    assert!(metadata["schema"].starts_with(r#"{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id""#));

    assert_eq!(listed.sequence_number, UNASSIGNED_SEQUENCE_NUMBER);
    assert_eq!((listed.min_sequence_number, listed.length), (3, Some(bytes.len() as u64)));
    assert_eq!((listed.added_files_count, listed.added_rows_count), (Some(2), Some(20)));
    assert_eq!((listed.existing_files_count, listed.deleted_rows_count), (Some(0), Some(0)));
    assert_eq!(
        (listed.added_snapshot_id, listed.partitions.as_deref()),
        (Some(SNAPSHOT), Some(&[][..]))
    );

    let read = read(2, &bytes, &committed(listed, 9));
    let seen = |i: usize| {
        let entry = read.entry(i);
        (entry.snapshot_id(), entry.sequence_number(), entry.file_sequence_number())
    };
    assert_eq!(seen(0), (Some(SNAPSHOT), 9, Some(9)));
    assert_eq!(seen(1), (Some(SNAPSHOT), 3, Some(9)));
}

/// A manifest of snapshot 77 with two files of sequence number 9 and row ids from 500 on.
fn base() -> Manifest {
    let mut manifest = writer(3, 0, ManifestContent::Data);
    manifest.add(&data_file("kept")).unwrap();
    manifest.add(&data_file("gone")).unwrap();
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    let listed = ManifestFile {
        first_row_id: Some(500),
        ..committed(listed, 9)
    };
    read(3, &bytes, &listed)
}

#[test]
fn existing_and_deleted_files_keep_all_that_they_inherited() {
    let base = base();
    let mut manifest = ManifestWriter::new(&table_of(3), 0, ManifestContent::Data, 88, layout()).unwrap();
    manifest.existing(&base.entry(0)).unwrap();
    manifest.delete(&base.entry(1)).unwrap();
    manifest.add(&data_file("new")).unwrap();
    let (bytes, listed) = manifest.finish("file:/t/metadata/m2.avro").unwrap();

    let (rows, _) = oracle(&bytes);
    let numbers =
        |row: &HashMap<String, Value>| ["status", "snapshot_id", "sequence_number", "file_sequence_number"].map(|name| row[name].clone());
    let explicit = |status, snapshot| [Value::Int(status), Value::Long(snapshot), Value::Long(9), Value::Long(9)];
    assert_eq!(numbers(&rows[0]), explicit(0, SNAPSHOT));
    assert_eq!(numbers(&rows[1]), explicit(2, 88), "the snapshot is the one that deletes");
    let first_row_id = |row: &HashMap<String, Value>| {
        let Value::Record(file) = &row["data_file"] else { panic!() };
        let found = file.iter().find(|(name, _)| name == "first_row_id").unwrap();
        found.1.clone()
    };
    let id = |id| Value::Union(1, Box::new(Value::Long(id)));
    assert_eq!(
        rows.iter().map(first_row_id).collect::<Vec<_>>(),
        [id(500), id(510), Value::Union(0, Box::new(Value::Null))]
    );

    assert_eq!((listed.min_sequence_number, listed.first_row_id), (9, None));
    let counts = [listed.added_files_count, listed.existing_files_count, listed.deleted_files_count];
    assert_eq!(counts, [Some(1); 3]);
    let listed = ManifestFile {
        first_row_id: Some(900),
        ..committed(listed, 10)
    };
    let read = read(3, &bytes, &listed);
    let ids: Vec<_> = read.entries().map(|entry| entry.first_row_id()).collect();
    assert_eq!(ids, [Some(500), Some(510), Some(900)]);
    assert_eq!(read.entry(1).status(), EntryStatus::Deleted);
}

#[test]
fn a_deleted_file_does_not_count_for_the_lowest_sequence_number() {
    let base = base();
    let mut manifest = ManifestWriter::new(&table_of(3), 0, ManifestContent::Data, 88, layout()).unwrap();
    manifest.delete(&base.entry(0)).unwrap();
    let (_, listed) = manifest.finish(LOCATION).unwrap();
    assert_eq!(listed.min_sequence_number, UNASSIGNED_SEQUENCE_NUMBER);
}

#[test]
fn v1_says_snapshot_and_block_size_and_has_no_sequence_numbers() {
    let mut manifest = writer(1, 0, ManifestContent::Data);
    manifest.add(&data_file("a")).unwrap();
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    let (rows, metadata) = oracle(&bytes);
    assert_eq!(rows[0].len(), 3);
    assert_eq!(rows[0]["snapshot_id"], Value::Long(SNAPSHOT));
    let Value::Record(file) = &rows[0]["data_file"] else { panic!() };
    let names: Vec<&str> = file.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "file_path",
            "file_format",
            "partition",
            "record_count",
            "file_size_in_bytes",
            "block_size_in_bytes",
            "column_sizes",
            "value_counts",
            "null_value_counts",
            "nan_value_counts",
            "lower_bounds",
            "upper_bounds",
            "key_metadata",
            "split_offsets",
            "sort_order_id"
        ]
    );
    assert!(!metadata.contains_key("content") && metadata["format-version"] == "1");
    assert_eq!((listed.sequence_number, listed.min_sequence_number), (0, 0));
    let read = read(1, &bytes, &listed);
    assert_eq!((read.entry(0).sequence_number(), read.entry(0).snapshot_id()), (0, Some(SNAPSHOT)));
    let mut next = writer(1, 0, ManifestContent::Data);
    next.existing(&read.entry(0)).unwrap();
    assert_eq!(next.finish("m").unwrap().1.existing_rows_count, Some(10));
}

#[test]
fn partition_summaries_by_hand() {
    let mut manifest = writer(2, 1, ManifestContent::Data);
    for (id, bucket) in [(Some(5), Some(3)), (Some(-1), None), (Some(300), Some(0))] {
        manifest.add(&partitioned(&format!("{id:?}"), id, bucket)).unwrap();
    }
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    let summary = |null, lower: &[u8], upper: &[u8]| FieldSummary {
        contains_null: null,
        contains_nan: Some(false),
        lower_bound: Some(lower.to_vec().into()),
        upper_bound: Some(upper.to_vec().into()),
    };
    let expected = [
        summary(false, &[0xff; 8], &[0x2c, 1, 0, 0, 0, 0, 0, 0]),
        summary(true, &[0; 4], &[3, 0, 0, 0]),
    ];
    assert_eq!(listed.partitions.as_deref(), Some(&expected[..]));
    let metadata = oracle(&bytes).1;
    let spec: serde_json::Value = serde_json::from_str(&metadata["partition-spec"]).unwrap();
    assert_eq!(
        spec,
        json!([{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"},
               {"source-id": 2, "field-id": 1001, "name": "name_bucket", "transform": "bucket[4]"}])
    );
}

#[test]
fn partition_values_have_the_types_of_the_specification() {
    // day(date) is a date, decimal(9,2) a fixed of four bytes.
    let mut manifest = writer(2, 3, ManifestContent::Data);
    let file = DataFile {
        spec_id: 3,
        partition: Arc::from([Some(Literal::Int(17_000)), Some(Literal::Decimal(-12_345))]),
        ..data_file("a")
    };
    manifest.add(&file).unwrap();
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    let Value::Record(fields) = oracle(&bytes).0[0]["data_file"].clone() else {
        panic!()
    };
    let Value::Record(partition) = &fields.iter().find(|(name, _)| name == "partition").unwrap().1 else {
        panic!()
    };
    assert_eq!(partition[0], ("day_day".to_owned(), Value::Union(1, Box::new(Value::Date(17_000)))));
    let Value::Union(1, price) = &partition[1].1 else { panic!() };
    let Value::Decimal(price) = &**price else { panic!("{price:?}") };
    assert_eq!(Vec::<u8>::try_from(price).unwrap(), (-12_345_i32).to_be_bytes());
    assert_eq!(read(2, &bytes, &committed(listed, 1)).entry(0).partition(), &file.partition);
}

#[test]
fn a_fixed_partition_value_lies_as_its_avro_schema_says() {
    let mut manifest = writer(2, 2, ManifestContent::Data);
    for value in [Some(vec![4, 1, 2]), None, Some(vec![0, 0, 0])] {
        let file = DataFile {
            spec_id: 2,
            partition: Arc::from([value.map(Literal::Binary)]),
            ..data_file("a")
        };
        manifest.add(&file).unwrap();
    }
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    assert_eq!(oracle(&bytes).0.len(), 3);
    let read = read(2, &bytes, &committed(listed, 1));
    assert_eq!(read.entry(0).partition()[0], Some(Literal::Binary(vec![4, 1, 2])));
}

#[test]
fn a_partition_field_without_source_column_keeps_its_place_as_null() {
    let mut manifest = writer(2, 4, ManifestContent::Data);
    let file = DataFile {
        spec_id: 4,
        partition: Arc::from([None]),
        ..data_file("a")
    };
    manifest.add(&file).unwrap();
    let value = DataFile {
        partition: Arc::from([Some(Literal::Int(1))]),
        ..file.clone()
    };
    assert!(manifest.add(&value).is_err(), "its type is lost");
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    let summary = FieldSummary {
        contains_null: true,
        contains_nan: Some(false),
        lower_bound: None,
        upper_bound: None,
    };
    assert_eq!(listed.partitions.as_deref(), Some(&[summary][..]));
    assert_eq!(oracle(&bytes).0.len(), 1);
    assert_eq!(read(2, &bytes, &committed(listed, 1)).entry(0).partition(), &file.partition);
}

#[test]
fn vectors_and_equality_deletes_keep_what_finds_their_rows() {
    let vector = deletion_vector("file:/t/data/v.puffin", "file:/t/data/a.parquet");
    let equality = DataFile {
        content: FileContent::EqualityDeletes,
        equality_ids: Some(vec![1, 2]),
        sort_order_id: Some(0),
        value_counts: BTreeMap::from([(1, 10)]),
        ..data_file("file:/t/data/e.parquet")
    };
    let mut manifest = writer(3, 0, ManifestContent::Deletes);
    manifest.add(&vector).unwrap();
    manifest.add(&equality).unwrap();
    let (bytes, listed) = manifest.finish(LOCATION).unwrap();
    assert_eq!(oracle(&bytes).1["content"], "deletes");
    let read = read(3, &bytes, &committed(listed, 4));
    assert_eq!(read.content(), ManifestContent::Deletes);
    assert_eq!(
        (read.entry(0).to_data_file(), read.entry(1).to_data_file()),
        (vector.clone(), equality)
    );
    assert_eq!((vector.content_bytes(), data_file("a").content_bytes()), (44, 1000));
}
