//! Rows into files and back: partitions, sizes, order, limits, and what is left after a failure.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{Field, Int32Type, Schema as ArrowSchema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::iceberg::manifest::DataFile;
use crate::iceberg::spec::{Literal, TableMetadata};
use crate::io::{PathMap, Storage, TableIo, WriteFaults, WriteStep};
use crate::runtime::DecodePool;

/// A table of `i int required`, `s string`, `t timestamp` in a folder of its own.
pub(super) struct Table {
    pub(super) dir: tempfile::TempDir,
    pub(super) json: Value,
    pub(super) storage: Arc<Storage>,
    limits: WriterLimits,
}

impl Table {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let json = json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": dir.path().to_str().unwrap(),
            "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 3,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "i", "required": true, "type": "int"},
                {"id": 2, "name": "s", "required": false, "type": "string"},
                {"id": 3, "name": "t", "required": false, "type": "timestamp"}]}],
            "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0,
            "last-partition-id": 1010, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
            "properties": {}, "snapshots": []
        });
        Self {
            dir,
            json,
            storage: Arc::default(),
            limits: WriterLimits::default(),
        }
    }

    pub(super) fn partitioned(fields: &[(&str, i32, &str)]) -> Self {
        let mut table = Self::new();
        let fields: Vec<Value> = fields
            .iter()
            .enumerate()
            .map(|(at, (name, id, transform))| json!({"field-id": 1000 + at, "name": name, "source-id": id, "transform": transform}))
            .collect();
        table.json["partition-specs"] = json!([{"spec-id": 7, "fields": fields}]);
        table.json["default-spec-id"] = json!(7);
        table
    }

    pub(super) fn property(mut self, name: &str, value: &str) -> Self {
        self.json["properties"][name] = json!(value);
        self
    }

    pub(super) fn sorted(mut self, transform: &str, id: i32) -> Self {
        let field = json!({"transform": transform, "source-id": id, "direction": "asc", "null-order": "nulls-first"});
        self.json["sort-orders"] = json!([{"order-id": 4, "fields": [field]}]);
        self.json["default-sort-order-id"] = json!(4);
        self
    }

    fn try_writer(&self) -> Result<DataWriter> {
        DataWriter::new(self.io(), self.pool(), &self.metadata(), "id", 0, self.limits)
    }

    pub(super) fn pool(&self) -> Arc<DecodePool> {
        Arc::new(DecodePool::new(2).unwrap())
    }

    pub(super) fn metadata(&self) -> TableMetadata {
        TableMetadata::from_bytes(self.json.to_string().as_bytes(), "m.json").unwrap()
    }

    pub(super) fn io(&self) -> TableIo {
        let root = self.dir.path().to_str().unwrap().to_owned();
        TableIo::new(Arc::clone(&self.storage), PathMap::default(), [root]).unwrap()
    }

    fn writer(&self) -> DataWriter {
        self.try_writer().unwrap()
    }

    async fn write(&self, batches: &[RecordBatch]) -> Vec<DataFile> {
        let mut writer = self.writer();
        for batch in batches {
            writer.write(batch).await.unwrap();
        }
        writer.finish().await.unwrap()
    }

    /// Names of all files below the table.
    pub(super) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut todo = vec![self.dir.path().to_owned()];
        while let Some(next) = todo.pop() {
            for entry in std::fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    found.push(self.below(path.to_str().unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    pub(super) fn below(&self, path: &str) -> String {
        let root = self.dir.path().to_str().unwrap();
        path.strip_prefix(root).unwrap().trim_start_matches('/').to_owned()
    }
}

pub(super) fn batch(i: Vec<i32>, s: Vec<Option<&str>>, t: Vec<Option<i64>>) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(i)),
        Arc::new(StringArray::from(s)),
        Arc::new(TimestampMicrosecondArray::from(t)),
    ];
    let fields = ["i", "s", "t"].iter().zip(&columns);
    let fields: Vec<Field> = fields
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap()
}

/// Rows numbered from `first` on, with texts that repeat after `distinct`.
pub(super) fn numbered(first: i32, rows: i32, distinct: i32) -> RecordBatch {
    let texts: Vec<String> = (first..first + rows).map(|i| format!("text {:05}", i % distinct)).collect();
    let times = (first..first + rows).map(|i| Some(i64::from(i) * 1_000_000)).collect();
    batch(
        (first..first + rows).collect(),
        texts.iter().map(|t| Some(t.as_str())).collect(),
        times,
    )
}

pub(super) fn read(path: &str) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

fn numbers(path: &str) -> Vec<i32> {
    let column = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
    read(path).iter().flat_map(column).collect()
}

fn all_numbers(files: &[DataFile]) -> Vec<i32> {
    let mut all: Vec<i32> = files.iter().flat_map(|file| numbers(&file.file_path)).collect();
    all.sort_unstable();
    all
}

fn text(of: &str) -> Option<Literal> {
    Some(Literal::String(of.to_owned()))
}

#[tokio::test]
async fn a_file_is_described_by_its_rows() {
    let table = Table::new();
    let batches = [
        batch(vec![3, -1], vec![Some("b"), None], vec![Some(-1), Some(1)]),
        batch(vec![2], vec![Some("a rather long text")], vec![None]),
    ];
    let files = table.write(&batches).await;
    let [file] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(table.below(&file.file_path), "data/00000-0-id-00001.parquet");
    assert_eq!((file.record_count, file.spec_id, file.sort_order_id), (3, 0, Some(0)));
    assert_eq!(file.file_size_in_bytes, std::fs::metadata(&file.file_path).unwrap().len());
    assert!(file.partition.is_empty());
    assert_eq!(file.value_counts, BTreeMap::from([(1, 3), (2, 3), (3, 3)]));
    assert_eq!(file.null_value_counts, BTreeMap::from([(1, 0), (2, 1), (3, 1)]));
    assert!(file.nan_value_counts.is_empty());
    let bounds = |int: i32, text: &str, time: i64| {
        BTreeMap::from([
            (1, int.to_le_bytes().to_vec()),
            (2, text.as_bytes().to_vec()),
            (3, time.to_le_bytes().to_vec()),
        ])
    };
    assert_eq!(file.lower_bounds, bounds(-1, "a rather long te", -1));
    assert_eq!(file.upper_bounds, bounds(3, "b", 1));
    assert_eq!(file.split_offsets, Some(vec![4]));
    let sizes: u64 = file.column_sizes.values().sum();
    assert!(file.column_sizes.len() == 3 && sizes < file.file_size_in_bytes, "{file:?}");
    assert_eq!(numbers(&file.file_path), [3, -1, 2]);
    assert_eq!(table.files(), ["data/00000-0-id-00001.parquet"]);
}

#[tokio::test]
async fn rows_lie_in_the_folder_of_their_partition() {
    let table = Table::partitioned(&[("s", 2, "identity"), ("day", 3, "day")]);
    let rows = batch(
        vec![1, 2, 3, 4],
        vec![Some("a/b"), None, Some("a/b"), Some("é")],
        vec![Some(-1), Some(0), Some(-2), None],
    );
    let files = table.write(&[rows]).await;
    let seen: Vec<_> = files
        .iter()
        .map(|file| {
            let path = table.below(&file.file_path);
            let folder = path.rsplit_once('/').unwrap().0.to_owned();
            (folder, file.partition.to_vec(), numbers(&file.file_path))
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("data/s=%C3%A9/day=null".to_owned(), vec![text("é"), None], vec![4]),
            (
                "data/s=a%2Fb/day=1969-12-31".to_owned(),
                vec![text("a/b"), Some(Literal::Int(-1))],
                vec![1, 3]
            ),
            ("data/s=null/day=1970-01-01".to_owned(), vec![None, Some(Literal::Int(0))], vec![2]),
        ]
    );
    assert!(files.iter().all(|file| file.spec_id == 7));
}

#[tokio::test]
async fn no_rows_make_no_file() {
    let table = Table::new();
    assert!(table.write(&[]).await.is_empty());
    assert!(table.write(&[batch(vec![], vec![], vec![])]).await.is_empty());
    assert!(table.files().is_empty());
}

#[tokio::test]
async fn files_end_at_their_target_and_row_groups_at_theirs() {
    let table = Table::new()
        .property("write.target-file-size-bytes", "60000")
        .property("write.parquet.row-group-size-bytes", "20000")
        .property("write.parquet.compression-codec", "uncompressed");
    let batches: Vec<RecordBatch> = (0..20).map(|n| numbered(n * 1000, 1000, 100_000)).collect();
    let files = table.write(&batches).await;
    assert_eq!(all_numbers(&files), (0..20_000).collect::<Vec<_>>());
    assert!(files.len() > 3, "{}", files.len());
    for file in files.iter().take(files.len() - 1) {
        assert!((60_000..120_000).contains(&file.file_size_in_bytes), "{}", file.file_size_in_bytes);
        let offsets = file.split_offsets.as_ref().unwrap();
        assert!(offsets.len() > 1 && offsets.is_sorted() && offsets[0] == 4, "{offsets:?}");
    }
    let names: Vec<String> = files.iter().map(|file| table.below(&file.file_path)).collect();
    assert_eq!(names[1], "data/00000-0-id-00002.parquet");
}

#[tokio::test]
async fn many_partitions_stay_within_the_bounds() {
    let mut table = Table::partitioned(&[("s", 2, "identity")]);
    table.limits.open_files = 5;
    table.limits.memory = 600 << 10;
    let mut writer = table.writer();
    for n in 0..40 {
        writer.write(&numbered(n * 1000, 1000, 200)).await.unwrap();
        assert!(writer.memory() <= table.limits.memory, "{}", writer.memory());
    }
    assert_eq!(writer.rows(), 40_000);
    let files = writer.finish().await.unwrap();
    assert_eq!(all_numbers(&files), (0..40_000).collect::<Vec<_>>());
    assert_eq!(files.iter().map(|file| file.record_count).sum::<u64>(), 40_000);
    for file in &files {
        let number = numbers(&file.file_path)[0] % 200;
        assert_eq!(file.partition.to_vec(), [text(&format!("text {number:05}"))]);
        assert!(numbers(&file.file_path).iter().all(|i| i % 200 == number));
    }
    assert_eq!(table.files().len(), files.len());
}

#[tokio::test]
async fn one_batch_of_many_rows_is_taken_in_parts() {
    let table = Table::new();
    let mut writer = table.writer();
    writer.write(&numbered(0, 200_000, 1000)).await.unwrap();
    let files = writer.finish().await.unwrap();
    assert_eq!(all_numbers(&files), (0..200_000).collect::<Vec<_>>());
    assert_eq!(files.len(), 1);
}

#[tokio::test]
async fn a_file_says_that_it_is_sorted_only_where_it_is() {
    let backwards = batch((0..1000).rev().collect(), vec![None; 1000], vec![None; 1000]);
    let table = Table::new().sorted("identity", 1);
    let [file] = table.write(std::slice::from_ref(&backwards)).await.try_into().unwrap();
    assert_eq!(file.sort_order_id, Some(4));
    assert_eq!(numbers(&file.file_path), (0..1000).collect::<Vec<_>>());

    // Chunks that follow each other, and such that do not.
    let small = |table: Table| table.property("write.parquet.row-group-size-bytes", "4096");
    let table = small(Table::new().sorted("identity", 1));
    let [file] = table
        .write(&[numbered(0, 1000, 10), numbered(1000, 1000, 10)])
        .await
        .try_into()
        .unwrap();
    assert_eq!((file.sort_order_id, file.split_offsets.unwrap().len() > 1), (Some(4), true));
    let table = small(Table::new().sorted("identity", 1));
    let [file] = table
        .write(&[numbered(1000, 1000, 10), numbered(0, 1000, 10)])
        .await
        .try_into()
        .unwrap();
    assert_eq!(file.sort_order_id, Some(0));
    assert_eq!(all_numbers(&[file]), (0..2000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_write_that_is_aborted_or_dropped_leaves_nothing() {
    let table = Table::partitioned(&[("s", 2, "identity")]).property("write.target-file-size-bytes", "5000");
    let started = || async {
        let mut writer = table.writer();
        writer.write(&numbered(0, 4000, 4)).await.unwrap();
        writer.write(&numbered(4000, 4000, 4)).await.unwrap();
        assert!(table.files().iter().any(|file| file.ends_with(".parquet")), "{:?}", table.files());
        writer
    };
    let writer = started().await;
    std::fs::write(table.dir.path().join("data/other"), "x").unwrap();
    writer.abort().await.unwrap();
    assert_eq!(table.files(), ["data/other"]);
    drop(started().await);
    for _ in 0..200 {
        if table.files().len() == 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(table.files(), ["data/other"]);
}

#[tokio::test]
async fn a_null_in_a_required_column_ends_the_write() {
    let table = Table::new();
    let mut writer = table.writer();
    writer.write(&numbered(0, 10, 10)).await.unwrap();
    let rows = numbered(0, 3, 10);
    let mut columns = rows.columns().to_vec();
    columns[0] = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let rows = RecordBatch::try_new(rows.schema(), columns).unwrap();
    let error = writer.write(&rows).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.to_string(), "a required column is null (column: i, row: 11)");
    assert!(writer.write(&numbered(0, 10, 10)).await.is_err());
    assert!(writer.finish().await.is_err());
    assert!(table.files().is_empty());
}

/// Fails at a step, or does as if somebody had taken the name just before.
#[derive(Debug)]
pub(super) struct Fault(pub(super) WriteStep, pub(super) Mutex<Option<Vec<u8>>>);

impl WriteFaults for Fault {
    fn at(&self, step: WriteStep, location: &str) -> Result<()> {
        if step != self.0 {
            return Ok(());
        }
        match self.1.lock().unwrap().take() {
            Some(bytes) => {
                std::fs::write(location, bytes).unwrap();
                Ok(())
            }
            None => Err(Error::unavailable("a fault")),
        }
    }
}

#[tokio::test]
async fn a_failure_leaves_nothing_of_its_own_and_all_of_others() {
    for step in [WriteStep::Part, WriteStep::Finish, WriteStep::Finished] {
        let mut table = Table::partitioned(&[("s", 2, "identity")]);
        table.storage = Arc::new(Storage::default().with_faults(Arc::new(Fault(step, Mutex::default()))));
        let mut writer = table.writer();
        writer.write(&numbered(0, 100, 4)).await.unwrap();
        assert_eq!(writer.finish().await.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(table.files().is_empty(), "{step:?}: {:?}", table.files());
    }
    let mut table = Table::new();
    let other = Fault(WriteStep::Finish, Mutex::new(Some(b"other".to_vec())));
    table.storage = Arc::new(Storage::default().with_faults(Arc::new(other)));
    let mut writer = table.writer();
    writer.write(&numbered(0, 100, 4)).await.unwrap();
    assert_eq!(writer.finish().await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(
        std::fs::read(table.dir.path().join("data/00000-0-id-00001.parquet")).unwrap(),
        b"other"
    );
}

#[tokio::test]
async fn too_many_files_are_refused() {
    let mut table = Table::partitioned(&[("i", 1, "identity")]);
    table.limits.files = 10;
    let mut writer = table.writer();
    writer.write(&numbered(0, 100, 4)).await.unwrap();
    let error = writer.finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
    assert!(table.files().is_empty());
}

#[test]
fn what_cannot_be_written_is_refused_at_once() {
    for (name, value) in [
        ("write.format.default", "avro"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.target-file-size-bytes", "-1"),
        ("write.location-provider.impl", "x"),
        ("write.metadata.metrics.default", "some"),
    ] {
        let error = Table::new().property(name, value).try_writer().unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = Table::partitioned(&[("z", 1, "zorder")]).try_writer().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn paths_outside_of_the_table_are_refused() {
    let table = Table::new().property("write.data.path", Path::new("/nowhere/at/all").to_str().unwrap());
    let mut writer = table.writer();
    writer.write(&numbered(0, 10, 4)).await.unwrap();
    assert_eq!(writer.finish().await.unwrap_err().kind(), ErrorKind::PermissionDenied);
}
