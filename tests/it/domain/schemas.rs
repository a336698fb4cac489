//! Schemas that changed: columns are found by id, whatever they are called and wherever they stand.

use sandur::error::ErrorKind;
use serde_json::json;

use super::{answers, column, id_data, ids, refuses, shows};
use crate::support::builder::{
    DataFile, DeletionVectors, EqualityDeletes, PartitionSpec, PositionDeletes, Schema, TableBuilder, Type, identity, optional, required,
};

#[test]
fn promoted_columns_keep_their_values() {
    // B063
    for (narrow, wide, rows) in [
        (Type::Int, Type::Long, json!([[1], [-2_147_483_648], [null]])),
        (Type::Float, Type::Double, json!([[0.5], ["NaN"], ["-Infinity"], [null]])),
        (
            Type::Decimal(9, 2),
            Type::Decimal(38, 2),
            json!([["1.25"], ["-9999999.99"], [null]]),
        ),
    ] {
        let mut table = TableBuilder::temp(Schema::new([optional(1, "x", narrow)])).create();
        table.append(DataFile::named("F").rows(rows.clone()));
        table.evolve(|s| s.promote("x", wide));
        shows(&table, rows);
    }
}

#[test]
fn literals_beyond_the_old_type_compare_in_the_new() {
    // B063
    let mut table = TableBuilder::temp(Schema::new([optional(1, "x", Type::Int)])).create();
    table.append(DataFile::named("F").rows(column([1, 2, 3])));
    table.evolve(|s| s.promote("x", Type::Long));
    for condition in ["x < 2147483648", "x > -2147483649", "x <> 2147483648"] {
        answers(&table, &format!("SELECT count(*) FROM t WHERE {condition}"), json!([[3]]));
    }
}

#[test]
fn a_date_promoted_to_a_timestamp_reads_as_midnight() {
    let mut table = TableBuilder::temp(Schema::new([optional(1, "d", Type::Date)]))
        .format_version(3)
        .create();
    table.append(DataFile::named("F").rows(json!([["2024-02-29"], ["1969-12-31"], [null]])));
    table.evolve(|s| s.promote("d", Type::Timestamp));
    shows(
        &table,
        json!([["2024-02-29T00:00:00.000000"], ["1969-12-31T00:00:00.000000"], [null]]),
    );
}

#[test]
fn a_renamed_column_keeps_its_values() {
    // B065
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.evolve(|s| s.rename("data", "text"));
    table.append(DataFile::named("F2").rows(json!([[2, "b"]])));
    shows(&table, json!([[1, "a"], [2, "b"]]));
    answers(&table, "SELECT text FROM t WHERE text = 'a'", json!([["a"]]));
}

#[test]
fn a_name_that_was_dropped_and_added_again_is_a_new_column() {
    // B065
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.evolve(|s| s.drop("data").add(optional(3, "data", Type::String)));
    table.append(DataFile::named("F2").rows(json!([[2, "b"]])));
    shows(&table, json!([[1, null], [2, "b"]]));
    answers(&table, "SELECT id FROM t WHERE data IS NULL", json!([[1]]));
}

#[test]
fn swapped_names_do_not_swap_values() {
    let schema = Schema::new([optional(1, "a", Type::Long), optional(2, "b", Type::Long)]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F1").rows(json!([[1, 2]])));
    table.evolve(|s| s.rename("a", "tmp").rename("b", "a").rename("tmp", "b").reorder(["a", "b"]));
    table.append(DataFile::named("F2").rows(json!([[20, 10]])));
    shows(&table, json!([[2, 1], [20, 10]]));
    answers(&table, "SELECT a FROM t WHERE b = 1", json!([[2]]));
}

#[test]
fn nested_columns_added_later_are_null_in_older_files() {
    // B066
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F1").rows(column([1])));
    let inner = Type::fields([optional(7, "a", Type::Int), optional(8, "l", Type::list(9, Type::Int))]);
    table.evolve(|s| {
        s.add(optional(2, "tags", Type::list(3, Type::String)))
            .add(optional(4, "m", Type::map(5, Type::String, 10, Type::Int)))
            .add(optional(6, "s", inner))
    });
    table.append(DataFile::named("F2").rows(json!([[2, ["x", null], [["k", 1]], {"a": 1, "l": [2]}]])));
    shows(
        &table,
        json!([[1, null, null, null], [2, ["x", null], [["k", 1]], {"a": 1, "l": [2]}]]),
    );
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0]));
    shows(&table, json!([[2, ["x", null], [["k", 1]], {"a": 1, "l": [2]}]]));
}

#[test]
fn fields_inside_structs_lists_and_maps_evolve_by_id() {
    let item = Type::fields([optional(3, "x", Type::Int), optional(4, "y", Type::String)]);
    let value = Type::fields([optional(8, "v", Type::Float)]);
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "items", Type::list(5, item)),
        optional(6, "m", Type::map(7, Type::String, 9, value)),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    table.append(DataFile::named("F1").rows(json!([[1, [{"x": 1, "y": "a"}, null], [["k", {"v": 0.5}]]]])));
    table.evolve(|s| {
        s.promote("items.element.x", Type::Long)
            .rename("items.element.y", "z")
            .add_to("items.element", optional(10, "y", Type::Boolean))
            .promote("m.value.v", Type::Double)
    });
    table.append(DataFile::named("F2").rows(json!([[2, [{"x": 5_000_000_000_i64, "z": "b", "y": true}], []]])));
    shows(
        &table,
        json!([
            [1, [{"x": 1, "z": "a", "y": null}, null], [["k", {"v": 0.5}]]],
            [2, [{"x": 5_000_000_000_i64, "z": "b", "y": true}], []],
        ]),
    );
}

#[test]
fn a_null_collection_is_not_an_empty_one() {
    let inner = Type::fields([optional(7, "a", Type::Int)]);
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "l", Type::list(3, Type::Int)),
        optional(4, "m", Type::map(5, Type::String, 6, Type::Int)),
        optional(8, "s", inner),
    ]);
    let mut table = TableBuilder::temp(schema).create();
    let rows = json!([[1, null, null, null], [2, [], [], {"a": null}], [3, [null], [["k", null]], {"a": 1}]]);
    table.append(DataFile::named("F").rows(rows.clone()));
    shows(&table, rows);
    answers(&table, "SELECT id FROM t WHERE l IS NULL", json!([[1]]));
    answers(&table, "SELECT id FROM t WHERE s IS NULL", json!([[1]]));
}

#[test]
fn columns_are_given_in_the_table_s_order() {
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F1").rows(json!([[1, "a"]])));
    table.evolve(|s| s.reorder(["data", "id"]));
    table.append(DataFile::named("F2").rows(json!([["b", 2]])));
    shows(&table, json!([["a", 1], ["b", 2]]));
}

#[test]
fn files_without_ids_are_read_through_the_name_mapping() {
    // B069
    let inner = Type::fields([optional(4, "x", Type::Int)]);
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "data", Type::String),
        optional(3, "s", inner),
    ]);
    let mapping = json!([
        {"field-id": 1, "names": ["id", "old_id"]},
        {"field-id": 2, "names": ["data"]},
        {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]},
    ]);
    let mut table = TableBuilder::temp(schema.clone())
        .property("schema.name-mapping.default", &mapping.to_string())
        .create();
    // other names and another order than the table's
    let other = schema.rename("id", "old_id").reorder(["data", "s", "old_id"]);
    table.append(
        DataFile::named("F1")
            .schema(other)
            .without_ids()
            .rows(json!([["a", {"x": 1}, 1], ["b", null, 2]])),
    );
    table.append(DataFile::named("F2").rows(json!([[3, "c", {"x": 3}]])));
    shows(&table, json!([[1, "a", {"x": 1}], [2, "b", null], [3, "c", {"x": 3}]]));
    // renaming later changes nothing for them
    table.evolve(|s| s.rename("data", "text"));
    shows(&table, json!([[1, "a", {"x": 1}], [2, "b", null], [3, "c", {"x": 3}]]));
    table.delete_positions(PositionDeletes::named("P").rows("F1", [0]));
    table.delete_keys(EqualityDeletes::named("E", [2]).rows(json!([["b"]])));
    shows(&table, json!([[3, "c", {"x": 3}]]));
}

#[test]
fn a_name_that_the_mapping_lacks_is_not_read() {
    let mapping = json!([{"field-id": 1, "names": ["id"]}]);
    let mut table = TableBuilder::temp(id_data())
        .property("schema.name-mapping.default", &mapping.to_string())
        .create();
    let file = DataFile::named("F").without_ids().rows(json!([[1, "a"]]));
    table.append(file);
    let read = crate::support::read::rows(&table).unwrap();
    assert_eq!(crate::support::canonical::sorted_lines(&read), ["[1, null]"]);
}

#[test]
fn files_without_ids_and_mapping_are_read_by_position() {
    // B069, documented rule: the n-th column has the n-th id that the table gave
    let mut table = TableBuilder::temp(id_data()).create();
    table.append(DataFile::named("F").without_ids().rows(json!([[1, "a"], [2, null]])));
    shows(&table, json!([[1, "a"], [2, null]]));
}

#[test]
fn older_files_read_the_initial_default() {
    // B071
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F1").rows(column([1, 2])));
    table.evolve(|s| s.add(optional(2, "c", Type::Int).default_value(json!(7))));
    table.append(DataFile::named("F2").rows(json!([[3, null], [4, 8]])));
    shows(&table, json!([[1, 7], [2, 7], [3, null], [4, 8]]));
    answers(&table, "SELECT id FROM t WHERE c = 7", json!([[1], [2]]));
    // as key of an equality delete
    table.delete_keys(EqualityDeletes::named("E", [2]).rows(json!([[7]])));
    shows(&table, json!([[3, null], [4, 8]]));
}

#[test]
fn defaults_of_every_type_are_read() {
    let defaults = [
        (Type::Boolean, json!(true)),
        (Type::Int, json!(-1)),
        (Type::Long, json!("9007199254740993")),
        (Type::Float, json!(0.5)),
        (Type::Double, json!(-0.25)),
        (Type::Decimal(9, 2), json!("14.20")),
        (Type::Date, json!("2017-11-16")),
        (Type::Time, json!("22:31:08.123456")),
        (Type::Timestamp, json!("2017-11-16T22:31:08.123456")),
        (Type::Timestamptz, json!("2017-11-16T22:31:08.123456Z")),
        (Type::TimestampNs, json!("2017-11-16T22:31:08.123456789")),
        (Type::String, json!("é")),
        (Type::Uuid, json!("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        (Type::Fixed(3), json!("hex:0001ff")),
        (Type::Binary, json!("hex:00ff")),
    ];
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(column([1, 2])));
    let mut expected = vec![json!(2)];
    for (i, (of, value)) in defaults.into_iter().enumerate() {
        let id = i as i32 + 2;
        table.evolve(|s| s.add(required(id, &format!("c{id}"), of).default_value(value.clone())));
        expected.push(value);
    }
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [0]));
    shows(&table, json!([expected]));
}

#[test]
fn a_required_column_without_value_and_default_is_refused() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(column([1])));
    table.evolve(|s| s.add(required(2, "c", Type::Int)));
    refuses(&table, ErrorKind::Corrupt, &["F.parquet", "c"]);
}

#[test]
fn a_column_that_a_file_lacks_has_its_partition_value() {
    // as files taken in from a folder per partition have it
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "region", Type::String),
        optional(3, "n", Type::Int),
    ]);
    let mut table = TableBuilder::temp(schema)
        .spec(PartitionSpec::new([identity(2, "region"), identity(3, "n")]))
        .create();
    for (name, region, n, id) in [("F1", json!("eu"), json!(1), 1), ("F2", json!(null), json!(2), 2)] {
        table.append(DataFile::named(name).schema(ids()).partition(json!([region, n])).rows(column([id])));
    }
    shows(&table, json!([[1, "eu", 1], [2, null, 2]]));
    answers(&table, "SELECT id FROM t WHERE region = 'eu'", json!([[1]]));
    table.delete_keys(EqualityDeletes::named("E", [2]).partition(json!(["eu", 1])).rows(json!([["eu"]])));
    shows(&table, json!([[2, null, 2]]));
}

/// A table that was replaced keeps the id of a column of the same name, whatever its type is now.
#[test]
fn an_old_snapshot_has_its_partition_values_in_its_own_unit() {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "at", Type::Timestamp)]);
    let mut table = TableBuilder::temp(schema)
        .format_version(3)
        .spec(PartitionSpec::new([identity(2, "at")]))
        .create();
    let at = "2024-02-29T12:00:00.123456";
    table.append(DataFile::named("F").schema(ids()).partition(json!([at])).rows(column([1])));
    let old = table.snapshot_id().unwrap();
    table.evolve(|s| s.promote("at", Type::TimestampNs));
    table.append(
        DataFile::named("G")
            .schema(ids())
            .partition(json!(["2024-02-29T12:00:00.123456789"]))
            .rows(column([2])),
    );
    answers(&table, &format!("SELECT id, at FROM t VERSION AS OF {old}"), json!([[1, at]]));
}

#[test]
fn a_column_of_unknown_type_is_null() {
    let schema = Schema::new([
        required(1, "id", Type::Long),
        optional(2, "u", Type::Unknown),
        optional(3, "data", Type::String),
    ]);
    let mut table = TableBuilder::temp(schema).format_version(3).create();
    table.append(DataFile::named("F").rows(json!([[1, null, "a"], [2, null, "b"]])));
    shows(&table, json!([[1, null, "a"], [2, null, "b"]]));
}
