//! Joins that give up when nobody waits for them, and that leave the threads to others.
//!
//! A nested loop join computes until it has a batch of rows to give. When its filter lets nothing
//! through, that is the whole join, in one go: it does not notice that its reader is gone, and it
//! keeps a thread of the pool. Hence its filter is wrapped before it runs: each evaluation asks
//! whether the statement was dropped, and one that computes for long hands its thread's other work over.
//! Joins that do give batches are made to yield between them, which is where a dropped statement ends.
//!
//! Invariant: the rows of a plan are the same with and without this.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, SortMergeJoinExec};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::errors::to_datafusion;
use crate::error::Error;

/// A join that has run for this long is one that others would wait for.
const LONG: Duration = Duration::from_millis(500);

/// Says that nobody waits for the statement any more. Clones share one answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sets the interrupt when dropped.
#[derive(Debug)]
pub(super) struct InterruptOnDrop(pub(super) Interrupt);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// The plan with joins that can be interrupted.
pub(super) fn interruptible(plan: Arc<dyn ExecutionPlan>, interrupt: &Interrupt) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
            let filter = join.filter().map(|filter| {
                let watched = Watched::new(Arc::clone(filter.expression()), interrupt.clone());
                JoinFilter::new(Arc::new(watched), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
            });
            let join = NestedLoopJoinExecBuilder::from(join).with_filter(filter).build()?;
            return Ok(Transformed::yes(yielding(Arc::new(join))));
        }
        let gives_batches = node.is::<CrossJoinExec>() || node.is::<HashJoinExec>() || node.is::<SortMergeJoinExec>();
        Ok(if gives_batches {
            Transformed::yes(yielding(node))
        } else {
            Transformed::no(node)
        })
    })?;
    Ok(wrapped.data)
}

fn yielding(node: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    Arc::new(CooperativeExec::new(node))
}

/// An expression that fails once the statement was dropped.
#[derive(Debug, Clone)]
struct Watched {
    inner: Arc<dyn PhysicalExpr>,
    interrupt: Interrupt,
    made: Instant,
}

impl Watched {
    fn new(inner: Arc<dyn PhysicalExpr>, interrupt: Interrupt) -> Self {
        Self {
            inner,
            interrupt,
            made: Instant::now(),
        }
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl PhysicalExpr for Watched {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.interrupt.is_set() {
            return Err(to_datafusion(Error::cancelled("the reader has gone")));
        }
        let on_pool = || Handle::try_current().is_ok_and(|h| h.runtime_flavor() == RuntimeFlavor::MultiThread);
        if self.made.elapsed() > LONG && on_pool() {
            return tokio::task::block_in_place(|| self.inner.evaluate(batch));
        }
        self.inner.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let [inner] =
            <[_; 1]>::try_from(children).map_err(|_| DataFusionError::Internal("a watched expression has one part".to_owned()))?;
        Ok(Arc::new(Self {
            inner,
            interrupt: self.interrupt.clone(),
            made: self.made,
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}
