//! kill -9 between and inside commits: the pointer is the old one or the new one, and an answered commit stays
//! (reliability-security.md 4.3, steps 5 and 6).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::*;
use crate::catalog::{Catalog, SwapOutcome};

/// The process that is killed; does nothing when it is run as a test. Commits one after the other and says so.
#[tokio::test]
async fn committing_process() {
    let Ok(folder) = std::env::var("SANDUR_TEST_COMMITTER") else {
        return;
    };
    let folder = Path::new(&folder);
    let warehouse = folder.join("wh");
    let catalog = open(&folder.join("catalog.db"), &warehouse, Duration::from_secs(10));
    let location = catalog.pointer(&t()).await.unwrap().unwrap().location;
    let mut number = number_of(&location);
    println!();
    loop {
        println!("sent {}", number + 1);
        match catalog
            .swap(&t(), &metadata(&warehouse, number), &metadata(&warehouse, number + 1))
            .await
        {
            SwapOutcome::Done => println!("done {}", number + 1),
            other => panic!("{other:?}"),
        }
        number += 1;
    }
}

fn number_of(location: &str) -> u32 {
    let name = location.rsplit('/').next().unwrap();
    name.split('-').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_killed_process_leaves_the_old_or_the_new_pointer() {
    for wal in [true, false] {
        let lake = Lake::new();
        if !wal {
            super::super::rows::create_tables(&lake.raw()).unwrap();
        }
        drop(lake.with_table().await);
        let mut acknowledged = 0;
        for kill in 0..15 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "catalog::sql::tests::crash::committing_process", "--nocapture"])
                .env("SANDUR_TEST_COMMITTER", lake.dir.path())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            // Killed right after it announced a commit, or a moment into it.
            let (mut sent, mut killed) = (acknowledged, false);
            for line in lines {
                match line.split_once(' ') {
                    Some(("sent", n)) => sent = n.parse().unwrap(),
                    Some(("done", n)) => acknowledged = n.parse().unwrap(),
                    _ => continue,
                }
                if !killed && sent > acknowledged && sent % 7 == kill % 7 {
                    std::thread::sleep(Duration::from_micros(u64::from(kill) * 150));
                    child.kill().unwrap();
                    killed = true;
                }
            }
            child.wait().unwrap();
            assert!(killed, "it ended by itself");
            let catalog = lake.catalog();
            let now = number_of(&catalog.pointer(&t()).await.unwrap().unwrap().location);
            assert!(now == acknowledged || now == sent, "done {acknowledged}, sent {sent}, found {now}");
            assert_eq!(catalog.list_tables("s").await.unwrap(), [t()]);
            let (base, new) = (lake.metadata(sent - 1), lake.metadata(sent));
            let settled = catalog.resolve(&t(), Some(&base), &new).await;
            assert_eq!(matches!(settled, SwapOutcome::Done), now == sent, "{settled:?}");
            acknowledged = now;
        }
        let check: String = lake.raw().query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
    }
}
