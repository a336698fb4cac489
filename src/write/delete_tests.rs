//! Position delete files: what is in them, how they are divided, what is said of them, what a failure leaves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::printer::print_schema;
use serde_json::json;

use super::tests::{Fault, Table, read};
use super::{DeletedRows, write_position_deletes};
use crate::error::{ErrorKind, Result};
use crate::iceberg::manifest::{DataFile, FileContent, FileFormat};
use crate::iceberg::spec::Literal;
use crate::io::{Storage, WriteStep};

const PATH_ID: i32 = 2_147_483_546;
const POS_ID: i32 = 2_147_483_545;

fn of(data_file: &str, rows: impl IntoIterator<Item = u64>) -> DeletedRows {
    DeletedRows {
        data_file: data_file.to_owned(),
        spec_id: 0,
        partition: [].into(),
        rows: Arc::new(rows.into_iter().collect()),
    }
}

fn of_day(day: i32, data_file: &str, rows: impl IntoIterator<Item = u64>) -> DeletedRows {
    DeletedRows {
        spec_id: 7,
        partition: [Some(Literal::Int(day))].into(),
        ..of(data_file, rows)
    }
}

async fn try_write(table: &Table, rows: Vec<DeletedRows>) -> Result<Vec<DataFile>> {
    write_position_deletes(&table.io(), &table.pool(), &table.metadata(), "id", rows).await
}

async fn write(table: &Table, rows: Vec<DeletedRows>) -> Vec<DataFile> {
    try_write(table, rows).await.unwrap()
}

fn rows_of(file: &DataFile) -> Vec<(String, i64)> {
    let mut rows = Vec::new();
    for batch in read(&file.file_path) {
        let (paths, positions) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        let pairs = paths.iter().zip(positions.values());
        rows.extend(pairs.map(|(path, position)| (path.unwrap().to_owned(), *position)));
    }
    rows
}

fn pairs(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
    rows.iter().map(|(path, position)| ((*path).to_owned(), *position)).collect()
}

#[tokio::test]
async fn a_file_has_the_rows_of_its_partition_sorted() {
    let table = Table::new();
    let files = write(&table, vec![of("s3://b/é", [7]), of("s3://b/a.parquet", [9, 0, 5]), of("none", [])]).await;
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(table.below(&file.file_path), "data/00000-0-id-00001-deletes.parquet");
    assert_eq!(
        rows_of(file),
        pairs(&[
            ("s3://b/a.parquet", 0),
            ("s3://b/a.parquet", 5),
            ("s3://b/a.parquet", 9),
            ("s3://b/é", 7)
        ])
    );
    assert_eq!(
        (file.content, file.file_format),
        (FileContent::PositionDeletes, FileFormat::Parquet)
    );
    assert_eq!((file.record_count, file.spec_id, file.sort_order_id), (4, 0, None));
    assert_eq!(file.file_size_in_bytes, std::fs::metadata(&file.file_path).unwrap().len());
    assert_eq!(file.value_counts, BTreeMap::from([(PATH_ID, 4), (POS_ID, 4)]));
    assert_eq!(file.null_value_counts, BTreeMap::from([(PATH_ID, 0), (POS_ID, 0)]));
    assert_eq!(file.column_sizes.keys().copied().collect::<Vec<_>>(), [POS_ID, PATH_ID]);
    let bounds =
        |path: &str, position: i64| BTreeMap::from([(PATH_ID, path.as_bytes().to_vec()), (POS_ID, position.to_le_bytes().to_vec())]);
    assert_eq!(file.lower_bounds, bounds("s3://b/a.parquet", 0));
    assert_eq!(file.upper_bounds, bounds("s3://b/é", 9));
    assert_eq!((&file.referenced_data_file, &file.split_offsets), (&None, &Some(vec![4])));

    let reader = SerializedFileReader::new(std::fs::File::open(&file.file_path).unwrap()).unwrap();
    let footer = reader.metadata().file_metadata();
    let mut printed = Vec::new();
    print_schema(&mut printed, footer.schema());
    assert_eq!(
        String::from_utf8(printed).unwrap(),
        "message table {\n  REQUIRED BYTE_ARRAY file_path [2147483546] (STRING);\n  REQUIRED INT64 pos [2147483545];\n}\n"
    );
    let keys = footer.key_value_metadata().unwrap();
    let key = |name: &str| keys.iter().find(|pair| pair.key == name).unwrap().value.clone().unwrap();
    assert_eq!(key("delete-type"), "position");
    // As Iceberg Java writes it.
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&key("iceberg.schema")).unwrap(),
        json!({"type": "struct", "schema-id": 0, "fields": [
            {"id": PATH_ID, "name": "file_path", "required": true, "type": "string", "doc": "Path of a file in which a deleted row is stored"},
            {"id": POS_ID, "name": "pos", "required": true, "type": "long", "doc": "Ordinal position of a deleted row in the data file"}]})
    );
}

#[tokio::test]
async fn nothing_deleted_makes_no_file() {
    let table = Table::new();
    assert!(write(&table, vec![]).await.is_empty());
    assert!(write(&table, vec![of("a", [])]).await.is_empty());
    assert!(table.files().is_empty());
}

#[tokio::test]
async fn a_file_about_one_data_file_names_it() {
    let table = Table::new();
    let long = format!("s3://bucket/{}", "ä".repeat(400));
    let [file] = write(&table, vec![of(&long, [3, 4])]).await.try_into().unwrap();
    assert_eq!(file.referenced_data_file.as_ref(), Some(&long));
    assert_eq!(file.lower_bounds[&PATH_ID], long.as_bytes());
    assert_eq!(file.upper_bounds[&PATH_ID], long.as_bytes());
}

#[tokio::test]
async fn files_are_by_partition_and_spec_or_by_data_file() {
    let table = Table::partitioned(&[("day", 3, "day")]);
    let mut table_of_both = table.property("write.delete.granularity", "PARTITION");
    // The default spec of today is another one than that of the data files.
    table_of_both.json["partition-specs"]
        .as_array_mut()
        .unwrap()
        .push(json!({"spec-id": 0, "fields": []}));
    table_of_both.json["default-spec-id"] = json!(0);
    let rows = || vec![of_day(1, "b", [1]), of("d", [4]), of_day(1, "a", [2, 1]), of_day(2, "c", [3])];
    let seen = |table: &Table, files: &[DataFile]| {
        let seen = files.iter().map(|file| {
            let folder = table.below(&file.file_path).rsplit_once('/').unwrap().0.to_owned();
            (
                folder,
                file.spec_id,
                file.partition.to_vec(),
                rows_of(file),
                file.referenced_data_file.clone(),
            )
        });
        let mut seen: Vec<_> = seen.collect();
        seen.sort_by(|a, b| a.3.cmp(&b.3));
        seen
    };
    let day = |day: i32| vec![Some(Literal::Int(day))];
    let some = |path: &str| Some(path.to_owned());
    let folder = |name: &str| name.to_owned();
    let files = write(&table_of_both, rows()).await;
    assert_eq!(
        seen(&table_of_both, &files),
        [
            (
                folder("data/day=1970-01-02"),
                7,
                day(1),
                pairs(&[("a", 1), ("a", 2), ("b", 1)]),
                None
            ),
            (folder("data/day=1970-01-03"), 7, day(2), pairs(&[("c", 3)]), some("c")),
            (folder("data"), 0, vec![], pairs(&[("d", 4)]), some("d")),
        ]
    );
    let table = table_of_both
        .property("write.delete.granularity", "file")
        .property("write.data.path", "elsewhere");
    let elsewhere = table.dir.path().join("elsewhere");
    let table = table.property("write.data.path", elsewhere.to_str().unwrap());
    let files = write(&table, rows()).await;
    assert_eq!(
        seen(&table, &files),
        [
            (
                folder("elsewhere/day=1970-01-02"),
                7,
                day(1),
                pairs(&[("a", 1), ("a", 2)]),
                some("a")
            ),
            (folder("elsewhere/day=1970-01-02"), 7, day(1), pairs(&[("b", 1)]), some("b")),
            (folder("elsewhere/day=1970-01-03"), 7, day(2), pairs(&[("c", 3)]), some("c")),
            (folder("elsewhere"), 0, vec![], pairs(&[("d", 4)]), some("d")),
        ]
    );
}

#[tokio::test]
async fn the_folder_of_a_spec_whose_column_was_dropped_is_found() {
    let mut table = Table::partitioned(&[("day", 3, "day")]);
    let fields = |n: usize| table.json["schemas"][0]["fields"].as_array().unwrap()[..n].to_vec();
    let newer = json!({"type": "struct", "schema-id": 1, "fields": fields(2)});
    table.json["schemas"].as_array_mut().unwrap().push(newer);
    table.json["current-schema-id"] = json!(1);
    table.json["partition-specs"]
        .as_array_mut()
        .unwrap()
        .push(json!({"spec-id": 8, "fields": []}));
    table.json["default-spec-id"] = json!(8);
    let [file] = write(&table, vec![of_day(1, "a", [1])]).await.try_into().unwrap();
    assert_eq!(table.below(&file.file_path), "data/day=1970-01-02/00000-0-id-00001-deletes.parquet");
}

#[tokio::test]
async fn files_end_at_their_target_and_follow_each_other() {
    let table = Table::new()
        .property("write.delete.target-file-size-bytes", "50000")
        .property("write.delete.parquet.row-group-size-bytes", "20000")
        .property("write.delete.parquet.compression-codec", "uncompressed");
    // More than one batch, and a data file that is in two delete files.
    let files = write(
        &table,
        vec![of("a", (0..20_000).map(|n| n * 3)), of("b", 5..6), of("c", 0..100_000)],
    )
    .await;
    let all: Vec<(String, i64)> = files.iter().flat_map(rows_of).collect();
    let expected = (0..20_000)
        .map(|n| ("a", n * 3))
        .chain([("b", 5)])
        .chain((0..100_000).map(|n| ("c", n)));
    assert!(all == pairs(&expected.collect::<Vec<_>>()));
    assert!(files.len() > 10, "{}", files.len());
    for file in &files[..files.len() - 1] {
        assert!((50_000..150_000).contains(&file.file_size_in_bytes), "{}", file.file_size_in_bytes);
    }
    assert!(files.iter().any(|file| file.split_offsets.as_ref().unwrap().len() > 1));
    assert_eq!(files[0].referenced_data_file.as_deref(), Some("a"));
    assert_eq!(files.last().unwrap().referenced_data_file.as_deref(), Some("c"));
    let of_both = files.iter().filter(|file| file.referenced_data_file.is_none()).count();
    assert!(of_both <= 2, "{of_both}");
}

#[tokio::test]
async fn many_positions_of_many_files_come_in_order() {
    let table = Table::new();
    let names: Vec<String> = (0..300).map(|n| format!("file-{n:04}")).collect();
    let rows = names
        .iter()
        .rev()
        .enumerate()
        .map(|(at, name)| of(name, (0..1000 + at as u64).map(|n| n * 2)));
    let [file] = write(&table, rows.collect()).await.try_into().unwrap();
    let all = rows_of(&file);
    assert!(all.is_sorted() && all.len() as u64 == file.record_count);
    assert_eq!(all.len(), (0..300).map(|at| 1000 + at).sum::<usize>());
    assert_eq!(
        (&all[0], all.last().unwrap()),
        (&("file-0000".to_owned(), 0), &("file-0299".to_owned(), 1998))
    );
}

#[tokio::test]
async fn a_failure_leaves_nothing() {
    for step in [WriteStep::Part, WriteStep::Finish, WriteStep::Finished] {
        let mut table = Table::new().property("write.delete.granularity", "file");
        table.storage = Arc::new(Storage::default().with_faults(Arc::new(Fault(step, Mutex::default()))));
        let rows = (0..20).map(|n| of(&format!("f{n}"), [n]));
        assert_eq!(try_write(&table, rows.collect()).await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(table.files().is_empty(), "{step:?}: {:?}", table.files());
    }
    // The files of the others are written, then one name is found to be taken.
    let mut table = Table::new().property("write.delete.granularity", "file");
    let other = Fault(WriteStep::Finish, Mutex::new(Some(b"other".to_vec())));
    table.storage = Arc::new(Storage::default().with_faults(Arc::new(other)));
    let rows = (0..20).map(|n| of(&format!("f{n}"), [n]));
    assert!(try_write(&table, rows.collect()).await.is_err());
    let left = table.files();
    let [left] = left.as_slice() else { panic!("{left:?}") };
    assert_eq!(std::fs::read(table.dir.path().join(left)).unwrap(), b"other");
}

#[tokio::test]
async fn what_cannot_be_written_is_refused_by_name() {
    for (name, value, kind) in [
        ("write.delete.granularity", "row", ErrorKind::InvalidInput),
        ("write.delete.format.default", "avro", ErrorKind::Unsupported),
        ("write.format.default", "orc", ErrorKind::Unsupported),
        ("write.delete.parquet.compression-codec", "lzo", ErrorKind::Unsupported),
        ("write.parquet.compression-codec", "lzo", ErrorKind::Unsupported),
        ("write.delete.target-file-size-bytes", "0", ErrorKind::InvalidInput),
        ("write.delete.parquet.page-size-bytes", "x", ErrorKind::InvalidInput),
    ] {
        let table = Table::new().property(name, value);
        let error = try_write(&table, vec![of("a", [1])]).await.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(name), "{error}");
        assert!(table.files().is_empty());
    }
    let mut table = Table::new();
    table.json["format-version"] = json!(1);
    assert_eq!(
        try_write(&table, vec![of("a", [1])]).await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    let table = Table::new();
    for rows in [
        vec![of("a", [1]), of("a", [2])],
        vec![of_day(1, "a", [1])],
        vec![of("a", [u64::MAX])],
    ] {
        assert_eq!(try_write(&table, rows).await.unwrap_err().kind(), ErrorKind::Internal);
        assert!(table.files().is_empty());
    }
}
