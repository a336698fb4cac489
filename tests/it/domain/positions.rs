//! Position delete files: scope, order, and the forms that writers gave them.

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{answers, column, id_data, ids, refuses, shows};
use crate::support::builder::{
    Commit, DataFile, PartitionSpec, PathBounds, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity, optional, required,
};

/// `region string, k long` by region: F1 in eu, F2 in us.
fn by_region() -> TestTable {
    let schema = Schema::new([optional(1, "region", Type::String), required(2, "k", Type::Long)]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(1, "region")]))
        .create();
    let eu = DataFile::named("F1")
        .partition(json!(["eu"]))
        .rows(json!([["eu", 1], ["eu", 2], ["eu", 3]]));
    let us = DataFile::named("F2")
        .partition(json!(["us"]))
        .rows(json!([["us", 1], ["us", 2], ["us", 3]]));
    table.commit(Commit::new().data(eu).data(us));
    table
}

#[test]
fn deletes_reach_every_row_group_of_data_and_delete_file() {
    // B001
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..300)).row_group_rows(100).page_rows(20));
    table.delete_positions(PositionDeletes::named("P").rows("F", 0..300).row_group_rows(100));
    shows(&table, json!([]));
    answers(&table, "SELECT count(*) FROM t", json!([[0]]));
}

#[test]
fn positions_count_from_the_start_of_the_file() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..300)).row_group_rows(100).page_rows(20));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0, 99, 100, 101, 250, 299]));
    let left = (0..300).filter(|i| ![0, 99, 100, 101, 250, 299].contains(i));
    shows(&table, column(left));
}

#[test]
fn positions_may_be_unsorted_and_repeated() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..10)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [7, 2, 2, 9, 0, 7]));
    table.delete_positions(PositionDeletes::named("again").rows("F", [2, 3]));
    shows(&table, column([1, 4, 5, 6, 8]));
    answers(&table, "SELECT count(*) FROM t", json!([[5]]));
}

#[test]
fn a_position_beyond_the_rows_of_its_file_deletes_nothing() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1, 2, 3])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [1, 3, 1 << 40]));
    shows(&table, column([1, 3]));
}

#[test]
fn a_position_delete_file_serves_several_data_files() {
    let mut table = TableBuilder::temp(ids()).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(column(0..5)));
    table.commit(commit.data(DataFile::named("F2").rows(column(10..15))));
    table.append(DataFile::named("F3").rows(column(20..25)));
    table.delete_positions(PositionDeletes::named("P").rows("F2", [4]).rows("F1", [0, 2]).rows("F2", [1]));
    shows(&table, column([1, 3, 4, 10, 12, 13, 20, 21, 22, 23, 24]));
}

#[test]
fn bounds_on_the_path_change_nothing() {
    for bounds in [PathBounds::Full, PathBounds::None, PathBounds::Truncated(16), PathBounds::Cut(16)] {
        let mut table = by_region();
        table.delete_positions(PositionDeletes::named("P").rows("F1", [0, 2]).bounds(bounds));
        shows(&table, json!([["eu", 2], ["us", 1], ["us", 2], ["us", 3]]));
    }
}

#[test]
fn equal_bounds_that_were_cut_are_no_path() {
    let mut table = TableBuilder::temp(ids()).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(column(0..3)));
    table.commit(commit.data(DataFile::named("F2").rows(column(10..13))));
    let deletes = PositionDeletes::named("P").rows("F1", [1]).rows("F2", [0]);
    table.delete_positions(deletes.bounds(PathBounds::Cut(5)));
    shows(&table, column([0, 2, 11, 12]));
}

#[test]
fn a_delete_of_one_partition_spares_the_others() {
    // the path of F2 stands in a file of partition eu that is bound to no file
    let mut table = by_region();
    let path = table.file("F2").entry.path.clone();
    let deletes = PositionDeletes::named("P").rows("F1", [0]).path_rows(&path, [0, 1]);
    table.delete_positions(deletes.bounds(PathBounds::None));
    shows(&table, json!([["eu", 2], ["eu", 3], ["us", 1], ["us", 2], ["us", 3]]));
}

#[test]
fn a_delete_bound_to_a_file_of_another_partition_is_refused() {
    for referenced in [false, true] {
        let mut table = by_region();
        let mut deletes = PositionDeletes::named("P").partition(json!(["eu"])).rows("F2", [0]);
        if referenced {
            deletes = deletes.referenced("F2").bounds(PathBounds::None);
        }
        table.delete_positions(deletes);
        refuses(&table, ErrorKind::Corrupt, &["P-deletes.parquet"]);
    }
}

#[test]
fn a_referenced_data_file_binds_the_delete() {
    let mut table = by_region();
    table.delete_positions(
        PositionDeletes::named("P")
            .rows("F2", [1])
            .referenced("F2")
            .bounds(PathBounds::None),
    );
    shows(&table, json!([["eu", 1], ["eu", 2], ["eu", 3], ["us", 1], ["us", 3]]));
}

#[test]
fn deletes_of_a_partition_that_is_null_apply() {
    let schema = Schema::new([optional(1, "region", Type::String), required(2, "k", Type::Long)]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(1, "region")]))
        .create();
    table.append(DataFile::named("F1").partition(json!([null])).rows(json!([[null, 1], [null, 2]])));
    table.append(DataFile::named("F2").partition(json!(["null"])).rows(json!([["null", 1]])));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0]).bounds(PathBounds::None));
    shows(&table, json!([[null, 2], ["null", 1]]));
}

#[test]
fn columns_of_a_delete_file_are_found_by_id() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..5)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [1, 3]).swapped_columns());
    shows(&table, column([0, 2, 4]));
}

#[test]
fn a_delete_file_may_carry_the_deleted_rows() {
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"], [3, "c"]])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0, 2]).with_row(id_data()));
    shows(&table, json!([[2, "b"]]));
}

#[test]
fn rows_without_path_or_position_delete_nothing() {
    // such rows exist: one engine wrote them for deletes of rows that were not there
    for deletes in [
        PositionDeletes::named("P").rows("F", [0]).null_path(1),
        PositionDeletes::named("P").rows("F", [0]).null_position("F"),
    ] {
        let mut table = TableBuilder::temp(ids()).create();
        table.append(DataFile::named("F").rows(column(0..5)));
        table.delete_positions(deletes);
        shows(&table, column(1..5));
    }
}

#[test]
fn a_negative_position_is_refused() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..5)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [-1]));
    refuses(&table, ErrorKind::Corrupt, &["P-deletes.parquet"]);
}

#[test]
fn one_file_has_one_spelling() {
    // the manifest says /..., the delete file says file:/... or file:///...
    for spelling in ["file:{path}", "file://{path}", "FILE://localhost{path}"] {
        let mut table = TableBuilder::temp(ids()).create();
        table.append(DataFile::named("F").rows(column(0..5)));
        let deletes = PositionDeletes::named("P").rows("F", [1, 3]);
        table.delete_positions(deletes.path_spelling(spelling).bounds(PathBounds::None));
        shows(&table, column([0, 2, 4]));
    }
}

#[test]
fn columns_named_like_the_delete_file_s_are_plain_columns() {
    let schema = Schema::new([required(1, "pos", Type::Long), optional(2, "file_path", Type::String)]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([[10, "a"], [11, "b"], [12, "c"]])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [1]));
    shows(&table, json!([[10, "a"], [12, "c"]]));
}

#[test]
fn many_delete_files_of_one_partition_each_reach_their_file() {
    // B133 for results: 60 data files, 60 deletes bound to one each
    let mut table = TableBuilder::temp(ids()).create();
    let mut data = Commit::new();
    for i in 0..60 {
        data = data.data(DataFile::named(&format!("F{i}")).rows(column([i * 10, i * 10 + 1, i * 10 + 2])));
    }
    table.commit(data);
    let mut deletes = Commit::new();
    for i in 0..60 {
        deletes = deletes.positions(PositionDeletes::named(&format!("P{i}")).rows(&format!("F{i}"), [i % 3]));
    }
    table.commit(deletes);
    let left: Vec<Value> = (0..60)
        .flat_map(|i| (0..3).filter(move |p| *p != i % 3).map(move |p| json!([i * 10 + p])))
        .collect();
    shows(&table, Value::Array(left));
}

#[test]
fn counting_rows_heeds_deletes() {
    // B095 for position deletes: the snapshot's total-records still says 10
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column(0..10)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [0, 1, 2]));
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT count(id) FROM t",
        "SELECT count(*) FROM (SELECT id FROM t)",
    ] {
        answers(&table, sql, json!([[7]]));
    }
    answers(&table, "SELECT min(id), max(id) FROM t", json!([[3, 9]]));
}
