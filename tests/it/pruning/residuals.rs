//! Filters that metadata proves for every row that is left are not asked again, and only those.

use sandur::table::Pruning;
use serde_json::{Value, json};

use crate::support::builder::{
    Commit, DataFile, PartitionSpec, PositionDeletes, Schema, TableBuilder, TestTable, Type, identity, optional, partition,
};
use crate::support::read::Reader;

/// Four files in two days and two regions; three ids are null or far apart.
fn table() -> TestTable {
    let schema = Schema::new([
        optional(1, "id", Type::Int),
        optional(2, "region", Type::String),
        optional(3, "at", Type::Timestamp),
    ]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(2, "region"), partition(3, "at_day", "day")]))
        .create();
    let mut commit = Commit::new();
    for (name, region, day, ids) in [
        ("F0", json!("eu"), "2024-01-01", json!([1, 2, 3])),
        ("F1", json!("eu"), "2024-01-02", json!([4, null, 6])),
        ("F2", json!("us"), "2024-01-02", json!([7, 8, 9])),
        ("F3", Value::Null, "2024-01-03", json!([10, 11])),
    ] {
        let rows: Vec<Value> = ids
            .as_array()
            .unwrap()
            .iter()
            .map(|id| json!([id, region, format!("{day}T12:00:00.000000")]))
            .collect();
        commit = commit.data(DataFile::named(name).partition(json!([region, day])).rows(json!(rows)));
    }
    table.commit(commit);
    table
}

/// The rows, how many filters were proved, and how many row groups were read.
#[track_caller]
fn asked(table: &TestTable, condition: &str, count: i64, proved: u64, reads: bool) {
    let sql = format!("SELECT count(*) FROM t WHERE {condition}");
    let off = Pruning {
        residuals: false,
        ..Pruning::default()
    };
    for pruning in [Pruning::default(), off, Pruning::off()] {
        let reader = Reader::pruning(table, pruning).unwrap();
        let rows = reader.query(&sql).unwrap().rows;
        assert_eq!(rows, vec![vec![json!(count)]], "{condition} {pruning:?}");
        let counters = reader.counters();
        assert_eq!(counters.filters_proved(), if pruning.residuals { proved } else { 0 }, "{condition}");
        if pruning == Pruning::default() {
            assert_eq!(counters.row_groups_read() > 0, reads, "{condition}");
        }
    }
}

#[test]
fn a_count_below_proved_filters_reads_no_data() {
    let table = table();
    asked(&table, "region = 'eu'", 6, 1, false);
    asked(&table, "region = 'eu' AND at >= TIMESTAMP '2024-01-02 00:00:00'", 3, 2, false);
    asked(
        &table,
        "region IN ('eu', 'us') AND at < TIMESTAMP '2024-01-03 00:00:00'",
        9,
        2,
        false,
    );
    asked(
        &table,
        "at BETWEEN TIMESTAMP '2024-01-02 00:00:00' AND TIMESTAMP '2024-01-02 23:59:59.999999'",
        6,
        2,
        false,
    );
    asked(&table, "region IS NULL", 2, 1, false);
    asked(&table, "region IS NOT NULL", 9, 1, false);
    asked(&table, "region LIKE 'e%'", 6, 1, false);
    asked(&table, "at > TIMESTAMP '2024-01-04 00:00:00'", 0, 1, false);
}

#[test]
fn bounds_and_counts_prove_too() {
    let table = table();
    asked(&table, "id >= 7", 5, 1, false);
    asked(&table, "region = 'us' AND id > 6 AND id < 10", 3, 3, false);
    // the null beside 4 and 6 is not TRUE
    asked(&table, "id > 3 AND id < 7", 2, 0, true);
    asked(&table, "id <> 100", 10, 0, true);
    asked(&table, "region <> 'eu'", 3, 1, false);
}

#[test]
fn what_is_not_proved_is_asked_still() {
    let table = table();
    asked(&table, "region = 'eu' AND id = 2", 1, 1, true);
    asked(&table, "at > TIMESTAMP '2024-01-01 12:00:00' AND id <> 2", 7, 1, true);
    asked(&table, "region = 'eu' OR id = 7", 7, 0, true);
    asked(&table, "region = 'eu' OR id IS NULL OR id > 6", 11, 0, true);
    asked(&table, "upper(region) = 'EU'", 6, 0, true);
}

#[test]
fn deletes_count_below_proved_filters() {
    let mut table = table();
    table.commit(Commit::new().positions(PositionDeletes::named("P").rows("F0", [1])));
    asked(&table, "region = 'eu'", 5, 1, true);
    asked(&table, "region = 'us'", 3, 1, false);
}

#[test]
fn rows_below_a_proved_filter_are_whole() {
    let table = table();
    let reader = Reader::open(&table).unwrap();
    let got = reader
        .query("SELECT id FROM t WHERE region = 'eu' AND id IS NOT NULL ORDER BY id DESC LIMIT 2")
        .unwrap();
    assert_eq!(got.rows, vec![vec![json!(6)], vec![json!(4)]]);
    let plan = reader.query("EXPLAIN SELECT id FROM t WHERE region = 'eu' AND id > 1").unwrap();
    let text: String = plan.rows.iter().flatten().filter_map(Value::as_str).collect();
    assert!(text.contains("filters_proved=1") && text.contains("FilterExec: id@0 > 1"), "{text}");
}
