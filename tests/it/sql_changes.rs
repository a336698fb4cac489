//! CREATE, DROP and INSERT in a warehouse of a SQL catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray};
use futures::StreamExt;
use sandur::cache::Caches;
use sandur::catalog::{Catalog, Catalogs};
use sandur::config::Config;
use sandur::error::ErrorKind;
use sandur::iceberg::TableLoader;
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::ScanContext;
use sandur::sql::{Defaults, Done, Engine, With, Writing};
use sandur::write::commit::{CommitStatus, Commits};

use crate::sql_support::{query, rows};

/// A server's engine over an empty warehouse.
pub struct Warehouse {
    pub folder: tempfile::TempDir,
    pub engine: Engine,
}

impl Warehouse {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine_at(folder.path()).await;
        Self { folder, engine }
    }

    pub async fn run(&self, sql: &str) -> Done {
        match self.engine.change(sql, &defaults(), With::default()).await {
            Ok(done) => done,
            Err(e) => panic!("{sql}: {e}"),
        }
    }

    pub async fn refused(&self, sql: &str) -> (ErrorKind, String) {
        match self.engine.change(sql, &defaults(), With::default()).await {
            Ok(done) => panic!("{sql}: {done:?}"),
            Err(e) => (e.kind(), e.to_string()),
        }
    }

    pub async fn rows(&self, sql: &str) -> Vec<String> {
        rows(&self.engine, sql).await
    }

    /// The server ends; the newest metadata file of `s.t` is changed by hand; it starts again.
    pub async fn altered(self, change: impl FnOnce(&mut serde_json::Value)) -> Self {
        let Self { folder, engine } = self;
        drop(engine);
        let mut files: Vec<_> = walk(&folder.path().join("ice/s/t")).into_iter().collect();
        files.retain(|file| file.ends_with(".metadata.json"));
        files.sort();
        let file = files.last().unwrap();
        let mut metadata = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        change(&mut metadata);
        std::fs::write(file, metadata.to_string()).unwrap();
        let engine = engine_at(folder.path()).await;
        Self { folder, engine }
    }

    pub fn parquet_files(&self) -> usize {
        walk(self.folder.path()).iter().filter(|file| file.ends_with(".parquet")).count()
    }
}

pub fn defaults() -> Defaults {
    Defaults::default()
}

async fn engine_at(folder: &std::path::Path) -> Engine {
    engine_over(folder, |catalog| catalog).await
}

/// The same with something between the engine and the catalog.
pub async fn engine_over(folder: &std::path::Path, between: impl FnOnce(Arc<dyn Catalog>) -> Arc<dyn Catalog>) -> Engine {
    let text = format!(
        "[catalog.ice]\ntype = 'sql'\nuri = 'sqlite:{0}/catalog.db'\nwarehouse = '{0}/ice'\n",
        folder.display()
    );
    let config = Config::parse(Some(("test", &text)), []).unwrap();
    let storage = Arc::new(Storage::default());
    let caches = Arc::new(Caches::new(64 << 20, 64 << 20));
    let pool = Arc::new(DecodePool::new(2).unwrap());
    let loader = TableLoader::new(Arc::clone(&storage), Arc::clone(&caches), Arc::clone(&pool));
    let catalogs = Catalogs::from_config(&config, &storage, Arc::new(loader)).await.unwrap();
    let catalog = between(Arc::clone(catalogs.iter().next().unwrap()));
    let catalogs = Arc::new(Catalogs::new(vec![catalog]));
    let context = Arc::new(ScanContext::new(caches, Arc::clone(&pool)));
    let writing = Writing {
        commits: Arc::new(Commits::new(Arc::clone(&catalogs), storage)),
        pool,
        scan: Arc::clone(&context),
    };
    Engine::with_writing(&config, catalogs, context, Some(writing)).unwrap()
}

#[tokio::test]
async fn a_table_is_made_filled_and_dropped() {
    let w = Warehouse::new().await;
    assert_eq!(w.run("CREATE SCHEMA s").await.verb, "CREATE SCHEMA");
    w.run("CREATE SCHEMA IF NOT EXISTS s").await;
    assert_eq!(w.refused("CREATE SCHEMA s").await.0, ErrorKind::AlreadyExists);
    w.run("CREATE TABLE s.t (id BIGINT NOT NULL COMMENT 'key', name STRING, price DECIMAL(10, 2)) USING iceberg")
        .await;
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], "0");
    let done = w.run("INSERT INTO s.t VALUES (1, 'a', 1.005), (2, NULL, -2.5)").await;
    assert_eq!((done.verb, done.rows, done.data_files), ("INSERT", 2, 1));
    assert!(done.snapshot_id.is_some());
    let done = w.run("INSERT INTO s.t (price, id) SELECT 7, id + 10 FROM s.t").await;
    assert_eq!(done.rows, 2);
    assert_eq!(
        w.rows("SELECT * FROM s.t ORDER BY id").await[1..],
        ["1|a|1.01", "2|NULL|-2.50", "11|NULL|7.00", "12|NULL|7.00"]
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "2");
    let done = w.run("INSERT INTO s.t SELECT * FROM s.t WHERE false").await;
    assert_eq!((done.rows, done.snapshot_id), (0, None));
    w.run("INSERT INTO s.t BY NAME SELECT 'z' AS NAME, 99 AS id").await;
    assert_eq!(w.rows("SELECT name, price FROM s.t WHERE id = 99").await[1], "z|NULL");
    assert_eq!(w.refused("DROP SCHEMA s").await.0, ErrorKind::InvalidInput);
    assert_eq!(w.run("DROP TABLE s.t").await.verb, "DROP TABLE");
    assert_eq!(w.refused("DROP TABLE s.t").await.0, ErrorKind::NotFound);
    w.run("DROP TABLE IF EXISTS s.t").await;
    w.run("DROP SCHEMA S").await;
    w.run("DROP SCHEMA IF EXISTS s").await;
}

#[tokio::test]
async fn a_table_is_made_of_a_query() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    let done = w
        .run("CREATE TABLE s.t USING iceberg PARTITIONED BY (bucket(4, id), day(at)) TBLPROPERTIES ('format-version' = '3') AS SELECT column1 AS id, column2 AS at FROM (VALUES (1, TIMESTAMP '1969-12-31 23:00:00'), (2, TIMESTAMP '2024-02-29 01:02:03.000004'))")
        .await;
    assert_eq!((done.verb, done.rows), ("CREATE TABLE AS", 2));
    assert_eq!(
        w.rows("SELECT id, at FROM s.t ORDER BY id").await[1..],
        ["1|1969-12-31T23:00:00", "2|2024-02-29T01:02:03.000004"]
    );
    assert_eq!(
        w.rows("SELECT id FROM s.t WHERE at < TIMESTAMP '1970-01-01 00:00:00'").await[1..],
        ["1"]
    );
    assert_eq!(w.refused("CREATE TABLE s.t AS SELECT 1 AS a").await.0, ErrorKind::AlreadyExists);
    w.run("CREATE TABLE IF NOT EXISTS s.t AS SELECT 1 AS a").await;
    assert_eq!(w.refused("CREATE TABLE s.u AS SELECT 1 / 0 AS a").await.0, ErrorKind::InvalidInput);
    assert_eq!(w.refused("SELECT 1").await.0, ErrorKind::InvalidInput);
    assert_eq!(w.rows("SHOW TABLES FROM s").await.len(), 2);
    // nothing of the table that failed is left, its folder neither
    w.refused("CREATE TABLE s.v PARTITIONED BY (a) AS SELECT a, 1 / (2 - a) AS b FROM (VALUES (1), (2)) AS v (a)")
        .await;
    let left: Vec<_> = std::fs::read_dir(w.folder.path().join("ice/s")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    w.run("CREATE SCHEMA other").await;
    w.refused("CREATE TABLE other.u AS SELECT 1 / 0 AS a").await;
    assert!(!w.folder.path().join("ice/other").exists());
    let own = w.folder.path().join("ice/own");
    std::fs::create_dir(&own).unwrap();
    w.refused(&format!("CREATE TABLE other.u LOCATION '{}' AS SELECT 1 / 0 AS a", own.display()))
        .await;
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0, "what was there before stays");
}

pub fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path().display().to_string()),
            }
        }
    }
    files
}

#[tokio::test]
async fn every_type_comes_back() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run(
        "CREATE TABLE s.t (b BOOLEAN, i INT, l BIGINT, f REAL, d DOUBLE, n DECIMAL(38, 10), dt DATE, tm TIME, ts TIMESTAMP, tz TIMESTAMPTZ, \
         s STRING, u UUID, x FIXED(3), y BINARY, st STRUCT<a: INT, b: STRING>, ar ARRAY<INT>, m MAP<STRING, INT>) TBLPROPERTIES ('format-version' = 2)",
    )
    .await;
    w.run(
        "INSERT INTO s.t VALUES (true, -1, 9223372036854775807, 1.5, -0.25, 12345678901234567890.0123456789, DATE '1969-12-31', TIME '23:59:59.999999', \
         TIMESTAMP '0001-01-01 00:00:00', '2024-01-01T00:00:00Z', 'ä', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', X'0001ff', X'', \
         named_struct('a', 1, 'b', 'x'), [1, NULL, 3], map(['k'], [7])), \
         (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    .await;
    assert_eq!(
        w.rows("SELECT b, i, l, f, d, n, dt, tm, ts, tz, s, u, x, y FROM s.t WHERE i = -1")
            .await[1],
        "true|-1|9223372036854775807|1.5|-0.25|12345678901234567890.0123456789|1969-12-31|23:59:59.999999|0001-01-01T00:00:00|2024-01-01T00:00:00Z|ä|f79c3e09677c4bbda4793f349cb785e7|0001ff|"
    );
    assert_eq!(
        w.rows("SELECT st['b'], ar[3], m['k'] FROM s.t WHERE u = 'f79c3e09-677c-4bbd-a479-3f349cb785e7'")
            .await[1],
        "x|3|7"
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t WHERE b IS NULL AND st IS NULL").await[1], "1");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT NOT NULL, n DECIMAL(4, 2), k STRING)").await;
    for (sql, part) in [
        ("INSERT INTO s.t VALUES (1, 2)", "3 are wanted"),
        ("INSERT INTO s.t (id, id) VALUES (1, 2)", "twice"),
        ("INSERT INTO s.t (nope) VALUES (1)", "no column"),
        ("INSERT INTO s.t (n) VALUES (1)", "needs a value"),
        ("INSERT INTO s.t VALUES (NULL, 1, 'a')", "id"),
        ("INSERT INTO s.t VALUES (1.5, 1, 'a')", "CAST"),
        ("INSERT INTO s.t VALUES (3000000000, 1, 'a')", "3000000000"),
        ("INSERT INTO s.t VALUES (1, 123.45, 'a')", "123.45"),
        ("INSERT INTO s.nope VALUES (1)", "does not exist"),
        ("INSERT INTO s.t.branch_x VALUES (1, 1, 'a')", "no branch"),
        ("INSERT OVERWRITE s.t VALUES (1, 1, 'a')", "OVERWRITE"),
        ("CREATE TABLE s.x (a INT, A INT)", "two columns"),
        ("CREATE TABLE s.x (a NOPE)", "NOPE"),
        ("CREATE TABLE s.x (a DOUBLE) PARTITIONED BY (bucket(4, a))", "does not take"),
        ("CREATE TABLE s.x (a INT) USING delta", "delta"),
        ("CREATE TABLE s.x (a INT DEFAULT 5)", "format version 3"),
        (
            "CREATE TABLE s.x (a DECIMAL(5, 2) DEFAULT 1.005) TBLPROPERTIES ('format-version' = '3')",
            "DEFAULT 1.005 has more digits than a column of type decimal(5,2) keeps",
        ),
        ("CREATE TABLE s.x (a INT, PRIMARY KEY (a))", "NOT ENFORCED"),
        ("CREATE SCHEMA information_schema", "cannot be a schema's name"),
        ("CREATE SCHEMA IF NOT EXISTS ice.INFORMATION_SCHEMA", "cannot be a schema's name"),
        ("CREATE TABLE nope.x (a INT)", "CREATE SCHEMA"),
        ("CREATE VIEW s.v AS SELECT 1", "CREATE takes TABLE"),
        ("CREATE EXTERNAL TABLE e (a INT) STORED AS CSV LOCATION '/etc/passwd'", "EXTERNAL"),
    ] {
        let (_, message) = w.refused(sql).await;
        assert!(message.contains(part), "{sql}: {message}");
    }
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], "0");
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "0");
    let left = walk(&w.folder.path().join("ice"));
    assert!(!left.iter().any(|file| file.ends_with(".parquet")), "{left:?}");
}

#[tokio::test]
async fn a_location_is_the_catalogs_own_and_empty() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("t");
    let (kind, _) = w.refused(&format!("CREATE TABLE s.x (a INT) LOCATION '{}'", place.display())).await;
    assert_eq!(kind, ErrorKind::PermissionDenied);
    assert!(!place.exists());
    let inside = w.folder.path().join("ice/elsewhere");
    w.run(&format!("CREATE TABLE s.t (a INT) LOCATION '{}'", inside.display())).await;
    w.run("INSERT INTO s.t VALUES (1)").await;
    assert!(walk(&inside).iter().any(|file| file.ends_with(".parquet")));
    let (kind, _) = w
        .refused(&format!("CREATE TABLE s.u AS SELECT 1 AS a LOCATION '{}'", inside.display()))
        .await;
    assert_eq!(kind, ErrorKind::InvalidInput);
    let (kind, _) = w
        .refused(&format!("CREATE TABLE s.u LOCATION '{}' AS SELECT 1 AS a", inside.display()))
        .await;
    assert_eq!(kind, ErrorKind::InvalidInput);
    // its files stay when its name goes
    w.run("DROP TABLE s.t").await;
    let (kind, _) = w
        .refused(&format!("CREATE TABLE s.u LOCATION '{}' AS SELECT 1 AS a", inside.display()))
        .await;
    assert_eq!(kind, ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn a_location_is_not_shared_with_another_table() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (a INT)").await;
    let ice = w.folder.path().join("ice").display().to_string();
    for (place, kind) in [
        (format!("{ice}/s/t/data"), ErrorKind::InvalidInput),
        (format!("{ice}/s"), ErrorKind::InvalidInput),
        (ice.clone(), ErrorKind::InvalidInput),
        (w.folder.path().display().to_string(), ErrorKind::InvalidInput),
        ("not/absolute".to_owned(), ErrorKind::InvalidInput),
        (format!("{ice}/x/../../y"), ErrorKind::InvalidInput),
        ("/tmp/elsewhere".to_owned(), ErrorKind::PermissionDenied),
    ] {
        for property in ["write.data.path", "write.metadata.path", "write.object-storage.path"] {
            let (was, message) = w
                .refused(&format!("CREATE TABLE s.x (a INT) TBLPROPERTIES ('{property}' = '{place}')"))
                .await;
            assert!(was == kind && message.contains(property), "{place}: {message}");
        }
        let (was, message) = w.refused(&format!("CREATE TABLE s.x (a INT) LOCATION '{place}'")).await;
        assert_eq!(was, kind, "{place}: {message}");
    }
    w.run(&format!(
        "CREATE TABLE s.x TBLPROPERTIES ('write.data.path' = '{ice}/files/x') AS SELECT 1 AS a"
    ))
    .await;
    assert!(
        walk(&w.folder.path().join("ice/files/x"))
            .iter()
            .all(|file| file.ends_with(".parquet"))
    );
    w.run("INSERT INTO s.x VALUES (2)").await;
    assert_eq!(w.rows("SELECT a FROM s.x ORDER BY a").await[1..], ["1", "2"]);
    // a schema and a table of one name: their folders lie apart
    w.run("CREATE SCHEMA s.t").await;
    w.run("CREATE TABLE ice.\"s.t\".y (a INT)").await;
    w.run("INSERT INTO ice.\"s.t\".y VALUES (3)").await;
    assert!(!walk(&w.folder.path().join("ice/s/t")).iter().any(|file| file.ends_with(".parquet")));
}

#[tokio::test]
async fn columns_that_are_left_out_get_their_defaults() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run(
        "CREATE TABLE s.t (id INT, a INT DEFAULT 5, b STRING DEFAULT 'x', c DECIMAL(5, 2) DEFAULT 1.5000, d TIMESTAMP DEFAULT '2020-01-01 00:00:00', e DECIMAL(5, 2) DEFAULT '-1.5') \
         TBLPROPERTIES ('format-version' = '3')",
    )
    .await;
    w.run("INSERT INTO s.t (id) VALUES (1)").await;
    assert_eq!(w.rows("SELECT * FROM s.t").await[1], "1|5|x|1.50|2020-01-01T00:00:00|-1.50");
    assert_eq!(w.rows("SELECT _row_id, _last_updated_sequence_number FROM s.t").await[1], "0|1");
}

#[tokio::test]
async fn rows_of_a_stream_are_appended_once_for_a_key() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT, name STRING)").await;
    let batch = RecordBatch::try_from_iter([
        ("NAME", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        ("id", Arc::new(Int64Array::from(vec![1, 2]))),
    ])
    .unwrap();
    let name = ["s".to_owned(), "t".to_owned()];
    for _ in 0..2 {
        let rows = futures::stream::iter([Ok(batch.clone()), Ok(batch.clone())]).boxed();
        let done = w.engine.append(&name, rows, &defaults(), Some("key:one")).await.unwrap();
        assert_eq!(done.rows, 4);
    }
    assert_eq!(w.rows("SELECT count(*), sum(id), min(name) FROM s.t").await[1], "4|6|a");
    let status = w.engine.commits().unwrap().status("key:one", None).await.unwrap();
    assert!(matches!(status, CommitStatus::Committed { snapshot_id: Some(_) }), "{status:?}");
    let cut = RecordBatch::try_from_iter([("id", Arc::new(Float64Array::from(vec![1.5])) as ArrayRef)]).unwrap();
    let cut = futures::stream::iter([Ok(cut)]).boxed();
    assert_eq!(
        w.engine.append(&name, cut, &defaults(), None).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    w.run("CREATE TABLE s.at (at TIMESTAMP)").await;
    let nanos = |v| {
        let batch = RecordBatch::try_from_iter([("at", Arc::new(TimestampNanosecondArray::from(vec![v])) as ArrayRef)]).unwrap();
        futures::stream::iter([Ok(batch)]).boxed()
    };
    let moments = ["s".to_owned(), "at".to_owned()];
    assert_eq!(w.engine.append(&moments, nanos(-1_000), &defaults(), None).await.unwrap().rows, 1);
    let refused = w.engine.append(&moments, nanos(-1), &defaults(), None).await.unwrap_err();
    assert!(refused.to_string().contains("without loss"), "{refused}");
    let failing = futures::stream::iter([Ok(batch), Err(sandur::error::Error::cancelled("gone"))]).boxed();
    assert!(w.engine.append(&name, failing, &defaults(), Some("key:two")).await.is_err());
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], "4");
    // a new process knows, too
    drop(w.engine);
    let again = engine_at(w.folder.path()).await;
    assert_eq!(again.commits().unwrap().status("key:one", None).await.unwrap(), status);
    assert_eq!(
        again.commits().unwrap().status("key:three", None).await.unwrap(),
        CommitStatus::Unknown
    );
    assert_eq!(query(&again, "SELECT * FROM s.t").await.unwrap().num_rows(), 4);
}

#[tokio::test]
async fn parameters_are_values_of_the_columns_types() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id INT, n DECIMAL(6, 2), at TIMESTAMP)").await;
    let planned = w.engine.plan("INSERT INTO s.t VALUES (?, ?, ?)", &defaults()).await.unwrap();
    assert!(planned.is_change);
    let types: Vec<String> = planned.parameters.iter().map(|p| p.data_type.to_string()).collect();
    assert_eq!(types, ["Int64", "Decimal128(6, 2)", "Timestamp(ms)"]);
    let values = RecordBatch::try_from_iter([
        ("1", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
        ("2", Arc::new(StringArray::from(vec!["1.5", "2.25"]))),
        ("3", Arc::new(StringArray::from(vec![Some("2024-01-01 00:00:00"), None]))),
    ])
    .unwrap();
    let with = With {
        parameters: Some(&values),
        commit_id: None,
    };
    let done = w
        .engine
        .change("INSERT INTO s.t VALUES (?, ?, ?)", &defaults(), with)
        .await
        .unwrap();
    assert_eq!(done.rows, 2);
    assert_eq!(
        w.rows("SELECT * FROM s.t ORDER BY id").await[1..],
        ["1|1.50|2024-01-01T00:00:00", "2|2.25|NULL"]
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "1");
}

/// Rows of values are planned many at a time where that gives the same, and one by one elsewhere.
#[tokio::test]
async fn thousands_of_rows_of_values_are_one_change() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT, n DECIMAL(9, 2), name STRING, u UUID)").await;
    let ids: Vec<i64> = (0..2500).collect();
    let names: Vec<Option<String>> = ids.iter().map(|id| (id % 10 != 0).then(|| format!("it's {id}"))).collect();
    let uuids = ids.iter().map(|id| format!("00000000-0000-4000-8000-{id:012x}"));
    let values = RecordBatch::try_from_iter([
        ("1", Arc::new(Int64Array::from(ids.clone())) as ArrayRef),
        ("2", Arc::new(StringArray::from(names))),
        ("3", Arc::new(StringArray::from(uuids.collect::<Vec<_>>()))),
    ])
    .unwrap();
    let filtered = "INSERT INTO s.t (id, name, u, n) SELECT *, 1.25 \
        FROM (VALUES (CAST($1 AS BIGINT), CAST($2 AS STRING), CAST($3 AS STRING))) WHERE column1 % 100 = 99";
    for (sql, executions, rows) in [
        ("INSERT INTO s.t (id, name, u) VALUES (?, ?, ?)", 2500, 2500),
        ("INSERT INTO s.t (id, name, u) VALUES (?, ?, ?), (-1, 'more', NULL)", 2500, 5000),
        (filtered, 100, 1),
    ] {
        let values = values.slice(0, executions);
        let with = With {
            parameters: Some(&values),
            commit_id: None,
        };
        let done = w.engine.change(sql, &defaults(), with).await.unwrap();
        assert_eq!((done.rows, done.data_files), (rows, 1), "{sql}");
    }
    assert_eq!(
        w.rows("SELECT count(*), count(DISTINCT id), sum(id), count(name), count(u), count(n) FROM s.t")
            .await[1],
        // 2 * (0 + .. + 2499) + 99 - 2500; of 2500 names 250 are null
        "7501|2501|6245099|7001|5001|1"
    );
    assert_eq!(
        w.rows("SELECT name, u FROM s.t WHERE id = 2499").await[1..],
        vec!["it's 2499|000000000000400080000000000009c3"; 2]
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "3");
}

#[tokio::test]
async fn writers_at_once_lose_nothing() {
    let w = Arc::new(Warehouse::new().await);
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (writer INT, n INT)").await;
    let writers = (0..4).map(|writer| {
        let w = Arc::clone(&w);
        tokio::spawn(async move {
            for n in 0..10 {
                w.run(&format!("INSERT INTO s.t VALUES ({writer}, {n})")).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert_eq!(
        w.rows("SELECT count(*), count(DISTINCT writer * 100 + n) FROM s.t").await[1],
        "40|40"
    );
    assert_eq!(w.rows("SELECT count(*) FROM s.t.snapshots").await[1], "40");
}
