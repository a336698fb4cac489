//! Every type is found and left out by its statistics, whatever kind of pruning looks at it.

use serde_json::{Value, json};

use super::answers;
use crate::support::builder::{DataFile, Schema, TableBuilder, Type, optional};

/// Values of a type in ascending order, each with the constant of SQL that equals it.
fn cases() -> Vec<(Type, Vec<(Value, String)>)> {
    let with = |of: Type, values: &[(&str, &str)]| {
        let values = values.iter().map(|(v, sql)| (serde_json::from_str(v).unwrap(), (*sql).to_owned()));
        (of, values.collect::<Vec<_>>())
    };
    vec![
        with(Type::Boolean, &[("false", "false"), ("true", "true")]),
        with(Type::Int, &[("-5", "-5"), ("0", "0"), ("7", "7")]),
        with(
            Type::Long,
            &[
                ("\"-9007199254740993\"", "-9007199254740993"),
                ("0", "0"),
                ("5000000000", "5000000000"),
            ],
        ),
        with(Type::Float, &[("-1.5", "-1.5"), ("0.25", "0.25"), ("3.5", "3.5")]),
        with(Type::Double, &[("-1.5", "-1.5"), ("0.1", "0.1"), ("1e300", "1e300")]),
        with(
            Type::Decimal(7, 2),
            &[
                ("\"-12.50\"", "CAST('-12.50' AS DECIMAL(7,2))"),
                ("\"0.01\"", "CAST('0.01' AS DECIMAL(7,2))"),
                ("\"99999.99\"", "CAST('99999.99' AS DECIMAL(7,2))"),
            ],
        ),
        with(
            Type::Decimal(15, 3),
            &[
                ("\"-12.500\"", "CAST('-12.500' AS DECIMAL(15,3))"),
                ("\"0.001\"", "CAST('0.001' AS DECIMAL(15,3))"),
                ("\"99999.990\"", "CAST('99999.990' AS DECIMAL(15,3))"),
            ],
        ),
        with(
            Type::Decimal(30, 4),
            &[
                ("\"-12.5000\"", "CAST('-12.5000' AS DECIMAL(30,4))"),
                ("\"0.0001\"", "CAST('0.0001' AS DECIMAL(30,4))"),
                ("\"99999.9900\"", "CAST('99999.9900' AS DECIMAL(30,4))"),
            ],
        ),
        with(
            Type::Date,
            &[
                ("\"1899-12-31\"", "DATE '1899-12-31'"),
                ("\"1970-01-01\"", "DATE '1970-01-01'"),
                ("\"2024-02-29\"", "DATE '2024-02-29'"),
            ],
        ),
        with(
            Type::Timestamp,
            &[
                ("\"1969-12-31T23:59:59.999999\"", "TIMESTAMP '1969-12-31 23:59:59.999999'"),
                ("\"2024-02-29T12:00:00.000001\"", "TIMESTAMP '2024-02-29 12:00:00.000001'"),
            ],
        ),
        with(
            Type::TimestampNs,
            &[
                ("\"1969-12-31T23:59:59.999999999\"", "TIMESTAMP '1969-12-31 23:59:59.999999999'"),
                ("\"2024-02-29T12:00:00.000000001\"", "TIMESTAMP '2024-02-29 12:00:00.000000001'"),
            ],
        ),
        with(Type::String, &[("\"a\"", "'a'"), ("\"ab\"", "'ab'"), ("\"é\"", "'é'")]),
        with(
            Type::Binary,
            &[("\"hex:00\"", "X'00'"), ("\"hex:61ff\"", "X'61ff'"), ("\"hex:ff\"", "X'ff'")],
        ),
    ]
}

#[test]
fn every_value_is_found_and_every_other_file_and_row_group_left_out() {
    for (of, values) in cases() {
        let schema = Schema::new([optional(1, "x", of.clone())]);
        // One file of one row group per value, without metrics in the manifest for the second table.
        for by_file in [true, false] {
            let mut table = TableBuilder::temp(schema.clone()).format_version(3).create();
            if by_file {
                for (n, (value, _)) in values.iter().enumerate() {
                    table.append(DataFile::named(&format!("F{n}")).rows(json!([[value], [null]])));
                }
            } else {
                let rows: Value = values.iter().flat_map(|(v, _)| [json!([v]), json!([null])]).collect();
                table.append(DataFile::named("F").without_metrics().rows(rows).row_group_rows(2));
            }
            for (at, (value, sql)) in values.iter().enumerate() {
                let others = values.len() as u64 - 1;
                let skipped = |condition: &str, rows: Value| {
                    let answer = answers(&table, &format!("SELECT x FROM t WHERE {condition}"), &rows);
                    let counters = &answer.scan.counters;
                    counters.files_skipped_by_metrics() + counters.row_groups_skipped_by_statistics()
                };
                let is_float = matches!(of, Type::Float | Type::Double);
                assert_eq!(skipped(&format!("x = {sql}"), json!([[value]])), others, "{of:?} = {sql}");
                let below: Value = values[..at].iter().map(|(v, _)| json!([v])).collect();
                let above: Value = values[at + 1..].iter().map(|(v, _)| json!([v])).collect();
                let (left, right) = (
                    skipped(&format!("x < {sql}"), below.clone()),
                    skipped(&format!("x > {sql}"), above.clone()),
                );
                // Row groups of floats may hold NaN on either side.
                if !is_float || by_file {
                    assert_eq!(
                        (left, right),
                        ((values.len() - at) as u64, at as u64 + 1),
                        "{of:?} {sql} by file: {by_file}"
                    );
                }
            }
        }
    }
}
