//! Old snapshots, branches and tags of every table of the collection, and what a plan pins of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandur::catalog::Catalogs;
use sandur::config::{CatalogConfig, Config};
use sandur::error::ErrorKind;
use sandur::io::Storage;
use sandur::scan::ScanContext;
use sandur::sql::{Defaults, Engine};
use serde_json::{Value, json};

use crate::sql_support::{collect, lines};
use crate::support::builder::{Commit, DataFile, DeletionVectors, Schema, TableBuilder, TestTable, Type, optional, required};
use crate::support::cases::{self, Case};
use crate::support::read;

/// What the collection says of one version: columns, rows, hash.
struct Expected {
    columns: Option<Vec<String>>,
    rows: u64,
    hash: Option<String>,
}

/// The answer to trust: the stated one, else that on which all engines agree that read the version.
fn expected(entry: &Value) -> Option<Expected> {
    let of = |value: &Value| {
        Some(Expected {
            columns: entry["columns"]
                .as_array()
                .map(|list| list.iter().map(|c| c.as_str().unwrap().to_owned()).collect()),
            rows: value["row_count"].as_u64()?,
            hash: value["sha256"].as_str().map(str::to_owned),
        })
    };
    if let Some(stated) = entry.get("expected") {
        return of(stated);
    }
    if entry["row_count"].is_u64() {
        return of(entry);
    }
    let engines = entry.as_object()?.values().filter(|v| v["ok"] == json!(true));
    let answers: Vec<&Value> = engines.collect();
    let first = answers.first()?;
    let agree = answers
        .iter()
        .all(|a| a["row_count"] == first["row_count"] && a["sha256"] == first["sha256"]);
    agree.then(|| of(first)).flatten()
}

/// Outcome of one version: `right`, or why not.
fn outcome(case: &Case, sql: &str, expected: &Expected) -> Result<&'static str, String> {
    let rows = match read::query(case, sql) {
        Ok(rows) => rows,
        Err(e) if e.kind() == ErrorKind::Unsupported => return Ok("refused as not built"),
        Err(e) if case.name == "icebergjava_fixed_partition" && e.kind() == ErrorKind::Corrupt => return Ok("refused for good"),
        Err(e) => return Err(format!("{}: {sql}: {e:?}", case.name)),
    };
    if expected.columns.as_ref().is_some_and(|columns| *columns != rows.columns) {
        return Err(format!(
            "{}: {sql}: columns {:?} instead of {:?}",
            case.name, rows.columns, expected.columns
        ));
    }
    if rows.rows.len() as u64 != expected.rows {
        return Err(format!(
            "{}: {sql}: {} rows instead of {}",
            case.name,
            rows.rows.len(),
            expected.rows
        ));
    }
    if expected.hash.as_ref().is_some_and(|hash| *hash != rows.sha256()) {
        return Err(format!("{}: {sql}: another hash of the rows", case.name));
    }
    Ok("right")
}

/// (time in milliseconds, snapshot id) of the snapshot log, as text; empty for compressed metadata.
fn snapshot_log(case: &Case) -> Vec<(i64, String)> {
    let text = case.metadata_file().and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
    let Ok(metadata) = serde_json::from_slice::<Value>(&text) else {
        return Vec::new();
    };
    let log = metadata["snapshot-log"].as_array().cloned().unwrap_or_default();
    log.iter()
        .map(|e| (e["timestamp-ms"].as_i64().unwrap(), e["snapshot-id"].to_string()))
        .collect()
}

#[test]
fn every_snapshot_branch_and_tag_of_every_case() {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut note = |outcome: Result<&'static str, String>| match outcome {
        Ok(what) => *outcomes.entry(what).or_default() += 1,
        Err(why) => wrong.push(why),
    };
    for case in cases::iceberg() {
        let log = snapshot_log(&case);
        for entry in case.json["time_travel"].as_array().into_iter().flatten() {
            let id = entry["snapshot_id"].as_str().expect("an id");
            // What is said of the table as it is was judged with more care than the engines' answers alone.
            let is_current = case.json["current_snapshot_id"] == json!(id) && entry.get("expected").is_none();
            let judged = is_current && matches!(case.status(), "rows" | "count");
            let entry = if judged { &case.json["expected"] } else { entry };
            let Some(expected) = expected(entry) else {
                note(Ok("the engines do not agree"));
                continue;
            };
            note(outcome(&case, &format!("SELECT * FROM t FOR VERSION AS OF {id}"), &expected));
            // The last of several log entries of one millisecond is current then.
            let made_current = log.iter().find(|(_, logged)| logged == id).map(|(at, _)| *at);
            let at = made_current.filter(|at| log.iter().rev().find(|(t, _)| t == at).is_some_and(|(_, logged)| logged == id));
            if let Some(at) = at {
                let time = format!("arrow_cast({at}, 'Timestamp(Millisecond, None)')");
                note(outcome(&case, &format!("SELECT * FROM t TIMESTAMP AS OF {time} x"), &expected));
            }
        }
        for (name, entry) in case.json["refs"].as_object().into_iter().flatten() {
            let kind = entry["type"].as_str().expect("a type");
            let expected = expected(entry).expect("refs are judged");
            note(outcome(&case, &format!("SELECT * FROM t.\"{kind}_{name}\""), &expected));
            note(outcome(&case, &format!("SELECT * FROM t VERSION AS OF '{name}'"), &expected));
        }
    }
    for (outcome, count) in &outcomes {
        println!("{count:5} {outcome}");
    }
    assert!(wrong.is_empty(), "{} versions:\n{}", wrong.len(), wrong.join("\n"));
}

async fn engine(path: &std::path::Path) -> Engine {
    use sandur::cache::Caches;
    use sandur::iceberg::TableLoader;
    use sandur::runtime::DecodePool;

    let (storage, caches) = (Arc::new(Storage::default()), Arc::new(Caches::new(8 << 20, 8 << 20)));
    let pool = Arc::new(DecodePool::new(2).unwrap());
    let loader = TableLoader::new(Arc::clone(&storage), Arc::clone(&caches), Arc::clone(&pool));
    let mut config = Config::default();
    let path = path.to_str().unwrap().to_owned();
    config.catalogs.insert("lake".to_owned(), CatalogConfig::Directory { path });
    let catalogs = Catalogs::from_config(&config, &storage, Arc::new(loader)).await.unwrap();
    Engine::new(&config, Arc::new(catalogs), Arc::new(ScanContext::new(caches, pool))).unwrap()
}

/// `id` 0 to 9; 5 of them deleted; a column `n` added and renamed; a branch without deletes.
fn table(path: &std::path::Path) -> (TestTable, i64) {
    let schema = Schema::new([required(1, "id", Type::Long), optional(2, "old", Type::Int)]);
    let mut table = TableBuilder::new(path, schema).format_version(3).create();
    let rows: Value = (0..10).map(|i| json!([i, i * 10])).collect();
    let first = table.append(DataFile::named("F").rows(rows));
    table.branch("dev");
    table.tag("first");
    table.delete_by_vectors(DeletionVectors::named("V").rows("F", 0..5));
    table.evolve(|s| s.rename("old", "new"));
    (table, first)
}

/// A ticket reads what was planned: the same snapshots with the same schemas, whatever happens to branches and time.
#[tokio::test]
async fn a_plan_pins_versions_and_their_schemas() {
    let dir = tempfile::tempdir().unwrap();
    let (mut table, first) = table(&dir.path().join("t"));
    let engine = engine(dir.path()).await;
    let statements = [
        (format!("SELECT count(*), max(old) FROM t VERSION AS OF {first}"), "10|90"),
        ("SELECT count(*), max(old) FROM t.tag_first".to_owned(), "10|90"),
        ("SELECT count(*), max(new) FROM t.branch_dev".to_owned(), "10|90"),
        ("SELECT count(*), max(new) FROM t VERSION AS OF 'dev'".to_owned(), "10|90"),
        ("SELECT count(*), max(old) FROM t TIMESTAMP AS OF now()".to_owned(), "5|90"),
        ("SELECT count(*), min(new) FROM t".to_owned(), "5|50"),
        (
            format!(
                "SELECT a.n, b.n, c.n FROM (SELECT count(*) n FROM t) a, (SELECT count(*) n FROM t VERSION AS OF {first}) b, (SELECT count(*) n FROM t.files) c"
            ),
            "5|10|2",
        ),
        (
            "SELECT count(*), max(record_count) FROM t.files FOR VERSION AS OF 'first'".to_owned(),
            "1|10",
        ),
    ];
    let mut planned = Vec::new();
    for (sql, answer) in &statements {
        let plan = engine
            .plan(sql, &Defaults::default())
            .await
            .unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        planned.push((sql, plan, answer));
    }
    let (_, last, _) = &planned[6];
    assert_eq!(last.statement.pins.len(), 3);
    table.evolve(|s| s.rename("new", "newest"));
    table.append(DataFile::named("G").rows(json!([[100, 1000]])));
    table.commit(Commit::new().on_branch("dev").data(DataFile::named("H").rows(json!([[200, 2000]]))));
    for (sql, plan, answer) in &planned {
        let got = collect(&engine, plan, None).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        assert_eq!(lines(&got)[1], **answer, "{sql}");
    }
    let fresh = engine
        .plan("SELECT count(*), max(newest) FROM t.branch_dev", &Defaults::default())
        .await
        .unwrap();
    assert_eq!(lines(&collect(&engine, &fresh, None).await.unwrap())[1], "11|2000");
}

/// Session options give tables without version one; versions in the statement and tables without versions do not mind.
#[tokio::test]
async fn a_session_reads_at_its_branch_or_time() {
    let dir = tempfile::tempdir().unwrap();
    let (_table, first) = table(&dir.path().join("t"));
    let engine = engine(dir.path()).await;
    let answer = async |sql: &str, branch: Option<&str>, as_of: Option<&str>| {
        let defaults = Defaults {
            branch: branch.map(str::to_owned),
            as_of: as_of.map(str::to_owned),
            ..Defaults::default()
        };
        let planned = engine.plan(sql, &defaults).await?;
        collect(&engine, &planned, None).await.map(|got| lines(&got)[1].clone())
    };
    let count = "SELECT count(*) FROM t";
    let id = first.to_string();
    assert_eq!(answer(count, None, None).await.unwrap(), "5");
    assert_eq!(answer(count, Some("dev"), None).await.unwrap(), "10");
    assert_eq!(answer(count, None, Some(&id)).await.unwrap(), "10");
    assert_eq!(answer(count, None, Some("2100-01-01")).await.unwrap(), "5");
    assert_eq!(answer("SELECT max(old) FROM t", None, Some(&id)).await.unwrap(), "90");
    assert_eq!(
        answer("SELECT count(*) FROM t VERSION AS OF 'main'", Some("dev"), None)
            .await
            .unwrap(),
        "5"
    );
    assert_eq!(answer("SELECT count(*) FROM t.files", Some("dev"), None).await.unwrap(), "1");
    assert_eq!(answer("SELECT count(*) FROM t.snapshots", Some("dev"), None).await.unwrap(), "2");
    assert_eq!(
        answer("SELECT count(*) FROM information_schema.schemata", Some("dev"), None)
            .await
            .unwrap(),
        "2"
    );
    assert_eq!(answer(count, Some("nope"), None).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        answer(count, None, Some("2001-01-01")).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        answer(count, Some("dev"), Some(&id)).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}
