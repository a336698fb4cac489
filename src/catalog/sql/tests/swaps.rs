//! The compare-and-swap under competition, and commits that are not confirmed (AT-10, IC-30, IC-31).

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use super::super::super::Pointer;
use super::*;
use crate::catalog::SwapOutcome;
use crate::error::ErrorKind;

#[tokio::test]
async fn the_base_must_be_current() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    let m = |n| lake.metadata(n);
    done(catalog.swap(&t(), &m(0), &m(1)).await);
    assert!(matches!(catalog.swap(&t(), &m(0), &m(2)).await, SwapOutcome::Conflict));
    done(catalog.swap(&t(), &m(0), &m(1)).await);
    // as the loader spells it
    done(catalog.swap(&t(), m(1).strip_prefix("file://").unwrap(), &m(2)).await);
    done(catalog.swap(&t(), &m(0), &m(1)).await);
    let expected = Pointer {
        location: m(2),
        previous: Some(m(1)),
    };
    assert_eq!(
        catalog.pointer(&t()).await.unwrap(),
        Some(expected),
        "what was sent again changed nothing"
    );
    done(catalog.swap(&t(), &m(2), &m(3)).await);
    assert!(matches!(catalog.swap(&t(), &m(0), &m(1)).await, SwapOutcome::Conflict));
    assert!(matches!(catalog.swap(&t(), &m(3), &m(3)).await, SwapOutcome::Failed(_)));
    let gone = TableIdent::new("iceberg", "s", "gone");
    let SwapOutcome::Failed(e) = catalog.swap(&gone, &m(0), &m(1)).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::NotFound);
}

/// A program that knows nothing of this one's locks: the statements of pyiceberg, on a connection of its own.
/// Runs as a process of its own when a test starts it with a file to work on, and does nothing otherwise.
#[test]
fn foreign_process() {
    let Ok(file) = std::env::var("SANDUR_TEST_FOREIGN") else { return };
    let raw = Connection::open(file).unwrap();
    raw.busy_timeout(Duration::from_secs(10)).unwrap();
    println!("\nready");
    for line in std::io::stdin().lines().map(Result::unwrap) {
        let (base, new) = line.split_once(' ').unwrap();
        let update = "UPDATE iceberg_tables SET metadata_location = ?1, previous_metadata_location = ?2 \
                      WHERE catalog_name = 'iceberg' AND table_namespace = 's' AND table_name = 't' AND metadata_location = ?2";
        println!("rows {}", raw.execute(update, [new, base]).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_threads_and_a_foreign_process_one_wins_each_round() {
    let lake = Lake::new();
    let _ = lake.with_table().await;
    let catalogs: Vec<Arc<SqlCatalog>> = (0..8)
        .map(|_| Arc::new(open(&lake.file(), &lake.dir.path().join("wh"), Duration::from_secs(10))))
        .collect();
    let mut foreign = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "catalog::sql::tests::swaps::foreign_process", "--nocapture"])
        .env("SANDUR_TEST_FOREIGN", lake.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = foreign.stdin.take().unwrap();
    let mut answers = BufReader::new(foreign.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(answers.any(|line| line == "ready"));

    let mut base = lake.metadata(0);
    let (mut won_here, mut won_there) = (0, 0);
    for round in 1..=40_u32 {
        let tasks: Vec<_> = (0..8_u32)
            .map(|i| {
                let (catalog, base, new) = (Arc::clone(&catalogs[i as usize]), base.clone(), lake.metadata(round * 100 + i));
                tokio::spawn(async move { (catalog.swap(&t(), &base, &new).await, new) })
            })
            .collect();
        let foreign_new = lake.metadata(round * 100 + 99);
        writeln!(orders, "{base} {foreign_new}").unwrap();
        let answer = answers.find(|line| line.starts_with("rows ")).unwrap();
        let mut winners = Vec::new();
        if answer == "rows 1" {
            winners.push(foreign_new);
            won_there += 1;
        }
        for task in tasks {
            match task.await.unwrap() {
                (SwapOutcome::Done, new) => {
                    winners.push(new);
                    won_here += 1;
                }
                (SwapOutcome::Conflict, _) => {}
                (other, _) => panic!("{other:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
        let expected = Pointer {
            location: winners.remove(0),
            previous: Some(base),
        };
        assert_eq!(catalogs[0].pointer_of(&t()).await.unwrap(), Some(expected.clone()));
        base = expected.location;
    }
    drop(orders);
    assert!(foreign.wait().unwrap().success());
    assert_eq!(won_here + won_there, 40);
}

#[tokio::test]
async fn a_file_locked_by_another_is_a_failure_that_changed_nothing() {
    let lake = Lake::new();
    let catalog = lake.with_table().await;
    let other = lake.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let SwapOutcome::Failed(e) = catalog.swap(&t(), &lake.metadata(0), &lake.metadata(1)).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::Unavailable, "{e}");
    // With a write-ahead log readers go on.
    assert_eq!(catalog.pointer(&t()).await.unwrap().unwrap().location, lake.metadata(0));
    other.execute_batch("ROLLBACK").unwrap();
    done(catalog.swap(&t(), &lake.metadata(0), &lake.metadata(1)).await);
}

/// In a file without write-ahead log a reader makes COMMIT fail after the row was changed.
#[tokio::test]
async fn a_commit_that_fails_is_unknown_and_resolved_by_a_fence() {
    let lake = Lake::new();
    {
        let raw = lake.raw();
        super::super::rows::create_tables(&raw).unwrap();
        assert_eq!(
            raw.query_row("PRAGMA journal_mode", (), |r| r.get::<_, String>(0)).unwrap(),
            "delete"
        );
    }
    let catalog = lake.with_table().await;
    let (base, new) = (lake.metadata(0), lake.metadata(1));
    let reader = lake.raw();
    reader.execute_batch("BEGIN; SELECT count(*) FROM iceberg_tables").unwrap();

    let outcome = catalog.swap(&t(), &base, &new).await;
    let SwapOutcome::Unknown(e) = outcome else { panic!("{outcome:?}") };
    assert!(e.to_string().contains("locked"), "{e}");
    let again = catalog.resolve(&t(), Some(&base), &new).await;
    assert!(
        matches!(again, SwapOutcome::Unknown(_)),
        "no proof while the reader is there: {again:?}"
    );
    assert_eq!(again.into_result().unwrap_err().kind(), ErrorKind::CommitStateUnknown);
    let made = catalog.create_namespace("x", &[].into()).await.unwrap_err();
    assert_eq!(made.kind(), ErrorKind::CommitStateUnknown);
    let u = TableIdent::new("iceberg", "s", "u");
    assert!(matches!(catalog.create_table(&u, &new).await, SwapOutcome::Unknown(_)));

    reader.execute_batch("ROLLBACK").unwrap();
    assert_eq!(catalog.pointer(&t()).await.unwrap().unwrap().location, base);
    let SwapOutcome::Failed(e) = catalog.resolve(&t(), Some(&base), &new).await else {
        panic!()
    };
    assert_eq!(e.kind(), ErrorKind::Unavailable);
    let SwapOutcome::Failed(_) = catalog.resolve(&u, None, &new).await else {
        panic!()
    };

    // A reader that goes away in time is only waited for.
    reader.execute_batch("BEGIN; SELECT count(*) FROM iceberg_tables").unwrap();
    let waiting = tokio::spawn({
        let patient = open(&lake.file(), &lake.dir.path().join("wh"), Duration::from_secs(10));
        let (base, new) = (base.clone(), new.clone());
        async move { patient.swap(&t(), &base, &new).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    reader.execute_batch("ROLLBACK").unwrap();
    done(waiting.await.unwrap());
    // What was applied is found, also below one commit of somebody else, and no further.
    done(catalog.resolve(&t(), Some(&base), &new).await);
    done(catalog.swap(&t(), &new, &lake.metadata(2)).await);
    done(catalog.resolve(&t(), Some(&base), &new).await);
    done(catalog.swap(&t(), &lake.metadata(2), &lake.metadata(3)).await);
    assert!(matches!(catalog.resolve(&t(), Some(&base), &new).await, SwapOutcome::Unknown(_)));
}
