//! What a scan reads and keeps, counted: deleted row groups, warm caches, budgets, the decode pool.
//!
//! Each test has stores, caches and a pool of its own, so the counts are its own too.

use std::sync::Arc;
use std::time::Duration;

use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use sandur::cache::Caches;
use sandur::iceberg::TableLoader;
use sandur::io::{FileKind, Storage};
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext};
use sandur::table::{AsOf, Table, TableIdent, TableLocation};
use serde_json::json;

use crate::support::builder::{
    DataFile, DeletionVectors, EqualityDeletes, PositionDeletes, Schema, TableBuilder, TestTable, Type, required,
};

/// Stores, caches and pool of one test.
struct Reader {
    storage: Arc<Storage>,
    caches: Arc<Caches>,
    pool: Arc<DecodePool>,
    scan: Arc<ScanContext>,
}

impl Reader {
    fn new(metadata: u64, deletes: u64) -> Self {
        let storage = Arc::new(Storage::default());
        let caches = Arc::new(Caches::new(metadata, deletes));
        let pool = Arc::new(DecodePool::new(2).unwrap());
        let scan = Arc::new(ScanContext::new(Arc::clone(&caches), Arc::clone(&pool)));
        Self {
            storage,
            caches,
            pool,
            scan,
        }
    }

    /// A session in which the newest snapshot of the table is `t`.
    async fn session(&self, table: &TestTable) -> SessionContext {
        let loader = TableLoader::new(Arc::clone(&self.storage), Arc::clone(&self.caches), Arc::clone(&self.pool));
        let location = TableLocation {
            root: table.dir().to_str().unwrap().to_owned(),
            metadata_file: None,
            path_map: table.path_map(),
            ..TableLocation::default()
        };
        let loaded = loader.newest(&TableIdent::new("c", "s", "t"), &location).await.unwrap();
        let snapshot = loaded.snapshot(&AsOf::Latest).await.unwrap();
        let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        session
            .register_table("t", Arc::new(LakeTableProvider::new(snapshot, Arc::clone(&self.scan))))
            .unwrap();
        session
    }

    async fn count(&self, table: &TestTable, column: &str) -> usize {
        let session = self.session(table).await;
        let batches = session
            .sql(&format!("SELECT {column} FROM t"))
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        batches.iter().map(arrow::array::RecordBatch::num_rows).sum()
    }

    fn requests(&self, kinds: &[FileKind]) -> u64 {
        kinds.iter().map(|kind| self.storage.counters().requests(*kind)).sum()
    }
}

fn ids() -> Schema {
    Schema::new([required(1, "id", Type::Long)])
}

fn rows(count: i64) -> serde_json::Value {
    (0..count).map(|i| json!([i])).collect()
}

/// Three row groups of 100 rows; the vector removes the middle one and a row of the last.
fn middle_row_group_deleted() -> TestTable {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(rows(300)).row_group_rows(100));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", (100..200).chain([299])));
    table
}

#[tokio::test]
async fn a_row_group_whose_rows_are_all_deleted_is_never_fetched() {
    let table = middle_row_group_deleted();
    let reader = Reader::new(1 << 20, 1 << 20);
    assert_eq!(reader.count(&table, "id").await, 199);
    assert_eq!(reader.scan.counters.row_groups_all_deleted(), 1);
    assert_eq!(reader.scan.counters.row_groups_read(), 2);
    // One column chunk for each row group that was read.
    assert_eq!(reader.requests(&[FileKind::Data]), 2);
}

#[tokio::test]
async fn a_second_query_on_an_unchanged_table_reads_only_data() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(rows(100)));
    table.delete_positions(PositionDeletes::named("P").rows("F", [1, 2]));
    table.delete_keys(EqualityDeletes::named("E", [1]).rows(json!([[50]])));
    let kept = [FileKind::ManifestList, FileKind::Manifest, FileKind::Footer, FileKind::Delete];
    let reader = Reader::new(1 << 20, 1 << 20);
    assert_eq!(reader.count(&table, "id").await, 97);
    let (cold, data) = (reader.requests(&kept), reader.requests(&[FileKind::Data]));
    assert!(
        cold >= 6,
        "a list, two manifests, three footers and two delete files were read: {cold}"
    );
    assert_eq!(reader.count(&table, "id").await, 97);
    assert_eq!(reader.requests(&kept), cold);
    assert_eq!(reader.requests(&[FileKind::Data]), 2 * data);
}

#[tokio::test]
async fn a_second_query_reads_no_deletion_vector_again() {
    let table = middle_row_group_deleted();
    let reader = Reader::new(1 << 20, 1 << 20);
    assert_eq!(reader.count(&table, "id").await, 199);
    let cold = reader.requests(&[FileKind::Delete]);
    assert!(cold > 0);
    assert_eq!(reader.count(&table, "id").await, 199);
    assert_eq!(reader.requests(&[FileKind::Delete]), cold);
}

#[tokio::test]
async fn ten_times_as_many_tables_as_fit_leave_the_caches_within_their_budgets() {
    let table = |n: i64| {
        let mut table = TableBuilder::temp(ids()).format_version(3).create();
        table.append(DataFile::named("F").rows(rows(200)));
        table.delete_by_vectors(DeletionVectors::named("V").rows("F", (0..200).filter(|i| i % 2 == 0)));
        assert!(n >= 0);
        table
    };
    let first = table(0);
    let probe = Reader::new(1 << 24, 1 << 24);
    assert_eq!(probe.count(&first, "id").await, 100);
    let one = (probe.caches.metadata.bytes().await, probe.caches.deletes.bytes().await);
    assert!(one.0 > 0 && one.1 > 0);

    // Room for three tables, and thirty of them.
    let reader = Reader::new(3 * one.0, 3 * one.1);
    for n in 0..30 {
        assert_eq!(reader.count(&table(n), "id").await, 100);
        assert!(reader.caches.metadata.bytes().await <= reader.caches.metadata.budget());
        assert!(reader.caches.deletes.bytes().await <= reader.caches.deletes.budget());
    }
    assert_eq!(reader.count(&first, "id").await, 100);
}

#[tokio::test]
async fn decoding_runs_on_the_pool_and_a_dropped_stream_stops_it() {
    let mut table = TableBuilder::temp(ids()).create();
    table.append(DataFile::named("F").rows(rows(20_000)).row_group_rows(100));
    let reader = Reader::new(1 << 22, 1 << 20);
    assert_eq!(reader.count(&table, "id").await, 20_000);
    let whole = reader.scan.counters.units_decoded();
    assert!(whole >= 200, "a unit is at most a row group: {whole}");
    assert!(reader.pool.finished() >= whole);

    let session = reader.session(&table).await;
    let mut stream = session.sql("SELECT id FROM t").await.unwrap().execute_stream().await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.num_rows() > 0);
    drop(stream);
    let settled = async {
        loop {
            let before = (reader.scan.counters.row_groups_read(), reader.pool.finished());
            tokio::time::sleep(Duration::from_millis(200)).await;
            if before == (reader.scan.counters.row_groups_read(), reader.pool.finished()) {
                return before.0;
            }
        }
    };
    let read = settled.await;
    assert!(read < 400, "the second scan went on to its end: {read}");
}

async fn count_star(reader: &Reader, table: &TestTable) -> i64 {
    let session = reader.session(table).await;
    let batches = session.sql("SELECT count(*) FROM t").await.unwrap().collect().await.unwrap();
    let column = batches[0].column(0);
    arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(column).value(0)
}

#[tokio::test]
async fn rows_are_counted_from_record_counts_less_vector_cardinalities_without_opening_a_file() {
    let table = middle_row_group_deleted();
    let reader = Reader::new(1 << 20, 1 << 20);
    assert_eq!(count_star(&reader, &table).await, 199);
    assert_eq!(reader.requests(&[FileKind::Footer, FileKind::Data, FileKind::Delete]), 0);
}

/// B095: position deletes may overlap and equality deletes match what they match.
#[tokio::test]
async fn rows_under_position_or_equality_deletes_are_counted_by_reading() {
    let mut positions = TableBuilder::temp(ids()).create();
    positions.append(DataFile::named("F").rows(rows(10)));
    positions.delete_positions(PositionDeletes::named("P1").rows("F", [1, 2]));
    positions.delete_positions(PositionDeletes::named("P2").rows("F", [2, 3]));
    let mut keys = TableBuilder::temp(ids()).create();
    keys.append(DataFile::named("F").rows(rows(10)));
    keys.delete_keys(EqualityDeletes::named("E", [1]).rows(json!([[3], [4], [99]])));
    let reader = Reader::new(1 << 20, 1 << 20);
    assert_eq!(count_star(&reader, &positions).await, 7);
    assert_eq!(count_star(&reader, &keys).await, 8);
    assert!(reader.requests(&[FileKind::Delete]) > 0);
}

/// B097: bounds are of all rows of a file, also of deleted ones.
#[tokio::test]
async fn the_least_and_the_greatest_value_are_those_of_live_rows() {
    let mut table = TableBuilder::temp(ids()).format_version(3).create();
    table.append(DataFile::named("F").rows(rows(100)));
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", [0, 98, 99]));
    let reader = Reader::new(1 << 20, 1 << 20);
    let session = reader.session(&table).await;
    let frame = session.sql("SELECT min(id), max(id), count(*), count(id) FROM t").await.unwrap();
    let batches = frame.collect().await.unwrap();
    let found: Vec<i64> = (0..4)
        .map(|at| arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(batches[0].column(at)).value(0))
        .collect();
    assert_eq!(found, [1, 97, 97, 97]);
}

/// B108: a load that is given up leaves nothing in the caches that a later one would take for whole.
#[tokio::test(flavor = "multi_thread")]
async fn planning_that_was_given_up_leaves_no_half_filled_cache() {
    let mut table = TableBuilder::temp(ids()).create();
    for file in 0..20 {
        table.append(DataFile::named(&format!("F{file}")).rows(rows(5)));
    }
    for wait in (0..40).map(|n| Duration::from_micros(n * 150)) {
        let reader = Reader::new(1 << 22, 1 << 20);
        let _ = tokio::time::timeout(wait, reader.count(&table, "id")).await;
        assert_eq!(reader.count(&table, "id").await, 100, "given up after {wait:?}");
    }
}
