//! The rows of a table are the same however finely it is scanned and by how many threads (B009).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use sandur::cache::Caches;
use sandur::error::{ErrorKind, Result};
use sandur::iceberg::TableLoader;
use sandur::io::Storage;
use sandur::runtime::DecodePool;
use sandur::scan::{LakeTableProvider, ScanContext, Steps};
use sandur::sql::from_datafusion;
use sandur::table::{AsOf, Table, TableIdent, TableLocation};

use crate::support::canonical::{Rows, sorted_lines};
use crate::support::cases::{self, Case};
use crate::support::read::Target;

/// All rows as sorted lines, scanned in steps of `steps` by `threads` threads.
async fn scan(case: &Case, threads: usize, steps: Steps) -> Result<Vec<String>> {
    let target = Target::from(case);
    let real = |path: &Path| std::fs::canonicalize(path).unwrap().to_str().unwrap().to_owned();
    let caches = Arc::new(Caches::new(32 << 20, 32 << 20));
    let pool = Arc::new(DecodePool::new(threads)?);
    let context = ScanContext::new(Arc::clone(&caches), Arc::clone(&pool)).with_steps(steps);
    let loader = TableLoader::new(Arc::new(Storage::default()), caches, pool);
    let location = TableLocation {
        root: real(&case.table_dir()),
        metadata_file: case.metadata_file().map(|file| real(&file)),
        path_map: target
            .path_map
            .into_iter()
            .map(|(from, to)| (from, real(Path::new(&to)) + "/"))
            .collect(),
        ..TableLocation::default()
    };
    let table = loader.newest(&TableIdent::new("c", "s", "t"), &location).await?;
    let snapshot = table.snapshot(&AsOf::Latest).await?;
    let session = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
    let provider = LakeTableProvider::new(snapshot, Arc::new(context));
    let frame = session.read_table(Arc::new(provider)).map_err(from_datafusion)?;
    let batches = frame.collect().await.map_err(from_datafusion)?;
    assert!(batches.iter().all(|batch| batch.num_rows() <= steps.batch_rows), "{}", case.name);
    Ok(sorted_lines(&Rows::from_batches(Vec::new(), &batches).rows))
}

/// Rows that are scanned one by one; larger tables take longer strides, or the test would take hours.
const ONE_BY_ONE: u64 = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn the_rows_are_the_same_one_by_one_and_by_any_number_of_threads() {
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut tables, mut one_by_one) = (0, 0);
    for case in cases::iceberg() {
        let whole = match scan(&case, 2, Steps::default()).await {
            Ok(whole) => whole,
            Err(e) => {
                assert!(
                    matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt),
                    "{}: {e:?}",
                    case.name
                );
                refused.entry(e.message().to_owned()).or_default().push(case.name);
                continue;
            }
        };
        tables += 1;
        let fine = whole.len() as u64 <= ONE_BY_ONE;
        one_by_one += usize::from(fine);
        let steps = Steps {
            batch_rows: if fine { 1 } else { 997 },
            unit_batches: 1,
        };
        for threads in [1, 2, 16] {
            let rows = scan(&case, threads, steps).await.unwrap_or_else(|e| panic!("{}: {e:?}", case.name));
            assert!(rows == whole, "{} differs with {threads} threads", case.name);
        }
    }
    println!("{tables} tables, {one_by_one} of them row by row; refused: {refused:?}");
}
