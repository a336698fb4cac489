//! Faults that other systems had when they wrote, each retold as a small case; `docs/known-faults.md` lists them.
//!
//! Tests that retell a report of `known-faults.md` name its number.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use futures::StreamExt;
use sandur::error::{ErrorKind, Result};
use sandur::sql::{Defaults, Done, Engine, With};
use sandur::write::commit::CommitStatus;
use serde_json::{Value, json};

use crate::sql_changes::{Warehouse, defaults, engine_over, walk};
use crate::sql_support::rows;
use crate::unreliable_catalog::{Fault, Unreliable};

/// Looks are short, so that what stays unknown does so soon.
const TABLE: &str = "CREATE TABLE s.t (id BIGINT, name STRING) \
    TBLPROPERTIES ('commit.status-check.min-wait-ms' = '1', 'commit.status-check.max-wait-ms' = '1')";

/// An engine over a catalog that loses answers, with an empty table `s.t`.
struct Unsure {
    folder: tempfile::TempDir,
    engine: Engine,
    catalog: Arc<Unreliable>,
}

impl Unsure {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (engine, catalog) = over(folder.path()).await;
        let new = Self { folder, engine, catalog };
        new.run("CREATE SCHEMA s").await.unwrap();
        new.run(TABLE).await.unwrap();
        new
    }

    async fn run(&self, sql: &str) -> Result<Done> {
        self.engine.change(sql, &defaults(), With::default()).await
    }

    async fn keyed(&self, sql: &str, key: &str) -> Result<Done> {
        let with = With {
            parameters: None,
            commit_id: Some(key),
        };
        self.engine.change(sql, &defaults(), with).await
    }

    async fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.engine, sql).await[1..].to_vec()
    }

    async fn ids(&self) -> Vec<String> {
        self.rows("SELECT id FROM s.t ORDER BY id").await
    }

    async fn snapshots(&self) -> String {
        self.rows("SELECT count(*) FROM s.t.snapshots").await.remove(0)
    }

    async fn status(&self, key: &str) -> CommitStatus {
        self.engine.commits().unwrap().status(key, None).await.unwrap()
    }
}

async fn over(folder: &Path) -> (Engine, Arc<Unreliable>) {
    let mut kept = None;
    let engine = engine_over(folder, |catalog| {
        let catalog = Arc::new(Unreliable::new(catalog));
        kept = Some(Arc::clone(&catalog));
        catalog
    })
    .await;
    (engine, kept.unwrap())
}

fn parquet_files(folder: &Path) -> usize {
    walk(folder).iter().filter(|file| file.ends_with(".parquet")).count()
}

/// B114, and B113 for the catalog: the answer to a swap that was applied is lost.
#[tokio::test]
async fn a_dropped_answer_does_not_double_an_append() {
    // Whether the catalog can say later what became of it, or only the table itself shows it.
    for mute in [false, true] {
        let w = Unsure::new().await;
        w.catalog.set_mute(mute);
        w.catalog.fault(Fault::AnswerLost);
        let done = w.run("INSERT INTO s.t VALUES (1, 'a'), (2, 'b')").await.unwrap();
        assert_eq!(done.rows, 2);
        assert_eq!(w.ids().await, ["1", "2"]);
        assert_eq!(
            w.rows("SELECT snapshot_id FROM s.t.snapshots").await,
            [done.snapshot_id.unwrap().to_string()]
        );
        assert_eq!(parquet_files(w.folder.path()), 1);
    }
}

#[tokio::test]
async fn an_append_that_never_arrived_is_sent_again_and_made_once() {
    let w = Unsure::new().await;
    for _ in 0..3 {
        w.catalog.fault(Fault::CallLost);
    }
    assert_eq!(w.run("INSERT INTO s.t VALUES (1, 'a')").await.unwrap().rows, 1);
    assert_eq!(w.ids().await, ["1"]);
    assert_eq!((w.snapshots().await.as_str(), parquet_files(w.folder.path())), ("1", 1));
}

#[tokio::test]
async fn an_append_whose_fate_is_not_known_is_neither_retried_nor_cleaned_up() {
    let w = Unsure::new().await;
    w.catalog.set_mute(true);
    w.catalog.fault(Fault::CallLost);
    let error = w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
    assert_eq!(w.status("one").await, CommitStatus::Unknown);
    assert_eq!(parquet_files(w.folder.path()), 1, "it may still be applied");
    // A commit on top could hide it.
    let error = w.run("INSERT INTO s.t VALUES (2, 'b')").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(w.ids().await.is_empty());
    w.catalog.come_back();
    w.run("INSERT INTO s.t VALUES (3, 'c')").await.unwrap();
    assert_eq!(w.status("one").await, CommitStatus::NotCommitted);
    w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one").await.unwrap();
    assert_eq!(w.ids().await, ["1", "3"]);
}

/// B114: the catalog takes the commit and is gone before it says so.
#[tokio::test]
async fn an_append_that_was_made_while_nobody_could_look_is_made_once() {
    for restarts in [false, true] {
        let mut w = Unsure::new().await;
        w.catalog.fault(Fault::AnswerLostAndGone);
        let error = w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
        w.catalog.come_back();
        if restarts {
            drop(w.engine);
            drop(w.catalog);
            (w.engine, w.catalog) = over(w.folder.path()).await;
        }
        // The client sends it again, as it was told to with a key.
        let again = w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one").await.unwrap();
        assert_eq!(
            w.status("one").await,
            CommitStatus::Committed {
                snapshot_id: again.snapshot_id
            }
        );
        w.run("INSERT INTO s.t VALUES (2, 'b')").await.unwrap();
        assert_eq!(w.ids().await, ["1", "2"]);
        assert_eq!(w.snapshots().await, "2");
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_during_a_commit_neither_loses_nor_doubles() {
    for (fault, found) in [(Fault::AnswerHangs, &["1", "2"][..]), (Fault::CallHangs, &["2"][..])] {
        let w = Unsure::new().await;
        w.catalog.fault(fault);
        tokio::select! {
            ended = w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one") => panic!("{ended:?}"),
            () = w.catalog.hangs.notified() => {}
        }
        w.run("INSERT INTO s.t VALUES (2, 'b')").await.unwrap();
        assert_eq!(w.ids().await, found, "{fault:?}");
        let is_made = matches!(w.status("one").await, CommitStatus::Committed { .. });
        assert_eq!(is_made, fault == Fault::AnswerHangs);
        w.keyed("INSERT INTO s.t VALUES (1, 'a')", "one").await.unwrap();
        assert_eq!(w.ids().await, ["1", "2"], "{fault:?}");
    }
}

#[tokio::test]
async fn a_creation_whose_answer_is_lost_makes_one_table() {
    for (sql, count) in [
        ("CREATE TABLE s.u (id BIGINT)", "0"),
        ("CREATE TABLE s.u AS SELECT 1 AS id UNION ALL SELECT 2", "2"),
    ] {
        for fault in [Fault::AnswerLost, Fault::CallLost] {
            let w = Unsure::new().await;
            w.catalog.fault(fault);
            let first = w.run(sql).await;
            if first.is_err() {
                // What did not arrive may be refused, and is then no table.
                assert_eq!(fault, Fault::CallLost);
                assert!(w.run("SELECT * FROM s.u").await.is_err());
                w.run(sql).await.unwrap();
            }
            assert_eq!(w.rows("SELECT count(*) FROM s.u").await, [count], "{sql} {fault:?}");
            w.run("INSERT INTO s.u VALUES (3)").await.unwrap();
            assert_eq!(
                w.run("CREATE TABLE s.u (id BIGINT)").await.unwrap_err().kind(),
                ErrorKind::AlreadyExists
            );
        }
        let w = Unsure::new().await;
        w.catalog.set_mute(true);
        w.catalog.fault(Fault::AnswerLost);
        let error = w.run(sql).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
        w.catalog.come_back();
        // It is there, and none of its files is gone.
        assert_eq!(w.rows("SELECT count(*) FROM s.u").await, [count], "{sql}");
        w.run("INSERT INTO s.u VALUES (3)").await.unwrap();
    }
}

#[tokio::test]
async fn what_became_of_a_table_that_is_gone_does_not_hold_up_the_next_one_of_its_name() {
    let w = Unsure::new().await;
    w.catalog.set_mute(true);
    w.catalog.fault(Fault::CallLost);
    let error = w.run("INSERT INTO s.t VALUES (1, 'a')").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
    w.catalog.come_back();
    w.run("DROP TABLE s.t").await.unwrap();
    w.run(TABLE).await.unwrap();
    w.run("INSERT INTO s.t VALUES (2, 'b')").await.unwrap();
    assert_eq!(w.ids().await, ["2"]);
}

/// B109: what a statement reads is what was committed before it.
#[tokio::test]
async fn a_table_inserted_into_itself_doubles_each_time() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, n BIGINT)").await;
    let mut values = String::new();
    for id in 0..1280 {
        let _ = write!(values, "{}({id}, 1)", if id == 0 { "" } else { ", " });
    }
    assert_eq!(w.run(&format!("INSERT INTO s.t VALUES {values}")).await.rows, 1280);
    for count in [2560, 5120, 10_240] {
        assert_eq!(w.run("INSERT INTO s.t SELECT * FROM s.t").await.rows, count / 2);
        assert_eq!(
            w.rows("SELECT count(*), sum(n), count(DISTINCT id) FROM s.t").await[1],
            format!("{count}|{count}|1280")
        );
    }
}

/// B128: a table without snapshot is written to, however its metadata says that there is none.
#[tokio::test]
async fn the_first_rows_of_a_table_without_snapshot_arrive() {
    for version in [1, 2, 3] {
        for form in [None, Some(Value::Null), Some(json!(-1))] {
            let w = Warehouse::new().await;
            w.run("CREATE SCHEMA s").await;
            w.run(&format!(
                "CREATE TABLE s.t (id BIGINT) TBLPROPERTIES ('format-version' = '{version}')"
            ))
            .await;
            let Warehouse { folder, engine } = w;
            drop(engine);
            let files = walk(folder.path());
            let file = files.iter().find(|file| file.ends_with(".metadata.json")).unwrap();
            let mut metadata: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            let fields = metadata.as_object_mut().unwrap();
            fields.remove("current-snapshot-id");
            if let Some(value) = &form {
                fields.insert("current-snapshot-id".to_owned(), value.clone());
            }
            std::fs::write(file, metadata.to_string()).unwrap();
            let engine = engine_over(folder.path(), |catalog| catalog).await;
            let w = Warehouse { folder, engine };
            assert_eq!(w.run("INSERT INTO s.t VALUES (7)").await.rows, 1);
            assert_eq!(w.run("INSERT INTO s.t SELECT id + 1 FROM s.t").await.rows, 1);
            assert_eq!(
                w.rows("SELECT id FROM s.t ORDER BY id").await[1..],
                ["7", "8"],
                "v{version} {form:?}"
            );
            assert_eq!(
                w.rows("SELECT count(*), count(parent_id) FROM s.t.snapshots").await[1],
                "2|1",
                "v{version} {form:?}"
            );
        }
    }
}

async fn append(w: &Warehouse, batches: Vec<RecordBatch>) -> Result<Done> {
    let name = ["s".to_owned(), "t".to_owned()];
    let batches = futures::stream::iter(batches.into_iter().map(Ok)).boxed();
    w.engine.append(&name, batches, &Defaults::default(), None).await
}

/// B130: no rows are no error and no snapshot, and a table of no rows has its columns.
#[tokio::test]
async fn no_rows_change_nothing() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, name STRING)").await;
    let ids = |ids: Vec<i64>| RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef)]).unwrap();
    for batches in [vec![], vec![ids(vec![])], vec![ids(vec![]), ids(vec![])]] {
        let done = append(&w, batches).await.unwrap();
        assert_eq!((done.rows, done.snapshot_id, done.data_files), (0, None, 0));
    }
    let done = w.run("INSERT INTO s.t SELECT * FROM s.t").await;
    assert_eq!((done.rows, done.snapshot_id), (0, None));
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "0");
    let done = append(&w, vec![ids(vec![]), ids(vec![1, 2]), ids(vec![])]).await.unwrap();
    assert_eq!((done.rows, done.data_files), (2, 1));
    assert_eq!(w.rows("SELECT id, name FROM s.t ORDER BY id").await[1..], ["1|NULL", "2|NULL"]);
    let done = w
        .run("CREATE TABLE s.u AS SELECT id, name, CAST(1.5 AS DECIMAL(5, 2)) AS d FROM s.t WHERE id > 9")
        .await;
    assert_eq!((done.rows, done.snapshot_id), (0, None));
    assert_eq!(w.rows("SELECT * FROM s.u").await, ["id|name|d"]);
    w.run("INSERT INTO s.u VALUES (1, 'x', 2.25)").await;
    assert_eq!(w.rows("SELECT * FROM s.u").await[1], "1|x|2.25");
}

/// B130: rows without columns are counted and not lost, as in `INSERT .. BY NAME` without any column.
#[tokio::test]
async fn rows_without_columns_are_rows() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, name STRING)").await;
    let options = RecordBatchOptions::new().with_row_count(Some(10));
    let bare = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    assert_eq!(append(&w, vec![bare.clone()]).await.unwrap().rows, 10);
    assert_eq!(w.rows("SELECT count(*), count(id) FROM s.t").await[1], "10|0");
    let ids = Schema::new(vec![Field::new("id", DataType::Int64, true)]);
    let empty = RecordBatch::new_empty(Arc::new(ids));
    assert_eq!(append(&w, vec![empty]).await.unwrap().rows, 0);
    w.run("DROP TABLE s.t").await;
    w.run("CREATE TABLE s.t (id BIGINT NOT NULL)").await;
    assert_eq!(append(&w, vec![bare]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
}
