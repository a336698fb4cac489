//! Deletion vectors (v3): where they count, what they replace, and blobs that must be refused.

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{answers, column, ids, refuses, shows};
use crate::support::builder::{
    Commit, Damage, DataFile, DeletionVectors, EqualityDeletes, PartitionSpec, PathBounds, PositionDeletes, Schema, TableBuilder,
    TestTable, Type, Vector, identity, optional, required,
};

/// A v3 table with one file F of the rows 0..10.
fn file_f() -> TestTable {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(column(0..10)));
    table
}

/// A v3 table with the files F1 (0..5) and F2 (10..15).
fn two_files() -> TestTable {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(column(0..5)));
    table.commit(commit.data(DataFile::named("F2").rows(column(10..15))));
    table
}

#[test]
fn a_vector_deletes_its_positions() {
    for vector in [
        Vector::of("F", [0, 3, 9]),
        Vector::of("F", [0, 3, 9]).run_length(),
        Vector::of("F", 0..10).run_length(),
        Vector::of("F", []),
    ] {
        let mut table = file_f();
        table.delete_by_vectors(DeletionVectors::named("V").vector(vector));
        let left = table.rows();
        shows(&table, left.into_iter().map(Value::Array).collect());
    }
    let mut table = file_f();
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [0, 3, 9]));
    shows(&table, column([1, 2, 4, 5, 6, 7, 8]));
    answers(&table, "SELECT count(*), min(id), max(id) FROM t", json!([[7, 1, 8]]));
}

#[test]
fn several_vectors_share_a_file() {
    let mut table = two_files();
    let vectors = DeletionVectors::named("V")
        .rows("F1", [0, 1])
        .dead_vector(Vector::of("F1", [2, 3, 4]))
        .rows("F2", [4]);
    table.delete_by_vectors(vectors);
    shows(&table, column([2, 3, 4, 10, 11, 12, 13]));
}

#[test]
fn a_new_vector_replaces_the_old() {
    let mut table = file_f();
    table.delete_by_vectors(DeletionVectors::named("V1").rows("F", [1]));
    table.delete_by_vectors(DeletionVectors::named("V2").rows("F", [1, 2]));
    shows(&table, column([0, 3, 4, 5, 6, 7, 8, 9]));
    // the newest one counts, also where it brings rows back
    table.delete_by_vectors(DeletionVectors::named("V3").rows("F", [9]));
    shows(&table, column(0..9));
}

#[test]
fn two_live_vectors_over_one_file_are_refused() {
    // B035, reading side
    let mut table = file_f();
    table.delete_by_vectors(DeletionVectors::named("V1").rows("F", [1]));
    table.delete_by_vectors(DeletionVectors::named("V2").rows("F", [1, 2]).beside_old_vectors());
    refuses(&table, ErrorKind::Corrupt, &["F.parquet"]);
}

#[test]
fn a_vector_and_equality_deletes_work_together() {
    let mut table = two_files();
    let commit = Commit::new().vectors(DeletionVectors::named("V").rows("F1", [0, 1]));
    table.commit(commit.equality(EqualityDeletes::named("E", [1]).rows(column([1, 2, 14]))));
    shows(&table, column([3, 4, 10, 11, 12, 13]));
}

#[test]
fn beside_a_vector_older_position_deletes_of_its_file_do_not_count() {
    // v2 position deletes over F1 and F2 in one file; after the upgrade a vector over F1 alone
    let mut table = TableBuilder::temp(ids()).create();
    let commit = Commit::new().data(DataFile::named("F1").rows(column(0..5)));
    table.commit(commit.data(DataFile::named("F2").rows(column(10..15))));
    table.delete_positions(
        PositionDeletes::named("P")
            .rows("F1", [0, 1])
            .rows("F2", [0, 1])
            .bounds(PathBounds::None),
    );
    table.upgrade(3);
    shows(&table, column([2, 3, 4, 12, 13, 14]));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F1", [1, 4]));
    shows(&table, column([0, 2, 3, 12, 13, 14]));
}

#[test]
fn position_deletes_left_from_version_two_still_count() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F1").rows(column(0..5)));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0, 1]));
    table.upgrade(3);
    table.append(DataFile::named("F2").rows(column(10..12)));
    shows(&table, column([2, 3, 4, 10, 11]));
}

#[test]
fn vectors_lie_in_the_partition_of_their_file() {
    let schema = Schema::new([optional(1, "g", Type::String), required(2, "id", Type::Long)]);
    let builder = TableBuilder::temp(schema).format_version(3);
    let mut table = builder.spec(PartitionSpec::new([identity(1, "g")])).create();
    let commit = Commit::new().data(DataFile::named("F1").partition(json!(["a"])).rows(json!([["a", 1], ["a", 2]])));
    table.commit(commit.data(DataFile::named("F2").partition(json!(["b"])).rows(json!([["b", 1], ["b", 2]]))));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F1", [0]).rows("F2", [1]));
    shows(&table, json!([["a", 2], ["b", 1]]));
}

#[test]
fn a_vector_crosses_row_groups_and_pages() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(column(0..1000)).row_group_rows(100).page_rows(10));
    let gone = |i: &i64| (95..=305).contains(i) || i % 7 == 0 || *i == 999;
    let positions: Vec<u64> = (0..1000).filter(gone).map(|i| i as u64).collect();
    table.delete_by_vectors(DeletionVectors::named("V").vector(Vector::of("F", positions).run_length()));
    shows(&table, column((0..1000).filter(|i| !gone(i))));
}

#[test]
fn two_rows_of_long_lists_are_left() {
    // B089: lists that span pages, all but two rows deleted
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "tags", Type::list(3, Type::String))]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    let list = |i: i64| -> Value { (0..(i % 13) * 7).map(|n| json!(format!("tag {i} {n}"))).collect() };
    let rows = (0..1200).map(|i| json!([i, list(i)]));
    table.append(DataFile::named("F").rows_from(rows).page_rows(400).without_dictionary());
    let positions: Vec<u64> = (0..1200).filter(|p| *p != 352 && *p != 955).collect();
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", positions));
    shows(&table, json!([[352, list(352)], [955, list(955)]]));
}

#[test]
fn a_blob_without_a_puffin_file_around_it_is_read() {
    // as one writer wrote them until 2026
    let mut table = file_f();
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [1, 2]).bare());
    shows(&table, column([0, 3, 4, 5, 6, 7, 8, 9]));
}

#[test]
fn a_vector_at_the_place_of_another_is_refused() {
    // B038: each entry points at the blob of the other file
    let mut table = two_files();
    table.delete_by_vectors(
        DeletionVectors::named("V")
            .rows("F1", [0, 1])
            .rows("F2", [0, 1, 2])
            .swapped_offsets(),
    );
    refuses(&table, ErrorKind::Corrupt, &["V.puffin"]);
}

#[test]
fn a_damaged_blob_is_refused() {
    // B038
    for damage in [
        Damage::Checksum,
        Damage::Magic,
        Damage::Truncated,
        Damage::Length,
        Damage::KeysNotAscending,
    ] {
        let mut table = file_f();
        table.delete_by_vectors(DeletionVectors::named("V").vector(Vector::of("F", [1, 5]).damaged(damage)));
        refuses(&table, ErrorKind::Corrupt, &["V.puffin"]);
    }
}

#[test]
fn an_entry_that_lies_about_its_blob_is_refused() {
    let vector = || Vector::of("F", [1, 5]);
    for wrong in [
        vector().offset_off_by(1),
        vector().offset_off_by(-1),
        vector().offset_off_by(1 << 40),
        vector().offset_off_by(-100),
        vector().length_off_by(1),
        vector().length_off_by(-1),
        vector().length_off_by(1 << 40),
        vector().length_off_by(-1000),
        vector().claimed_cardinality(3),
        vector().unreferenced(),
    ] {
        let mut table = file_f();
        table.delete_by_vectors(DeletionVectors::named("V").vector(wrong));
        refuses(&table, ErrorKind::Corrupt, &["V.puffin"]);
    }
}

#[test]
fn a_position_beyond_the_rows_of_the_file_is_refused() {
    let mut table = file_f();
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [1, 10]));
    refuses(&table, ErrorKind::Corrupt, &["V.puffin"]);
}
