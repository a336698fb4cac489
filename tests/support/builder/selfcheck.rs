//! The builder checked with the libraries that read its files, and with values worked out by hand.

use std::collections::HashMap;

use apache_avro::types::Value as Avro;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use serde_json::{Value, json};

use super::*;
use crate::support::canonical;

fn schema() -> Schema {
    Schema::new([required(1, "id", Type::Long), optional(2, "name", Type::String)])
}

/// The records of an Avro file by field name, unions unwrapped.
fn records(path: &std::path::Path) -> Vec<HashMap<String, Avro>> {
    let bytes = std::fs::read(path).unwrap();
    let reader = apache_avro::Reader::new(&bytes[..]).unwrap();
    reader.map(|r| fields(r.unwrap())).collect()
}

fn fields(record: Avro) -> HashMap<String, Avro> {
    let Avro::Record(fields) = record else {
        panic!("no record: {record:?}")
    };
    let plain = |value| match value {
        Avro::Union(_, inner) => *inner,
        other => other,
    };
    fields.into_iter().map(|(name, value)| (name, plain(value))).collect()
}

fn metadata(table: &TestTable) -> Value {
    serde_json::from_slice(&std::fs::read(table.metadata_file()).unwrap()).unwrap()
}

fn list_of(table: &TestTable) -> Vec<HashMap<String, Avro>> {
    let json = metadata(table);
    let current = &json["current-snapshot-id"];
    let snapshot = json["snapshots"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["snapshot-id"] == *current)
        .unwrap();
    records(std::path::Path::new(snapshot["manifest-list"].as_str().unwrap()))
}

fn entries_of(manifest: &HashMap<String, Avro>) -> Vec<(HashMap<String, Avro>, HashMap<String, Avro>)> {
    let Avro::String(path) = &manifest["manifest_path"] else {
        panic!("no path")
    };
    let entries = records(std::path::Path::new(path));
    entries.into_iter().map(|e| (e.clone(), fields(e["data_file"].clone()))).collect()
}

#[test]
fn manifests_say_what_was_committed() {
    let mut table = TableBuilder::temp(schema())
        .spec(PartitionSpec::new([identity(2, "name")]))
        .create();
    let file = DataFile::named("F")
        .partition(json!(["b"]))
        .rows(json!([[3, "b"], [1, "b"], [2, null]]));
    table.append(file);
    table.delete_positions(PositionDeletes::named("P").rows("F", [2]));
    table.delete_keys(EqualityDeletes::named("E", [1]).partition(json!(["b"])).rows(json!([[3]])));

    let list = list_of(&table);
    assert_eq!(list.len(), 3);
    let contents: Vec<&Avro> = list.iter().map(|m| &m["content"]).collect();
    assert_eq!(contents, [&Avro::Int(1), &Avro::Int(1), &Avro::Int(0)]);
    let numbers: Vec<&Avro> = list.iter().map(|m| &m["sequence_number"]).collect();
    assert_eq!(numbers, [&Avro::Long(3), &Avro::Long(2), &Avro::Long(1)]);
    assert_eq!(list[2]["added_files_count"], Avro::Int(1));
    assert_eq!(list[2]["added_rows_count"], Avro::Long(3));
    let Avro::Array(summaries) = &list[2]["partitions"] else {
        panic!("no summaries")
    };
    assert_eq!(fields(summaries[0].clone())["lower_bound"], Avro::Bytes(b"b".to_vec()));

    let data = entries_of(&list[2]);
    let (entry, file) = &data[0];
    assert_eq!(entry["status"], Avro::Int(1));
    assert_eq!(entry["sequence_number"], Avro::Null);
    assert_eq!(file["record_count"], Avro::Long(3));
    assert_eq!(fields(file["partition"].clone())["name"], Avro::String("b".to_owned()));
    let Avro::Array(lower) = &file["lower_bounds"] else {
        panic!("no bounds")
    };
    assert_eq!(fields(lower[0].clone())["key"], Avro::Int(1));
    assert_eq!(fields(lower[0].clone())["value"], Avro::Bytes(1_i64.to_le_bytes().to_vec()));
    let Avro::Array(nulls) = &file["null_value_counts"] else {
        panic!("no null counts")
    };
    assert_eq!(fields(nulls[1].clone())["value"], Avro::Long(1));

    let (_, equality) = &entries_of(&list[0])[0];
    assert_eq!(equality["content"], Avro::Int(2));
    assert_eq!(equality["equality_ids"], Avro::Array(vec![Avro::Int(1)]));
}

#[test]
fn headers_keep_field_ids_and_logical_types() {
    let mut table = TableBuilder::temp(schema()).create();
    table.append(DataFile::named("F").rows(json!([[1, "a"]])));
    let list = list_of(&table);
    let Avro::String(path) = &list[0]["manifest_path"] else {
        panic!("no path")
    };
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let start = text.find("{\"type\":\"record\",\"name\":\"manifest_entry\"").unwrap();
    let schema: Value = serde_json::Deserializer::from_str(&text[start..])
        .into_iter()
        .next()
        .unwrap()
        .unwrap();
    let file = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == "data_file")
        .unwrap();
    assert_eq!(file["field-id"], 2);
    let counts = file["type"]["fields"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["name"] == "value_counts")
        .unwrap();
    assert_eq!(counts["field-id"], 109);
    assert_eq!(counts["type"][1]["logicalType"], "map");
    assert_eq!(counts["type"][1]["items"]["fields"][0]["field-id"], 119);
}

#[test]
fn rewritten_manifests_spell_their_numbers_out() {
    let mut table = TableBuilder::temp(schema()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.append(DataFile::named("F2").rows(json!([[2, "b"]])));
    table.commit(Commit::new().rewrite_manifests());
    let list = list_of(&table);
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["sequence_number"], Avro::Long(3));
    assert_eq!(list[0]["min_sequence_number"], Avro::Long(1));
    let numbers: Vec<(Avro, Avro)> = entries_of(&list[0])
        .into_iter()
        .map(|(e, _)| (e["status"].clone(), e["sequence_number"].clone()))
        .collect();
    let mut expected = vec![(Avro::Int(0), Avro::Long(1)), (Avro::Int(0), Avro::Long(2))];
    if numbers[0].1 == Avro::Long(2) {
        expected.reverse();
    }
    assert_eq!(numbers, expected);
}

#[test]
fn a_removed_file_leaves_a_deleted_entry() {
    let mut table = TableBuilder::temp(schema()).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.commit(commit.data(DataFile::named("F2").rows(json!([[2, "b"]]))));
    let id = table.commit(Commit::new().remove("F1"));
    let entries = entries_of(&list_of(&table)[0]);
    let of = |name: &str| {
        let ends = |f: &HashMap<String, Avro>| matches!(&f["file_path"], Avro::String(p) if p.ends_with(name));
        entries.iter().find(|(_, f)| ends(f)).unwrap().0.clone()
    };
    assert_eq!(of("F1.parquet")["status"], Avro::Int(2));
    assert_eq!(of("F1.parquet")["snapshot_id"], Avro::Long(id));
    assert_eq!(of("F1.parquet")["sequence_number"], Avro::Long(1));
    assert_eq!(of("F2.parquet")["status"], Avro::Int(0));
    assert_eq!(table.rows(), [[json!(2), json!("b")]]);
}

#[test]
fn row_ids_are_given_in_the_order_of_the_list() {
    let mut table = TableBuilder::temp(schema()).format_version(3).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(json!([[1, "a"], [2, "b"]])));
    table.commit(commit.data(DataFile::named("F2").rows(json!([[3, "c"]]))));
    table.append(DataFile::named("F3").rows(json!([[4, "d"]])));
    assert_eq!(metadata(&table)["next-row-id"], 4);
    let list = list_of(&table);
    assert_eq!(list[0]["first_row_id"], Avro::Long(3));
    assert_eq!(list[1]["first_row_id"], Avro::Long(0));
    table.commit(Commit::new().rewrite_manifests());
    let mut ids: Vec<i64> = entries_of(&list_of(&table)[0])
        .into_iter()
        .map(|(_, file)| match file["first_row_id"] {
            Avro::Long(id) => id,
            ref other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [0, 2, 3]);
}

#[test]
fn data_files_have_ids_groups_and_pages() {
    let mut table = TableBuilder::temp(schema()).create();
    let rows = || (0..100).map(|i| json!([i, format!("n{i}")]));
    table.append(DataFile::named("F").rows_from(rows()).row_group_rows(40).page_rows(10));
    table.append(DataFile::named("plain").rows_from(rows()).without_ids());
    let open = |name| {
        let options = ReadOptionsBuilder::new().with_page_index().build();
        SerializedFileReader::new_with_options(std::fs::File::open(table.real_path(name)).unwrap(), options).unwrap()
    };
    let file = open("F");
    let groups: Vec<i64> = file.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
    assert_eq!(groups, [40, 40, 20]);
    let root = file.metadata().file_metadata().schema().get_fields().to_vec();
    assert_eq!(root.iter().map(|f| f.get_basic_info().id()).collect::<Vec<_>>(), [1, 2]);
    assert!(
        file.metadata().file_metadata().key_value_metadata().is_none(),
        "no arrow schema in the file"
    );
    let pages = file.metadata().offset_index().unwrap()[0][0].page_locations().len();
    assert!(pages >= 4, "{pages} pages in a group of 40 rows");
    let plain = open("plain");
    let root = plain.metadata().file_metadata().schema().get_fields().to_vec();
    assert!(root.iter().all(|f| !f.get_basic_info().has_id()));
}

#[test]
fn delete_files_hold_their_rows_as_given() {
    let mut table = TableBuilder::temp(schema()).create();
    table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"], [3, "c"]])));
    let deletes = PositionDeletes::named("P")
        .rows("F", [2, 0, 0])
        .with_row(schema())
        .row_group_rows(2);
    table.delete_positions(deletes);
    let file = std::fs::File::open(table.real_path("P")).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let ids: Vec<i32> = reader
        .parquet_schema()
        .root_schema()
        .get_fields()
        .iter()
        .map(|f| f.get_basic_info().id())
        .collect();
    assert_eq!(ids, [2_147_483_546, 2_147_483_545, 2_147_483_544]);
    let rows: Vec<Vec<Value>> = reader.build().unwrap().flat_map(|b| canonical::rows(&b.unwrap())).collect();
    let path = json!(table.file("F").entry.path);
    assert_eq!(
        rows,
        [
            vec![path.clone(), json!(2), json!({"id": 3, "name": "c"})],
            vec![path.clone(), json!(0), json!({"id": 1, "name": "a"})],
            vec![path, json!(0), json!({"id": 1, "name": "a"})],
        ]
    );
}

#[test]
fn bounds_of_a_delete_file_bind_it_or_not() {
    let mut table = TableBuilder::temp(schema()).create();
    table.append(DataFile::named("F").rows(json!([[1, "a"]])));
    table.delete_positions(PositionDeletes::named("full").rows("F", [0]));
    table.delete_positions(PositionDeletes::named("none").rows("F", [0]).bounds(PathBounds::None));
    table.delete_positions(PositionDeletes::named("cut").rows("F", [0]).bounds(PathBounds::Truncated(4)));
    let bounds = |name: &str| {
        let metrics = table.file(name).entry.metrics.clone();
        (
            metrics.lower.get(&2_147_483_546).cloned(),
            metrics.upper.get(&2_147_483_546).cloned(),
        )
    };
    let path = table.file("F").entry.path.clone().into_bytes();
    assert_eq!(bounds("full"), (Some(path.clone()), Some(path.clone())));
    assert_eq!(bounds("none"), (None, None));
    let (lower, upper) = bounds("cut");
    assert_eq!(lower.as_deref(), Some(&path[..4]));
    assert!(upper.unwrap().as_slice() > path.as_slice());
}

#[test]
fn vectors_lie_where_their_entries_say() {
    let mut table = TableBuilder::temp(schema()).format_version(3).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(json!([[1, "a"], [2, "b"]])));
    table.commit(commit.data(DataFile::named("F2").rows(json!([[3, "c"], [4, "d"]]))));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F1", [0]).rows("F2", [1]));
    let bytes = std::fs::read(table.real_path("V/F1")).unwrap();
    for name in ["F1", "F2"] {
        let entry = &table.file(&format!("V/{name}")).entry;
        let (start, size) = (entry.content_offset.unwrap() as usize, entry.content_size.unwrap() as usize);
        let blob = &bytes[start..start + size];
        assert_eq!(blob[4..8], [0xd1, 0xd3, 0x39, 0x64]);
        assert_eq!(entry.referenced_data_file.as_ref(), Some(&table.file(name).entry.path));
        let bitmap = roaring::RoaringTreemap::deserialize_from(&blob[8..size - 4]).unwrap();
        assert_eq!(bitmap.len() as i64, entry.record_count);
    }
    assert_eq!(table.rows(), [[json!(2), json!("b")], [json!(3), json!("c")]]);
}

#[test]
fn the_same_test_makes_the_same_table() {
    let make = |dir: &std::path::Path| {
        let _ = std::fs::remove_dir_all(dir);
        let mut table = TableBuilder::new(dir, schema()).format_version(3).create();
        table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"]])));
        table.delete_by_vectors(DeletionVectors::named("V").rows("F", [0]));
        let mut files: Vec<(String, Vec<u8>)> = ["metadata", "data"]
            .iter()
            .flat_map(|folder| std::fs::read_dir(dir.join(folder)).unwrap())
            .map(|e| e.unwrap().path())
            .map(|p| (p.display().to_string(), std::fs::read(&p).unwrap()))
            .collect();
        files.sort();
        files
    };
    let guard = tempfile::tempdir().unwrap();
    let dir = guard.path().join("t");
    assert_eq!(make(&dir), make(&dir));
}

#[test]
fn the_model_reads_older_snapshots_in_their_schema() {
    let mut table = TableBuilder::temp(schema()).create();
    let first = table.append(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.evolve(|s| s.drop("name").add(optional(3, "n", Type::Int)));
    let second = table.append(DataFile::named("F2").rows(json!([[2, 7]])));
    assert_eq!(table.rows_at(first), [[json!(1), json!("a")]]);
    assert_eq!(table.rows_at(second), [[json!(2), json!(7)], [json!(1), Value::Null]]);
}
