//! What opening and querying Delta tables reads of their logs, counted, and that many of them open at once.
//!
//! Each test has stores and caches of its own, so the counts are its own too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use sandur::cache::Caches;
use sandur::delta::DeltaLoader;
use sandur::error::ErrorKind;
use sandur::io::{FileKind, Storage};
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext};
use sandur::table::{AsOf, Table, TableIdent, TableLocation};
use serde_json::{Value, json};

use crate::support::cases;

/// Stores, caches and pool of one test.
struct Reader {
    storage: Arc<Storage>,
    loader: DeltaLoader,
    scan: Arc<ScanContext>,
}

impl Reader {
    fn new() -> Self {
        let storage = Arc::new(Storage::default());
        let caches = Arc::new(Caches::new(64 << 20, 64 << 20));
        let pool = Arc::new(DecodePool::new(2).unwrap());
        Self {
            loader: DeltaLoader::new(Arc::clone(&storage), Arc::clone(&caches)).unwrap(),
            scan: Arc::new(ScanContext::new(caches, pool)),
            storage,
        }
    }

    async fn rows(&self, root: &Path, condition: &str) -> usize {
        self.try_rows(root, condition).await.unwrap()
    }

    async fn try_rows(&self, root: &Path, condition: &str) -> Result<usize, DataFusionError> {
        let location = TableLocation {
            root: root.to_str().unwrap().to_owned(),
            ..TableLocation::default()
        };
        let loaded = self.loader.newest(&TableIdent::new("c", "s", "t"), &location).await.unwrap();
        let snapshot = loaded.snapshot(&AsOf::Latest).await.unwrap();
        let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
        let provider = LakeTableProvider::new(snapshot, Arc::clone(&self.scan));
        session.register_table("t", Arc::new(provider)).unwrap();
        let query = session.sql(&format!("SELECT id FROM t WHERE {condition}")).await?;
        Ok(query.collect().await?.iter().map(RecordBatch::num_rows).sum())
    }

    /// Bytes read of the log, of footers and of deletion vectors.
    fn read(&self) -> [u64; 3] {
        [FileKind::Metadata, FileKind::Footer, FileKind::Delete].map(|kind| self.storage.counters().bytes(kind))
    }
}

/// A table of one column whose files hold a hundred numbers each.
struct Numbers {
    dir: tempfile::TempDir,
    version: i64,
}

impl Numbers {
    fn new() -> Self {
        let mut table = Self {
            dir: tempfile::tempdir().unwrap(),
            version: -1,
        };
        fs::create_dir(table.dir.path().join("_delta_log")).unwrap();
        let schema = json!({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true, "metadata": {}}]});
        let metadata = json!({"id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9", "format": {"provider": "parquet", "options": {}},
            "schemaString": schema.to_string(), "partitionColumns": [], "configuration": {}, "createdTime": 1});
        let protocol = json!({"minReaderVersion": 1, "minWriterVersion": 2});
        table.commit(&[json!({"protocol": protocol}), json!({"metaData": metadata})]);
        table
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn commit(&mut self, actions: &[Value]) -> PathBuf {
        self.version += 1;
        let file = self.root().join(format!("_delta_log/{:020}.json", self.version));
        let lines: Vec<String> = actions.iter().map(ToString::to_string).collect();
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        file
    }

    /// Adds a file of the hundred numbers from `first` on.
    fn append(&mut self, first: i64) -> PathBuf {
        let name = format!("part-{first}.parquet");
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
        let ids = Int64Array::from_iter_values(first..first + 100);
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(ids)]).unwrap();
        let mut writer = ArrowWriter::try_new(fs::File::create(self.root().join(&name)).unwrap(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let statistics = json!({"numRecords": 100, "minValues": {"id": first}, "maxValues": {"id": first + 99}, "nullCount": {"id": 0}});
        let size = fs::metadata(self.root().join(&name)).unwrap().len();
        self.commit(&[
            json!({"add": {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": true,
            "stats": statistics.to_string()}}),
        ])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_did_not_change_is_not_read_again() {
    let (reader, mut table) = (Reader::new(), Numbers::new());
    for first in [0, 100, 200] {
        table.append(first);
    }
    assert_eq!(reader.rows(table.root(), "id >= 150").await, 150);
    let before = reader.read();
    assert!(before.iter().take(2).all(|bytes| *bytes > 0), "{before:?}");
    assert_eq!(reader.rows(table.root(), "id >= 150").await, 150);
    assert_eq!(reader.rows(table.root(), "id < 120 AND id > 110").await, 9);
    let after = reader.read();
    assert_eq!(after[0], before[0], "the log");
    assert_eq!(after[2], before[2], "deletion vectors");
    assert_eq!(reader.rows(table.root(), "id = 7").await, 1);
    let before = reader.read();
    assert_eq!(reader.rows(table.root(), "id = 7").await, 1);
    assert_eq!(reader.read(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_reads_the_new_commit_alone() {
    let (reader, mut table) = (Reader::new(), Numbers::new());
    for first in 0..20 {
        table.append(first * 100);
    }
    assert_eq!(reader.rows(table.root(), "id >= 1950").await, 50);
    let before = reader.read();
    let commit = table.append(2000);
    assert_eq!(reader.rows(table.root(), "id >= 1950").await, 150);
    let read = reader.read()[0] - before[0];
    let size = fs::metadata(&commit).unwrap().len();
    // Once for what it says of the table, once for its files.
    assert!(read > 0 && read <= 2 * size, "{read} bytes for a commit of {size}");
    // A file that goes is gone, one that comes back is back.
    let remove = |path: &str| json!({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": true}});
    table.commit(&[remove("part-2000.parquet"), remove("part-0.parquet")]);
    assert_eq!(reader.rows(table.root(), "true").await, 1900);
    table.append(0);
    assert_eq!(reader.rows(table.root(), "true").await, 2000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_was_made_anew_is_read_anew() {
    let (reader, mut table) = (Reader::new(), Numbers::new());
    table.append(0);
    assert_eq!(reader.rows(table.root(), "true").await, 100);
    for entry in fs::read_dir(table.root().join("_delta_log")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let mut other = Numbers::new();
    other.append(500);
    for name in ["00000000000000000000.json", "00000000000000000001.json"] {
        let name = format!("_delta_log/{name}");
        fs::copy(other.root().join(&name), table.root().join(&name)).unwrap();
    }
    fs::copy(other.root().join("part-500.parquet"), table.root().join("part-500.parquet")).unwrap();
    assert_eq!(reader.rows(table.root(), "id >= 500").await, 100);
    table.version = 1;
    table.append(600);
    assert_eq!(reader.rows(table.root(), "true").await, 200);
}

/// B103
#[tokio::test(flavor = "multi_thread")]
async fn a_log_with_a_gap_is_refused() {
    let (reader, mut table) = (Reader::new(), Numbers::new());
    for first in [0, 100, 200] {
        table.append(first);
    }
    fs::remove_file(table.root().join("_delta_log/00000000000000000002.json")).unwrap();
    let location = TableLocation {
        root: table.root().to_str().unwrap().to_owned(),
        ..TableLocation::default()
    };
    let error = reader.loader.newest(&TableIdent::new("c", "s", "t"), &location).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt), "{error}");
}

/// What the version's checksum file says of the files must be so; one that says nothing is passed over.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_files_its_checksum_counts_otherwise_is_refused() {
    let mut table = Numbers::new();
    table.append(0);
    table.append(100);
    let size: u64 = ["part-0.parquet", "part-100.parquet"]
        .map(|name| fs::metadata(table.root().join(name)).unwrap().len())
        .iter()
        .sum();
    let file = table.root().join("_delta_log/00000000000000000002.crc");
    let whole = json!({"tableSizeBytes": size, "numFiles": 2, "numMetadata": 1, "numProtocol": 1, "numDeletedRecordsOpt": 0,
        "numDeletionVectorsOpt": 0});
    for text in [
        whole.to_string(),
        String::new(),
        "{\"numFiles\": 3".to_owned(),
        "{\"numFiles\": \"3\"}".to_owned(),
    ] {
        fs::write(&file, &text).unwrap();
        assert_eq!(Reader::new().rows(table.root(), "true").await, 200, "{text}");
    }
    for (key, said, found) in [
        ("numFiles", 3, "2 files"),
        ("tableSizeBytes", 1, "bytes of files"),
        ("numDeletedRecordsOpt", 1, "0 deleted rows"),
        ("numDeletionVectorsOpt", 1, "0 deletion vectors"),
    ] {
        let mut other = whole.clone();
        other[key] = json!(said);
        fs::write(&file, other.to_string()).unwrap();
        let error = Reader::new().try_rows(table.root(), "true").await.unwrap_err().to_string();
        assert!(error.contains(found) && error.contains(file.to_str().unwrap()), "{error}");
    }
}

/// A checkpoint in JSON has no checksum, and one that was cut at the end of a line still is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_of_other_files_than_its_hint_says_is_refused() {
    let Some(cases) = cases::dir_or_say() else { return };
    let folder = tempfile::tempdir().unwrap();
    copy(&cases.join("delta/deltaspark_ckpt_v2_json/table"), folder.path());
    let log = folder.path().join("_delta_log");
    // Without the newest version's own checksum, which would tell too.
    fs::remove_file(log.join("00000000000000000009.crc")).unwrap();
    let checkpoint = log.join("00000000000000000008.checkpoint.c67fd862-9bcb-4937-bdb2-fcb6649aeef4.json");
    let text = fs::read_to_string(&checkpoint).unwrap();
    let rows = Reader::new().rows(folder.path(), "true").await;
    assert!(rows > 0);
    let without_a_sidecar: Vec<&str> = text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| line).collect();
    assert!(text.lines().nth(2).unwrap().starts_with("{\"sidecar\""));
    fs::write(&checkpoint, without_a_sidecar.join("\n")).unwrap();
    let error = Reader::new().try_rows(folder.path(), "true").await.unwrap_err().to_string();
    assert!(error.contains("says 7") && error.contains("_last_checkpoint"), "{error}");
    // A hint to another checkpoint says nothing of this one, nor does one that cannot be read.
    fs::write(&checkpoint, &text).unwrap();
    let hint = fs::read_to_string(log.join("_last_checkpoint")).unwrap();
    for other in [
        hint.replacen("\"version\":8", "\"version\":4", 1),
        hint[..hint.len() / 2].to_owned(),
        String::new(),
    ] {
        assert_ne!(other, hint);
        fs::write(log.join("_last_checkpoint"), other).unwrap();
        assert_eq!(Reader::new().rows(folder.path(), "true").await, rows);
    }
}

/// Every call blocks on files while it runs, and more of them wait than there are threads of any kind.
#[test]
fn many_tables_with_checkpoints_open_at_once_on_two_threads() {
    let Some(cases) = cases::dir_or_say() else { return };
    let source = cases.join("delta/deltaspark_dv_checkpoint/table");
    let folder = tempfile::tempdir().unwrap();
    let tables: Vec<PathBuf> = (0..600).map(|n| folder.path().join(n.to_string())).collect();
    for table in &tables {
        copy(&source, table);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let reader = Arc::new(Reader::new());
    let opened = runtime.block_on(async {
        let opens = tables.into_iter().map(|root| {
            let reader = Arc::clone(&reader);
            tokio::spawn(async move { reader.rows(&root, "true").await })
        });
        tokio::time::timeout(Duration::from_secs(600), futures::future::join_all(opens)).await
    });
    let counts: Vec<usize> = opened.unwrap().into_iter().map(Result::unwrap).collect();
    assert!(
        counts.len() == 600 && counts.iter().all(|count| *count == counts[0] && *count > 0),
        "{counts:?}"
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}
