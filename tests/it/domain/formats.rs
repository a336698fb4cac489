//! Data files and delete files in Avro and ORC, mixed with Parquet: the same rows as in one format.

use sandur::error::ErrorKind;
use serde_json::{Value, json};

use super::{answers, column, id_data, ids, refuses, shows};
use crate::support::builder::{
    Codec, DataFile, DeletionVectors, EqualityDeletes, Field, PositionDeletes, RowFormat, Schema, TableBuilder, Type, optional, required,
};

const AVRO: RowFormat = RowFormat::Avro(Codec::Deflate);
const FORMATS: [RowFormat; 3] = [RowFormat::Parquet, AVRO, RowFormat::Orc];

#[test]
fn positions_count_through_blocks_and_stripes_whatever_the_formats() {
    for data in FORMATS {
        for deletes in FORMATS {
            let mut table = TableBuilder::temp(ids()).create();
            table.append(DataFile::named("F").stored_as(data).rows(column(0..300)).row_group_rows(70));
            let gone = [299, 0, 69, 70, 71, 140, 209, 210];
            let file = PositionDeletes::named("P").stored_as(deletes).rows("F", gone);
            table.delete_positions(file.row_group_rows(3));
            shows(&table, column((0..300).filter(|i| !gone.contains(i))));
            answers(&table, "SELECT count(*) FROM t", json!([[292]]));
        }
    }
}

#[test]
fn a_file_whose_rows_are_all_deleted_shows_none() {
    for data in FORMATS {
        let mut table = TableBuilder::temp(ids()).create();
        table.append(DataFile::named("F").stored_as(data).rows(column(0..10)).row_group_rows(4));
        table.append(DataFile::named("G").stored_as(data).rows(column(10..12)));
        table.delete_positions(PositionDeletes::named("P").stored_as(AVRO).rows("F", 0..10));
        shows(&table, column([10, 11]));
    }
}

#[test]
fn delete_files_of_all_formats_add_up() {
    let mut table = TableBuilder::temp(id_data()).create();
    let formats = ["a", "b", "c"].into_iter().zip(FORMATS);
    for (name, format) in formats.clone() {
        let rows = (0..20).map(|i| json!([i, format!("{name}{i}")]));
        table.append(DataFile::named(name).stored_as(format).rows_from(rows).row_group_rows(6));
    }
    for (i, (_, format)) in formats.enumerate() {
        let positions = PositionDeletes::named(&format!("P{i}")).stored_as(format);
        let positions = ["a", "b", "c"]
            .into_iter()
            .fold(positions, |p, name| p.rows(name, [i as i64, 10 + i as i64]));
        table.delete_positions(positions);
        let keys = EqualityDeletes::named(&format!("E{i}"), [1])
            .stored_as(format)
            .rows(json!([[5 + i]]));
        table.delete_keys(keys);
    }
    let gone = [0, 1, 2, 10, 11, 12, 5, 6, 7];
    let left = (0..20).filter(|i| !gone.contains(i));
    let rows: Value = left
        .flat_map(|i| ["a", "b", "c"].map(|name| json!([i, format!("{name}{i}")])))
        .collect();
    shows(&table, rows);
}

#[test]
fn keys_outside_of_the_projection_are_read_and_come_after_positions() {
    for format in [AVRO, RowFormat::Orc] {
        let mut table = TableBuilder::temp(id_data()).create();
        let rows = json!([[1, "a"], [2, null], [1, "b"], [3, "c"], [2, "d"]]);
        table.append(DataFile::named("F").stored_as(format).rows(rows).row_group_rows(2));
        table.delete_positions(PositionDeletes::named("P").stored_as(format).rows("F", [0]));
        table.delete_keys(EqualityDeletes::named("E", [1]).stored_as(format).rows(json!([[2]])));
        answers(&table, "SELECT data FROM t", json!([["b"], ["c"]]));
        table.delete_keys(EqualityDeletes::named("N", [2]).stored_as(format).rows(json!([["b"]])));
        answers(&table, "SELECT id FROM t", json!([[3]]));
        shows(&table, json!([[3, "c"]]));
    }
}

#[test]
fn a_deletion_vector_applies_to_any_format() {
    for format in [AVRO, RowFormat::Orc] {
        let mut table = TableBuilder::temp(ids()).format_version(3).create();
        table.append(DataFile::named("F").stored_as(format).rows(column(0..50)).row_group_rows(7));
        table.delete_by_vectors(DeletionVectors::named("V").rows("F", (0..7).chain([20, 49])));
        shows(&table, column((7..49).filter(|i| *i != 20)));
    }
}

#[test]
fn blocks_of_every_codec_are_read() {
    for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstd] {
        let mut table = TableBuilder::temp(id_data()).create();
        let rows = (0..100).map(|i| json!([i, "x".repeat(i)]));
        table.append(
            DataFile::named("F")
                .stored_as(RowFormat::Avro(codec))
                .rows_from(rows.clone())
                .row_group_rows(9),
        );
        shows(&table, rows.collect());
    }
}

/// Every type that Avro files hold, alone and nested.
fn all_types() -> (Schema, Value) {
    let inner = Type::fields([optional(41, "a", Type::Int), optional(42, "b", Type::list(43, Type::String))]);
    let fields: Vec<Field> = vec![
        required(1, "id", Type::Long),
        optional(2, "bo", Type::Boolean),
        optional(3, "i", Type::Int),
        optional(4, "f", Type::Float),
        optional(5, "d", Type::Double),
        optional(6, "dc", Type::Decimal(20, 3)),
        optional(7, "da", Type::Date),
        optional(8, "ti", Type::Time),
        optional(9, "tn", Type::Timestamp),
        optional(10, "tz", Type::Timestamptz),
        optional(11, "s", Type::String),
        optional(12, "u", Type::Uuid),
        optional(13, "fx", Type::Fixed(3)),
        optional(14, "b", Type::Binary),
        optional(15, "li", Type::list(16, Type::Decimal(4, 1))),
        optional(17, "ma", Type::map(18, Type::String, 19, Type::list(20, Type::Long))),
        optional(
            21,
            "mi",
            Type::map(22, Type::Int, 23, Type::fields([optional(24, "x", Type::Double)])),
        ),
        optional(40, "st", inner),
        optional(50, "na", Type::TimestampNs),
    ];
    let rows = json!([
        [
            1, true, -7, 1.5, -0.0, "-12345678901234567.890", "1969-12-31", "23:59:59.999999", "1969-12-31T23:59:59.999999",
            "2024-02-29T12:00:00.000001Z", "größe", "00112233-4455-6677-8899-aabbccddeeff", "hex:010203", "hex:", ["1.5", null, "-999.9"],
            [["k", [1, null]], ["z", null]], [[-3, {"x": 2.5}], [4, null]], {"a": 5, "b": ["q", null]}, "1700-01-01T00:12:44.000000001"
        ],
        [2, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null],
        [
            3, false, 2147483647, "NaN", "-Infinity", "0.001", "0001-01-01", "00:00:00.000000", "0001-01-01T00:00:00.000000",
            "9999-12-31T23:59:59.999999Z", "", "ffffffff-ffff-ffff-ffff-ffffffffffff", "hex:000000", "hex:ff00", [], [], [],
            {"a": null, "b": null}, "2200-04-11T23:47:16.854775807"
        ],
    ]);
    (Schema::new(fields), rows)
}

#[test]
fn avro_holds_every_type_alone_and_nested() {
    let (schema, rows) = all_types();
    let mut table = TableBuilder::temp(schema.clone()).format_version(3).create();
    table.append(DataFile::named("F").stored_as(AVRO).rows(rows.clone()).row_group_rows(2));
    table.append(DataFile::named("G").rows(rows.clone()));
    let twice: Vec<Value> = rows.as_array().unwrap().iter().flat_map(|row| [row.clone(), row.clone()]).collect();
    shows(&table, Value::Array(twice));
    // one column at a time, so that the others are passed
    for field in &schema.fields {
        let sql = format!("SELECT count(*), count({name}) FROM t", name = field.name);
        let present = if field.name == "id" { 6 } else { 4 };
        answers(&table, &sql, json!([[6, present]]));
    }
    answers(&table, "SELECT st['a'] FROM t WHERE id = 1", json!([[5], [5]]));
    answers(
        &table,
        "SELECT ma, fx FROM t WHERE id = 3",
        json!([[[], "hex:000000"], [[], "hex:000000"]]),
    );
}

#[test]
fn older_files_of_every_format_follow_the_schema() {
    for format in FORMATS {
        let old = Schema::new([
            required(1, "id", Type::Int),
            optional(2, "f", Type::Float),
            optional(3, "gone", Type::String),
            optional(4, "day", Type::Date),
        ]);
        let mut table = TableBuilder::temp(old).format_version(3).create();
        table.append(
            DataFile::named("F")
                .stored_as(format)
                .rows(json!([[1, 0.5, "x", "2024-01-02"], [-2, null, "y", null]])),
        );
        table.evolve(|schema| {
            schema
                .drop("gone")
                .promote("id", Type::Long)
                .promote("f", Type::Double)
                .promote("day", Type::Timestamp)
                .rename("f", "factor")
                .add(optional(5, "gone", Type::Int))
                .add(optional(6, "with_default", Type::String).default_value(json!("d")))
                .reorder(["with_default", "factor", "gone", "day", "id"])
        });
        let file = DataFile::named("G").stored_as(format);
        table.append(file.rows(json!([["e", 1.25, 9, "2024-01-02T03:04:05.000006", 3_000_000_000_i64]])));
        table.delete_keys(EqualityDeletes::named("E", [1]).stored_as(format).rows(json!([[-2]])));
        shows(
            &table,
            json!([
                ["d", 0.5, null, "2024-01-02T00:00:00.000000", 1],
                ["e", 1.25, 9, "2024-01-02T03:04:05.000006", 3_000_000_000_i64]
            ]),
        );
    }
}

#[test]
fn nested_fields_of_avro_files_follow_the_schema() {
    let point = Type::fields([required(3, "x", Type::Int), optional(4, "y", Type::Float)]);
    let list = Type::list(6, Type::fields([optional(7, "k", Type::Decimal(5, 2))]));
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "p", point), optional(5, "l", list)]);
    let mut table = TableBuilder::temp(schema).create();
    let rows = json!([[1, {"x": 1, "y": 0.5}, [{"k": "1.25"}, null]], [2, null, null], [3, {"x": 3, "y": null}, []]]);
    table.append(DataFile::named("F").stored_as(AVRO).rows(rows));
    table.evolve(|schema| {
        schema
            .promote("p.x", Type::Long)
            .drop("p.y")
            .add_to("p", optional(8, "z", Type::String))
            .promote("l.element.k", Type::Decimal(9, 2))
    });
    shows(
        &table,
        json!([[1, {"x": 1, "z": null}, [{"k": "1.25"}, null]], [2, null, null], [3, {"x": 3, "z": null}, []]]),
    );
    // nothing of the struct is in the file but whether it is there
    table.evolve(|schema| schema.drop("p.x"));
    answers(
        &table,
        "SELECT id, p FROM t",
        json!([[1, {"z": null}], [2, null], [3, {"z": null}]]),
    );
}

#[test]
fn avro_and_orc_files_without_ids_need_a_name_mapping() {
    let mapping = json!([{"field-id": 1, "names": ["id", "old_id"]}, {"field-id": 2, "names": ["data"]}]);
    for format in [AVRO, RowFormat::Orc] {
        let file = || {
            let other = id_data().rename("id", "old_id").reorder(["data", "old_id"]);
            let file = DataFile::named("F").stored_as(format).schema(other).without_ids();
            file.rows(json!([["a", 1], [null, 2]]))
        };
        let mut table = TableBuilder::temp(id_data())
            .property("schema.name-mapping.default", &mapping.to_string())
            .create();
        table.append(file());
        shows(&table, json!([[1, "a"], [2, null]]));
        let mut table = TableBuilder::temp(id_data()).create();
        table.append(file());
        refuses(&table, ErrorKind::Unsupported, &["field ids", "schema.name-mapping.default"]);
    }
}

#[test]
fn a_file_with_another_number_of_rows_than_its_entry_is_refused() {
    for format in [AVRO, RowFormat::Orc] {
        for claimed in [2, 4, 1 << 40] {
            let mut table = TableBuilder::temp(ids()).create();
            let file = DataFile::named("F").stored_as(format).rows(column([1, 2, 3]));
            table.append(file.claimed_record_count(claimed));
            refuses(&table, ErrorKind::Corrupt, &["rows", "F."]);
        }
    }
}

#[test]
fn orc_columns_of_the_plain_types_are_read() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "bo", Type::Boolean),
        optional(3, "i", Type::Int),
        optional(4, "f", Type::Float),
        optional(5, "d", Type::Double),
        optional(6, "da", Type::Date),
        optional(7, "tn", Type::Timestamp),
        optional(8, "tz", Type::Timestamptz),
        optional(9, "s", Type::String),
        optional(10, "b", Type::Binary),
    ]);
    let row = |i: i64| {
        if i % 5 == 0 {
            return json!([i, null, null, null, null, null, null, null, null, null]);
        }
        json!([
            i * 1_000_003 - 7_000_000,
            i % 2 == 0,
            (i * 12_345_678) % 2_000_000_000,
            i as f64 / 2.0,
            -(i as f64),
            format!("19{:02}-03-04", i % 100),
            format!("20{:02}-01-02T03:04:05.{:06}", i % 100, i),
            format!("18{:02}-01-02T03:04:05.{:06}Z", i % 100, i),
            "text ".repeat((i % 7) as usize),
            format!("hex:{:04x}", i)
        ])
    };
    let mut table = TableBuilder::temp(schema).create();
    table.append(
        DataFile::named("F")
            .stored_as(RowFormat::Orc)
            .rows_from((0..2000).map(row))
            .row_group_rows(300),
    );
    table.delete_positions(PositionDeletes::named("P").rows("F", [0, 300, 599, 1999]));
    shows(&table, (1..1999).filter(|i| ![300, 599].contains(i)).map(row).collect());
}

#[test]
fn a_file_that_no_reader_knows_is_refused_by_name() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).claimed_format("AVRO"));
    refuses(&table, ErrorKind::Corrupt, &["avro", "F.parquet"]);
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).claimed_format("ORC"));
    refuses(&table, ErrorKind::Corrupt, &["orc", "F.parquet"]);
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])).claimed_format("VORTEX"));
    refuses(&table, ErrorKind::Unsupported, &["VORTEX"]);
}
