//! Plans of statements on pinned snapshots, kept for the moments in which a client asks for the same one again.
//!
//! A driver has a statement planned up to three times: prepared, asked for its schema, run.
//!
//! Invariants: a plan is given out only for the same text, defaults and pins, and only if its tables are views
//! of the very metadata that it was made from: a metadata file that was replaced under its name gives a new
//! plan. Only plans over snapshots are kept; what lists tables, or metadata tables, is planned anew.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::engine::Statement;
use super::prepare::Prepared;
use super::resolve::{Resolved, Target};
use crate::table::Snapshot;

/// Statements whose plans are kept.
const STATEMENTS: u64 = 64;
/// Longer texts are planned anew: their plans are large.
const LONGEST: usize = 16 << 10;
/// Plans hold metadata of tables in memory.
const KEPT: Duration = Duration::from_secs(10);

/// The plans of a process.
#[derive(Debug, Clone)]
pub(super) struct Plans {
    kept: Cache<Statement, Arc<Kept>>,
}

#[derive(Debug)]
struct Kept {
    snapshots: Vec<Arc<dyn Snapshot>>,
    prepared: Prepared,
}

impl Plans {
    pub(super) fn new() -> Self {
        Self {
            kept: Cache::builder().max_capacity(STATEMENTS).time_to_live(KEPT).build(),
        }
    }

    /// The statement's plan, if one was made on the same tables.
    pub(super) async fn get(&self, statement: &Statement, resolved: &[Resolved]) -> Option<Prepared> {
        let snapshots = snapshots(resolved)?;
        let kept = self.kept.get(statement).await?;
        let mut pairs = kept.snapshots.iter().zip(&snapshots);
        let same = kept.snapshots.len() == snapshots.len() && pairs.all(|(kept, now)| kept.is_same(now.as_ref()));
        same.then(|| kept.prepared.clone())
    }

    /// Keeps a plan that was made on these tables.
    pub(super) async fn keep(&self, prepared: &Prepared, resolved: &[Resolved]) {
        let Some(snapshots) = snapshots(resolved) else { return };
        if prepared.statement.sql.len() <= LONGEST {
            let prepared = prepared.clone();
            self.kept
                .insert(prepared.statement.clone(), Arc::new(Kept { snapshots, prepared }))
                .await;
        }
    }
}

fn snapshots(resolved: &[Resolved]) -> Option<Vec<Arc<dyn Snapshot>>> {
    let snapshots = resolved.iter().map(|one| match &one.target {
        Target::Table(snapshot) => Some(Arc::clone(snapshot)),
        Target::Metadata(..) | Target::Info(..) => None,
    });
    snapshots.collect()
}
