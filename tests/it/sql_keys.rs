//! Idempotency keys: what was committed under them is told again and never made twice; and commits that cannot be.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::StreamExt;
use futures::stream::BoxStream;
use sandur::error::{ErrorKind, Result};
use sandur::sql::{Done, With};
use sandur::write::commit::CommitStatus;

use crate::sql_changes::{Warehouse, defaults};

fn ids(ids: Vec<i64>) -> BoxStream<'static, Result<RecordBatch>> {
    let batch = RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as ArrayRef)]).unwrap();
    futures::stream::iter([Ok(batch)]).boxed()
}

impl Warehouse {
    /// Appends ids to `s.t` under a key.
    async fn keyed(&self, table: &[&str], rows: Vec<i64>, key: &str) -> Result<Done> {
        let name: Vec<String> = table.iter().map(|part| (*part).to_owned()).collect();
        self.engine.append(&name, ids(rows), &defaults(), Some(key)).await
    }
}

#[tokio::test]
async fn a_key_that_is_sent_again_is_answered_with_what_was_committed_and_leaves_no_files() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT)").await;
    let first = w.keyed(&["s", "t"], vec![1, 2], "key:a").await.unwrap();
    assert_eq!((first.rows, first.data_files), (2, 1));
    // other rows, a statement, and no rows at all
    let again = w.keyed(&["s", "t"], vec![3, 4, 5], "key:a").await.unwrap();
    let with = With {
        parameters: None,
        commit_id: Some("key:a"),
    };
    let inserted = w.engine.change("INSERT INTO s.t VALUES (6)", &defaults(), with).await.unwrap();
    let none = w.keyed(&["s", "t"], vec![], "key:a").await.unwrap();
    for done in [&again, &inserted, &none] {
        assert_eq!(
            (done.rows, done.data_files, done.bytes, done.snapshot_id),
            (2, 1, first.bytes, first.snapshot_id)
        );
    }
    // two at once: one of them finds out when it commits
    let (one, other) = tokio::join!(w.keyed(&["s", "t"], vec![7], "key:b"), w.keyed(&["s", "t"], vec![8, 9], "key:b"));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.rows, one.snapshot_id), (other.rows, other.snapshot_id));
    assert_eq!(w.rows("SELECT count(*) FROM s.t").await[1], (2 + one.rows).to_string());
    assert_eq!(w.parquet_files(), 2);
}

#[tokio::test]
async fn a_key_belongs_to_one_branch() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT)").await;
    w.keyed(&["s", "t"], vec![1], "key:a").await.unwrap();
    let w = w
        .altered(|metadata| {
            let main = metadata["current-snapshot-id"].clone();
            metadata["refs"]["x"] = serde_json::json!({"snapshot-id": main, "type": "branch"});
        })
        .await;
    // what the branch has from where it began, it has
    assert_eq!(w.keyed(&["s", "t", "branch_x"], vec![2, 3], "key:a").await.unwrap().rows, 1);
    w.keyed(&["s", "t"], vec![4], "key:b").await.unwrap();
    let refused = w.keyed(&["s", "t", "branch_x"], vec![4], "key:b").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(
        refused.to_string().contains("another branch") && refused.to_string().contains("branch: main"),
        "{refused}"
    );
    w.keyed(&["s", "t", "branch_x"], vec![5], "key:c").await.unwrap();
    assert_eq!(w.keyed(&["s", "t", "branch_x"], vec![6, 7], "key:c").await.unwrap().rows, 1);
    assert!(w.keyed(&["s", "t"], vec![5], "key:c").await.is_err());
    assert_eq!(w.rows("SELECT id FROM s.t ORDER BY id").await[1..], ["1", "4"]);
    assert_eq!(w.rows("SELECT id FROM s.t.branch_x ORDER BY id").await[1..], ["1", "5"]);
    assert_eq!(w.parquet_files(), 3);
}

#[tokio::test]
async fn a_key_belongs_to_one_kind_of_change() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT) TBLPROPERTIES ('format-version' = '3')").await;
    w.keyed(&["s", "t"], vec![1, 2, 3], "key:a").await.unwrap();
    let file = w.rows("SELECT DISTINCT _file FROM s.t").await[1].clone();
    let delete = async |position: i64, key: &str| {
        let files: ArrayRef = Arc::new(StringArray::from(vec![file.as_str()]));
        let positions: ArrayRef = Arc::new(Int64Array::from(vec![position]));
        let batch = RecordBatch::try_from_iter([("file_path", files), ("pos", positions)]).unwrap();
        let name = ["s".to_owned(), "t".to_owned()];
        let rows = futures::stream::iter([Ok(batch)]).boxed();
        w.engine.delete_positions(&name, None, rows, &defaults(), Some(key)).await
    };
    assert_eq!(delete(1, "key:b").await.unwrap().rows, 1);
    assert_eq!(delete(2, "key:b").await.unwrap().rows, 1);
    for refused in [delete(2, "key:a").await, w.keyed(&["s", "t"], vec![4], "key:b").await] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains("another kind of change"), "{refused}");
    }
    assert_eq!(w.rows("SELECT id FROM s.t ORDER BY id").await[1..], ["1", "3"]);
}

#[tokio::test]
async fn the_status_of_a_key_of_several_tables_is_asked_for_one() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    for table in ["t", "u", "v"] {
        w.run(&format!("CREATE TABLE s.{table} (id BIGINT)")).await;
    }
    let t = w.keyed(&["s", "t"], vec![1], "key:a").await.unwrap().snapshot_id;
    let u = w.keyed(&["s", "u"], vec![1, 2], "key:a").await.unwrap().snapshot_id;
    let asked = async |table: Option<[String; 2]>| {
        let table = table.as_ref().map(<[String; 2]>::as_slice);
        w.engine.commit_status("key:a", table, &defaults()).await
    };
    let of = |table: &str| Some(["s".to_owned(), table.to_owned()]);
    assert_eq!(asked(of("t")).await.unwrap(), CommitStatus::Committed { snapshot_id: t });
    assert_eq!(asked(of("U")).await.unwrap(), CommitStatus::Committed { snapshot_id: u });
    assert_eq!(asked(of("v")).await.unwrap(), CommitStatus::Unknown);
    assert_eq!(asked(of("w")).await.unwrap_err().kind(), ErrorKind::NotFound);
    let ambiguous = asked(None).await.unwrap_err();
    assert_eq!(ambiguous.kind(), ErrorKind::InvalidInput);
    assert!(ambiguous.to_string().contains("ice.s.t, ice.s.u"), "{ambiguous}");
}

#[tokio::test]
async fn a_table_without_a_next_sequence_number_takes_no_commit() {
    let w = Warehouse::new().await;
    w.run("CREATE SCHEMA s").await;
    w.run("CREATE TABLE s.t (id BIGINT)").await;
    w.run("INSERT INTO s.t VALUES (1)").await;
    let w = w.altered(|metadata| metadata["last-sequence-number"] = i64::MAX.into()).await;
    let (kind, message) = w.refused("INSERT INTO s.t VALUES (2)").await;
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(message.contains("last-sequence-number") && message.contains("ice.s.t"), "{message}");
    assert_eq!(w.rows("SELECT id FROM s.t").await[1..], ["1"]);
    assert_eq!(w.parquet_files(), 1);
}
