//! Counting deletes, names and layout.

use std::sync::Arc;

use super::command::split_name;
use super::report::{Counts, aligned};
use crate::table::{
    DeleteSet, DeletionVectorRef, EqualityDeleteFile, EqualityDeleteSet, EqualityDeletes, FileFormat, FileOrigin, FileScanTask,
    PositionDeleteFile, VectorContainer,
};

fn task(record_count: u64, deletes: DeleteSet) -> Arc<FileScanTask> {
    Arc::new(FileScanTask {
        location: "/t/a.parquet".into(),
        format: FileFormat::Parquet,
        recorded_path: "/t/a.parquet".into(),
        size: 10,
        record_count: Some(record_count),
        constants: Arc::default(),
        deletes,
        origin: FileOrigin::default(),
    })
}

fn vector(offset: u64, cardinality: u64) -> DeleteSet {
    DeleteSet {
        vector: Some(Arc::new(DeletionVectorRef {
            location: "/t/v.puffin".into(),
            offset,
            length: 40,
            cardinality,
            container: VectorContainer::Puffin,
        })),
        ..DeleteSet::default()
    }
}

#[test]
fn vectors_of_one_file_count_each() {
    let counts = Counts::of(&[task(100, vector(4, 3)), task(50, vector(44, 2)), task(7, DeleteSet::default())]);
    assert_eq!((counts.data_files, counts.rows, counts.vectors), (3, 157, (2, 5)));
    assert_eq!(counts.deleted(), "5");
}

#[test]
fn shared_delete_files_count_once_and_younger_data_is_not_touched() {
    let position = Arc::new(PositionDeleteFile {
        location: "/t/p.parquet".into(),
        format: FileFormat::Parquet,
        size: 1,
        record_count: 8,
    });
    let file = |location: &str, sequence_number| EqualityDeleteFile {
        location: location.into(),
        format: FileFormat::Parquet,
        size: 1,
        record_count: 2,
        sequence_number,
    };
    let set = Arc::new(EqualityDeleteSet {
        keys: Vec::new(),
        files: vec![file("/t/e1.parquet", 2), file("/t/e2.parquet", 3)],
    });
    let deletes = |data_sequence_number| DeleteSet {
        vector: None,
        only: None,
        positions: vec![Arc::clone(&position)],
        equality: vec![EqualityDeletes {
            set: Arc::clone(&set),
            data_sequence_number,
        }],
    };
    let counts = Counts::of(&[task(10, deletes(2)), task(10, deletes(2))]);
    assert_eq!((counts.positions, counts.equality), ((1, 8), (1, 2)));
    let counts = Counts::of(&[task(10, deletes(1)), task(10, deletes(2))]);
    assert_eq!(counts.equality, (2, 4));
    assert!(counts.deleted().contains("only by reading"));
}

#[test]
fn names_split_at_dots_outside_of_quotes() {
    assert_eq!(split_name("a.b.c").unwrap(), ["a", "b", "c"]);
    assert_eq!(split_name("a.\"b.x\".`c d`").unwrap(), ["a", "b.x", "c d"]);
    for bad in ["", "a..c", "a.\"b", ".a"] {
        assert!(split_name(bad).is_err(), "{bad}");
    }
}

#[test]
fn columns_are_aligned_and_safe_for_a_terminal() {
    let text = aligned(
        "",
        &["n", "name"],
        [vec!["1".into(), "a\u{1b}[2J".into()], vec!["100".into(), String::new()]],
    );
    assert_eq!(text, "n    name\n1    a\\u{1b}[2J\n100");
}
