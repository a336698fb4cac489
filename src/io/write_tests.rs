//! Creating, streaming and deleting files of a table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::*;
use crate::error::{Error, ErrorKind, Result};

fn io_at(storage: Storage, root: &Path) -> TableIo {
    TableIo::new(Arc::new(storage), PathMap::default(), [root.to_str().unwrap().to_owned()]).unwrap()
}

/// Files below a folder by their name in it.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    let mut todo = vec![root.to_owned()];
    while let Some(next) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                out.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    out
}

/// Fails once at a step.
#[derive(Debug)]
struct Once(Mutex<Option<WriteStep>>);

impl WriteFaults for Once {
    fn at(&self, step: WriteStep, _: &str) -> Result<()> {
        let mut left = self.0.lock().unwrap();
        if *left == Some(step) {
            *left = None;
            return Err(Error::unavailable("a fault"));
        }
        Ok(())
    }
}

fn failing(step: WriteStep) -> Storage {
    Storage::default().with_faults(Arc::new(Once(Mutex::new(Some(step)))))
}

#[tokio::test]
async fn a_file_is_created_once_and_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("not/there/yet");
    let io = io_at(Storage::default(), &root);
    let place = root.join("metadata/a b%2F.json");
    let place = place.to_str().unwrap();
    let create = async |text: &'static str| io.create(place, FileKind::Metadata, Bytes::from(text)).await.unwrap();
    assert!(matches!(create("first").await, Created::Ours));
    assert!(matches!(create("first").await, Created::Ours), "the same bytes are ours");
    assert!(matches!(create("other").await, Created::Foreign));
    assert!(matches!(create("first, and more").await, Created::Foreign));
    assert_eq!(
        files(&root),
        BTreeMap::from([("metadata/a b%2F.json".to_owned(), b"first".to_vec())])
    );
    assert_eq!(io.storage().counters().requests_written(FileKind::Metadata), 4);
    assert_eq!(io.storage().counters().bytes_written(FileKind::Metadata), 5 + 5 + 5 + 15);

    assert!(io.delete(place, FileKind::Metadata).await.unwrap());
    assert!(!io.delete(place, FileKind::Metadata).await.unwrap());
    assert!(files(&root).is_empty());
}

#[tokio::test]
async fn a_lost_answer_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("x.avro");
    let place = place.to_str().unwrap();
    let io = io_at(failing(WriteStep::Created), dir.path());
    assert!(matches!(
        io.create(place, FileKind::Manifest, "ours".into()).await.unwrap(),
        Created::Ours
    ));
    let io = io_at(failing(WriteStep::Create), dir.path());
    let absent = dir.path().join("y.avro");
    let absent = absent.to_str().unwrap();
    let answer = io.create(absent, FileKind::Manifest, "ours".into()).await.unwrap();
    assert!(
        matches!(&answer, Created::Absent(e) if e.kind() == ErrorKind::Unavailable),
        "{answer:?}"
    );
    assert!(matches!(
        io.create(absent, FileKind::Manifest, "ours".into()).await.unwrap(),
        Created::Ours
    ));
}

#[tokio::test]
async fn of_many_creators_one_has_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let io = io_at(Storage::default(), dir.path());
    let place = dir.path().join("m/1.json");
    let tasks: Vec<_> = (0..16)
        .map(|i| {
            let (io, place) = (io.clone(), place.to_str().unwrap().to_owned());
            tokio::spawn(async move {
                io.create(&place, FileKind::Metadata, Bytes::from(format!("writer {i}")))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let mut won = Vec::new();
    for (i, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Created::Ours => won.push(format!("writer {i}").into_bytes()),
            Created::Foreign => {}
            Created::Absent(e) => panic!("{e}"),
        }
    }
    assert_eq!(files(dir.path()).into_values().collect::<Vec<_>>(), won);
    assert_eq!(won.len(), 1);
}

#[tokio::test]
async fn a_stream_becomes_a_file_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("t");
    let io = io_at(Storage::default(), &root);
    let place = root.join("data/p=1/x.parquet");
    let place = place.to_str().unwrap();
    let mut writer = io.writer(place, FileKind::Data).await.unwrap();
    let mut expected = Vec::new();
    for (i, len) in [0_usize, 3, 700_000, 700_000, 5_000_000, 1].into_iter().enumerate() {
        let part = vec![u8::try_from(i).unwrap(); len];
        expected.extend_from_slice(&part);
        writer.write(part.into()).await.unwrap();
        assert!(writer.buffered() <= 1 << 20);
        assert!(io.size(place, FileKind::Data).await.is_err(), "not there before the end");
    }
    assert!(io.list_files(&format!("{}/data/p=1", root.display())).await.unwrap().is_empty());
    assert_eq!(writer.written(), expected.len() as u64);
    assert_eq!(writer.finish().await.unwrap(), expected.len() as u64);
    assert_eq!(files(&root), BTreeMap::from([("data/p=1/x.parquet".to_owned(), expected.clone())]));
    assert_eq!(io.storage().counters().bytes_written(FileKind::Data), expected.len() as u64);

    let e = io.writer(place, FileKind::Data).await.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists);
    // another takes the name while this one writes
    let late = format!("{}/data/late", root.display());
    let mut writer = io.writer(&late, FileKind::Data).await.unwrap();
    writer.write("mine".into()).await.unwrap();
    std::fs::write(&late, "theirs").unwrap();
    assert_eq!(writer.finish().await.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(files(&root.join("data")).get("late").unwrap(), b"theirs");
    assert_eq!(files(&root).len(), 2, "nothing is left of the loser");
}

#[tokio::test]
async fn a_stream_that_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let place = |n: &str| dir.path().join(n).to_str().unwrap().to_owned();
    let big = || Bytes::from(vec![7; 3 << 20]);
    let io = io_at(Storage::default(), dir.path());
    let mut writer = io.writer(&place("a"), FileKind::Data).await.unwrap();
    writer.write(big()).await.unwrap();
    assert_eq!(files(dir.path()).len(), 1);
    writer.abort().await.unwrap();
    assert!(files(dir.path()).is_empty());
    let mut writer = io.writer(&place("b"), FileKind::Data).await.unwrap();
    writer.write(big()).await.unwrap();
    drop(writer);
    assert!(files(dir.path()).is_empty());

    let io = io_at(failing(WriteStep::Part), dir.path());
    let mut writer = io.writer(&place("c"), FileKind::Data).await.unwrap();
    writer.write(big()).await.unwrap_err();
    // what was lost in the middle can never become a file
    writer.write("more".into()).await.unwrap();
    assert_eq!(writer.finish().await.unwrap_err().kind(), ErrorKind::Internal);
    let io = io_at(failing(WriteStep::Finish), dir.path());
    let writer = io.writer(&place("d"), FileKind::Data).await.unwrap();
    writer.finish().await.unwrap_err();
    assert!(files(dir.path()).is_empty());
}

#[tokio::test]
async fn nothing_is_written_outside_of_the_roots() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = dir.path().join("wh/t");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(outside.path().join("canary"), "x").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("nowhere"), root.join("dangling")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("canary"), root.join("canary")).unwrap();
    let io = io_at(Storage::default(), &root);
    let at = |p: &str| format!("{}/{p}", root.display());
    let cases = [
        (format!("{}2/x", root.display()), ErrorKind::PermissionDenied),
        (outside.path().join("x").to_str().unwrap().to_owned(), ErrorKind::PermissionDenied),
        (at("out/x"), ErrorKind::PermissionDenied),
        (at("out/deep/er/x"), ErrorKind::PermissionDenied),
        (at("dangling/x"), ErrorKind::NotFound),
        (at("../x"), ErrorKind::InvalidInput),
        (at("a/./x"), ErrorKind::InvalidInput),
        (at("x/"), ErrorKind::InvalidInput),
        (at("x#7"), ErrorKind::InvalidInput),
        (root.to_str().unwrap().to_owned(), ErrorKind::PermissionDenied),
    ];
    for (place, kind) in cases {
        let e = io.create(&place, FileKind::Data, "x".into()).await.unwrap_err();
        assert_eq!(e.kind(), kind, "{place}: {e}");
        let e = io.writer(&place, FileKind::Data).await.unwrap_err();
        assert_eq!(e.kind(), kind, "{place}: {e}");
        let e = io.delete(&place, FileKind::Data).await.unwrap_err();
        assert_eq!(e.kind(), kind, "{place}: {e}");
    }
    // a link in the file's place is neither followed nor replaced
    io.create(&at("canary"), FileKind::Data, "y".into()).await.unwrap_err();
    assert!(io.delete(&at("canary"), FileKind::Data).await.unwrap());
    assert_eq!(files(outside.path()), BTreeMap::from([("canary".to_owned(), b"x".to_vec())]));
}
