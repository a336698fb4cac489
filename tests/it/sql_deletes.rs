//! DELETE and TRUNCATE in a warehouse of a SQL catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::StreamExt;
use sandur::error::ErrorKind;
use sandur::sql::{Done, With};

use crate::sql_changes::{Warehouse, defaults};

/// The modes that a table can have: format version and `write.delete.mode`.
const MODES: [(u8, &str); 5] = [
    (1, "copy-on-write"),
    (2, "copy-on-write"),
    (2, "merge-on-read"),
    (3, "copy-on-write"),
    (3, "merge-on-read"),
];

async fn table(w: &Warehouse, name: &str, version: u8, mode: &str, columns: &str) {
    w.run("CREATE SCHEMA IF NOT EXISTS s").await;
    w.run(&format!(
        "CREATE TABLE s.{name} ({columns}) TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='{mode}')"
    ))
    .await;
}

/// What a query gives as one line: cells by comma, rows by blank.
async fn line(w: &Warehouse, sql: &str) -> String {
    let rows = w.rows(sql).await;
    rows.iter().skip(1).map(|row| row.replace('|', ",")).collect::<Vec<_>>().join(" ")
}

/// The statements that the planner of the engine gets wrong (architecture 2.3), with the rows that they delete of
/// (1, 'a'), (2, 'b'), (3, NULL).
const STATEMENTS: &[(&str, u64, &str)] = &[
    ("DELETE FROM s.t WHERE id = 1", 1, "2 3"),
    ("DELETE FROM s.t WHERE id IN (SELECT k FROM s.k)", 1, "1 3"),
    ("DELETE FROM s.t WHERE EXISTS (SELECT 1 FROM s.k WHERE k = id)", 1, "1 3"),
    ("DELETE FROM s.t WHERE id NOT IN (SELECT k FROM s.k WHERE k IS NOT NULL)", 2, "2"),
    ("DELETE FROM s.t WHERE id NOT IN (SELECT k FROM s.k)", 0, "1 2 3"),
    ("DELETE FROM s.t WHERE NOT EXISTS (SELECT 1 FROM s.k WHERE k = id)", 2, "2"),
    ("DELETE FROM s.t WHERE false", 0, "1 2 3"),
    ("DELETE FROM s.t WHERE NULL", 0, "1 2 3"),
    ("DELETE FROM s.t WHERE 1 = 1", 3, ""),
    ("DELETE FROM s.t", 3, ""),
    ("DELETE FROM s.t;", 3, ""),
    ("DELETE FROM s.t WHERE id IN (SELECT k FROM s.k) AND c = 'a'", 0, "1 2 3"),
    ("DELETE FROM s.t WHERE id = (SELECT max(k) FROM s.k)", 1, "1 3"),
    ("DELETE FROM s.t WHERE c = 'a' OR c = 'b'", 2, "3"),
    ("DELETE FROM s.t WHERE c <> 'a'", 1, "1 3"),
    ("DELETE FROM s.t WHERE c IS NULL", 1, "1 2"),
    ("DELETE FROM s.t WHERE NOT (c = 'a')", 1, "1 3"),
    ("DELETE FROM s.t AS x WHERE x.id > 1", 2, "1"),
    ("DELETE FROM s.t x WHERE x.id > 1", 2, "1"),
    ("DELETE FROM s.t WHERE t.id > 1", 2, "1"),
    ("DELETE FROM s.t WHERE s.t.id > 1", 2, "1"),
    ("DELETE FROM ice.s.t WHERE ID > 2", 1, "1 2"),
    ("DELETE FROM s.t USING s.k WHERE id = k", 1, "1 3"),
    ("DELETE FROM s.t AS x USING s.k AS y WHERE x.id < y.k", 1, "2 3"),
    ("DELETE FROM s.t AS x USING s.t AS y WHERE x.id = y.id + 1", 2, "1"),
    ("DELETE FROM s.t USING (SELECT k + 1 AS n FROM s.k) AS q WHERE id = q.n", 1, "1 2"),
    ("DELETE FROM s.t ORDER BY id DESC LIMIT 1", 1, "1 2"),
    ("DELETE FROM s.t WHERE id < 3 ORDER BY id LIMIT 1", 1, "2 3"),
    ("DELETE FROM s.t WHERE id IN (SELECT id FROM s.t WHERE c = 'b')", 1, "1 3"),
    ("DELETE FROM s.t WHERE id IN (SELECT * FROM (SELECT k FROM s.k) z)", 1, "1 3"),
    ("DELETE FROM s.t WHERE _pos = 0 AND id = 1", 1, "2 3"),
    ("TRUNCATE TABLE s.t", 3, ""),
    ("truncate s.t", 3, ""),
];

#[tokio::test]
async fn a_delete_means_what_a_query_means() {
    for (version, mode) in MODES {
        let w = Warehouse::new().await;
        table(&w, "t", version, mode, "id BIGINT, c STRING").await;
        table(&w, "k", version, mode, "k BIGINT").await;
        w.run("INSERT INTO s.k VALUES (2), (2), (NULL)").await;
        for (sql, deleted, left) in STATEMENTS {
            w.run("TRUNCATE TABLE s.t").await;
            w.run("INSERT INTO s.t VALUES (1, 'a'), (2, 'b'), (3, NULL)").await;
            let done = w.run(sql).await;
            let rows = line(&w, "SELECT id FROM s.t ORDER BY id").await;
            assert_eq!((done.rows, rows.as_str()), (*deleted, *left), "v{version} {mode}: {sql}");
            assert_eq!(done.snapshot_id.is_some(), *deleted > 0, "{sql}");
        }
    }
}

#[tokio::test]
async fn what_a_query_knows_and_delete_does_not_is_refused() {
    let w = Warehouse::new().await;
    table(&w, "t", 3, "merge-on-read", "id BIGINT, c STRING").await;
    table(&w, "k", 3, "merge-on-read", "k BIGINT").await;
    w.run("INSERT INTO s.t VALUES (1, 'a')").await;
    for sql in [
        "DELETE FROM s.t WHERE id = 1 UNION SELECT 'x', 1",
        "DELETE FROM s.t WHERE id = 1 GROUP BY id",
        "DELETE FROM s.t WHERE id = 1 HAVING true",
        "DELETE FROM s.t WHERE id = 1 RETURNING id",
        "DELETE FROM s.t USING s.k WHERE id = k LIMIT 1",
        "DELETE FROM s.t ORDER BY id",
        "DELETE FROM s.t ORDER BY 1 LIMIT 1",
        "DELETE FROM s.t LIMIT NULL",
        "DELETE FROM s.t LIMIT CAST(NULL AS BIGINT)",
        "DELETE FROM s.t WHERE row_number() OVER (ORDER BY id) = 1",
        "DELETE FROM s.t WHERE id = 1 FOR UPDATE",
        "DELETE FROM s.t WHERE id = 1; DELETE FROM s.t",
        "DELETE FROM s.t WHERE",
        "DELETE FROM s.t, s.k WHERE id = k",
        "DELETE FROM s.t VERSION AS OF 1 WHERE id = 1",
        "DELETE FROM s.t WHERE nothing = 1",
        "DELETE FROM s.t WHERE count(*) > 0",
        "DELETE FROM s.t.snapshots",
        "DELETE FROM s.t.tag_x",
        "DELETE FROM \"s.t$files\"",
        "DELETE FROM information_schema.tables",
        "DELETE s.t WHERE id = 1",
        "TRUNCATE TABLE s.t WHERE id = 1",
        "TRUNCATE TABLE s.nothing",
        "WITH q AS (SELECT 1) DELETE FROM s.t",
    ] {
        let (kind, text) = w.refused(sql).await;
        assert!(
            matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::NotFound),
            "{sql}: {kind:?} {text}"
        );
        assert_eq!(line(&w, "SELECT id FROM s.t").await, "1", "{sql}");
    }
}

/// Two files of 1,000 rows, one of category a and one of category b.
async fn two_files(w: &Warehouse, name: &str, version: u8, mode: &str) {
    table(w, name, version, mode, "id BIGINT, category STRING").await;
    for (from, category) in [(0, "a"), (1000, "b")] {
        w.run(&format!(
            "INSERT INTO s.{name} SELECT value, '{category}' FROM generate_series({from}, {})",
            from + 999
        ))
        .await;
    }
}

async fn last_operation(w: &Warehouse, name: &str) -> String {
    line(
        w,
        &format!("SELECT operation FROM s.{name}.snapshots ORDER BY committed_at DESC LIMIT 1"),
    )
    .await
}

async fn records(w: &Warehouse, name: &str) -> String {
    line(w, &format!("SELECT record_count FROM s.{name}.data_files ORDER BY record_count")).await
}

#[tokio::test]
async fn one_row_costs_a_file_when_copied_and_a_note_when_merged_on_read() {
    let w = Warehouse::new().await;
    for (version, mode) in MODES {
        let name = format!("t{version}{}", &mode[..4]);
        two_files(&w, &name, version, mode).await;
        let done: Done = w.run(&format!("DELETE FROM s.{name} WHERE id = 5")).await;
        assert_eq!(done.rows, 1);
        if mode == "copy-on-write" {
            assert_eq!((done.rewritten_files, done.data_files, done.delete_files), (1, 1, 0));
            assert_eq!(last_operation(&w, &name).await, "overwrite");
            assert_eq!(records(&w, &name).await, "999 1000");
        } else {
            assert_eq!((done.rewritten_files, done.data_files, done.delete_files), (0, 0, 1));
            assert!(done.delete_bytes > 0 && done.delete_bytes < 5_000, "{done:?}");
            assert_eq!(last_operation(&w, &name).await, "delete");
            assert_eq!(records(&w, &name).await, "1000 1000");
        }
        let done = w.run(&format!("DELETE FROM s.{name} WHERE category = 'b'")).await;
        assert_eq!((done.rows, done.removed_files, done.data_files, done.delete_files), (1000, 1, 0, 0));
        assert_eq!(last_operation(&w, &name).await, "delete");
        assert_eq!(line(&w, &format!("SELECT count(*), sum(id) FROM s.{name}")).await, "999,499495");
        // What is left goes as a whole, too, though its rows are not all there.
        let done = w.run(&format!("DELETE FROM s.{name} WHERE id >= 0")).await;
        assert_eq!((done.rows, done.removed_files, done.delete_files), (999, 1, 0), "{name}");
        assert_eq!(line(&w, &format!("SELECT count(*) FROM s.{name}.files")).await, "0", "{name}");
    }
}

#[tokio::test]
async fn a_file_has_one_vector_however_often_rows_of_it_are_deleted() {
    let w = Warehouse::new().await;
    two_files(&w, "t", 3, "merge-on-read").await;
    for id in [5, 7, 1003, 999] {
        w.run(&format!("DELETE FROM s.t WHERE id = {id}")).await;
    }
    let entries = "SELECT record_count, content, file_format FROM s.t.delete_files ORDER BY record_count";
    assert_eq!(line(&w, entries).await, "1,1,PUFFIN 3,1,PUFFIN");
    assert_eq!(w.run("DELETE FROM s.t WHERE id IN (5, 6, 7)").await.rows, 1);
    assert_eq!(w.run("DELETE FROM s.t WHERE id = 5").await.rows, 0);
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1995");
    // Both in one commit, in one file.
    let done = w.run("DELETE FROM s.t WHERE id % 100 = 50").await;
    assert_eq!((done.rows, done.delete_files), (20, 2));
    assert_eq!(
        line(&w, "SELECT count(*), count(DISTINCT file_path) FROM s.t.delete_files").await,
        "2,1"
    );
}

#[tokio::test]
async fn rows_keep_their_lineage_when_their_file_is_copied() {
    let w = Warehouse::new().await;
    two_files(&w, "t", 3, "copy-on-write").await;
    let lineage = "SELECT id, _row_id, _last_updated_sequence_number FROM s.t WHERE id IN (4, 6, 1001) ORDER BY id";
    let before = line(&w, lineage).await;
    assert_eq!(before, "4,4,1 6,6,1 1001,1001,2");
    w.run("DELETE FROM s.t WHERE id = 5").await;
    w.run("DELETE FROM s.t WHERE id = 8").await;
    assert_eq!(line(&w, lineage).await, before);
    w.run("INSERT INTO s.t VALUES (6000, 'c')").await;
    let taken = line(&w, "SELECT count(*), count(DISTINCT _row_id) FROM s.t").await;
    assert_eq!(taken, "1999,1999");
}

#[tokio::test]
async fn a_mode_that_cannot_be_had_is_refused_by_name() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    for (version, property, value, kind) in [
        (1, "write.delete.mode", "merge-on-read", ErrorKind::Unsupported),
        (2, "write.delete.mode", "sometimes", ErrorKind::InvalidInput),
        (2, "write.delete.isolation-level", "none", ErrorKind::InvalidInput),
    ] {
        let name = format!("t{version}{}", value.len());
        let create = format!("CREATE TABLE s.{name} (id BIGINT) TBLPROPERTIES ('format-version'='{version}', '{property}'='{value}')");
        if w.engine.change(&create, &defaults(), With::default()).await.is_err() {
            continue;
        }
        w.run(&format!("INSERT INTO s.{name} VALUES (1), (2)")).await;
        let (got, text) = w.refused(&format!("DELETE FROM s.{name} WHERE id = 1")).await;
        assert_eq!(got, kind, "{text}");
        assert!(text.contains(property), "{text}");
    }
}

#[tokio::test]
async fn a_prepared_delete_takes_values_and_many_of_them_are_one_change() {
    let w = Warehouse::new().await;
    two_files(&w, "t", 3, "merge-on-read").await;
    let values = |ids: &[i64]| {
        let column: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        RecordBatch::try_from_iter([("1", column)]).unwrap()
    };
    let run = async |sql: &str, ids: &[i64]| {
        let parameters = values(ids);
        let with = With {
            parameters: Some(&parameters),
            commit_id: None,
        };
        w.engine.change(sql, &defaults(), with).await.unwrap()
    };
    assert_eq!(run("DELETE FROM s.t WHERE id = ?", &[5]).await.rows, 1);
    let before = line(&w, "SELECT count(*) FROM s.t.snapshots").await;
    assert_eq!(run("DELETE FROM s.t WHERE id = ?", &[5, 6, 6, 1007]).await.rows, 2);
    let after = line(&w, "SELECT count(*) FROM s.t.snapshots").await;
    assert_eq!((before.as_str(), after.as_str()), ("3", "4"));
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1997");
}

#[tokio::test]
async fn deletes_of_one_file_at_once_all_succeed_and_count_what_they_did() {
    for (version, mode) in MODES {
        let w = Arc::new(Warehouse::new().await);
        two_files(&w, "t", version, mode).await;
        let delete = |low: i64, high: i64| {
            let w = Arc::clone(&w);
            tokio::spawn(async move { w.run(&format!("DELETE FROM s.t WHERE id BETWEEN {low} AND {high}")).await })
        };
        // Each overlaps the next by ten rows.
        let running: Vec<_> = (0..8).map(|n| delete(n * 100, n * 100 + 109)).collect();
        let (mut rows, mut reruns) = (0, 0);
        for one in running {
            let done = one.await.unwrap();
            rows += done.rows;
            reruns += done.reruns;
        }
        assert_eq!(rows, 810, "v{version} {mode}");
        assert_eq!(line(&w, "SELECT count(*), min(id) FROM s.t").await, "1190,810", "v{version} {mode}");
        println!("v{version} {mode}: {reruns} reruns");
        if (version, mode) == (3, "merge-on-read") {
            assert_eq!(reruns, 0, "vectors are merged");
            assert_eq!(line(&w, "SELECT record_count FROM s.t.delete_files").await, "810");
        }
    }
}

#[tokio::test]
async fn rows_are_deleted_by_file_and_position() {
    for version in [2, 3] {
        let w = Warehouse::new().await;
        two_files(&w, "t", version, "merge-on-read").await;
        let places = w.rows("SELECT _file, _pos FROM s.t WHERE id IN (3, 4, 1500)").await;
        let places: Vec<(String, i64)> = places
            .iter()
            .skip(1)
            .map(|row| {
                let (file, position) = row.split_once('|').unwrap();
                (file.to_owned(), position.parse().unwrap())
            })
            .collect();
        let delete = async |files: Vec<&str>, positions: Vec<i64>, snapshot: Option<i64>| {
            let files: ArrayRef = Arc::new(StringArray::from(files));
            let positions: ArrayRef = Arc::new(Int64Array::from(positions));
            let batch = RecordBatch::try_from_iter([("file_path", files), ("pos", positions)]).unwrap();
            let stream = futures::stream::iter([Ok(batch.slice(0, 1)), Ok(batch.slice(1, batch.num_rows() - 1))]).boxed();
            let name = ["s".to_owned(), "t".to_owned()];
            w.engine.delete_positions(&name, snapshot, stream, &defaults(), None).await
        };
        let files: Vec<&str> = places.iter().map(|(file, _)| file.as_str()).collect();
        let positions: Vec<i64> = places.iter().map(|(_, position)| *position).collect();
        let done = delete(files.clone(), positions.clone(), None).await.unwrap();
        assert_eq!((done.verb, done.rows), ("DELETE", 3));
        assert_eq!(line(&w, "SELECT count(*) FROM s.t WHERE id IN (3, 4, 1500)").await, "0");
        assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1997");
        // Again, with the snapshot that they were read from: they are gone.
        let snapshots = line(&w, "SELECT snapshot_id FROM s.t.snapshots ORDER BY committed_at LIMIT 1 OFFSET 1").await;
        let done = delete(files.clone(), positions.clone(), snapshots.parse().ok()).await.unwrap();
        assert_eq!((done.rows, done.snapshot_id), (0, None));
        for (files, positions, snapshot) in [
            (vec!["/nowhere.parquet"; 2], vec![0, 1], None),
            (vec![files[0]; 2], vec![0, 1000], None),
            (vec![files[0]; 2], vec![0, -1], None),
            (vec![files[0]; 2], vec![0, 1], Some(4)),
        ] {
            let error = delete(files, positions, snapshot).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1997");
    }
}

#[tokio::test]
async fn values_of_every_type_are_copied_as_they_are() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    for version in [1, 2, 3] {
        w.run(&format!(
            "CREATE TABLE s.t{version} (b BOOLEAN, i INT, l BIGINT NOT NULL, f REAL, d DOUBLE, n DECIMAL(38, 10), dt DATE, tm TIME, ts TIMESTAMP, \
             tz TIMESTAMPTZ, s STRING, u UUID, x FIXED(3), y BINARY, st STRUCT<a: INT, b: STRING>, ar ARRAY<INT>, m MAP<STRING, INT>) \
             TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'copy-on-write')"
        ))
        .await;
        w.run(&format!(
            "INSERT INTO s.t{version} VALUES (true, -1, 9223372036854775807, 1.5, -0.25, 12345678901234567890.0123456789, DATE '1969-12-31', \
             TIME '23:59:59.999999', TIMESTAMP '0001-01-01 00:00:00', '2024-01-01T00:00:00Z', 'ä', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', \
             X'0001ff', X'', named_struct('a', 1, 'b', 'x'), [1, NULL, 3], map(['k'], [7])), \
             (NULL, NULL, 2, NULL, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
             (false, 7, 3, 'NaN', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, [], NULL)"
        ))
        .await;
        let all = format!("SELECT * FROM s.t{version} WHERE l <> 3 ORDER BY l");
        let before = w.rows(&all).await;
        assert_eq!(before.len(), 3);
        let done = w.run(&format!("DELETE FROM s.t{version} WHERE i = 7")).await;
        assert_eq!((done.rows, done.rewritten_files), (1, 1));
        assert_eq!(w.rows(&all).await, before, "v{version}");
        assert_eq!(line(&w, &format!("SELECT count(*) FROM s.t{version}")).await, "2");
    }
}

#[tokio::test]
async fn a_branch_is_deleted_from_alone() {
    let w = Warehouse::new().await;
    two_files(&w, "t", 3, "merge-on-read").await;
    let done = w
        .engine
        .change("DELETE FROM s.t.branch_nothing WHERE id = 5", &defaults(), With::default())
        .await;
    assert_eq!(done.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "2000");
}

#[tokio::test]
async fn a_table_of_version_2_is_upgraded_and_its_deletes_become_vectors() {
    let w = Warehouse::new().await;
    two_files(&w, "t", 2, "merge-on-read").await;
    // One delete file for both data files, and one for the first alone.
    w.run("DELETE FROM s.t WHERE id IN (5, 1005)").await;
    w.run("DELETE FROM s.t WHERE id IN (6, 7)").await;
    let files = "SELECT record_count, file_format FROM s.t.delete_files ORDER BY record_count, file_format";
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1996");
    w.run("ALTER TABLE s.t SET TBLPROPERTIES ('format-version'='3')").await;
    let done = w.run("DELETE FROM s.t WHERE id = 8").await;
    assert_eq!((done.rows, done.delete_files, done.rewritten_files), (1, 1, 0));
    let count = line(&w, files).await;
    // The vector has 5, 6, 7 and 8; what was about the first file alone is gone, what is about both stays for the second.
    assert!(count.contains("4,PUFFIN"), "{count}");
    assert!(count.contains("2,PARQUET") && count.matches("PARQUET").count() <= 2, "{count}");
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1995");
    w.run("DELETE FROM s.t WHERE id = 1008").await;
    assert_eq!(line(&w, "SELECT count(*) FROM s.t WHERE id IN (5, 6, 7, 8, 1005, 1008)").await, "0");
    assert_eq!(line(&w, "SELECT count(*) FROM s.t").await, "1994");
    let ids = line(&w, "SELECT count(DISTINCT _row_id), count(*) FROM s.t").await;
    assert_eq!(ids, "1994,1994");
}

#[tokio::test]
async fn a_table_that_is_emptied_has_no_delete_files_left() {
    let w = Warehouse::new().await;
    for version in [2, 3] {
        let name = format!("t{version}");
        two_files(&w, &name, version, "merge-on-read").await;
        w.run(&format!("DELETE FROM s.{name} WHERE id % 10 = 1")).await;
        let done = w.run(&format!("DELETE FROM s.{name}")).await;
        assert_eq!((done.rows, done.removed_files, done.delete_files), (1800, 2, 0));
        assert_eq!(line(&w, &format!("SELECT count(*) FROM s.{name}.files")).await, "0");
        let summary = format!(
            "SELECT summary['total-records'], summary['total-position-deletes'] FROM s.{name}.snapshots ORDER BY committed_at DESC LIMIT 1"
        );
        assert_eq!(line(&w, &summary).await, "0,0");
        w.run(&format!("INSERT INTO s.{name} VALUES (1, 'z')")).await;
        assert_eq!(line(&w, &format!("SELECT id FROM s.{name}")).await, "1");
    }
}
