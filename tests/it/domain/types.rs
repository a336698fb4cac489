//! Every type that a column can have, as files store it and as tables give it.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type as ParquetType, TypePtr};
use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{answers, ids, refuses, shows};
use crate::differential::transforms::Transform;
use crate::support::builder::{
    Codec, DataFile, EqualityDeletes, PartitionSpec, RowFormat, Schema, TableBuilder, TestTable, Type, optional, partition, required,
};

/// Writes a Parquet file of one optional column `field` over that of a data file.
fn replace<T: DataType>(table: &TestTable, name: &str, field: TypePtr, values: &[Option<T::T>]) {
    let schema = ParquetType::group_type_builder("schema").with_fields(vec![field]).build().unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    std::fs::write(table.real_path(name), bytes).unwrap();
}

fn optional_field(physical: Physical) -> parquet::schema::types::PrimitiveTypeBuilder<'static> {
    ParquetType::primitive_type_builder("x", physical)
        .with_id(Some(1))
        .with_repetition(Repetition::OPTIONAL)
}

/// A day from 1970-01-01 and a nanosecond of it, as INT96 has them.
fn int96(days: i64, nanos: u64) -> Option<Int96> {
    let julian = u32::try_from(days + 2_440_588).unwrap();
    let mut value = Int96::new();
    value.set_data((nanos & 0xffff_ffff) as u32, (nanos >> 32) as u32, julian);
    Some(value)
}

/// B084
#[test]
fn int96_timestamps_are_exact_from_the_year_1_to_9999() {
    for (of, zone) in [(Type::Timestamp, ""), (Type::Timestamptz, "Z")] {
        let mut table = TableBuilder::temp(Schema::new([optional(1, "x", of)])).create();
        let at = |text: &str| json!([format!("{text}{zone}")]);
        let rows = json!([
            at("3332-12-14T11:33:10.965000"),
            at("9999-12-31T23:59:59.999999"),
            at("0001-01-01T00:00:00.000000"),
            at("1677-09-21T00:12:43.145223"),
            at("1969-12-31T23:59:59.999999"),
            [null]
        ]);
        table.append(DataFile::named("F").rows(rows.clone()));
        let field = Arc::new(optional_field(Physical::INT96).build().unwrap());
        let seconds = |h: u64, m: u64, s: u64| (h * 3600 + m * 60 + s) * 1_000_000_000;
        let values = [
            int96(497_808, seconds(11, 33, 10) + 965_000_000),
            int96(2_932_896, seconds(23, 59, 59) + 999_999_000),
            int96(-719_162, 0),
            int96(-106_752, seconds(0, 12, 43) + 145_223_000),
            int96(-1, seconds(23, 59, 59) + 999_999_000),
            None,
        ];
        replace::<Int96Type>(&table, "F", field, &values);
        shows(&table, rows);
        answers(
            &table,
            "SELECT count(*) FROM t WHERE x > TIMESTAMP '9000-01-01 00:00:00'",
            json!([[1]]),
        );
    }
}

/// B086
#[test]
fn nanosecond_timestamps_keep_their_nanoseconds() {
    for (of, zone) in [(Type::TimestampNs, ""), (Type::TimestamptzNs, "Z")] {
        for transform in [Transform::Day, Transform::Bucket(4), Transform::Hour] {
            let schema = Schema::new([optional(1, "x", of.clone())]);
            let mut table = TableBuilder::temp(schema)
                .format_version(3)
                .spec(PartitionSpec::new([partition(1, "p", &transform.spelled())]))
                .create();
            let rows = json!([
                [format!("2024-02-29T23:59:59.123456789{zone}")],
                [format!("2024-02-29T23:59:59.123456788{zone}")],
                [format!("1969-12-31T23:59:59.999999999{zone}")],
            ]);
            for (at, row) in rows.as_array().unwrap().iter().enumerate() {
                let value = transform.apply(&of, &row[0]);
                table.append(DataFile::named(&format!("F{at}")).partition(json!([value])).rows(json!([row])));
            }
            shows(&table, rows);
            let literal = format!("2024-02-29T23:59:59.123456789{zone}");
            answers(&table, &format!("SELECT count(*) FROM t WHERE x = '{literal}'"), json!([[1]]));
            answers(&table, &format!("SELECT count(*) FROM t WHERE x < '{literal}'"), json!([[2]]));
        }
    }
}

#[test]
fn decimals_of_every_storage_are_read() {
    // of up to 9 digits in 32 bits, up to 18 in 64, else in as many bytes as it takes
    for (precision, values) in [
        (9, json!([["1234567.89"], ["-9999999.99"], [null], ["0.00"]])),
        (18, json!([["1234567890123456.78"], ["-0.01"], [null], ["0.00"]])),
        (
            38,
            json!([["123456789012345678901234567890123456.78"], ["-0.01"], [null], ["0.00"]]),
        ),
    ] {
        let written = || {
            let mut table = TableBuilder::temp(Schema::new([optional(1, "x", Type::Decimal(precision, 2))])).create();
            table.append(DataFile::named("F").rows(values.clone()));
            table
        };
        shows(&written(), values.clone());
        let table = written();
        // the same in byte arrays of the length that each value takes
        let field = optional_field(Physical::BYTE_ARRAY)
            .with_converted_type(ConvertedType::DECIMAL)
            .with_logical_type(Some(LogicalType::decimal(2, i32::from(precision))))
            .with_precision(i32::from(precision))
            .with_scale(2)
            .build()
            .unwrap();
        let unscaled = values.as_array().unwrap().iter().map(|row| {
            let text = row[0].as_str()?.replace('.', "");
            let bytes = text.parse::<i128>().unwrap().to_be_bytes();
            // leading bytes that repeat the sign go
            let fill = if bytes[0] >= 0x80 { 0xff } else { 0 };
            let skip = (0..15)
                .take_while(|i| bytes[*i] == fill && (bytes[i + 1] >= 0x80) == (fill == 0xff))
                .count();
            Some(ByteArray::from(bytes[skip..].to_vec()))
        });
        let unscaled: Vec<_> = unscaled.collect();
        replace::<ByteArrayType>(&table, "F", Arc::new(field), &unscaled);
        shows(&table, values.clone());
    }
}

#[test]
fn fixed_uuid_and_time_are_read() {
    let schema = Schema::new([
        optional(1, "u", Type::Uuid),
        optional(2, "f", Type::Fixed(3)),
        optional(3, "t", Type::Time),
        optional(4, "s", Type::fields([optional(5, "u", Type::Uuid)])),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    let uuid = "f79c3e09-677c-4bbd-a479-3f349cb785e7";
    let rows = json!([
        [uuid, "hex:0001ff", "23:59:59.999999", {"u": uuid}],
        [null, null, null, null],
        ["00000000-0000-0000-0000-000000000000", "hex:000000", "00:00:00.000000", {"u": null}],
    ]);
    table.append(DataFile::named("F").rows(rows.clone()));
    shows(&table, rows);
    answers(&table, &format!("SELECT t FROM t WHERE u = '{uuid}'"), json!([["23:59:59.999999"]]));
    let described = json!([["u", "uuid"], ["f", "fixed[3]"], ["t", "time"], ["s", "struct<u: uuid>"]]);
    let shown = crate::support::read::query(&table, "DESCRIBE t").unwrap();
    let shown: Vec<Value> = shown.rows.iter().map(|row| json!([row[0], row[1]])).collect();
    assert_eq!(Value::Array(shown), described);
}

#[test]
fn a_date_promoted_to_nanoseconds_reads_as_midnight() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "d", Type::Date)]))
        .format_version(3)
        .create();
    table.append(DataFile::named("F").rows(json!([["2024-02-29"], ["1969-12-31"], [null]])));
    table.evolve(|s| s.promote("d", Type::TimestampNs));
    shows(
        &table,
        json!([["2024-02-29T00:00:00.000000000"], ["1969-12-31T00:00:00.000000000"], [null]]),
    );
}

#[test]
fn a_date_beyond_nanoseconds_is_an_error_not_another_date() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "d", Type::Date)]))
        .format_version(3)
        .create();
    table.append(DataFile::named("F").rows(json!([["9999-12-31"]])));
    table.evolve(|s| s.promote("d", Type::TimestampNs));
    refuses(&table, ErrorKind::Corrupt, &["F.parquet"]);
}

#[test]
fn a_column_of_unknown_type_can_become_any_type() {
    for (to, value) in [
        (Type::Int, json!(1)),
        (Type::String, json!("x")),
        (Type::list(5, Type::Int), json!([1, null])),
        (Type::fields([optional(6, "a", Type::Int)]), json!({"a": 1})),
        (Type::map(7, Type::String, 8, Type::Int), json!([["k", 1]])),
    ] {
        let schema = Schema::new([required(1, "id", Type::Long), optional(2, "u", Type::Unknown)]);
        let mut table = TableBuilder::temp(schema).format_version(3).create();
        table.append(DataFile::named("F1").rows(json!([[1, null]])));
        // some writers put a column of nothing into the file
        table.append(DataFile::named("F2").rows(json!([[2, null]])));
        let field = optional_field(Physical::INT32)
            .with_id(Some(2))
            .with_logical_type(Some(LogicalType::Unknown));
        rewrite_with_nothing(&table, "F2", Arc::new(field.build().unwrap()));
        shows(&table, json!([[1, null], [2, null]]));
        table.evolve(|s| s.promote("u", to));
        table.append(DataFile::named("F3").rows(json!([[3, value.clone()]])));
        shows(&table, json!([[1, null], [2, null], [3, value]]));
    }
}

/// A file of one row: id 2, and a column of type unknown.
fn rewrite_with_nothing(table: &TestTable, name: &str, nothing: TypePtr) {
    use parquet::data_type::{Int32Type, Int64Type};
    let id = ParquetType::primitive_type_builder("id", Physical::INT64)
        .with_id(Some(1))
        .with_repetition(Repetition::REQUIRED)
        .build()
        .unwrap();
    let schema = ParquetType::group_type_builder("schema")
        .with_fields(vec![Arc::new(id), nothing])
        .build()
        .unwrap();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(WriterProperties::new())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[2], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[], Some(&[0]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    std::fs::write(table.real_path(name), bytes).unwrap();
}

#[test]
fn a_field_added_to_a_struct_reads_its_default() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "s", Type::fields([optional(3, "a", Type::Int)])),
        optional(4, "l", Type::list(5, Type::fields([optional(6, "b", Type::Int)]))),
    ]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    table.append(DataFile::named("F1").rows(json!([[1, {"a": 1}, [{"b": 1}, null]], [2, null, null], [3, {"a": null}, []]])));
    table.evolve(|s| {
        s.add_to("s", required(7, "c", Type::String).default_value(json!("x")))
            .add_to("l.element", optional(8, "d", Type::Long).default_value(json!(9)))
    });
    table.append(DataFile::named("F2").rows(json!([[4, {"a": 4, "c": "y"}, [{"b": 2, "d": null}]]])));
    shows(
        &table,
        json!([
            [1, {"a": 1, "c": "x"}, [{"b": 1, "d": 9}, null]],
            // a null struct stays null, whatever its fields' defaults
            [2, null, null],
            [3, {"a": null, "c": "x"}, []],
            [4, {"a": 4, "c": "y"}, [{"b": 2, "d": null}]],
        ]),
    );
    answers(&table, "SELECT id FROM t WHERE s['c'] = 'x'", json!([[1], [3]]));
}

#[test]
fn a_struct_added_with_a_default_has_the_defaults_of_its_fields() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(json!([[1]])));
    let inner = Type::fields([
        optional(3, "a", Type::Int).default_value(json!(7)),
        optional(4, "l", Type::list(5, Type::Int)),
        optional(6, "n", Type::String),
    ]);
    table.evolve(|s| s.add(optional(2, "s", inner).default_value(json!({}))));
    let read = crate::support::read::rows(&table).unwrap();
    assert_eq!(read, [[json!(1), json!({"a": 7, "l": null, "n": null})]]);
}

#[test]
fn a_required_field_in_a_struct_without_value_and_default_is_refused() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "s", Type::fields([optional(3, "a", Type::Int)])),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([[1, {"a": 1}]])));
    table.evolve(|s| s.add_to("s", required(4, "c", Type::String)));
    refuses(&table, ErrorKind::Corrupt, &["F.parquet", "c"]);
}

/// B085: a cast to fewer digits rounds, so many values are equal to one; it must not be taken off.
#[test]
fn a_cast_that_narrows_is_compared_as_it_was_written() {
    let schema = Schema::new([
        optional(1, "d", Type::Decimal(20, 4)),
        optional(2, "n", Type::TimestampNs),
        optional(3, "u", Type::Timestamp),
        optional(4, "m", Type::Decimal(7, 2)),
        optional(5, "f", Type::Double),
    ]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    table.append(DataFile::named("F").rows(json!([
        [
            "1.2345",
            "2024-02-29T12:00:00.123456789",
            "2024-02-29T12:00:00.123456",
            "99999.99",
            1.1
        ],
        ["1.2399", "2024-02-29T12:00:00.123456001", "2024-02-29T12:00:00.123457", "0.01", 1.5],
        ["1.25", "2024-02-29T12:00:00.123457000", "2024-02-29T12:00:01.000000", null, 2.5],
    ])));
    for (predicate, count) in [
        ("CAST(d AS DECIMAL(20, 2)) = 1.23", 1),
        ("CAST(d AS DECIMAL(20, 2)) = 1.24", 1),
        ("CAST(d AS DECIMAL(20, 2)) IN (1.23, 1.24)", 2),
        ("CAST(d AS DECIMAL(20, 2)) BETWEEN 1.23 AND 1.24", 2),
        ("CAST(d AS DECIMAL(20, 2)) <> 1.23", 2),
        ("CAST(d AS DECIMAL(20, 2)) > 1.23", 2),
        ("CAST(d AS BIGINT) = 1", 3),
        ("CAST(n AS TIMESTAMP) = TIMESTAMP '2024-02-29 12:00:00.123456'", 2),
        ("CAST(n AS TIMESTAMP) > TIMESTAMP '2024-02-29 12:00:00.123456'", 1),
        ("CAST(u AS DATE) = DATE '2024-02-29'", 3),
        ("CAST(n AS DATE) = DATE '2024-02-29'", 3),
        ("CAST(f AS BIGINT) = 1", 2),
        ("CAST(f AS INT) = 2", 1),
        ("u < TIMESTAMP '2024-02-29 12:00:00.123456789'", 1),
        ("u <= TIMESTAMP '2024-02-29 12:00:00.123456789'", 1),
        ("u > TIMESTAMP '2024-02-29 12:00:00.123456789'", 2),
        ("u >= TIMESTAMP '2024-02-29 12:00:00.123456789'", 2),
        ("TIMESTAMP '2024-02-29 12:00:00.123456789' > u", 1),
        ("u = TIMESTAMP '2024-02-29 12:00:00.123456789'", 0),
        ("u <> TIMESTAMP '2024-02-29 12:00:00.123456789'", 3),
        (
            "u IN (TIMESTAMP '2024-02-29 12:00:00.123456789', TIMESTAMP '2024-02-29 12:00:01')",
            1,
        ),
        (
            "u BETWEEN TIMESTAMP '2024-02-29 12:00:00.123456001' AND TIMESTAMP '2024-02-29 12:00:00.123457001'",
            1,
        ),
        ("m = 99999.99", 1),
        ("m < 99999.995", 2),
    ] {
        answers(&table, &format!("SELECT count(*) FROM t WHERE {predicate}"), json!([[count]]));
    }
}

/// An optional struct of a required field: where the struct is null, the file's field holds anything.
#[test]
fn a_field_of_a_null_struct_is_null() {
    for format in [RowFormat::Parquet, RowFormat::Avro(Codec::Null)] {
        let inner = Type::fields([required(5, "y", Type::String)]);
        let p = Type::fields([required(3, "x", Type::Int), optional(4, "q", inner)]);
        let schema = Schema::new([required(1, "id", Type::Long), optional(2, "p", p)]);
        let mut table = TableBuilder::temp(schema).create();
        table.append(DataFile::named("F").stored_as(format).rows(json!([
            [1, {"x": 5, "q": {"y": "a"}}],
            [2, null],
            [3, {"x": 7, "q": null}],
            [4, null],
        ])));
        answers(
            &table,
            "SELECT id, p['x'], p['q']['y'] FROM t",
            json!([[1, 5, "a"], [2, null, null], [3, 7, null], [4, null, null]]),
        );
        answers(&table, "SELECT id FROM t WHERE p['x'] IS NULL", json!([[2], [4]]));
        answers(&table, "SELECT id FROM t WHERE p['x'] <> 5", json!([[3]]));
        answers(&table, "SELECT id FROM t WHERE p['q']['y'] IS NULL", json!([[2], [3], [4]]));
        answers(&table, "SELECT count(p['x']), sum(p['x']), min(p['x']) FROM t", json!([[2, 12, 5]]));
        answers(&table, "SELECT id FROM t WHERE coalesce(p['x'], -1) = -1", json!([[2], [4]]));
    }
}

/// A comparison that is put otherwise keeps its name for what stands around it.
#[test]
fn comparisons_may_stand_in_aggregates_groups_and_orders() {
    let schema = Schema::new([
        optional(1, "i", Type::Int),
        optional(2, "u", Type::Timestamp),
        optional(3, "d", Type::Decimal(5, 2)),
        optional(4, "f", Type::Double),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([
        [1, "2024-01-05T10:00:00.000001", "1.10", 0.0],
        [2, "2024-01-06T10:00:00.000000", "2.20", 1.5],
    ])));
    answers(
        &table,
        "SELECT sum(CASE WHEN CAST(i AS DOUBLE) <> 2.5 THEN 1 ELSE 0 END) AS n FROM t",
        json!([[2]]),
    );
    answers(
        &table,
        "SELECT count(*) FILTER (WHERE CAST(i AS DOUBLE) <> 1.0) FROM t",
        json!([[1]]),
    );
    answers(
        &table,
        "SELECT CAST(i AS DOUBLE) > 1.5 AS k, count(*) FROM t GROUP BY CAST(i AS DOUBLE) > 1.5",
        json!([[false, 1], [true, 1]]),
    );
    answers(
        &table,
        "SELECT CAST(i AS DOUBLE) > 1.5, count(*) FROM t GROUP BY 1",
        json!([[false, 1], [true, 1]]),
    );
    answers(&table, "SELECT i FROM t ORDER BY CAST(i AS VARCHAR) = '1', i", json!([[2], [1]]));
    answers(
        &table,
        "SELECT DISTINCT CAST(i AS DOUBLE) > 1.5 FROM t ORDER BY 1",
        json!([[false], [true]]),
    );
    answers(
        &table,
        "SELECT i, row_number() OVER (ORDER BY CAST(i AS VARCHAR) = '1') AS r FROM t",
        json!([[2, 1], [1, 2]]),
    );
    answers(
        &table,
        "SELECT bool_or(CAST(u AS DATE) = DATE '2024-01-05') FROM t",
        json!([[true]]),
    );
    answers(
        &table,
        "SELECT u < TIMESTAMP '2024-01-05 10:00:00.000001001', count(*) FROM t GROUP BY u < TIMESTAMP '2024-01-05 10:00:00.000001001'",
        json!([[true, 1], [false, 1]]),
    );
    answers(
        &table,
        "SELECT d IN (1.1, 5.5), count(*) FROM t GROUP BY d IN (1.1, 5.5)",
        json!([[true, 1], [false, 1]]),
    );
    answers(
        &table,
        "SELECT f IN (0.0, 9.0, 8.0, 7.0), count(*) FROM t GROUP BY 1",
        json!([[true, 1], [false, 1]]),
    );
    answers(
        &table,
        "SELECT d / 3.0 > 0.3666 AND d / 3.0 < 0.3667 FROM t WHERE i = 1",
        json!([[true]]),
    );
}

#[test]
fn the_two_zeros_are_one_number_also_in_a_list() {
    let schema = Schema::new([
        optional(1, "id", Type::Long),
        optional(2, "f", Type::Float),
        optional(3, "d", Type::Double),
        optional(4, "i", Type::Int),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F").rows(json!([[1, -0.0, -0.0, 0], [2, 0.0, 0.0, 0], [3, 9.0, 9.0, 9], [4, 1.0, 1.0, 1]])));
    for list in [
        "0.0, 9.0",
        "-0.0, 9.0",
        "0.0, 9.0, 10, 11, 12, 13",
        "0, 9",
        "-0.0, 9.0, 20, 21, 22, 23",
    ] {
        for column in ["f", "d", "i"] {
            answers(
                &table,
                &format!("SELECT id FROM t WHERE {column} IN ({list})"),
                json!([[1], [2], [3]]),
            );
            answers(&table, &format!("SELECT id FROM t WHERE {column} NOT IN ({list})"), json!([[4]]));
        }
    }
    answers(&table, "SELECT id FROM t WHERE d IN (NULL, 0.0, 5.0, 6.0, 7.0)", json!([[1], [2]]));
    answers(&table, "SELECT id FROM t WHERE i IN (f, 100.5)", json!([[1], [2], [3], [4]]));
}

#[test]
fn moments_of_all_years_are_compared() {
    for (of, zone) in [(Type::Timestamp, ""), (Type::Timestamptz, "Z")] {
        let mut table = TableBuilder::temp(Schema::new([optional(1, "ts", of)])).create();
        table.append(DataFile::named("F").rows(json!([
            [format!("0001-01-01T00:00:00.000000{zone}")],
            [format!("2024-02-29T12:00:00.123457{zone}")],
            [format!("9999-12-31T23:59:59.000000{zone}")],
        ])));
        for (predicate, count) in [
            ("ts > '9000-01-01'", 1),
            ("ts = '9999-12-31 23:59:59'", 1),
            ("ts >= DATE '9999-12-31'", 1),
            ("ts < DATE '0001-01-02'", 1),
            ("ts BETWEEN '0001-01-01' AND '9999-12-31'", 2),
            ("ts IN ('9999-12-31 23:59:59', '2024-02-29 12:00:00.123457')", 2),
            ("ts > '2024-02-29 12:00:00.123456789'", 2),
            ("ts = '2024-02-29 12:00:00.123457001'", 0),
            ("NOT (ts = '9999-12-31 23:59:59')", 2),
        ] {
            answers(&table, &format!("SELECT count(*) FROM t WHERE {predicate}"), json!([[count]]));
        }
    }
}

/// A struct that was added with a default is there in old files, field by field.
#[test]
fn a_field_of_a_struct_that_is_a_default_can_be_a_key_and_a_condition() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(json!([[1], [2]])).row_group_rows(1));
    let s = Type::fields([optional(3, "a", Type::Int).default_value(json!(5))]);
    table.evolve(|schema| schema.add(optional(2, "s", s).default_value(json!({}))));
    table.append(DataFile::named("G").rows(json!([[3, {"a": 6}], [4, null]])));
    answers(&table, "SELECT id FROM t WHERE s['a'] = 5", json!([[1], [2]]));
    answers(&table, "SELECT id FROM t WHERE s['a'] IS NOT NULL", json!([[1], [2], [3]]));
    let key = Schema::new([optional(2, "s", Type::fields([optional(3, "a", Type::Int)]))]);
    table.delete_keys(EqualityDeletes::named("E", [3]).schema(key).rows(json!([[{"a": 5}]])));
    answers(&table, "SELECT id FROM t", json!([[3], [4]]));
}
