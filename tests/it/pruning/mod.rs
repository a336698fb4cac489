//! Pruning never changes an answer, and it does skip what it can: every test asks with pruning on,
//! with each kind off and with all off, and looks at what was left out.
//!
//! Tests that retell a report of `known-faults.md` name its number.

mod inside;
mod metrics;
mod partitions;
mod residuals;
mod types;

use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use sandur::cache::Caches;
use sandur::iceberg::TableLoader;
use sandur::io::{FileKind, Storage};
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext};
use sandur::table::{AsOf, Pruning, Table, TableIdent, TableLocation};
use serde_json::Value;

use crate::support::builder::TestTable;
use crate::support::canonical::{Rows, sorted_lines};

/// What a query gave, and what was read for it.
struct Answer {
    lines: Vec<String>,
    scan: Arc<ScanContext>,
    storage: Arc<Storage>,
}

impl Answer {
    fn data_bytes(&self) -> u64 {
        self.storage.counters().bytes(FileKind::Data)
    }
}

/// One query with caches of its own.
async fn ask(table: &TestTable, at: &AsOf, sql: &str, pruning: Pruning, zone: Option<&str>) -> Answer {
    let storage = Arc::new(Storage::default());
    let caches = Arc::new(Caches::new(16 << 20, 16 << 20));
    let pool = Arc::new(DecodePool::new(2).unwrap());
    let scan = Arc::new(ScanContext::new(Arc::clone(&caches), Arc::clone(&pool)).with_pruning(pruning));
    let loader = TableLoader::new(Arc::clone(&storage), caches, pool);
    let location = TableLocation {
        root: table.dir().to_str().unwrap().to_owned(),
        metadata_file: None,
        path_map: table.path_map(),
        ..TableLocation::default()
    };
    let loaded = loader.newest(&TableIdent::new("c", "s", "t"), &location).await.unwrap();
    let snapshot = loaded.snapshot(at).await.unwrap();
    let mut config = SessionConfig::new().with_target_partitions(2);
    if let Some(zone) = zone {
        config = config.set_str("datafusion.execution.time_zone", zone);
    }
    let session = SessionContext::new_with_config(config);
    session
        .register_table("t", Arc::new(LakeTableProvider::new(snapshot, Arc::clone(&scan))))
        .unwrap();
    let frame = session.sql(sql).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let names = frame.schema().fields().iter().map(|f| f.name().clone()).collect();
    let batches = frame.collect().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    Answer {
        lines: sorted_lines(&Rows::from_batches(names, &batches).rows),
        scan,
        storage,
    }
}

/// Every way to switch pruning: all on first, all off last.
fn switches() -> Vec<Pruning> {
    let on = Pruning::default;
    let mut all = vec![on(); 8];
    all[1].manifests = false;
    all[2].partitions = false;
    all[3].metrics = false;
    all[4].row_groups = false;
    all[5].pages = false;
    all[6].bloom = false;
    all[7].residuals = false;
    all.push(Pruning::off());
    all
}

/// The rows of a query on snapshot `at` are these, however pruning is switched; gives what was read with all on.
#[track_caller]
fn answers_at(table: &TestTable, at: &AsOf, sql: &str, rows: &Value) -> Answer {
    let rows: Vec<Vec<Value>> = serde_json::from_value(rows.clone()).unwrap();
    let expected = sorted_lines(&rows);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers: Vec<(Pruning, Answer)> = switches()
        .into_iter()
        .map(|pruning| (pruning, runtime.block_on(ask(table, at, sql, pruning, None))))
        .collect();
    for (pruning, answer) in &answers {
        assert_eq!(answer.lines, expected, "{sql} with {pruning:?}");
        let counters = &answer.scan.counters;
        let skipped = [
            (pruning.manifests, counters.manifests_skipped()),
            (pruning.partitions, counters.files_skipped_by_partition()),
            (pruning.metrics, counters.files_skipped_by_metrics()),
            (pruning.row_groups || pruning.pages, counters.row_groups_skipped_by_statistics()),
            (pruning.pages, counters.pages_skipped() + counters.rows_skipped_by_pages()),
            (pruning.bloom, counters.row_groups_skipped_by_bloom()),
            (pruning.residuals, counters.filters_proved()),
        ];
        for (is_on, count) in skipped {
            assert!(is_on || count == 0, "{count} skipped by what is off: {pruning:?}");
        }
    }
    answers.into_iter().next().unwrap().1
}

/// [`answers_at`] the newest snapshot.
#[track_caller]
fn answers(table: &TestTable, sql: &str, rows: &Value) -> Answer {
    answers_at(table, &AsOf::Latest, sql, rows)
}

/// A query answers the same however pruning is switched, where what the engine makes of it is not the question.
#[track_caller]
fn unchanged(table: &TestTable, sql: &str) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let off = runtime.block_on(ask(table, &AsOf::Latest, sql, Pruning::off(), None));
    let rows: Value = off.lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    answers(table, sql, &rows)
}
