//! Random predicates over random tables: with pruning on and with each kind off, the rows are
//! those of the plain model. Each kind skips something often, and one that judges wrongly by one
//! is noticed.

pub(crate) mod dice;
pub(crate) mod predicates;
pub(crate) mod tables;
pub(crate) mod transforms;
mod values;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sandur::scan::ScanCounters;
use sandur::table::{Pruning, PruningKind};
use serde_json::Value;

use crate::support::builder::{Schema, TestTable};
use crate::support::read::Reader;
use dice::Dice;
use predicates::Predicate;

/// Tables, and predicates for each.
const TABLES: u64 = 200;
const PREDICATES: usize = 50;
/// Checks in which each kind must have skipped something.
const SKIPPING: u64 = 500;

const KINDS: [PruningKind; 7] = [
    PruningKind::Manifests,
    PruningKind::Partitions,
    PruningKind::Metrics,
    PruningKind::RowGroups,
    PruningKind::Pages,
    PruningKind::Bloom,
    PruningKind::Residuals,
];

fn without(kind: PruningKind) -> Pruning {
    let mut pruning = Pruning::default();
    let switch = match kind {
        PruningKind::Manifests => &mut pruning.manifests,
        PruningKind::Partitions => &mut pruning.partitions,
        PruningKind::Metrics => &mut pruning.metrics,
        PruningKind::RowGroups => &mut pruning.row_groups,
        PruningKind::Pages => &mut pruning.pages,
        PruningKind::Bloom => &mut pruning.bloom,
        PruningKind::Residuals => &mut pruning.residuals,
    };
    *switch = false;
    pruning
}

/// What each kind skipped so far, in the order of [`KINDS`].
fn skipped(counters: &ScanCounters) -> [u64; 7] {
    [
        counters.manifests_skipped(),
        counters.files_skipped_by_partition(),
        counters.files_skipped_by_metrics(),
        counters.row_groups_skipped_by_statistics(),
        counters.rows_skipped_by_pages(),
        counters.row_groups_skipped_by_bloom(),
        counters.filters_proved(),
    ]
}

/// A table with its model's rows and the predicates that are asked.
struct Question {
    table: TestTable,
    schema: Schema,
    rows: Vec<Vec<Value>>,
    dice: Dice,
}

impl Question {
    fn new(seed: u64) -> Self {
        let table = tables::table(seed);
        let (schema, rows) = (table.schema().clone(), table.rows());
        Self {
            table,
            schema,
            rows,
            dice: Dice::new(seed ^ 0xabcd),
        }
    }

    /// The next predicate as SQL, and the ids that it lets through.
    fn next(&mut self) -> (String, Vec<i64>) {
        let predicate = Predicate::random(&mut self.dice, &self.schema, &self.rows, 2);
        let matching = self.rows.iter().filter(|row| predicate.eval(&self.schema, row) == Some(true));
        let mut ids: Vec<i64> = matching.map(|row| row[0].as_i64().unwrap()).collect();
        ids.sort_unstable();
        (format!("SELECT id FROM t WHERE {}", predicate.sql(&self.schema)), ids)
    }
}

fn ids(reader: &Reader, sql: &str) -> Vec<i64> {
    let got = reader.query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut ids: Vec<i64> = got.rows.iter().map(|row| row[0].as_i64().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn pruned_scans_give_the_rows_of_the_model() {
    let (next, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let skipping: Mutex<BTreeMap<usize, u64>> = Mutex::default();
    let check = |seed: u64| {
        let mut question = Question::new(seed);
        let on = Reader::pruning(&question.table, Pruning::default()).unwrap();
        let off: Vec<Reader> = KINDS
            .iter()
            .map(|kind| Reader::pruning(&question.table, without(*kind)).unwrap())
            .collect();
        for round in 0..PREDICATES {
            let (sql, expected) = question.next();
            let mut skips = [false; 7];
            for (reader, how) in [(&on, "on"), (&off[round % off.len()], "one kind off")] {
                let before = skipped(reader.counters());
                let got = ids(reader, &sql);
                for (skip, (before, after)) in skips.iter_mut().zip(before.iter().zip(skipped(reader.counters()))) {
                    *skip |= after > *before;
                }
                if got != expected {
                    let off = (how != "on").then(|| KINDS[round % KINDS.len()]);
                    wrong
                        .lock()
                        .unwrap()
                        .push(format!("table {seed}, pruning {how} {off:?}: {sql}\n  {got:?}\n  {expected:?}"));
                }
            }
            let mut skipping = skipping.lock().unwrap();
            for (kind, _) in skips.iter().enumerate().filter(|(_, skip)| **skip) {
                *skipping.entry(kind).or_default() += 1;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= TABLES {
                        break;
                    }
                    check(seed);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let skipping = skipping.into_inner().unwrap();
    for (at, kind) in KINDS.iter().enumerate() {
        let times = skipping.get(&at).copied().unwrap_or(0);
        println!("{kind:?} skipped something in {times} of {} checks", TABLES * PREDICATES as u64);
        assert!(times >= SKIPPING, "{kind:?} skipped something in {times} checks only");
    }
}

/// Pruning that is wrong by one in one kind gives other rows than the model within these tables.
#[cfg(feature = "testing")]
#[test]
fn a_kind_that_judges_wrongly_by_one_is_noticed() {
    for kind in KINDS {
        let planted = Pruning {
            planted: Some(kind),
            ..Pruning::default()
        };
        let noticed = (0..TABLES).any(|seed| {
            let mut question = Question::new(seed);
            let reader = Reader::pruning(&question.table, planted).unwrap();
            (0..PREDICATES).any(|_| {
                let (sql, expected) = question.next();
                ids(&reader, &sql) != expected
            })
        });
        assert!(noticed, "{kind:?} off by one changes no answer");
    }
}
