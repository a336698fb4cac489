//! What the first statement of a process would have to wait for, done before the server says that it is ready.
//!
//! Invariants: no table is read, so that starting takes no longer for large catalogs; a failure is logged and
//! keeps nobody from being served.

use futures::{FutureExt, TryStreamExt};

use crate::error::Result;
use crate::sql::{Defaults, Engine, from_datafusion};

/// Goes through planning, the optimizer's rules, filters, joins, sorting and grouping.
const STATEMENT: &str = "SELECT a.k, count(*) FROM (VALUES (1, 'x'), (2, 'y')) AS a(k, t) \
     JOIN (VALUES (1), (2)) AS b(k) ON a.k = b.k WHERE a.t <> 'z' GROUP BY a.k ORDER BY a.k LIMIT 1";

/// Rounds; a thread of the runtime that had none is ready for work after a few.
const ROUNDS: usize = 4;

/// Runs statements over no table.
pub(super) async fn warm_up(engine: &Engine) {
    for _ in 0..ROUNDS {
        if let Err(error) = run(engine).await {
            tracing::warn!(%error, "the server could not be warmed up");
            return;
        }
    }
}

async fn run(engine: &Engine) -> Result<()> {
    let planned = engine.plan(STATEMENT, &Defaults::default()).boxed().await?;
    let _: Vec<_> = engine
        .run(&planned.statement, None)
        .await?
        .try_collect()
        .await
        .map_err(from_datafusion)?;
    Ok(())
}
