//! Random rows under random transforms, metrics and sizes: each row lies in the partition that its values say,
//! and whatever readers skip by what the writer said of its files, the rows are those of the model.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sandur::iceberg::spec::{TableMetadata, UnboundPartitionField};
use sandur::table::Pruning;
use serde_json::Value;

use super::round_trip::{commit, empty_table};
use super::write;
use crate::differential::dice::Dice;
use crate::differential::predicates::Predicate;
use crate::differential::tables;
use crate::differential::transforms::Transform;
use crate::support::canonical::sorted_lines;
use crate::support::read::{Reader, Target, block_on};

const TABLES: u64 = 24;
const PREDICATES: usize = 15;

/// Small parts, so that there is something to skip, and any kind of metrics.
fn properties(dice: &mut Dice, column: &str) -> BTreeMap<String, String> {
    let metrics = *dice.pick(&["full", "truncate(16)", "truncate(1)", "truncate(2)", "counts", "none"]);
    let pairs = [
        ("write.parquet.row-group-size-bytes", "4096"),
        ("write.target-file-size-bytes", *dice.pick(&["8000", "1000000"])),
        ("write.parquet.page-row-limit", *dice.pick(&["5", "20000"])),
        ("write.parquet.dict-size-bytes", *dice.pick(&["1", "100", "100000"])),
        ("write.parquet.page-version", *dice.pick(&["v1", "v2"])),
        ("write.metadata.metrics.default", metrics),
        (
            "write.parquet.compression-codec",
            *dice.pick(&["zstd", "snappy", "gzip", "lz4_raw", "uncompressed"]),
        ),
    ];
    let mut all: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    all.insert(format!("write.parquet.bloom-filter-enabled.column.{column}"), "true".to_owned());
    all
}

/// A table of the seed's rows, written; what is wrong with it.
fn check(seed: u64) -> Result<(), String> {
    let source = tables::table(seed);
    let (schema, rows) = (source.schema().clone(), source.rows());
    let mut dice = Dice::new(seed ^ 0x77);
    let mut parts = Vec::new();
    for _ in 0..dice.below(3) {
        let column = dice.below(schema.fields.len());
        let transform = dice.pick(&Transform::of(&schema.fields[column].field_type)).clone();
        if parts.iter().all(|(known, _)| *known != column) {
            parts.push((column, transform));
        }
    }
    let metadata = std::fs::read(source.metadata_file()).unwrap();
    let metadata = TableMetadata::from_bytes(&metadata, "m.json").unwrap();
    let fields = parts.iter().map(|(column, transform)| UnboundPartitionField {
        source_id: schema.fields[*column].id,
        name: format!("p{column}"),
        transform: transform.spelled().parse().unwrap(),
    });
    let dir = tempfile::tempdir().unwrap();
    let column = dice.pick(&schema.fields).name.clone();
    let metadata = empty_table(&metadata, dir.path(), fields.collect(), properties(&mut dice, &column));
    let batches = Reader::open(&source).unwrap().batches("SELECT * FROM t").unwrap();
    let files = block_on(write(&metadata, &batches)).map_err(|e| e.to_string())?;
    if files.is_empty() {
        return if rows.is_empty() { Ok(()) } else { Err("no files".to_owned()) };
    }
    let target = Target {
        location: commit(metadata, &files),
        path_map: Vec::new(),
    };
    let reader = Reader::pruning(target, Pruning::default()).unwrap();
    let query = |sql: &str| reader.query(sql).map_err(|e| format!("{sql}: {e}"));
    if sorted_lines(&query("SELECT * FROM t")?.rows) != sorted_lines(&rows) {
        return Err("other rows than the model's".to_owned());
    }
    if parts.iter().any(|(_, transform)| *transform != Transform::Void) {
        let of_id: BTreeMap<i64, &Vec<Value>> = rows.iter().map(|row| (row[0].as_i64().unwrap(), row)).collect();
        for row in query("SELECT id, _partition FROM t")?.rows {
            let cells = of_id[&row[0].as_i64().unwrap()];
            for (column, transform) in &parts {
                let expected = transform.apply(&schema.fields[*column].field_type, &cells[*column]);
                let got = &row[1][format!("p{column}")];
                if *got != expected {
                    return Err(format!("{} of {} is {got}, not {expected}", transform.spelled(), cells[*column]));
                }
            }
        }
    }
    for _ in 0..PREDICATES {
        let predicate = Predicate::random(&mut dice, &schema, &rows, 2);
        let sql = format!("SELECT id FROM t WHERE {}", predicate.sql(&schema));
        let matching = rows.iter().filter(|row| predicate.eval(&schema, row) == Some(true));
        let mut expected: Vec<i64> = matching.map(|row| row[0].as_i64().unwrap()).collect();
        let mut got: Vec<i64> = query(&sql)?.rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
        expected.sort_unstable();
        got.sort_unstable();
        if got != expected {
            return Err(format!("{sql}: {got:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

#[test]
fn random_rows_are_found_where_the_writer_says() {
    let (next, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= TABLES {
                        break;
                    }
                    if let Err(what) = check(seed) {
                        wrong.lock().unwrap().push(format!("table {seed}: {what}"));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
