//! Tables as a whole: versions, empty ones, odd names and places, files that must be refused.

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{answers, column, id_data, ids, refuses, shows};
use crate::support::builder::{
    Codec, Commit, DataFile, DeletionVectors, EqualityDeletes, MetadataFile, PartitionSpec, PathBounds, PositionDeletes, Schema,
    TableBuilder, TestTable, Type, identity, optional, partition, required,
};

/// One append, one position delete, one equality delete.
fn fill(table: &mut TestTable) {
    table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"], [3, "c"], [4, "d"]])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0]));
    table.delete_keys(EqualityDeletes::named("E", [1]).rows(column([3])));
}

fn filled() -> Value {
    json!([[2, "b"], [4, "d"]])
}

#[test]
fn a_table_without_snapshot_has_no_rows() {
    // B128: current-snapshot-id absent, null, -1
    for form in [None, Some(Value::Null), Some(json!(-1))] {
        let table = TableBuilder::temp(id_data())
            .edit_metadata(move |json| {
                json.remove("current-snapshot-id");
                if let Some(value) = &form {
                    json.insert("current-snapshot-id".to_owned(), value.clone());
                }
            })
            .create();
        shows(&table, json!([]));
        answers(&table, "SELECT count(*), count(data) FROM t", json!([[0, 0]]));
        let result = crate::support::read::query(&table, "SELECT * FROM t").unwrap();
        assert_eq!(result.columns, ["id", "data"]);
    }
}

#[test]
fn a_snapshot_without_files_has_no_rows() {
    let mut table = TableBuilder::temp(id_data()).create();
    fill(&mut table);
    table.commit(Commit::new().remove("F").remove("P").remove("E"));
    shows(&table, json!([]));
    answers(&table, "SELECT count(*) FROM t", json!([[0]]));
}

#[test]
fn metadata_may_be_compressed() {
    for form in [MetadataFile::Plain, MetadataFile::GzipBeforeSuffix, MetadataFile::GzipAfterSuffix] {
        let mut table = TableBuilder::temp(id_data()).metadata_file(form).create();
        fill(&mut table);
        shows(&table, filled());
    }
}

#[test]
fn manifests_are_read_in_every_codec_and_in_blocks() {
    for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstd] {
        let mut table = TableBuilder::temp(ids()).manifest_codec(codec).manifest_block_records(3).create();
        let mut commit = Commit::new();
        for i in 0..10 {
            commit = commit.data(DataFile::named(&format!("F{i}")).rows(column([i])));
        }
        table.commit(commit);
        table.delete_positions(PositionDeletes::named("P").rows("F4", [0]));
        shows(&table, column([0, 1, 2, 3, 5, 6, 7, 8, 9]));
    }
}

#[test]
fn version_one_is_read_with_lists_and_with_inline_manifests() {
    for inline in [false, true] {
        let mut builder = TableBuilder::temp(id_data()).format_version(1);
        if inline {
            builder = builder.inline_manifests();
        }
        let mut table = builder.create();
        table.append(DataFile::named("F1").rows(json!([[1, "a"], [2, "b"]])));
        table.append(DataFile::named("F2").rows(json!([[3, "c"]])));
        table.commit(Commit::new().remove("F1").data(DataFile::named("F3").rows(json!([[4, "d"]]))));
        shows(&table, json!([[3, "c"], [4, "d"]]));
    }
}

#[test]
fn files_from_before_an_upgrade_are_of_age_zero() {
    let mut table = TableBuilder::temp(id_data()).format_version(1).create();
    table.append(DataFile::named("F1").rows(json!([[1, "a"], [2, "b"], [3, "c"], [4, "d"]])));
    table.upgrade(2);
    table.delete_keys(EqualityDeletes::named("E", [1]).rows(column([1])));
    shows(&table, json!([[2, "b"], [3, "c"], [4, "d"]]));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [1]));
    table.append(DataFile::named("F2").rows(json!([[1, "new"]])));
    shows(&table, json!([[3, "c"], [4, "d"], [1, "new"]]));
    table.upgrade(3);
    table.delete_by_vectors(DeletionVectors::named("V").rows("F1", [1, 2]));
    shows(&table, json!([[4, "d"], [1, "new"]]));
    table.commit(Commit::new().rewrite_manifests());
    shows(&table, json!([[4, "d"], [1, "new"]]));
}

#[test]
fn a_dropped_partition_field_of_version_one_is_read() {
    // B046: part (category, n), n dropped, append
    let schema = Schema::new([
        optional(1, "category", Type::String),
        optional(2, "n", Type::Int),
        required(3, "id", Type::Long),
    ]);
    let spec = PartitionSpec::new([identity(1, "category"), identity(2, "n")]);
    let mut table = TableBuilder::temp(schema).format_version(1).spec(spec).create();
    table.append(DataFile::named("F1").partition(json!(["a", 5])).rows(json!([["a", 5, 1]])));
    let dropped = PartitionSpec::new([identity(1, "category"), partition(2, "n", "void").field_id(1001)]);
    table.set_spec(dropped);
    table.append(
        DataFile::named("F2")
            .partition(json!(["a", null]))
            .rows(json!([["a", 5, 2], ["a", 6, 3]])),
    );
    shows(&table, json!([["a", 5, 1], ["a", 5, 2], ["a", 6, 3]]));
    answers(&table, "SELECT id FROM t WHERE n = 5", json!([[1], [2]]));
}

#[test]
fn a_partition_source_that_was_dropped_leaves_its_files_readable() {
    let schema = Schema::new([
        optional(1, "category", Type::String),
        optional(2, "n", Type::Int),
        required(3, "id", Type::Long),
    ]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(1, "category"), identity(2, "n")]))
        .create();
    table.append(
        DataFile::named("F1")
            .partition(json!(["a", 5]))
            .rows(json!([["a", 5, 1], ["a", 5, 2]])),
    );
    table.set_spec(PartitionSpec::new([identity(2, "n")]));
    table.evolve(|s| s.drop("category"));
    table.append(DataFile::named("F2").partition(json!([6])).rows(json!([[6, 3]])));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0]).bounds(PathBounds::None));
    shows(&table, json!([[5, 2], [6, 3]]));
}

#[test]
fn names_are_taken_as_they_stand() {
    // B082: no part of a key is parsed as URL
    let schema = Schema::new([optional(1, "data#1", Type::String), required(2, "id", Type::Long)]);
    let guard = tempfile::tempdir().unwrap();
    for (i, folder) in ["a b+c", "p%20q", "h#i?j=k&l", "é~"].iter().enumerate() {
        let dir = guard.path().join(i.to_string()).join(folder).join("t");
        let mut table = TableBuilder::new(dir, schema.clone())
            .spec(PartitionSpec::new([identity(1, "data#1")]))
            .create();
        let path = "data/data#1=x%2Fy+z/a b?.parquet";
        table.append(
            DataFile::named("F")
                .path(path)
                .partition(json!(["x/y z"]))
                .rows(json!([["x/y z", 1], ["x/y z", 2]])),
        );
        table.delete_positions(
            PositionDeletes::named("P")
                .path("data/d%65l #.parquet")
                .rows("F", [0])
                .bounds(PathBounds::None),
        );
        shows(&table, json!([["x/y z", 2]]));
        answers(&table, "SELECT id FROM t WHERE \"data#1\" = 'x/y z'", json!([[2]]));
    }
}

#[test]
fn a_table_is_read_where_it_lies_and_not_where_it_says() {
    for location in [
        "s3://bucket/wh/t",
        "s3a://bucket/wh/t",
        "hdfs://name/wh/t",
        "/somewhere/else/t",
        "file:/somewhere/else/t",
    ] {
        let mut table = TableBuilder::temp(id_data()).recorded_location(location).create();
        fill(&mut table);
        shows(&table, filled());
    }
}

#[test]
fn one_table_may_mix_spellings_of_its_place() {
    let mut table = TableBuilder::temp(id_data()).create();
    let data = DataFile::named("F")
        .recorded_path("file:{location}/data/F.parquet")
        .rows(json!([[1, "a"], [2, "b"]]));
    table.append(data);
    let path = format!("{}/data/F.parquet", table.dir().display());
    table.delete_positions(PositionDeletes::named("P").path_rows(&path, [0]).bounds(PathBounds::None));
    let read = crate::support::read::rows(&table).unwrap();
    assert_eq!(crate::support::canonical::sorted_lines(&read), [r#"[2, "b"]"#]);
}

#[test]
fn a_file_outside_of_the_table_is_refused() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(
        DataFile::named("F")
            .recorded_path("{location}/../../../etc/passwd")
            .rows(column([1])),
    );
    assert!(crate::support::read::rows(&table).is_err());
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").recorded_path("/etc/passwd").rows(column([1])));
    refuses(&table, ErrorKind::PermissionDenied, &[]);
}

#[test]
fn a_data_file_of_no_rows_need_not_exist() {
    let mut table = TableBuilder::temp(ids()).create();
    let commit = Commit::new().data(DataFile::named("none").claimed_size(0).absent());
    table.commit(commit.data(DataFile::named("F").rows(column([1]))).data(DataFile::named("empty")));
    shows(&table, column([1]));
}

#[test]
fn a_missing_file_is_an_error() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).absent());
    refuses(&table, ErrorKind::NotFound, &["F.parquet"]);
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0]));
    std::fs::remove_file(table.real_path("P")).unwrap();
    refuses(&table, ErrorKind::NotFound, &["P-deletes.parquet"]);
}

#[test]
fn a_row_count_that_the_manifest_does_not_give_is_an_error() {
    // positions would fall on other rows
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1, 2, 3])).claimed_record_count(4));
    refuses(&table, ErrorKind::Corrupt, &["F.parquet"]);
}

#[test]
fn an_existing_entry_without_sequence_number_is_refused() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).existing_without_number());
    refuses(&table, ErrorKind::Corrupt, &["sequence number"]);
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).claimed_format("FOO"));
    assert!(crate::support::read::rows(&table).is_err());

    for (version, kind) in [(json!(4), ErrorKind::Unsupported), (json!(0), ErrorKind::Unsupported)] {
        let table = TableBuilder::temp(ids())
            .edit_metadata(move |json| {
                json.insert("format-version".to_owned(), version.clone());
            })
            .create();
        refuses(&table, kind, &["version"]);
    }

    let table = TableBuilder::temp(ids())
        .edit_metadata(|json| {
            json["schemas"][0]["fields"][0]["type"] = json!("interval");
        })
        .create();
    refuses(&table, ErrorKind::Unsupported, &["interval"]);
}

#[test]
fn only_the_files_of_the_current_snapshot_are_read() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F1").rows(column([1, 2])));
    table.tag("before");
    table.branch("dev");
    table.commit(Commit::new().on_branch("dev").data(DataFile::named("F2").rows(column([3]))));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0]));
    table.commit(Commit::new().on_branch("dev").data(DataFile::named("F3").rows(column([4]))));
    shows(&table, column([2]));
}

#[test]
fn bounds_that_lie_hide_no_row_of_a_full_scan() {
    let mut table = TableBuilder::temp(ids()).create();
    let wrong = DataFile::named("F")
        .rows(column([1, 2, 3]))
        .bounds(1, &Type::Long, &json!(100), &json!(200));
    table.append(wrong);
    table.append(DataFile::named("none").rows(column([4])).without_metrics());
    shows(&table, column([1, 2, 3, 4]));
}
