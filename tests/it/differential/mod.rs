//! Random predicates over random tables: the server's rows are those of the plain model.

mod dice;
mod predicates;
mod tables;
mod transforms;
mod values;

use serde_json::Value;

use crate::support::read;
use dice::Dice;
use predicates::Predicate;

/// Tables, and predicates for each.
const TABLES: u64 = 40;
const PREDICATES: usize = 10;

#[test]
fn pruned_scans_give_the_rows_of_the_model() {
    let mut wrong = Vec::new();
    for seed in 0..TABLES {
        let table = tables::table(seed);
        let (schema, rows) = (table.schema().clone(), table.rows());
        let reader = read::Reader::open(&table).unwrap();
        let mut dice = Dice::new(seed ^ 0xabcd);
        for _ in 0..PREDICATES {
            let predicate = Predicate::random(&mut dice, &schema, &rows, 2);
            let mut expected: Vec<i64> = rows
                .iter()
                .filter(|row| predicate.eval(&schema, row) == Some(true))
                .map(|row| row[0].as_i64().unwrap())
                .collect();
            expected.sort_unstable();
            let sql = format!("SELECT id FROM t WHERE {}", predicate.sql(&schema));
            let got = match reader.query(&sql) {
                Ok(got) => got,
                Err(e) => panic!("seed {seed}: {sql}: {e:?}"),
            };
            let mut got: Vec<i64> = got.rows.iter().map(|row: &Vec<Value>| row[0].as_i64().unwrap()).collect();
            got.sort_unstable();
            if got != expected {
                wrong.push(format!("seed {seed}: {sql}\n  {got:?}\n  {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
