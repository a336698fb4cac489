//! ALTER TABLE .. SET and UNSET TBLPROPERTIES, and the upgrade of a table's format by them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sandur::error::{ErrorKind, Result};
use sandur::sql::{Done, Engine, With};
use serde_json::{Value, json};

use crate::sql_changes::{Warehouse, defaults, engine_over, walk};
use crate::sql_support::rows;
use crate::unreliable_catalog::{Fault, Unreliable};

fn metadata_files(folder: &Path) -> Vec<PathBuf> {
    let files = walk(folder).into_iter().filter(|file| file.ends_with(".metadata.json"));
    let mut files: Vec<PathBuf> = files.map(PathBuf::from).collect();
    files.sort_by_key(|file| file.file_name().unwrap().to_owned());
    files
}

/// The metadata file of the highest number.
fn newest(folder: &Path) -> Value {
    let file = metadata_files(folder).pop().unwrap();
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

async fn warehouse(table: &str) -> Warehouse {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run(table).await;
    w
}

#[tokio::test]
async fn properties_are_set_and_unset() {
    let w = warehouse("CREATE TABLE s.t (id INT) TBLPROPERTIES ('old' = '1')").await;
    w.run("INSERT INTO s.t VALUES (1)").await;
    let done = w
        .run("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'it''s', plain.name = 7, 'write.delete.mode' = 'copy-on-write', 'old' = '2')")
        .await;
    assert_eq!((done.verb, done.rows, done.snapshot_id), ("ALTER TABLE", 0, None));
    let properties = |w: Value| w["properties"].clone();
    let now = properties(newest(w.folder.path()));
    for (name, value) in [
        ("a", "it's"),
        ("plain.name", "7"),
        ("write.delete.mode", "copy-on-write"),
        ("old", "2"),
    ] {
        assert_eq!(now[name], value, "{name}");
    }
    assert_eq!(now["write.update.mode"], "merge-on-read");
    assert_eq!(w.rows("SELECT value FROM s.t.properties WHERE key = 'a'").await[1], "it's");
    w.run("ALTER TABLE s.t UNSET TBLPROPERTIES (plain.name, 'old')").await;
    let now = newest(w.folder.path());
    assert!(
        now["properties"].get("old").is_none() && now["properties"].get("plain.name").is_none(),
        "{now}"
    );
    // A change of properties is no snapshot, and follows the file before.
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "1");
    let files = metadata_files(w.folder.path());
    let names = |at: usize| files[at].to_str().unwrap().to_owned();
    let log: Vec<&str> = now["metadata-log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["metadata-file"].as_str().unwrap())
        .collect();
    assert_eq!(log, [names(0), names(1), names(2)]);
    w.run("INSERT INTO s.t VALUES (2)").await;
    assert_eq!(w.rows("SELECT id FROM s.t ORDER BY id").await[1..], ["1", "2"]);
}

#[tokio::test]
async fn nothing_to_change_writes_nothing() {
    let w = warehouse("CREATE TABLE s.t (id INT) TBLPROPERTIES ('a' = '1')").await;
    for sql in [
        "ALTER TABLE s.t SET TBLPROPERTIES ('a' = '1', 'format-version' = '2')",
        "ALTER TABLE s.t UNSET TBLPROPERTIES IF EXISTS ('b', 'c')",
    ] {
        w.run(sql).await;
        assert_eq!(metadata_files(w.folder.path()).len(), 1, "{sql}");
    }
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_by_name() {
    let w = warehouse("CREATE TABLE s.t (id INT)").await;
    let set = |properties: &str| format!("ALTER TABLE s.t SET TBLPROPERTIES ({properties})");
    for (sql, kind, part) in [
        (set("'format-version' = '1'"), ErrorKind::InvalidInput, "cannot go back to 1"),
        (set("'format-version' = '0'"), ErrorKind::InvalidInput, "cannot go back to 0"),
        (set("'format-version' = '4'"), ErrorKind::Unsupported, "format version 4"),
        (set("'format-version' = 'three'"), ErrorKind::InvalidInput, "three"),
        (set("'uuid' = 'x'"), ErrorKind::InvalidInput, "uuid is reserved"),
        (
            set("'a' = '1', 'current-snapshot-id' = '1'"),
            ErrorKind::InvalidInput,
            "current-snapshot-id is reserved",
        ),
        (set("'' = '1'"), ErrorKind::InvalidInput, "needs a name"),
        (set("'a' = '1', 'a' = '2'"), ErrorKind::InvalidInput, "given twice"),
        (set("'write.metadata.compression-codec' = 'lzo'"), ErrorKind::InvalidInput, "lzo"),
        (
            set("'write.metadata.previous-versions-max' = 'x'"),
            ErrorKind::InvalidInput,
            "previous-versions-max",
        ),
        (
            "ALTER TABLE s.t UNSET TBLPROPERTIES ('nope')".to_owned(),
            ErrorKind::InvalidInput,
            "no property nope",
        ),
        (
            "ALTER TABLE s.t UNSET TBLPROPERTIES ('format-version')".to_owned(),
            ErrorKind::InvalidInput,
            "is reserved",
        ),
        (
            "ALTER TABLE s.nope SET TBLPROPERTIES ('a' = '1')".to_owned(),
            ErrorKind::NotFound,
            "nope",
        ),
        ("ALTER TABLE s.t SET TBLPROPERTIES ()".to_owned(), ErrorKind::InvalidInput, ")"),
        (
            "ALTER TABLE s.t SET TBLPROPERTIES ('a' = '1') nonsense".to_owned(),
            ErrorKind::InvalidInput,
            "nonsense",
        ),
        (
            "ALTER TABLE s.t ADD COLUMN b INT".to_owned(),
            ErrorKind::Unsupported,
            "ADD COLUMN is not built yet",
        ),
        (
            "ALTER TABLE s.t RENAME TO s.u".to_owned(),
            ErrorKind::Unsupported,
            "RENAME TO is not built yet",
        ),
        (
            "ALTER TABLE s.t SET PROPERTIES a = 1".to_owned(),
            ErrorKind::Unsupported,
            "SET PROPERTIES is not built yet",
        ),
        (
            "ALTER SCHEMA s SET DBPROPERTIES ('a' = '1')".to_owned(),
            ErrorKind::Unsupported,
            "ALTER takes TABLE",
        ),
    ] {
        let (found, message) = w.refused(&sql).await;
        assert!(found == kind && message.contains(part), "{sql}: {found:?} {message}");
    }
    assert_eq!(metadata_files(w.folder.path()).len(), 1);
}

#[tokio::test]
async fn a_table_is_upgraded_from_version_to_version() {
    let w = warehouse("CREATE TABLE s.t (id INT, day DATE) PARTITIONED BY (day) TBLPROPERTIES ('format-version' = '1')").await;
    w.run("INSERT INTO s.t VALUES (1, DATE '2020-01-01'), (2, DATE '2020-01-02')").await;
    let ids = async || w.rows("SELECT id, day FROM s.t ORDER BY id").await[1..].to_vec();
    let before = ids().await;
    w.run("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '2')").await;
    let now = newest(w.folder.path());
    assert_eq!((&now["format-version"], &now["last-sequence-number"]), (&json!(2), &json!(0)));
    assert_eq!(now["partition-specs"][0]["fields"][0]["field-id"], 1000);
    assert!(
        now["properties"].get("format-version").is_none() && now.get("schema").is_none(),
        "{now}"
    );
    assert_eq!(ids().await, before);
    w.run("INSERT INTO s.t VALUES (3, DATE '2020-01-01')").await;
    assert_eq!(newest(w.folder.path())["last-sequence-number"], 1);

    w.run("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3', 'a' = 'b')").await;
    let now = newest(w.folder.path());
    assert_eq!((&now["format-version"], &now["next-row-id"]), (&json!(3), &json!(0)));
    assert_eq!((&now["last-sequence-number"], &now["properties"]["a"]), (&json!(1), &json!("b")));
    let snapshots = now["snapshots"].as_array().unwrap();
    assert!(snapshots.len() == 2 && snapshots.iter().all(|snapshot| snapshot.get("first-row-id").is_none()));
    // No commit has given row ids yet.
    assert_eq!(w.rows("SELECT count(*), count(_row_id) FROM s.t").await[1], "3|0");
    w.run("INSERT INTO s.t VALUES (4, DATE '2020-01-03')").await;
    let now = newest(w.folder.path());
    assert_eq!((&now["next-row-id"], &now["last-sequence-number"]), (&json!(4), &json!(2)));
    let snapshot = now["snapshots"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&snapshot["first-row-id"], &snapshot["added-rows"]), (&json!(0), &json!(4)));
    assert_eq!(
        w.rows("SELECT count(*), count(_row_id), count(DISTINCT _row_id), min(_row_id), max(_row_id) FROM s.t")
            .await[1],
        "4|4|4|0|3"
    );
    // Rows of v1 have sequence number 0.
    assert_eq!(
        w.rows("SELECT id, _last_updated_sequence_number FROM s.t ORDER BY id").await[1..],
        ["1|0", "2|0", "3|1", "4|2"]
    );
    assert_eq!(
        w.refused("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '2')").await.0,
        ErrorKind::InvalidInput
    );
}

#[tokio::test]
async fn a_table_without_uuid_gets_one_with_the_upgrade() {
    let w = warehouse("CREATE TABLE s.t (id INT) TBLPROPERTIES ('format-version' = '1')").await;
    let file = metadata_files(w.folder.path()).pop().unwrap();
    let mut metadata = newest(w.folder.path());
    metadata.as_object_mut().unwrap().remove("table-uuid");
    drop(w.engine);
    std::fs::write(file, metadata.to_string()).unwrap();
    let engine = engine_over(w.folder.path(), |catalog| catalog).await;
    let run = async |sql: &str| engine.change(sql, &defaults(), With::default()).await.unwrap();
    run("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '3')").await;
    let now = newest(w.folder.path());
    assert!(
        now["table-uuid"].as_str().unwrap().parse::<uuid::Uuid>().is_ok() && now["format-version"] == 3,
        "{now}"
    );
    run("INSERT INTO s.t VALUES (7)").await;
    assert_eq!(rows(&engine, "SELECT id, _row_id FROM s.t").await[1], "7|0");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_to_can_be_taken_back() {
    let w = warehouse("CREATE TABLE s.t (id INT)").await;
    let outside = tempfile::tempdir().unwrap();
    let name = "write.metadata.path";
    w.run(&format!(
        "ALTER TABLE s.t SET TBLPROPERTIES ('{name}' = '{}')",
        outside.path().display()
    ))
    .await;
    assert_eq!(w.refused("INSERT INTO s.t VALUES (1)").await.0, ErrorKind::PermissionDenied);
    w.run(&format!("ALTER TABLE s.t UNSET TBLPROPERTIES ('{name}')")).await;
    w.run("INSERT INTO s.t VALUES (1)").await;
    assert_eq!(w.rows("SELECT id FROM s.t").await[1..], ["1"]);
}

#[tokio::test]
async fn changes_of_rows_and_of_properties_at_once_lose_nothing() {
    let w = Arc::new(warehouse("CREATE TABLE s.t (writer INT, n INT) TBLPROPERTIES ('format-version' = '1')").await);
    let writers = (0..4).map(|writer| {
        let w = Arc::clone(&w);
        tokio::spawn(async move {
            for n in 0..6 {
                match writer {
                    0 => w.run(&format!("ALTER TABLE s.t SET TBLPROPERTIES ('n{n}' = '{n}')")).await,
                    1 if n % 3 == 2 => {
                        w.run(&format!("ALTER TABLE s.t SET TBLPROPERTIES ('format-version' = '{}')", n / 3 + 2))
                            .await
                    }
                    _ => w.run(&format!("INSERT INTO s.t VALUES ({writer}, {n})")).await,
                };
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(
        w.rows("SELECT count(*), count(DISTINCT writer * 100 + n) FROM s.t").await[1],
        "16|16"
    );
    let now = newest(w.folder.path());
    assert_eq!(now["format-version"], 3);
    for n in 0..6 {
        assert_eq!(now["properties"][format!("n{n}")], n.to_string(), "{now}");
    }
}

/// Looks and waits are short.
const TABLE: &str = "CREATE TABLE s.t (id BIGINT) TBLPROPERTIES ('commit.status-check.min-wait-ms' = '1', \
    'commit.status-check.max-wait-ms' = '1', 'commit.retry.min-wait-ms' = '1', 'commit.retry.num-retries' = '2')";
const ALTER: &str = "ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'b', 'format-version' = '3')";

/// An engine over a catalog that loses answers, and another one over the same catalog that does not.
struct Unsure {
    folder: tempfile::TempDir,
    engine: Arc<Engine>,
    other: Engine,
    catalog: Arc<Unreliable>,
}

impl Unsure {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = None;
        let engine = engine_over(folder.path(), |catalog| {
            let unreliable = Arc::new(Unreliable::new(Arc::clone(&catalog)));
            kept = Some((catalog, Arc::clone(&unreliable)));
            unreliable
        });
        let engine = Arc::new(engine.await);
        let (inner, catalog) = kept.unwrap();
        let other = engine_over(folder.path(), |_| inner).await;
        for sql in ["CREATE SCHEMA s", TABLE] {
            engine.change(sql, &defaults(), With::default()).await.unwrap();
        }
        Self {
            folder,
            engine,
            other,
            catalog,
        }
    }

    async fn run(&self, sql: &str) -> Result<Done> {
        self.engine.change(sql, &defaults(), With::default()).await
    }

    /// Starts a statement; it is on its way to the catalog when this returns.
    async fn delayed(&self, sql: &'static str) -> tokio::task::JoinHandle<Result<Done>> {
        self.catalog.fault(Fault::Delayed);
        let engine = Arc::clone(&self.engine);
        let running = tokio::spawn(async move { engine.change(sql, &defaults(), With::default()).await });
        self.catalog.hangs.notified().await;
        running
    }

    fn newest(&self) -> Value {
        newest(self.folder.path())
    }

    /// That the table has all metadata files that are there, and no other.
    fn check_files(&self) {
        let now = self.newest();
        assert_eq!(
            metadata_files(self.folder.path()).len(),
            now["metadata-log"].as_array().unwrap().len() + 1
        );
    }
}

#[tokio::test]
async fn a_change_that_was_overtaken_is_made_on_top() {
    let w = Unsure::new().await;
    let running = w.delayed(ALTER).await;
    w.other
        .change("INSERT INTO s.t VALUES (1)", &defaults(), With::default())
        .await
        .unwrap();
    w.catalog.go_on.notify_one();
    running.await.unwrap().unwrap();
    let now = w.newest();
    assert_eq!(
        (
            &now["properties"]["a"],
            &now["format-version"],
            &now["snapshots"].as_array().unwrap().len()
        ),
        (&json!("b"), &json!(3), &1)
    );
    w.check_files();
    // An upgrade comes between the files of an INSERT and its commit.
    let running = w.delayed("INSERT INTO s.t VALUES (2)").await;
    w.other
        .change("ALTER TABLE s.t SET TBLPROPERTIES ('c' = 'd')", &defaults(), With::default())
        .await
        .unwrap();
    w.catalog.go_on.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(w.newest()["properties"]["c"], "d");
    assert_eq!(
        rows(&w.engine, "SELECT id, _row_id IS NULL FROM s.t ORDER BY id").await[1..],
        ["1|false", "2|false"]
    );
}

#[tokio::test]
async fn rows_that_were_written_for_an_older_version_are_taken() {
    let w = Unsure::new().await;
    let running = w.delayed("INSERT INTO s.t VALUES (1)").await;
    w.other.change(ALTER, &defaults(), With::default()).await.unwrap();
    w.catalog.go_on.notify_one();
    running.await.unwrap().unwrap();
    assert_eq!(w.newest()["format-version"], 3);
    assert_eq!(
        rows(&w.engine, "SELECT id, _row_id, _last_updated_sequence_number FROM s.t").await[1..],
        ["1|0|1"]
    );
}

#[tokio::test]
async fn a_change_that_is_overtaken_time_and_again_is_given_up_and_leaves_nothing() {
    let w = Unsure::new().await;
    let mut running = w.delayed(ALTER).await;
    for n in 0..3 {
        w.other
            .change(&format!("INSERT INTO s.t VALUES ({n})"), &defaults(), With::default())
            .await
            .unwrap();
        if n < 2 {
            w.catalog.fault(Fault::Delayed);
        }
        w.catalog.go_on.notify_one();
        tokio::select! {
            () = w.catalog.hangs.notified() => {}
            done = &mut running => {
                assert_eq!((done.unwrap().unwrap_err().kind(), n), (ErrorKind::CommitConflict, 2));
                break;
            }
        }
    }
    w.check_files();
    assert_eq!(w.newest()["format-version"], 2);
}

#[tokio::test]
async fn a_lost_answer_neither_loses_nor_doubles_a_change() {
    for mute in [false, true] {
        let w = Unsure::new().await;
        w.catalog.set_mute(mute);
        w.catalog.fault(Fault::AnswerLost);
        w.run(ALTER).await.unwrap();
        assert_eq!(
            (&w.newest()["properties"]["a"], metadata_files(w.folder.path()).len()),
            (&json!("b"), 2)
        );
    }
    let w = Unsure::new().await;
    w.catalog.fault(Fault::CallLost);
    w.run(ALTER).await.unwrap();
    assert_eq!(
        (&w.newest()["properties"]["a"], metadata_files(w.folder.path()).len()),
        (&json!("b"), 2)
    );
}

#[tokio::test]
async fn a_change_whose_fate_is_not_known_says_so_and_keeps_its_file() {
    let w = Unsure::new().await;
    w.catalog.set_mute(true);
    w.catalog.fault(Fault::CallLost);
    let error = w.run(ALTER).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
    assert_eq!(metadata_files(w.folder.path()).len(), 2, "it may still be applied");
    w.catalog.come_back();
    assert_eq!(rows(&w.engine, "SELECT count(*) FROM s.t.properties WHERE key = 'a'").await[1], "0");
    w.run(ALTER).await.unwrap();
    assert_eq!(rows(&w.engine, "SELECT count(*) FROM s.t.properties WHERE key = 'a'").await[1], "1");
    // Made, and then the catalog is gone: nobody can tell.
    w.catalog.fault(Fault::AnswerLostAndGone);
    let error = w.run("ALTER TABLE s.t SET TBLPROPERTIES ('a' = 'c')").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitStateUnknown, "{error}");
    assert!(w.catalog.is_gone.load(Ordering::SeqCst));
    w.catalog.come_back();
    assert_eq!(rows(&w.engine, "SELECT value FROM s.t.properties WHERE key = 'a'").await[1], "c");
    w.run("INSERT INTO s.t VALUES (1)").await.unwrap();
}
