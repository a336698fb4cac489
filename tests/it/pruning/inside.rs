//! Pruning inside of files: row groups, pages, bloom filters, together with deletes.

use serde_json::{Value, json};

use super::answers;
use crate::support::builder::{
    DataFile, DeletionVectors, EqualityDeletes, PositionDeletes, Schema, TableBuilder, TestTable, Type, optional, required,
};

fn ids() -> Schema {
    Schema::new([required(1, "id", Type::Long)])
}

fn rows(ids: impl IntoIterator<Item = i64>) -> Value {
    ids.into_iter().map(|i| json!([i])).collect()
}

#[test]
fn row_groups_are_left_out_by_their_statistics() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(rows(0..300)).row_group_rows(100));
    let answer = answers(&table, "SELECT id FROM t WHERE id = 150", &rows([150]));
    assert_eq!(answer.scan.counters.row_groups_skipped_by_statistics(), 2);
    assert_eq!(answer.scan.counters.row_groups_read(), 1);
    let answer = answers(&table, "SELECT id FROM t WHERE id < 100 OR id >= 299", &rows((0..100).chain([299])));
    assert_eq!(answer.scan.counters.row_groups_skipped_by_statistics(), 1);
}

/// B003
#[test]
fn positions_count_row_groups_that_were_skipped() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(rows(0..300)).row_group_rows(100));
    table.delete_positions(PositionDeletes::named("P").rows("F", [250]));
    let answer = answers(
        &table,
        "SELECT id FROM t WHERE id < 100 OR id >= 200",
        &rows((0..100).chain(200..250).chain(251..300)),
    );
    assert_eq!(answer.scan.counters.row_groups_skipped_by_statistics(), 1);
    let answer = answers(&table, "SELECT id FROM t WHERE id >= 200", &rows((200..250).chain(251..300)));
    assert_eq!(answer.scan.counters.row_groups_skipped_by_statistics(), 2);
    answers(&table, "SELECT id FROM t WHERE id = 250", &rows([]));
}

/// B030
#[test]
fn a_key_is_found_once_in_a_row_group_of_many_pages() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(rows(0..1000)).page_rows(20));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [3, 977]));
    for id in (0..1000).step_by(41).chain([3, 19, 20, 976, 977, 978, 999]) {
        let expected = rows([id].into_iter().filter(|id| ![3, 977].contains(id)));
        let answer = answers(&table, &format!("SELECT id FROM t WHERE id = {id}"), &expected);
        assert_eq!(answer.scan.counters.pages_skipped(), 49, "{id}");
        assert_eq!(answer.scan.counters.rows_skipped_by_pages(), 980, "{id}");
    }
}

/// B089
#[test]
fn lists_that_cross_pages_stay_whole() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "tags", Type::list(3, Type::String)),
        optional(4, "m", Type::map(5, Type::String, 6, Type::Int)),
    ]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    let row = |i: i64| {
        let tags: Vec<String> = (0..i % 7).map(|n| format!("{i}-{n}-{}", "x".repeat(40))).collect();
        let map: Vec<Value> = (0..i % 3).map(|n| json!([format!("k{n}"), i])).collect();
        match i % 11 {
            0 => json!([i, null, null]),
            _ => json!([i, tags, map]),
        }
    };
    table.append(DataFile::named("F").rows_from((0..1000).map(row)).page_rows(340));
    let left = [352, 955];
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", (0..1000u64).filter(|i| !left.contains(i))));
    let both: Value = [row(352), row(955)].into_iter().collect();
    answers(&table, "SELECT * FROM t", &both);
    let answer = answers(&table, "SELECT * FROM t WHERE id IN (352, 955)", &both);
    assert!(answer.scan.counters.pages_skipped() > 0);
    let answer = answers(&table, "SELECT * FROM t WHERE id > 900", &json!([row(955)]));
    assert!(answer.scan.counters.pages_skipped() > 1);
}

#[test]
fn lists_are_read_by_page_without_deletes() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "tags", Type::list(3, Type::Int))]);
    let mut table = TableBuilder::temp(schema).create();
    let row = |i: i64| json!([i, (0..i % 5).collect::<Vec<_>>()]);
    table.append(DataFile::named("F").rows_from((0..500).map(row)).page_rows(50).without_dictionary());
    let expected: Value = (170..260).map(row).collect();
    let answer = answers(&table, "SELECT * FROM t WHERE id >= 170 AND id < 260", &expected);
    assert!(answer.scan.counters.pages_skipped() >= 7);
}

/// B090
#[test]
fn a_page_that_is_not_fetched_is_not_decoded() {
    let schema = Schema::new([
        required(1, "a", Type::Long),
        required(2, "b", Type::Long),
        optional(3, "c", Type::String),
    ]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    let row = |i: i64| json!([i, i % 13, format!("c{i}")]);
    table.append(DataFile::named("F").rows_from((0..2000).map(row)).page_rows(100));
    let deleted = |i: i64| i % 3 == 0 || (700..760).contains(&i);
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", (0..2000i64).filter(|i| deleted(*i)).map(i64::cast_unsigned)));
    let expected = |from: i64, to: i64| -> Value {
        (from..to)
            .filter(|i| !deleted(*i) && i % 13 < 2)
            .map(|i| json!([format!("c{i}")]))
            .collect()
    };
    let answer = answers(&table, "SELECT c FROM t WHERE a >= 550 AND b < 2", &expected(550, 2000));
    assert!(answer.scan.counters.pages_skipped() >= 15);
    answers(
        &table,
        "SELECT c FROM t WHERE a >= 550 AND a < 1450 AND b < 2",
        &expected(550, 1450),
    );
    answers(&table, "SELECT c FROM t WHERE b < 2", &expected(0, 2000));
}

/// B092
#[test]
fn selections_of_one_row_group_do_not_move_to_another() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(rows(0..400)).row_group_rows(100).page_rows(50));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [60, 310]));
    let answer = answers(
        &table,
        "SELECT id FROM t WHERE (id >= 50 AND id < 100) OR id >= 300",
        &rows((50..60).chain(61..100).chain(300..310).chain(311..400)),
    );
    assert_eq!(answer.scan.counters.row_groups_skipped_by_statistics(), 2);
    assert_eq!(answer.scan.counters.rows_skipped_by_pages(), 50);
    answers(
        &table,
        "SELECT id FROM t WHERE (id >= 50 AND id < 100) OR id >= 300 ORDER BY id DESC LIMIT 50",
        &rows(350..400),
    );
    answers(
        &table,
        "SELECT id FROM t WHERE id < 50 OR (id >= 300 AND id < 350) ORDER BY id DESC LIMIT 3",
        &rows([349, 348, 347]),
    );
}

#[test]
fn only_pages_that_may_match_are_fetched() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "payload", Type::String)]);
    let mut table = TableBuilder::temp(schema).create();
    let row = |i: i64| json!([i, format!("{i:0>200}")]);
    table.append(
        DataFile::named("F")
            .rows_from((0..2000).map(row))
            .page_rows(100)
            .without_dictionary()
            .compression(parquet::basic::Compression::UNCOMPRESSED),
    );
    let one = answers(&table, "SELECT * FROM t WHERE id = 1234", &json!([row(1234)]));
    // 20 pages of 21 kB each and their ids: one page of each column is fetched.
    assert!(one.data_bytes() < 50_000, "{}", one.data_bytes());
    assert_eq!(one.scan.counters.pages_skipped(), 38);
}

#[test]
fn equality_deletes_see_rows_of_chosen_pages() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "k", Type::String)]);
    let mut table = TableBuilder::temp(schema).create();
    let row = |i: i64| json!([i, format!("k{}", i % 10)]);
    table.append(DataFile::named("F").rows_from((0..400).map(row)).page_rows(40));
    table.delete_keys(EqualityDeletes::named("E", [2]).rows(json!([["k3"], ["k7"]])));
    table.delete_positions(PositionDeletes::named("P").rows("F", [201, 300]));
    // The key column is not asked for.
    let expected = rows((200..240).filter(|i| i % 10 != 3 && i % 10 != 7 && *i != 201));
    let answer = answers(&table, "SELECT id FROM t WHERE id >= 200 AND id < 240", &expected);
    assert!(answer.scan.counters.pages_skipped() >= 9);
}

fn evens(table: &mut TestTable, name: &str, from: i64) {
    let row = |i: i64| json!([2 * i, format!("v{}", 2 * i), (2 * i) as i32]);
    let file = DataFile::named(name).rows_from((from..from + 200).map(row));
    table.append(file.row_group_rows(100).bloom_filters());
}

#[test]
fn bloom_filters_leave_row_groups_out() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "s", Type::String),
        optional(3, "n", Type::Int),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    evens(&mut table, "F", 0);
    let by_bloom = |table: &TestTable, condition: &str, expected: Value| {
        let answer = answers(table, &format!("SELECT id FROM t WHERE {condition}"), &expected);
        answer.scan.counters.row_groups_skipped_by_bloom()
    };
    // Between the bounds, but not there: a filter may err, though hardly for all of these.
    let odd: u64 = (1..400)
        .step_by(26)
        .map(|id| by_bloom(&table, &format!("id = {id}"), json!([])))
        .sum();
    assert!(odd >= 14, "{odd}");
    assert_eq!(by_bloom(&table, "id = 100", json!([[100]])), 0);
    assert!(by_bloom(&table, "s = 'v101'", json!([])) >= 1);
    assert_eq!(by_bloom(&table, "s = 'v100'", json!([[100]])), 0);
    assert!(by_bloom(&table, "n = 101", json!([])) >= 1);
    assert!(by_bloom(&table, "n IN (101, 103)", json!([])) >= 1);
    assert_eq!(by_bloom(&table, "n IN (101, 102)", json!([[102]])), 0);
    assert_eq!(by_bloom(&table, "n = 101 OR id = 100", json!([[100]])), 0);
    // promoted: the filter holds the values as int
    table.evolve(|s| s.promote("n", Type::Long));
    assert_eq!(by_bloom(&table, "n = 100", json!([[100]])), 0);
    assert!(by_bloom(&table, "n = 101", json!([])) >= 1);
}
