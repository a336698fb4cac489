//! Older snapshots, branches, tags and times, in every form in which SQL asks for them.

use sandur::error::{Error, ErrorKind};
use serde_json::{Value, json};

use super::{column, id_data, ids, listed};
use crate::support::builder::{
    Commit, DataFile, DeletionVectors, EqualityDeletes, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity,
    optional, partition, required,
};
use crate::support::canonical::{Rows, sorted_lines};
use crate::support::read;

#[track_caller]
fn query(table: &TestTable, sql: &str) -> Rows {
    read::query(table, sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"))
}

/// `SELECT * FROM <what>` gives these rows, in any order.
#[track_caller]
fn gives(table: &TestTable, what: &str, rows: &[Vec<Value>]) {
    let sql = format!("SELECT * FROM {what}");
    assert_eq!(sorted_lines(&query(table, &sql).rows), sorted_lines(rows), "{sql}");
}

#[track_caller]
fn fails(table: &TestTable, sql: &str, kind: ErrorKind) -> Error {
    let error = read::query(table, sql).map(|rows| rows.rows.len()).expect_err(sql);
    assert_eq!(error.kind(), kind, "{sql}: {error:?}");
    error
}

/// B039: the vector belongs to the snapshot and not to the data file alone.
#[test]
fn each_snapshot_has_its_own_vector() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    let first = table.append(DataFile::named("F").rows(column(0..100)));
    let second = table.delete_by_vectors(DeletionVectors::named("V1").rows("F", 0..50));
    let third = table.delete_by_vectors(DeletionVectors::named("V2").rows("F", 0..70));
    for (snapshot, rows) in [(first, 100), (second, 50), (third, 30), (second, 50), (first, 100)] {
        gives(&table, &format!("t VERSION AS OF {snapshot}"), &listed(column(100 - rows..100)));
        assert_eq!(
            query(&table, &format!("SELECT count(*) FROM t FOR VERSION AS OF {snapshot}")).rows,
            [[json!(rows)]]
        );
    }
    let both =
        format!("SELECT count(*) FROM t VERSION AS OF {first} a LEFT JOIN t VERSION AS OF {third} b ON a.id = b.id WHERE b.id IS NULL");
    assert_eq!(query(&table, &both).rows, [[json!(70)]]);
}

/// B105: an old snapshot is read with its own schema and the specs of its files.
#[test]
fn an_old_snapshot_has_its_own_columns_and_specs() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "c", Type::Int)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(2, "c")])).create();
    let first = table.append(DataFile::named("F1").partition(json!([1])).rows(json!([[1, 1], [2, 1]])));
    table.append(DataFile::named("F2").partition(json!([2])).rows(json!([[3, 2]])));
    table.evolve(|s| s.rename("c", "d").promote("d", Type::Long).add(optional(3, "c", Type::String)));
    table.set_spec(PartitionSpec::new([partition(1, "id_bucket", "bucket[4]")]));
    table.append(
        DataFile::named("F3")
            .partition(json!([0]))
            .rows(json!([[4, 5_000_000_000_i64, "new"]])),
    );
    let old = format!("t FOR VERSION AS OF {first}");
    assert_eq!(query(&table, &format!("SELECT * FROM {old}")).columns, ["id", "c"]);
    gives(&table, &old, &listed(json!([[1, 1], [2, 1]])));
    gives(&table, &format!("{old} WHERE c = 1 AND id > 1"), &listed(json!([[2, 1]])));
    gives(&table, &format!("{old} WHERE c = 2"), &[]);
    fails(&table, &format!("SELECT d FROM {old}"), ErrorKind::InvalidInput);
    assert_eq!(query(&table, "SELECT * FROM t").columns, ["id", "d", "c"]);
    let sql = format!("SELECT n.id, n.d, o.c, n.c AS c_new FROM t n JOIN {old} AS o ON o.id = n.id ORDER BY 1");
    assert_eq!(query(&table, &sql).rows, listed(json!([[1, 1, 1, null], [2, 1, 1, null]])));
    assert_eq!(
        query(&table, &format!("DESCRIBE {old}")).rows,
        listed(json!([["id", "long", "NO", null], ["c", "int", "YES", null]]))
    );
}

/// B105: an identity partition value of a file without the column, before and after its promotion.
#[test]
fn partition_values_have_the_type_of_the_snapshot() {
    let schema = Schema::new([optional(1, "n", Type::Int), required(2, "id", Type::Long)]);
    let mut table = TableBuilder::temp(schema).spec(PartitionSpec::new([identity(1, "n")])).create();
    let first = table.append(DataFile::named("F").partition(json!([5])).rows(json!([[5, 1]])));
    table.evolve(|s| s.promote("n", Type::Long));
    table.append(
        DataFile::named("G")
            .partition(json!([6_000_000_000_i64]))
            .rows(json!([[6_000_000_000_i64, 2]])),
    );
    gives(&table, "t WHERE n > 4", &listed(json!([[5, 1], [6_000_000_000_i64, 2]])));
    gives(&table, &format!("t VERSION AS OF {first} WHERE n = 5"), &listed(json!([[5, 1]])));
}

#[test]
fn deletes_apply_to_the_snapshots_that_have_them() {
    let mut table = TableBuilder::temp(id_data()).create();
    let mut snapshots = vec![table.append(DataFile::named("F").rows(json!([[1, "a"], [2, "b"], [3, "c"], [4, "d"]])))];
    snapshots.push(table.delete_positions(PositionDeletes::named("P").rows("F", [0])));
    snapshots.push(table.delete_keys(EqualityDeletes::named("E", [1]).rows(column([3]))));
    snapshots.push(table.append(DataFile::named("G").rows(json!([[3, "again"]]))));
    snapshots.push(table.commit(Commit::new().remove("F").remove("P").remove("E")));
    for snapshot in &snapshots {
        gives(&table, &format!("t AT (VERSION => {snapshot})"), &table.rows_at(*snapshot));
    }
    let union: Vec<String> = snapshots
        .iter()
        .map(|s| format!("SELECT count(*) AS n FROM t VERSION AS OF {s}"))
        .collect();
    let sql = format!("WITH counts AS ({}) SELECT sum(n) FROM counts", union.join(" UNION ALL "));
    assert_eq!(query(&table, &sql).rows, [[json!(4 + 3 + 2 + 3 + 1)]]);
}

/// A table with a branch that went its own way before a column was added, and tags at both.
fn branched() -> (TestTable, i64, i64) {
    let mut table = TableBuilder::temp(ids()).create();
    let first = table.append(DataFile::named("A").rows(column([1, 2])));
    table.branch("Dev");
    table.tag("start");
    let on_branch = table.commit(Commit::new().on_branch("Dev").data(DataFile::named("B").rows(column([3]))));
    table.evolve(|s| s.add(optional(2, "extra", Type::String)));
    table.append(DataFile::named("C").rows(json!([[9, "x"]])));
    table.tag("release-1.0");
    (table, first, on_branch)
}

#[test]
fn branches_have_the_table_s_columns_and_tags_their_own() {
    let (table, ..) = branched();
    let on_dev = listed(json!([[1, null], [2, null], [3, null]]));
    for branch in [
        "t.branch_Dev",
        "t.BRANCH_dev",
        "default.t.branch_dev",
        "test.default.t.\"branch_Dev\"",
        "t VERSION AS OF 'Dev'",
    ] {
        gives(&table, branch, &on_dev);
    }
    let at_start = listed(column([1, 2]));
    for tag in [
        "t.tag_start",
        "default.t.tag_START",
        "test.default.t.tag_start",
        "t FOR VERSION AS OF 'start'",
        "t AT (VERSION => 'start')",
    ] {
        gives(&table, tag, &at_start);
    }
    let newest = listed(json!([[1, null], [2, null], [9, "x"]]));
    for main in [
        "t",
        "t.branch_main",
        "t FOR SYSTEM_VERSION AS OF 'main'",
        "t.\"tag_release-1.0\"",
        "t VERSION AS OF 'release-1.0'",
    ] {
        gives(&table, main, &newest);
    }
    let sql = "SELECT b.id, tag_start.id AS old FROM t.branch_dev b LEFT JOIN t.tag_start ON b.id = tag_start.id ORDER BY 1";
    assert_eq!(query(&table, sql).rows, listed(json!([[1, 1], [2, 2], [3, null]])));
    for wrong in [
        "t.branch_start",
        "t.tag_Dev",
        "t.tag_nope",
        "t VERSION AS OF 'nope'",
        "t VERSION AS OF 'dev'",
        "nope.branch_dev",
    ] {
        fails(&table, &format!("SELECT * FROM {wrong}"), ErrorKind::NotFound);
    }
    fails(&table, "SELECT * FROM t.branch_dev VERSION AS OF 1", ErrorKind::InvalidInput);
}

#[test]
fn a_time_is_the_snapshot_that_was_current_then() {
    let mut table = TableBuilder::temp(ids()).create();
    let mut snapshots = Vec::new();
    for i in 0..3 {
        snapshots.push(table.append(DataFile::named(&format!("F{i}")).rows(column([i]))));
    }
    let history = query(
        &table,
        "SELECT snapshot_id, arrow_cast(made_current_at, 'Int64') FROM t.history ORDER BY 2",
    )
    .rows;
    let number = |v: &Value| v.as_i64().or_else(|| v.as_str().and_then(|s| s.parse().ok())).expect("a number");
    for (at, (row, snapshot)) in history.iter().zip(&snapshots).enumerate() {
        assert_eq!(number(&row[0]), *snapshot);
        let seconds = number(&row[1]) / 1_000_000;
        let expected = listed(column(0..=i64::try_from(at).unwrap()));
        for (form, value) in [
            ("FOR TIMESTAMP AS OF", format!("to_timestamp({seconds})")),
            ("FOR SYSTEM_TIME AS OF", format!("to_timestamp({seconds}) + interval '1 second'")),
            (
                "TIMESTAMP AS OF",
                format!("arrow_cast({}, 'Timestamp(Microsecond, None)')", number(&row[1])),
            ),
        ] {
            gives(&table, &format!("t {form} {value}"), &expected);
            gives(&table, &format!("t {form} {value} AS x WHERE x.id >= 0"), &expected);
        }
        gives(&table, &format!("t AT (TIMESTAMP => to_timestamp({seconds}))"), &expected);
    }
    gives(&table, "t TIMESTAMP AS OF current_timestamp", &listed(column([0, 1, 2])));
    let early = fails(&table, "SELECT * FROM t TIMESTAMP AS OF '2001-01-01'", ErrorKind::NotFound);
    assert!(
        early.to_string().contains(&format!("oldest snapshot left is {}", snapshots[0])),
        "{early}"
    );
    let gone = fails(&table, "SELECT * FROM t VERSION AS OF 17", ErrorKind::NotFound);
    assert!(
        gone.to_string().contains("no snapshot 17") && gone.to_string().contains("oldest"),
        "{gone}"
    );
}

/// B128: there is nothing to go back to.
#[test]
fn a_table_without_snapshot_has_no_versions() {
    let table = TableBuilder::temp(ids()).create();
    gives(&table, "t VERSION AS OF 'main'", &[]);
    gives(&table, "t.branch_main", &[]);
    for (name, columns) in [
        ("snapshots", 6),
        ("files", 21),
        ("manifests", 12),
        ("partitions", 13),
        ("history", 4),
        ("all_entries", 6),
    ] {
        let rows = query(&table, &format!("SELECT * FROM t.{name}"));
        assert_eq!((rows.rows.len(), rows.columns.len()), (0, columns), "{name}");
    }
    for form in ["VERSION AS OF 1", "TIMESTAMP AS OF '2030-01-01'", "VERSION AS OF 'dev'"] {
        fails(&table, &format!("SELECT * FROM t {form}"), ErrorKind::NotFound);
    }
}
