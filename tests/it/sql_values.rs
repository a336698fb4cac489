//! What INSERT and AppendRows make of values: digits, required parts, uuids, keys of maps.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int64Builder, ListArray, MapBuilder, RecordBatch, StringArray, StringBuilder};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::Field;
use futures::StreamExt;
use sandur::error::ErrorKind;
use sandur::sql::With;

use crate::sql_changes::{Warehouse, defaults};

#[tokio::test]
async fn written_values_keep_their_digits() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT, n DECIMAL(38, 20), k STRING, l ARRAY<DECIMAL(38, 20)>, m MAP<STRING, DECIMAL(38, 20)>, q STRUCT<a: DECIMAL(38, 20), b: STRING>)")
        .await;
    // neither the other rows nor the other elements have a say in what a value is
    w.run("INSERT INTO s.t (n, id) VALUES (0.1, 1), (99999999999999999, 2), ('0.12345678901234567890', 3), (NULL, 4), (-0.7, 5), (123456789012345678.123456789, 6)")
        .await;
    assert_eq!(
        w.rows("SELECT n FROM s.t ORDER BY id").await[1..],
        [
            "0.10000000000000000000",
            "99999999999999999.00000000000000000000",
            "0.12345678901234567890",
            "NULL",
            "-0.70000000000000000000",
            "123456789012345678.12345678900000000000"
        ]
    );
    w.run("INSERT INTO s.t (id, k) VALUES (11, 'x'), (12, 1), (13, 0.10), (14, DATE '2020-01-01'), (15, true)")
        .await;
    assert_eq!(
        w.rows("SELECT k FROM s.t WHERE id BETWEEN 11 AND 15 ORDER BY id").await[1..],
        ["x", "1", "0.1", "2020-01-01", "true"]
    );
    w.run("INSERT INTO s.t (id, l, m, q) VALUES (21, [0.7, 9007199254740993, NULL], MAP {'a': 0.7, 'b': 9007199254740993}, named_struct('b', 1, 'a', 1.1))")
        .await;
    w.run("INSERT INTO s.t (id, l, m, q) SELECT 22, [0.7, 9007199254740993, NULL], MAP {'a': 0.7, 'b': 9007199254740993}, named_struct('b', 1, 'a', 1.1)")
        .await;
    for id in [21, 22] {
        assert_eq!(
            w.rows(&format!(
                "SELECT l[1], l[2], l[3], m['a'], m['b'], q['a'], q['b'] FROM s.t WHERE id = {id}"
            ))
            .await[1],
            "0.70000000000000000000|9007199254740993.00000000000000000000|NULL|0.70000000000000000000|9007199254740993.00000000000000000000|1.10000000000000000000|1"
        );
    }
    let (_, message) = w.refused("INSERT INTO s.t (id, n) VALUES (31, 1), (32, 1234567890123456789)").await;
    assert!(message.contains("1234567890123456789"), "{message}");
}

#[tokio::test]
async fn values_may_have_subqueries_and_nothing_of_many_rows() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, n DECIMAL(5, 2), k STRING)").await;
    w.run("INSERT INTO s.t VALUES ((SELECT 5), 1.005, 'a'), (6, (SELECT 2.5), NULL), (7, 1, (SELECT k FROM s.t))")
        .await;
    w.run("INSERT INTO s.t (id) VALUES ((SELECT max(id) + 1 FROM s.t))").await;
    w.run("INSERT INTO s.t (id, k) SELECT * FROM (VALUES ((SELECT 10), 'x'), (11, 'y'))")
        .await;
    assert_eq!(
        w.rows("SELECT * FROM s.t ORDER BY id").await[1..],
        ["5|1.01|a", "6|2.50|NULL", "7|1.00|NULL", "8|NULL|NULL", "10|NULL|x", "11|NULL|y"]
    );
    assert_eq!(
        w.rows("SELECT * FROM (VALUES ((SELECT 6), 1), (2, 3)) ORDER BY 1").await[1..],
        ["2|3", "6|1"]
    );
    for (sql, part) in [
        (
            "INSERT INTO s.t (id) VALUES (sum(1))",
            "VALUES takes no aggregate function, and sum is one: write a SELECT",
        ),
        (
            "INSERT INTO s.t (id) VALUES (row_number() OVER ())",
            "VALUES takes no window function",
        ),
        ("INSERT INTO s.t (id) VALUES (unnest([1, 2]))", "VALUES takes no"),
        ("INSERT INTO s.t (id) VALUES ((SELECT id FROM s.t))", "more than one row"),
    ] {
        let (kind, message) = w.refused(sql).await;
        assert!(message.contains(part), "{sql}: {message}");
        assert_ne!(kind, ErrorKind::Internal, "{sql}: {message}");
    }
}

#[tokio::test]
async fn required_parts_of_structs_and_lists_are_written() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, st STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<a: INT>>)")
        .await;
    let w = w
        .altered(|metadata| {
            let fields = &mut metadata["schemas"][0]["fields"];
            fields[1]["type"]["fields"][0]["required"] = true.into();
            fields[2]["type"]["element-required"] = true.into();
            fields[2]["type"]["element"]["fields"][0]["required"] = true.into();
        })
        .await;
    w.run("INSERT INTO s.t VALUES (1, named_struct('a', 1, 'b', 'x'), [named_struct('a', 2)]), (2, NULL, NULL), (3, named_struct('b', NULL, 'a', 3), [])")
        .await;
    w.run("INSERT INTO s.t SELECT id + 10, named_struct('a', id, 'b', 'y'), [named_struct('a', id)] FROM s.t WHERE id = 1")
        .await;
    w.run("INSERT INTO s.t SELECT id + 100, st, l FROM s.t").await;
    assert_eq!(
        w.rows("SELECT id, st['a'], st['b'], l[1]['a'] FROM s.t WHERE id < 100 ORDER BY id")
            .await[1..],
        ["1|1|x|2", "2|NULL|NULL|NULL", "3|3|NULL|NULL", "11|1|y|1"]
    );
    for (value, column) in [
        ("named_struct('a', NULL, 'b', 'x'), NULL", "st.a"),
        ("NULL, [NULL]", "l.element"),
        ("NULL, [named_struct('a', CAST(NULL AS INT))]", "l.element.a"),
    ] {
        let (kind, message) = w.refused(&format!("INSERT INTO s.t VALUES (1, {value})")).await;
        assert_eq!(kind, ErrorKind::InvalidInput, "{message}");
        assert!(
            message.contains("a required column is null") && message.contains(column),
            "{message}"
        );
    }
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], "8");
}

#[tokio::test]
async fn uuids_are_written_as_text_wherever_they_lie() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT, u UUID, st STRUCT<u: UUID, n: INT>, l ARRAY<UUID>, m MAP<STRING, UUID>, f STRUCT<x: FIXED(16)>)")
        .await;
    let text = "'f79c3e09-677c-4bbd-a479-3f349cb785e7'";
    w.run(&format!(
        "INSERT INTO s.t VALUES (1, CAST({text} AS UUID), named_struct('n', 1, 'u', {text}), [{text}, NULL], map(['a'], [{text}]), NULL), \
         (2, {text}, ROW({text}, 2), [CAST({text} AS UUID)], NULL, ROW(X'f79c3e09677c4bbda4793f349cb785e7')), \
         (9, NULL, named_struct('u', CAST({text} AS UUID), 'n', 9), [NULL], NULL, NULL)"
    ))
    .await;
    w.run(&format!(
        "INSERT INTO s.t (id, u, st) SELECT 3, CAST(s AS UUID), ROW(CAST(s AS UUID), 3) FROM (SELECT {text} AS s)"
    ))
    .await;
    let uuid = "f79c3e09677c4bbda4793f349cb785e7";
    assert_eq!(
        w.rows(&format!(
            "SELECT id, u, st['u'], st['n'], l[1], m['a'] FROM s.t WHERE u = UUID {text} ORDER BY id"
        ))
        .await[1..],
        [
            format!("1|{uuid}|{uuid}|1|{uuid}|{uuid}"),
            format!("2|{uuid}|{uuid}|2|{uuid}|NULL"),
            format!("3|{uuid}|{uuid}|3|NULL|NULL")
        ]
    );
    w.run(&format!(
        "CREATE TABLE s.u AS SELECT CAST({text} AS UUID) AS u, count(*) AS n FROM s.t GROUP BY CAST({text} AS UUID)"
    ))
    .await;
    assert_eq!(
        w.rows("SELECT data_type FROM information_schema.columns WHERE table_name = 'u' AND column_name = 'u'")
            .await[1],
        "uuid"
    );
    for (sql, part) in [
        ("INSERT INTO s.t (st) VALUES (ROW('x', 1))", "'x' is not a uuid"),
        (
            "INSERT INTO s.t (f) VALUES (ROW('f79c3e09-677c-4bbd-a479-3f349cb785e7'))",
            "write CAST",
        ),
        ("INSERT INTO s.t (u) VALUES (CAST('x' AS UUID))", "'x' is not a uuid"),
    ] {
        let (kind, message) = w.refused(sql).await;
        assert!(kind == ErrorKind::InvalidInput && message.contains(part), "{sql}: {message}");
    }
}

#[tokio::test]
async fn digits_of_moments_are_cut_off_alike_before_and_after_1970() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT, at TIMESTAMP, z TIMESTAMPTZ, l ARRAY<TIMESTAMP>)")
        .await;
    let before = "'1969-12-31 23:59:59.9999999'";
    for (id, at) in [
        format!("TIMESTAMP {before}"),
        before.to_owned(),
        format!("CAST({before} AS TIMESTAMP)"),
        format!("CAST(TIMESTAMP {before} AS TIMESTAMP)"),
        format!("arrow_cast({before}, 'Timestamp(Nanosecond, None)')"),
    ]
    .iter()
    .enumerate()
    {
        w.run(&format!("INSERT INTO s.t (id, at) VALUES ({id}, {at})")).await;
        w.run(&format!("INSERT INTO s.t (id, at) SELECT {id} + 10, {at}")).await;
    }
    assert_eq!(w.rows("SELECT DISTINCT at FROM s.t").await[1..], ["1969-12-31T23:59:59.999999"]);
    w.run("INSERT INTO s.t VALUES (20, TIMESTAMP '1970-01-01 00:00:00.0000019', TIMESTAMPTZ '1969-12-31 23:59:59.9999999Z', [TIMESTAMP '1969-12-31 23:59:59.9999989'])").await;
    w.run("INSERT INTO s.t SELECT 20, TIMESTAMP '1970-01-01 00:00:00.0000019', TIMESTAMPTZ '1969-12-31 23:59:59.9999999Z', [TIMESTAMP '1969-12-31 23:59:59.9999989']").await;
    assert_eq!(
        w.rows("SELECT at, z, l[1] FROM s.t WHERE id = 20").await[1..],
        vec!["1970-01-01T00:00:00.000001|1969-12-31T23:59:59.999999Z|1969-12-31T23:59:59.999998"; 2]
    );
    assert_eq!(
        w.rows("SELECT CAST(TIMESTAMP '1969-12-31 23:59:59.9999999' AS TIMESTAMP) < TIMESTAMP '1970-01-01 00:00:00'")
            .await[1],
        "true"
    );
}

#[tokio::test]
async fn a_table_of_a_query_has_microseconds_where_its_version_has_no_others() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    for version in [1, 2, 3] {
        w.run(&format!(
            "CREATE TABLE s.v{version} TBLPROPERTIES ('format-version' = '{version}') AS \
             SELECT now() AS a, [TIMESTAMP '1969-12-31 23:59:59.9999999'] AS l"
        ))
        .await;
        let unit = if version < 3 { "µs" } else { "ns" };
        assert_eq!(
            w.rows(&format!(
                "SELECT arrow_typeof(a), a > TIMESTAMPTZ '2020-01-01 00:00:00Z' FROM s.v{version}"
            ))
            .await[1],
            format!("Timestamp({unit}, \"UTC\")|true")
        );
    }
    assert_eq!(w.rows("SELECT l[1] FROM s.v2").await[1], "1969-12-31T23:59:59.999999");
}

#[tokio::test]
async fn digits_of_decimals_are_those_that_came_or_the_rows_are_refused() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (n DECIMAL(9, 2), wide DECIMAL(38, 20), l ARRAY<DECIMAL(9, 2)>)")
        .await;
    let name = ["s".to_owned(), "t".to_owned()];
    let append = async |column: &str, values: ArrayRef| {
        let batch = RecordBatch::try_from_iter([(column, values)]).unwrap();
        let rows = futures::stream::iter([Ok(batch)]).boxed();
        w.engine.append(&name, rows, &defaults(), None).await
    };
    let texts = |texts: Vec<&str>| Arc::new(StringArray::from(texts)) as ArrayRef;
    let doubles = |doubles: Vec<f64>| Arc::new(Float64Array::from(doubles)) as ArrayRef;
    let list = |values: ArrayRef| {
        let field = Arc::new(Field::new("item", values.data_type().clone(), true));
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([values.len()]), values, None)) as ArrayRef
    };
    append("n", texts(vec!["1.5", "-2.250", "0.03"])).await.unwrap();
    append("n", doubles(vec![1.1])).await.unwrap();
    append("wide", doubles(vec![0.7])).await.unwrap();
    append("l", list(texts(vec!["1.5"]))).await.unwrap();
    for (column, values) in [
        ("n", texts(vec!["1", "1.005"])),
        ("n", texts(vec!["12345678.1"])),
        ("n", doubles(vec![1.005])),
        ("n", doubles(vec![f64::NAN])),
        ("l", list(texts(vec!["1.005"]))),
    ] {
        let refused = append(column, values).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains(&format!("column: {column}")), "{refused}");
    }
    assert_eq!(
        w.rows("SELECT n FROM s.t WHERE n IS NOT NULL ORDER BY n").await[1..],
        ["-2.25", "0.03", "1.10", "1.50"]
    );
    assert_eq!(
        w.rows("SELECT wide FROM s.t WHERE wide IS NOT NULL").await[1],
        "0.70000000000000000000"
    );
    // bound doubles are rounded as written ones
    let values = RecordBatch::try_from_iter([("1", doubles(vec![1.005, -1.005, 0.7])), ("2", doubles(vec![0.1, 0.7, 1e-20]))]).unwrap();
    let with = With {
        parameters: Some(&values),
        commit_id: None,
    };
    w.run("CREATE TABLE s.u (n DECIMAL(9, 2), wide DECIMAL(38, 20))").await;
    w.engine.change("INSERT INTO s.u VALUES (?, ?)", &defaults(), with).await.unwrap();
    assert_eq!(
        w.rows("SELECT * FROM s.u ORDER BY n").await[1..],
        [
            "-1.01|0.70000000000000000000",
            "0.70|0.00000000000000000001",
            "1.01|0.10000000000000000000"
        ]
    );
}

#[tokio::test]
async fn maps_have_each_key_once() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (m MAP<STRING, BIGINT>)").await;
    let maps = |keys: [&str; 4]| {
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for pair in keys.chunks(2) {
            for key in pair {
                maps.keys().append_value(key);
                maps.values().append_value(1);
            }
            maps.append(true).unwrap();
        }
        let batch = RecordBatch::try_from_iter([("m", Arc::new(maps.finish()) as ArrayRef)]).unwrap();
        futures::stream::iter([Ok(batch)]).boxed()
    };
    let name = ["s".to_owned(), "t".to_owned()];
    w.engine.append(&name, maps(["a", "b", "b", "a"]), &defaults(), None).await.unwrap();
    let refused = w
        .engine
        .append(&name, maps(["a", "b", "c", "c"]), &defaults(), None)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(
        refused.to_string().contains("a map has a key twice (column: m, row: 1"),
        "{refused}"
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], "2");
}
