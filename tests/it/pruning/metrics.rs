//! Pruning of files by the counts and bounds of their manifest entries.

use serde_json::{Value, json};

use super::{answers, unchanged};
use crate::support::builder::{DataFile, PartitionSpec, Schema, TableBuilder, TestTable, Type, identity, optional};

fn x(of: Type) -> TestTable {
    TableBuilder::temp(Schema::new([optional(1, "x", of)])).format_version(3).create()
}

fn by_metrics(table: &TestTable, condition: &str, rows: &Value) -> u64 {
    let answer = answers(table, &format!("SELECT x FROM t WHERE {condition}"), rows);
    answer.scan.counters.files_skipped_by_metrics()
}

#[test]
fn bounds_and_counts_leave_files_out() {
    let mut table = x(Type::Long);
    table.append(DataFile::named("A").rows(json!([[1], [5]])));
    table.append(DataFile::named("B").rows(json!([[5], [9], [null]])));
    table.append(DataFile::named("C").rows(json!([[null], [null]])));
    for (condition, rows, skipped) in [
        ("x = 5", json!([[5], [5]]), 1),
        ("x = 7", json!([]), 2),
        ("x < 5", json!([[1]]), 2),
        ("x <= 5", json!([[1], [5], [5]]), 1),
        ("x > 5", json!([[9]]), 2),
        ("x <> 5", json!([[1], [9]]), 1),
        ("x IN (0, 1)", json!([[1]]), 2),
        ("x NOT IN (1, 9)", json!([[5], [5]]), 1),
        ("x BETWEEN 6 AND 20", json!([[9]]), 2),
        ("x NOT BETWEEN 2 AND 8", json!([[1], [9]]), 1),
        ("x IS NULL", json!([[null], [null], [null]]), 1),
        ("x IS NOT NULL", json!([[1], [5], [5], [9]]), 1),
        ("x IS DISTINCT FROM 5", json!([[1], [9], [null], [null], [null]]), 0),
        ("NOT (x < 5 OR x > 8)", json!([[5], [5]]), 1),
        ("x = 1 AND x % 2 = 1", json!([[1]]), 2),
        ("x = 1 OR x % 2 = 1", json!([[1], [5], [5], [9]]), 0),
    ] {
        assert_eq!(by_metrics(&table, condition, &rows), skipped, "{condition}");
    }
}

#[test]
fn a_file_of_one_value_is_left_out_by_its_negation() {
    let mut table = x(Type::Int);
    table.append(DataFile::named("A").rows(json!([[5], [5]])));
    table.append(DataFile::named("B").rows(json!([[5], [6]])));
    assert_eq!(by_metrics(&table, "x <> 5", &json!([[6]])), 1);
    assert_eq!(by_metrics(&table, "x NOT IN (5, 7)", &json!([[6]])), 1);
}

/// B052
#[test]
fn bounds_that_leave_nan_out_do_not_prune_it() {
    for without_counts in [false, true] {
        let mut table = x(Type::Double);
        let file = DataFile::named("F").rows(json!([[3.0], ["NaN"], [3.0]]));
        table.append(if without_counts { file.without_nan_counts() } else { file });
        table.append(DataFile::named("G").rows(json!([[1.0], [2.0]])));
        assert_eq!(by_metrics(&table, "isnan(x)", &json!([["NaN"]])), 1);
        // NaN is greater than every number.
        assert_eq!(by_metrics(&table, "x > 5", &json!([["NaN"]])), 1);
        assert_eq!(by_metrics(&table, "x = 'NaN'", &json!([["NaN"]])), 1);
        assert_eq!(by_metrics(&table, "x <> 3", &json!([["NaN"], [1.0], [2.0]])), 0);
        assert_eq!(by_metrics(&table, "x = 3", &json!([[3.0], [3.0]])), 1);
        assert_eq!(by_metrics(&table, "x < 1", &json!([])), 1);
    }
}

#[test]
fn zeros_of_both_signs_are_found_as_without_pruning() {
    let mut table = x(Type::Double);
    table.append(DataFile::named("A").rows(json!([[-0.0]])));
    table.append(DataFile::named("B").rows(json!([[0.0]])));
    table.append(DataFile::named("C").rows(json!([[5.0]])));
    for condition in ["x = 0.0", "x = -0.0", "x < 0.0", "x > -0.0", "x >= 0.0", "x <> 0.0", "x IN (0.0)"] {
        unchanged(&table, &format!("SELECT x FROM t WHERE {condition}"));
    }
}

/// B053
#[test]
fn a_missing_null_count_is_not_zero() {
    let mut table = x(Type::Long);
    table.append(DataFile::named("F").without_null_counts().rows(json!([[1], [null]])));
    table.append(DataFile::named("G").rows(json!([[1], [2]])));
    assert_eq!(by_metrics(&table, "x IS NULL", &json!([[null]])), 1);
    assert_eq!(by_metrics(&table, "x = 2", &json!([[2]])), 1);
    let mut table = x(Type::Long);
    table.append(DataFile::named("F").without_metrics().rows(json!([[1], [null]])));
    assert_eq!(by_metrics(&table, "x IS NULL", &json!([[null]])), 0);
    assert_eq!(by_metrics(&table, "x = 7", &json!([])), 0);
}

/// B058 as it can happen in Iceberg: bounds are whole microseconds
#[test]
fn the_last_microsecond_of_a_file_is_found() {
    let mut table = x(Type::Timestamp);
    table.append(DataFile::named("F").rows(json!([["2024-01-01T10:00:00.123456"]])));
    table.append(DataFile::named("G").rows(json!([["2024-01-02T10:00:00.000000"]])));
    let row = json!([["2024-01-01T10:00:00.123456"]]);
    assert_eq!(by_metrics(&table, "x = TIMESTAMP '2024-01-01 10:00:00.123456'", &row), 1);
    let around = "x > TIMESTAMP '2024-01-01 10:00:00.123455' AND x < TIMESTAMP '2024-01-01 10:00:00.123457'";
    assert_eq!(by_metrics(&table, around, &row), 1);
    assert_eq!(
        by_metrics(
            &table,
            "x > TIMESTAMP '2024-01-01 10:00:00.123456'",
            &json!([["2024-01-02T10:00:00.000000"]])
        ),
        1
    );
    let both = json!([["2024-01-01T10:00:00.123456"], ["2024-01-02T10:00:00.000000"]]);
    assert_eq!(by_metrics(&table, "x > TIMESTAMP '2024-01-01 10:00:00.1232'", &both), 0);
}

/// B060
#[test]
fn a_bound_that_was_cut_inside_a_character_is_ignored() {
    let mut table = x(Type::String);
    let half = "aé".as_bytes();
    table.append(
        DataFile::named("F")
            .raw_bounds(1, &half[..2], &half[..2])
            .rows(json!([["aé"], ["aê"], ["aÿ"]])),
    );
    table.append(DataFile::named("G").rows(json!([["b"]])));
    assert_eq!(by_metrics(&table, "x = 'aÿ'", &json!([["aÿ"]])), 1);
    assert_eq!(by_metrics(&table, "x LIKE 'aé%'", &json!([["aé"]])), 1);
    assert_eq!(by_metrics(&table, "x NOT LIKE 'a%'", &json!([["b"]])), 0);
}

#[test]
fn bounds_that_were_cut_still_hold() {
    let mut table = x(Type::String);
    table.append(
        DataFile::named("F")
            .bounds(1, &Type::String, &json!("ab"), &json!("ad"))
            .rows(json!([["abcdef"], ["acxyz"]])),
    );
    assert_eq!(by_metrics(&table, "x = 'acxyz'", &json!([["acxyz"]])), 0);
    assert_eq!(by_metrics(&table, "x LIKE 'acx%'", &json!([["acxyz"]])), 0);
    assert_eq!(by_metrics(&table, "x LIKE 'ae%'", &json!([])), 1);
    assert_eq!(by_metrics(&table, "x < 'ab'", &json!([])), 1);
    assert_eq!(by_metrics(&table, "x > 'ad'", &json!([])), 1);
}

/// B063
#[test]
fn constants_beyond_the_file_s_old_type_compare_in_the_new() {
    let mut table = x(Type::Int);
    table.append(DataFile::named("F").rows(json!([[1], [2], [3]])));
    table.evolve(|s| s.promote("x", Type::Long));
    let all = json!([[1], [2], [3]]);
    for condition in ["x < 2147483648", "x > -2147483649", "x <> 2147483648"] {
        assert_eq!(by_metrics(&table, condition, &all), 0, "{condition}");
    }
    assert_eq!(by_metrics(&table, "x > 2147483648", &json!([])), 1);
    assert_eq!(by_metrics(&table, "x = 4294967297", &json!([])), 1);

    let mut table = x(Type::Float);
    table.append(DataFile::named("F").rows(json!([[0.5], [1.5]])));
    table.evolve(|s| s.promote("x", Type::Double));
    assert_eq!(by_metrics(&table, "x < 1e300", &json!([[0.5], [1.5]])), 0);
    assert_eq!(by_metrics(&table, "x > 1e300", &json!([])), 1);

    let mut table = x(Type::Decimal(9, 2));
    table.append(DataFile::named("F").rows(json!([["1.25"], ["2.50"]])));
    table.evolve(|s| s.promote("x", Type::Decimal(20, 2)));
    assert_eq!(by_metrics(&table, "x < 1234567890123.45", &json!([["1.25"], ["2.50"]])), 0);
    assert_eq!(by_metrics(&table, "x > 1234567890123.45", &json!([])), 1);

    let mut table = x(Type::Date);
    table.append(DataFile::named("F").rows(json!([["2024-02-29"]])));
    table.evolve(|s| s.promote("x", Type::Timestamp));
    let midnight = json!([["2024-02-29T00:00:00.000000"]]);
    assert_eq!(by_metrics(&table, "x = TIMESTAMP '2024-02-29 00:00:00'", &midnight), 0);
    assert_eq!(by_metrics(&table, "x < TIMESTAMP '2024-02-29 00:00:00.000001'", &midnight), 0);
    assert_eq!(by_metrics(&table, "x > TIMESTAMP '2024-02-29 00:00:00'", &json!([])), 1);
}

/// B085, as far as pruning goes: the engine itself takes such a cast away before it filters
#[test]
fn a_cast_that_rounds_does_not_prune() {
    let mut table = x(Type::Decimal(20, 4));
    table.append(DataFile::named("A").rows(json!([["1.2345"]])));
    table.append(DataFile::named("B").rows(json!([["1.2399"], ["1.2500"]])));
    for condition in [
        "cast(x as decimal(20,2)) = 1.23",
        "cast(x as decimal(20,2)) IN (1.23, 1.24)",
        "cast(x as int) = 1",
    ] {
        unchanged(&table, &format!("SELECT x FROM t WHERE {condition}"));
    }
    assert_eq!(by_metrics(&table, "x = cast('1.2345' as decimal(20,4))", &json!([["1.2345"]])), 1);
}

/// A field is a file's value: nothing stands between it and what prunes by it, as around a number that is computed.
#[test]
fn floating_point_fields_of_structs_prune() {
    let schema = Schema::new([
        optional(1, "x", Type::Int),
        optional(2, "s", Type::fields([optional(3, "d", Type::Double)])),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("A").rows(json!([[1, {"d": 1.5}]])));
    table.append(DataFile::named("B").rows(json!([[2, {"d": 2.5}], [3, null]])));
    for (condition, rows) in [("s['d'] = 1.5", json!([[1]])), ("s['d'] > 2.0", json!([[2]]))] {
        let answer = answers(&table, &format!("SELECT x FROM t WHERE {condition}"), &rows);
        assert_eq!(answer.scan.counters.files_skipped_by_metrics(), 1, "{condition}");
    }
}

#[test]
fn renamed_and_nested_columns_are_judged_by_their_ids() {
    let inner = |name| Type::fields([optional(3, name, Type::Int)]);
    let schema = Schema::new([optional(1, "x", Type::Int), optional(2, "s", inner("a"))]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("A").rows(json!([[1, {"a": 10}]])));
    table.append(DataFile::named("B").rows(json!([[2, {"a": 20}], [3, null]])));
    table.evolve(|s| s.rename("x", "tmp").rename("s.a", "x").rename("tmp", "y"));
    let nested = |condition: &str, rows: Value| {
        let answer = answers(&table, &format!("SELECT y FROM t WHERE {condition}"), &rows);
        answer.scan.counters.files_skipped_by_metrics()
    };
    assert_eq!(nested("s['x'] = 10", json!([[1]])), 1);
    assert_eq!(nested("s['x'] > 10", json!([[2]])), 1);
    assert_eq!(nested("s['x'] IS NULL", json!([[3]])), 1);
    assert_eq!(nested("y = 1", json!([[1]])), 1);
    // A name that was another column's.
    table.evolve(|s| s.drop("y").add(optional(9, "y", Type::Int)));
    let answer = answers(&table, "SELECT y FROM t WHERE y = 1", &json!([]));
    assert_eq!(answer.scan.counters.files_skipped_by_metrics(), 0);
}

#[test]
fn columns_that_a_file_lacks_are_judged_by_what_they_read_as() {
    let mut table = x(Type::Int);
    table.append(DataFile::named("A").rows(json!([[1]])));
    table.evolve(|s| {
        s.add(optional(2, "d", Type::Int).default_value(json!(7)))
            .add(optional(3, "n", Type::Int))
    });
    let rows = |condition: &str, rows: Value| {
        let answer = answers(&table, &format!("SELECT x FROM t WHERE {condition}"), &rows);
        answer.scan.counters.row_groups_skipped_by_statistics()
    };
    assert_eq!(rows("d = 7", json!([[1]])), 0);
    assert_eq!(rows("d = 8", json!([])), 1);
    assert_eq!(rows("n IS NULL", json!([[1]])), 0);
    assert_eq!(rows("n = 1", json!([])), 1);
    // A column whose value is the partition's alone.
    let schema = Schema::new([optional(1, "x", Type::Int), optional(2, "region", Type::String)]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(2, "region")]))
        .create();
    table.append(
        DataFile::named("A")
            .schema(Schema::new([optional(1, "x", Type::Int)]))
            .partition(json!(["eu"]))
            .rows(json!([[1]])),
    );
    answers(&table, "SELECT x FROM t WHERE region = 'eu'", &json!([[1]]));
    answers(&table, "SELECT x FROM t WHERE region = 'us'", &json!([]));
}

#[test]
fn explain_shows_what_was_left_out() {
    let mut table = x(Type::Long);
    table.append(DataFile::named("A").rows(json!([[1]])));
    table.append(DataFile::named("B").rows(json!([[9]])));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let explain = |sql: &str| {
        let on = sandur::table::Pruning::default();
        let answer = runtime.block_on(super::ask(&table, &sandur::table::AsOf::Latest, sql, on, None));
        answer.lines.join("\n")
    };
    let plan = explain("EXPLAIN SELECT x FROM t WHERE x = 1");
    assert!(plan.contains("files=1") && plan.contains("files_skipped_by_metrics=1"), "{plan}");
    assert!(plan.contains("FilterExec"), "{plan}");
    let ran = explain("EXPLAIN ANALYZE SELECT x FROM t WHERE x = 1");
    assert!(ran.contains("row_groups_skipped_by_statistics=0"), "{ran}");
}
