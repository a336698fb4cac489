//! Metadata tables over tables whose files are known by hand.

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{column, id_data, ids, listed};
use crate::support::builder::{
    Commit, DataFile, DeletionVectors, EqualityDeletes, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity,
    optional, required,
};
use crate::support::read;

/// The rows of a query, in its order.
#[track_caller]
fn shows(table: &TestTable, sql: &str, rows: Value) {
    let read = read::query(table, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    assert_eq!(read.rows, listed(rows), "{sql}");
}

#[test]
fn both_spellings_and_every_name() {
    let mut table = TableBuilder::temp(id_data()).property("p", "v").create();
    table.append(DataFile::named("F").rows(json!([[1, "a"]])));
    for name in [
        "snapshots",
        "history",
        "refs",
        "files",
        "data_files",
        "delete_files",
        "entries",
        "manifests",
        "partitions",
        "metadata_log_entries",
        "properties",
        "all_files",
        "all_data_files",
        "all_delete_files",
        "all_entries",
        "all_manifests",
    ] {
        let rows = read::query(&table, &format!("SELECT * FROM t.{name}")).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        for spelling in [
            format!("\"t${name}\""),
            format!("t${name}"),
            format!("default.t.{name}"),
            format!("default.\"T${name}\""),
            format!("test.default.t.{}", name.to_uppercase()),
            format!("test.default.\"t${name}\""),
        ] {
            let other = read::query(&table, &format!("SELECT * FROM {spelling}")).unwrap_or_else(|e| panic!("{spelling}: {e:?}"));
            assert_eq!((&other.columns, &other.rows), (&rows.columns, &rows.rows), "{spelling}");
        }
        assert!(!read::query(&table, &format!("DESCRIBE t.{name}")).unwrap().rows.is_empty());
        shows(&table, &format!("SELECT count(*) FROM t.{name}"), json!([[rows.rows.len()]]));
    }
    shows(&table, "SELECT key, value FROM t.properties WHERE key = 'p'", json!([["p", "v"]]));
    shows(
        &table,
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'default'",
        json!([[1]]),
    );
    let error = read::query(&table, "SELECT * FROM t.health").map(|r| r.rows.len()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn snapshots_and_refs_of_a_table_with_branches() {
    let mut table = TableBuilder::temp(ids()).create();
    let first = table.append(DataFile::named("A").rows(column([1, 2])));
    table.branch("dev");
    let second = table.commit(Commit::new().on_branch("dev").data(DataFile::named("B").rows(column([3]))));
    let third = table.delete_positions(PositionDeletes::named("P").rows("A", [0]));
    let id = |id: i64| json!(id.to_string());
    shows(
        &table,
        "SELECT snapshot_id, parent_id, operation, summary['added-data-files'] FROM t.snapshots ORDER BY committed_at",
        json!([
            [id(first), null, "append", "1"],
            [id(second), id(first), "append", "1"],
            [id(third), id(first), "delete", "0"]
        ]),
    );
    shows(
        &table,
        "SELECT name, type, snapshot_id FROM t.refs ORDER BY name",
        json!([["dev", "BRANCH", id(second)], ["main", "BRANCH", id(third)]]),
    );
    shows(
        &table,
        "SELECT snapshot_id, parent_id, is_current_ancestor FROM t.history ORDER BY made_current_at",
        json!([[id(first), null, true], [id(third), id(first), true]]),
    );
    shows(
        &table,
        "SELECT count(*), count(latest_snapshot_id) FROM t.metadata_log_entries",
        json!([[5, 4]]),
    );
    // files of one snapshot, and of all of them
    shows(
        &table,
        "SELECT content, file_format, record_count FROM t.files ORDER BY content",
        json!([[0, "PARQUET", 2], [1, "PARQUET", 1]]),
    );
    for dev in [
        "t.files VERSION AS OF 'dev'".to_owned(),
        format!("\"t$files\" FOR VERSION AS OF {second} AS f"),
    ] {
        shows(&table, &format!("SELECT sum(record_count), count(*) FROM {dev}"), json!([[3, 2]]));
    }
    shows(&table, "SELECT count(*) FROM t.all_data_files", json!([[2]]));
    shows(&table, "SELECT count(*) FROM t.all_delete_files", json!([[1]]));
    shows(
        &table,
        "SELECT count(*), count(DISTINCT reference_snapshot_id) FROM t.all_manifests",
        json!([[5, 3]]),
    );
    for whole in [
        "snapshots",
        "history",
        "refs",
        "properties",
        "metadata_log_entries",
        "all_files",
        "all_manifests",
    ] {
        let error = read::query(&table, &format!("SELECT * FROM t.{whole} VERSION AS OF {first}")).map(|r| r.rows.len());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported, "{whole}");
    }
}

#[test]
fn entries_tell_what_was_deleted() {
    let mut table = TableBuilder::temp(ids()).create();
    table.commit(
        Commit::new()
            .data(DataFile::named("A").rows(column([1])))
            .data(DataFile::named("B").rows(column([2, 3]))),
    );
    let second = table.commit(Commit::new().remove("A"));
    shows(
        &table,
        "SELECT status, sequence_number, data_file.record_count, snapshot_id = (SELECT max(snapshot_id) FROM t.snapshots) \
         FROM t.entries ORDER BY status",
        json!([[0, 1, 2, false], [2, 1, 1, true]]),
    );
    shows(&table, "SELECT record_count FROM t.files", json!([[2]]));
    shows(
        &table,
        "SELECT deleted_data_files_count, existing_data_files_count, added_delete_files_count FROM t.manifests",
        json!([[1, 1, 0]]),
    );
    assert!(second > 0);
}

/// The total of position deletes is null where vectors and files meet: a vector replaces the files of its data file.
#[test]
fn partitions_count_vectors_and_position_delete_files_apart() {
    let schema = Schema::new([optional(1, "p", Type::String), required(2, "id", Type::Long)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(1, "p")])).create();
    for p in ["a", "b", "c"] {
        let rows: Value = (0..10).map(|i| json!([p, i])).collect();
        table.append(DataFile::named(p).partition(json!([p])).rows(rows));
    }
    table.delete_positions(PositionDeletes::named("Pa").partition(json!(["a"])).rows("a", [0, 1, 2]));
    table.delete_positions(PositionDeletes::named("Pb").partition(json!(["b"])).rows("b", [0]));
    table.delete_keys(EqualityDeletes::named("Ec", [2]).partition(json!(["c"])).rows(json!([[5], [6]])));
    table.upgrade(3);
    table.delete_by_vectors(DeletionVectors::named("Va").partition(json!(["a"])).rows("a", [0, 1, 2, 3]));
    let last = table.delete_by_vectors(DeletionVectors::named("Vc").partition(json!(["c"])).rows("c", [9]));
    let sql = "SELECT partition.p, spec_id, record_count, file_count, position_delete_record_count, position_delete_file_count, \
               position_delete_record_count_without_dvs, position_delete_file_count_without_dvs, dv_record_count, dv_count, \
               equality_delete_record_count, equality_delete_file_count FROM t.partitions ORDER BY 1";
    shows(
        &table,
        sql,
        json!([
            ["a", 0, 10, 1, null, 2, 3, 1, 4, 1, 0, 0],
            ["b", 0, 10, 1, 1, 1, 1, 1, 0, 0, 0, 0],
            ["c", 0, 10, 1, 1, 1, 0, 0, 1, 1, 2, 1]
        ]),
    );
    shows(
        &table,
        "SELECT p.last_updated_snapshot_id, p.last_updated_at = s.committed_at FROM t.partitions p JOIN t.snapshots s \
         ON p.last_updated_snapshot_id = s.snapshot_id WHERE p.partition.p = 'c'",
        json!([[last.to_string(), true]]),
    );
    shows(
        &table,
        "SELECT record_count, content_offset IS NOT NULL, content_size_in_bytes > 0, referenced_data_file LIKE '%/a%' \
         FROM t.delete_files WHERE file_format = 'PUFFIN' ORDER BY record_count DESC",
        json!([[4, true, true, true], [1, true, true, false]]),
    );
}

/// As in Iceberg Java: the null of a field is no partition of a spec that lacks the field, but two specs of equally
/// many fields share the partition in which all is null, as they share any other.
#[test]
fn partitions_tell_null_from_a_field_that_the_spec_lacks() {
    let schema = Schema::new([optional(1, "a", Type::Int), optional(2, "b", Type::Int)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(1, "a")])).create();
    let file = |name: &str, partition: Value, row: Value, rows: usize| {
        DataFile::named(name).partition(partition).rows(Value::Array(vec![row; rows]))
    };
    table.append(file("A", json!([null]), json!([null, 7]), 1));
    table.append(file("B", json!([1]), json!([1, 7]), 2));
    table.set_spec(PartitionSpec::new([identity(1, "a"), identity(2, "b")]));
    table.append(file("C", json!([null, null]), json!([null, null]), 4));
    table.append(file("D", json!([1, null]), json!([1, null]), 8));
    table.set_spec(PartitionSpec::new([identity(2, "b")]));
    table.append(file("E", json!([null]), json!([3, null]), 16));
    table.set_spec(PartitionSpec::new([identity(1, "a")]));
    table.append(file("F", json!([1]), json!([1, 9]), 32));
    shows(
        &table,
        "SELECT partition.a, partition.b, spec_id, record_count, file_count FROM t.partitions ORDER BY record_count",
        json!([
            [null, null, 1, 4, 1],
            [1, null, 1, 8, 1],
            [null, null, 2, 17, 2],
            [1, null, 3, 34, 2]
        ]),
    );
}

/// A spec that was left behind keeps its column; each file has the values of its own spec.
#[test]
fn partition_values_of_all_specs_are_in_one_struct() {
    let schema = Schema::new([optional(1, "a", Type::Int), optional(2, "b", Type::String)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(1, "a")])).create();
    table.append(DataFile::named("F").partition(json!([1])).rows(json!([[1, "x"]])));
    table.set_spec(PartitionSpec::new([identity(2, "b")]));
    table.append(DataFile::named("G").partition(json!(["y"])).rows(json!([[2, "y"]])));
    shows(
        &table,
        "SELECT spec_id, partition.a, partition.b FROM t.files ORDER BY spec_id",
        json!([[0, 1, null], [1, null, "y"]]),
    );
    shows(
        &table,
        "SELECT partition_spec_id, partition_summaries[1]['lower_bound'] FROM t.manifests ORDER BY 1",
        json!([[0, "1"], [1, "y"]]),
    );
    shows(
        &table,
        "SELECT readable_metrics.a.lower_bound, readable_metrics.b.upper_bound, readable_metrics.a.value_count FROM t.files ORDER BY 1",
        json!([[1, "x", 1], [2, "y", 1]]),
    );
}

/// A table of exactly the name that is written wins.
#[tokio::test]
async fn a_real_table_hides_a_metadata_table() {
    use crate::sql_support::{Memory, MemoryCatalog, batch, engine, query, rows};
    use arrow::array::{ArrayRef, Int64Array};
    use std::sync::Arc;

    let memory = Arc::new(Memory::default());
    let lake = MemoryCatalog::new("lake", &memory);
    let one = |v: i64| batch(vec![("v", Arc::new(Int64Array::from(vec![v])) as ArrayRef)]);
    lake.commit("default", "t", one(1));
    lake.commit("default", "t$files", one(2));
    lake.commit("t", "snapshots", one(3));
    lake.commit("t", "branch_x", one(4));
    let engine = engine(vec![lake], &memory);
    for (name, value) in [
        ("t", "1"),
        ("\"t$files\"", "2"),
        ("t.snapshots", "3"),
        ("t.branch_x", "4"),
        ("lake.t.SNAPSHOTS", "3"),
    ] {
        assert_eq!(rows(&engine, &format!("SELECT v FROM {name}")).await, ["v", value], "{name}");
    }
    assert_eq!(
        query(&engine, "SELECT * FROM t.history").await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(
        query(&engine, "SELECT * FROM t.branch_y").await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}
