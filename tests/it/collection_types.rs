//! Tables of the collection for single questions: every type of version 3, variants, row lineage.

use serde_json::Value;

use crate::support::canonical::{Rows, sorted_lines};
use crate::support::cases;
use crate::support::read;

/// Rows exactly as stated, nothing refused.
#[test]
fn tables_with_every_type_are_read() {
    for name in [
        "duckdb_timestamptz_ns",
        "duckdb_uuid",
        "icebergjava_v3_defaults",
        "icebergjava_v3_geometry",
        "icebergjava_v3_nano",
        "icebergjava_v3_unknown",
        "impala_v3_all_types",
        "spark_v3_all_spark_types",
        "spark_v3_variant",
        "spark_v3_variant_nested",
        "spark_v3_variant_shredded",
    ] {
        let Some(case) = cases::iceberg_case(name) else { return };
        let read = read::query(&case, "SELECT * FROM t").unwrap_or_else(|e| panic!("{name}: {e:?}"));
        if let Some(difference) = case.difference(&read) {
            panic!("{name}: {difference}");
        }
    }
}

/// Impala's own test suite says what each row is; it does not read four of the types, and writes
/// timestamps its own way.
#[test]
fn variants_of_trino_are_read_as_published() {
    let Some(case) = cases::iceberg_case("impala_trino_variant") else {
        return;
    };
    let published = case.json["published"].as_array().unwrap();
    let query = "SELECT id, v FROM functional_parquet.trino_variant ORDER BY id";
    let entry = published.iter().find(|e| e["query"] == query).unwrap();
    let read = read::query(&case, "SELECT id, v FROM t ORDER BY id").unwrap();
    let expected = entry["rows"].as_array().unwrap();
    assert_eq!(read.rows.len(), expected.len());
    for (ours, theirs) in read.rows.iter().zip(expected) {
        let id = theirs[0].as_str().unwrap();
        assert_eq!(ours[0].to_string(), id);
        let own = match id {
            "58" => Some("\"12:33:54.123456\""),
            "59" => Some("\"2024-11-07T12:33:54.123456\""),
            "60" => Some("\"1957-11-07T12:33:54.123456789\""),
            _ => None,
        };
        let expected: Value = match (own, theirs[1].as_str().unwrap()) {
            (Some(own), _) => serde_json::from_str(own).unwrap(),
            (None, "NULL" | "\"<unsupported-type>\"") => continue,
            // the test suite escapes backslashes once more
            (None, text) => serde_json::from_str(&text.replace("\\\\", "\\")).unwrap(),
        };
        assert_eq!(ours[1], expected, "row {id}");
    }
}

#[test]
fn row_lineage_is_as_stated() {
    for name in [
        "spark35_v3_dv_partitioned",
        "spark_v3_compacted",
        "spark_v3_lineage_mor",
        "spark_v3_upgraded_lineage",
    ] {
        let Some(case) = cases::iceberg_case(name) else { return };
        let lineage = &case.json["row_lineage"];
        let sql = format!("{} FROM t", lineage["query"].as_str().unwrap());
        let read = read::query(&case, &sql).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let rows = lineage["rows"].as_array().unwrap();
        let rows: Vec<Vec<Value>> = rows.iter().map(|r| r.as_array().unwrap().clone()).collect();
        assert_eq!(sorted_lines(&read.rows), sorted_lines(&rows), "{name}");
        assert_eq!(read.sha256(), lineage["sha256"], "{name}");
    }
}

/// `_file_row_id` and its like are Impala's own columns, for what is stored alone.
#[test]
fn row_lineage_is_as_impala_published_it() {
    let Some(case) = cases::iceberg_case("impala_v3_row_lineage") else {
        return;
    };
    let mut asked = 0;
    for entry in case.json["published"].as_array().unwrap() {
        let query = entry["query"].as_str().unwrap();
        let words = ["_file_row_id", "_file_last", "system_version", "*"];
        if words.iter().any(|w| query.contains(w)) || !query.to_lowercase().starts_with("select") {
            continue;
        }
        let sql = query.replace("iceberg_v3_row_lineage", "t");
        let read: Rows = read::query(&case, &sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let rows = entry["rows"].as_array().unwrap();
        let rows: Vec<Vec<Value>> = rows.iter().map(|r| r.as_array().unwrap().clone()).collect();
        assert_eq!(sorted_lines(&read.as_text().rows), sorted_lines(&rows), "{sql}");
        asked += 1;
    }
    assert!(asked >= 2, "{asked} queries");
}

/// A row is known by its file and position, whatever wrote the table.
#[test]
fn every_row_of_every_case_has_a_place() {
    use sandur::error::ErrorKind;
    let sql = "SELECT count(*), count(DISTINCT concat(_file, '#', CAST(_pos AS string))), count(_spec_id), count(_partition), \
               count(_row_id), count(_last_updated_sequence_number) FROM t";
    for case in cases::iceberg() {
        let read = match read::query(&case, sql) {
            Err(e) if e.kind() == ErrorKind::Unsupported => continue,
            read => read.unwrap_or_else(|e| panic!("{}: {e:?}", case.name)),
        };
        let counts: Vec<i64> = read.rows[0].iter().map(|v| v.as_i64().unwrap()).collect();
        let [rows, places, specs, partitions, ids, numbers] = counts[..] else {
            panic!("six counts")
        };
        assert_eq!((places, specs), (rows, rows), "{}", case.name);
        assert!(partitions == 0 || partitions == rows, "{}", case.name);
        assert_eq!(ids, numbers, "{}", case.name);
        if case.json["format_version"].as_i64() < Some(3) {
            assert_eq!(ids, 0, "{}", case.name);
        }
    }
}

#[test]
fn parts_of_variants_are_taken_out() {
    let Some(case) = cases::iceberg_case("spark_v3_variant_shredded") else {
        return;
    };
    let sql = "SELECT variant_get(v, '$.name', 'string'), variant_get(v, '$.pos.x', 'double'), variant_get(v, '$[''pos''].y[1]', 'int'), \
               variant_get(v, '$.pos') FROM t WHERE variant_get(v, '$.name', 'string') = 'n1'";
    let rows = read::query(&case, sql).unwrap().rows;
    assert_eq!(
        rows,
        [serde_json::json!(["n1", 0.5, 2, "{\"x\":0.5,\"y\":[1,2]}"])
            .as_array()
            .unwrap()
            .clone()]
    );
    for wrong in [
        "SELECT variant_get(v, 'name') FROM t",
        "SELECT variant_get(v, '$.name', 'interval') FROM t",
        "SELECT variant_get(v, '$.name', 'int') FROM t",
        "SELECT variant_get('{', '$') FROM t",
    ] {
        assert!(read::query(&case, wrong).is_err(), "{wrong}");
    }
}
