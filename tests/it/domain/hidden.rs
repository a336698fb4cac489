//! Hidden columns: exact under every kind of delete, and seen by nobody who does not ask.

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use sandur::error::ErrorKind;
use serde_json::{Value, json};
use std::sync::Arc;

use super::{answers, column, id_data, ids};
use crate::support::builder::{
    Commit, DataFile, DeletionVectors, EqualityDeletes, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity,
    optional, partition, required,
};
use crate::support::read;

/// The query fails, and says these words.
#[track_caller]
fn fails(table: &TestTable, sql: &str, kind: ErrorKind, word: &str) {
    let error = match read::query(table, sql) {
        Err(error) => error,
        Ok(rows) => panic!("{sql} gave {} rows", rows.rows.len()),
    };
    assert_eq!(error.kind(), kind, "{sql}: {error:?}");
    assert!(error.to_string().contains(word), "{sql}: {error}");
}

#[track_caller]
fn columns(table: &TestTable, sql: &str, expected: &[&str]) {
    let read = read::query(table, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(read.columns, expected, "{sql}");
}

#[test]
fn positions_are_physical_under_every_kind_of_delete() {
    // 1,000 rows in row groups of 100; the id of a row is its position
    let file = || DataFile::named("F").row_group_rows(100).page_rows(20).rows(column(0..1000));
    let kept = |deleted: &dyn Fn(i64) -> bool| -> Value { (0..1000).filter(|i| !deleted(*i)).map(|i| json!([i, i])).collect() };
    // a whole row group, the ends of others, and single rows
    let by_position = |i: i64| (200..300).contains(&i) || i % 100 == 99 || i % 7 == 3 || i < 5;
    let positions: Vec<i64> = (0..1000).filter(|i| by_position(*i)).collect();
    let unsigned = || positions.iter().map(|i| u64::try_from(*i).unwrap());

    let mut vectors = TableBuilder::temp(ids()).format_version(3).create();
    vectors.append(file());
    answers(&vectors, "SELECT id, _pos FROM t", kept(&|_| false));
    vectors.delete_by_vectors(DeletionVectors::named("V").rows("F", unsigned()));
    answers(&vectors, "SELECT id, _pos FROM t", kept(&by_position));

    let mut files = TableBuilder::temp(ids()).create();
    files.append(file());
    files.delete_positions(PositionDeletes::named("P").rows("F", positions.clone()));
    answers(&files, "SELECT id, _pos FROM t", kept(&by_position));

    let by_key = |i: i64| i % 10 == 4;
    let keys: Value = (0..1000).filter(|i| by_key(*i)).map(|i| json!([i])).collect();
    files.delete_keys(EqualityDeletes::named("E", [1]).rows(keys));
    let both = |i: i64| by_position(i) || by_key(i);
    answers(&files, "SELECT id, _pos FROM t", kept(&both));

    for table in [&vectors, &files] {
        answers(table, "SELECT count(*) FROM t WHERE _pos <> id", json!([[0]]));
        // without any column of the file
        let read = read::query(table, "SELECT _pos FROM t").unwrap().rows.len();
        let rows = read::rows(table).unwrap().len();
        assert_eq!(read, rows);
        answers(
            table,
            "SELECT id FROM t WHERE _pos BETWEEN 298 AND 302",
            json!([[300], [301], [302]]),
        );
        answers(table, "SELECT _pos FROM t WHERE id = 998", json!([[998]]));
    }
    answers(
        &files,
        "SELECT max(_pos), min(_pos), count(DISTINCT _pos) = count(*) FROM t",
        json!([[998, 5, true]]),
    );
}

#[test]
fn files_are_named_as_the_metadata_spells_them() {
    let mut table = TableBuilder::temp(ids()).recorded_location("s3://bucket/t").create();
    table.append(DataFile::named("F1").rows(column([1])));
    table.append(DataFile::named("F2").rows(column([2])));
    answers(
        &table,
        "SELECT id, _file, _pos FROM t",
        json!([[1, "s3://bucket/t/data/F1.parquet", 0], [2, "s3://bucket/t/data/F2.parquet", 0]]),
    );
    answers(&table, "SELECT id FROM t WHERE _file LIKE '%F2.parquet'", json!([[2]]));
}

#[test]
fn nobody_sees_them_who_does_not_ask() {
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"]])));
    columns(&table, "SELECT * FROM t", &["id", "data"]);
    columns(&table, "SELECT *, _pos FROM t", &["id", "data", "_pos"]);
    columns(&table, "SELECT _POS, t.*, \"_pos\" + 1 AS n FROM t", &["_pos", "id", "data", "n"]);
    columns(&table, "SELECT * FROM t WHERE _pos = 1 ORDER BY _file", &["id", "data"]);
    columns(&table, "SELECT a.* FROM t a WHERE a._pos = 1", &["id", "data"]);
    columns(&table, "SELECT * EXCLUDE (id) FROM t WHERE _pos = 1", &["data"]);
    columns(&table, "SELECT * EXCLUDE (_pos) FROM t", &["id", "data"]);
    columns(
        &table,
        "SELECT test.\"default\".t.* FROM test.\"default\".t WHERE _pos = 0",
        &["id", "data"],
    );
    columns(&table, "SELECT * FROM t AS x (a, b) WHERE _pos = 1", &["a", "b"]);
    columns(&table, "SELECT * FROM (SELECT *, _pos FROM t)", &["id", "data", "_pos"]);
    columns(
        &table,
        "SELECT * FROM (SELECT _pos, id FROM t) s, t ORDER BY s._pos",
        &["_pos", "id", "id", "data"],
    );
    columns(
        &table,
        "WITH t AS (SELECT *, _pos AS p FROM t WHERE _pos = 0) SELECT * FROM t",
        &["id", "data", "p"],
    );
    columns(
        &table,
        "WITH s AS (SELECT *, _pos FROM t) SELECT * FROM s WHERE _pos = 0",
        &["id", "data", "_pos"],
    );
    columns(
        &table,
        "SELECT * FROM t a JOIN t b ON a._pos = b._pos",
        &["id", "data", "id", "data"],
    );
    columns(
        &table,
        "SELECT a.*, b._pos FROM t a LEFT JOIN t b ON a._pos = b._pos + 1",
        &["id", "data", "_pos"],
    );
    columns(&table, "SELECT * FROM t a LEFT SEMI JOIN t b ON a._pos = b._pos", &["id", "data"]);
    columns(
        &table,
        "SELECT * FROM t WHERE EXISTS (SELECT * FROM t x WHERE x._pos = t._pos)",
        &["id", "data"],
    );
    columns(&table, "SELECT * FROM t WHERE _pos = 0 UNION ALL SELECT * FROM t", &["id", "data"]);
    for listing in [
        "DESCRIBE t",
        "SHOW COLUMNS FROM t",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 't'",
    ] {
        assert_eq!(read::query(&table, listing).unwrap().rows.len(), 2, "{listing}");
    }
    answers(
        &table,
        "SELECT count(*) FROM t a JOIN t b USING (id) WHERE a._pos = b._pos",
        json!([[2]]),
    );
    answers(&table, "SELECT count(*) FROM t GROUP BY _file", json!([[2]]));
    for (refused, word) in [
        ("SELECT a._pos FROM t a NATURAL JOIN t b", "NATURAL"),
        ("SELECT * FROM t a JOIN t b USING (id) WHERE a._pos = 0", "USING"),
        ("FROM t |> WHERE _pos = 0", ""),
    ] {
        let error = read::query(&table, refused).expect_err(refused);
        assert!(
            matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput),
            "{refused}: {error:?}"
        );
        assert!(error.to_string().contains(word), "{refused}: {error}");
    }
    fails(
        &table,
        "WITH t AS (SELECT * FROM t) SELECT _pos FROM t",
        ErrorKind::InvalidInput,
        "_pos",
    );
    fails(&table, "SELECT _pos FROM t a, t b", ErrorKind::InvalidInput, "_pos");
}

#[test]
fn a_column_of_the_table_wins() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "_POS", Type::String)]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([[1, "own"]])));
    answers(&table, "SELECT *, _spec_id FROM t WHERE _pos = 'own'", json!([[1, "own", 0]]));
    answers(&table, "SELECT _pos, _spec_id FROM t", json!([["own", 0]]));
}

#[test]
fn placeholders_compare_with_them() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([7, 8, 9])));
    let value: ArrayRef = Arc::new(Int64Array::from(vec![2]));
    let values = RecordBatch::try_from_iter([("1", value)]).unwrap();
    let rows = read::bound(&table, "SELECT *, _pos FROM t WHERE _pos = ?", &values).unwrap();
    assert_eq!(
        (rows.columns, rows.rows),
        (vec!["id".to_owned(), "_pos".to_owned()], vec![vec![json!(9), json!(2)]])
    );
}

#[test]
fn partitions_are_one_struct_over_all_specs() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "region", Type::String),
        optional(3, "at", Type::Timestamp),
    ]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([
            identity(2, "region").field_id(1000),
            partition(3, "at_day", "day").field_id(1001),
        ]))
        .create();
    table.append(
        DataFile::named("F1")
            .partition(json!(["eu", "2024-02-29"]))
            .rows(json!([[1, "eu", "2024-02-29T12:00:00.000000"]])),
    );
    table.set_spec(PartitionSpec::new([
        identity(2, "area").field_id(1000),
        partition(1, "id_bucket", "bucket[4]").field_id(1002),
    ]));
    table.append(DataFile::named("F2").partition(json!([null, 3])).rows(json!([[2, null, null]])));
    answers(
        &table,
        "SELECT id, _spec_id, _partition FROM t",
        json!([
            [1, 0, {"area": "eu", "at_day": "2024-02-29", "id_bucket": null}],
            [2, 1, {"area": null, "at_day": null, "id_bucket": 3}],
        ]),
    );
    answers(&table, "SELECT id FROM t WHERE _partition['id_bucket'] = 3", json!([[2]]));
    answers(&table, "SELECT count(*) FROM t GROUP BY _partition", json!([[1], [1]]));
}

#[test]
fn the_partition_of_an_unpartitioned_table_is_null() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])));
    answers(&table, "SELECT id, _partition, _spec_id FROM t", json!([[1, null, 0]]));
}

#[test]
fn row_ids_follow_from_files_and_positions() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.commit(
        Commit::new()
            .data(DataFile::named("F1").rows(column([10, 11])))
            .data(DataFile::named("F2").rows(column([12]))),
    );
    table.append(DataFile::named("F3").row_group_rows(2).rows(column([13, 14, 15])));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F3", [0, 2]));
    answers(
        &table,
        "SELECT id, _row_id, _last_updated_sequence_number FROM t",
        json!([[10, 0, 1], [11, 1, 1], [12, 2, 1], [14, 4, 2]]),
    );
    answers(
        &table,
        "SELECT id FROM t WHERE _row_id = 4 AND _last_updated_sequence_number = 2",
        json!([[14]]),
    );
}

#[test]
fn stored_row_ids_count_before_inherited_ones() {
    // as a rewrite leaves them: old ids and numbers stored, null for rows that are new
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    let stored = Schema::new([
        required(1, "id", Type::Long),
        optional(2_147_483_540, "_row_id", Type::Long),
        optional(2_147_483_539, "_last_updated_sequence_number", Type::Long),
    ]);
    table.append(DataFile::named("F0").rows(column(0..20)));
    table.append(
        DataFile::named("F")
            .schema(stored)
            .rows(json!([[30, 7, 1], [31, null, null], [32, 8, null]])),
    );
    answers(
        &table,
        "SELECT id, _row_id, _last_updated_sequence_number FROM t WHERE id >= 30",
        json!([[30, 7, 1], [31, 21, 2], [32, 8, 2]]),
    );
    columns(&table, "SELECT * FROM t", &["id"]);
}

#[test]
fn tables_before_version_3_have_no_row_lineage() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])));
    answers(
        &table,
        "SELECT _row_id, _last_updated_sequence_number FROM t",
        json!([[null, null]]),
    );
}
