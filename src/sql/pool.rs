//! Where statements are planned and run: a runtime of its own with deep stacks.
//!
//! Planning and evaluation recurse as deep as a statement is nested, and so does dropping a plan;
//! a stack that overflows ends the process (SE-31, SE-45). Hence plans live on these threads
//! alone: callers get batches through a channel.
//!
//! Invariants: a planner that does not end keeps its slot, so no more than the slots are ever
//! stuck; dropping the pool does not block.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::error::{Error, ErrorKind, Result};

/// Stack of each thread in bytes; only what is touched takes memory.
const STACK: usize = 256 << 20;
/// Longest time that planning may take.
const PLANNING_LIMIT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Pool {
    runtime: Option<Runtime>,
    planners: std::sync::Arc<Semaphore>,
}

impl Pool {
    /// With `threads` workers and as many planners.
    pub(super) fn new(threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("query")
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map_err(|e| Error::internal("cannot start the query threads").with_source(e))?;
        Ok(Self {
            runtime: Some(runtime),
            planners: std::sync::Arc::new(Semaphore::new(threads.max(2))),
        })
    }

    /// Runs a task.
    pub(super) fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Result<JoinHandle<T>> {
        let runtime = self
            .runtime
            .as_ref()
            .ok_or_else(|| Error::internal("the query threads have ended"))?;
        Ok(runtime.spawn(task))
    }

    /// Runs one step of planning, which cannot be interrupted, on a thread of its own.
    ///
    /// Errors: `DeadlineExceeded` when it takes too long, `Internal` when it panics.
    pub(super) async fn plan<T: Send + 'static>(&self, step: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let slow = || {
            Error::new(
                ErrorKind::DeadlineExceeded,
                format!("planning took longer than {} seconds", PLANNING_LIMIT.as_secs()),
            )
        };
        let work = async {
            let slot = std::sync::Arc::clone(&self.planners).acquire_owned().await;
            let slot = slot.map_err(|e| Error::internal("the planners have ended").with_source(e))?;
            let runtime = self
                .runtime
                .as_ref()
                .ok_or_else(|| Error::internal("the query threads have ended"))?;
            let running = runtime.spawn_blocking(move || {
                let result = step();
                drop(slot);
                result
            });
            running
                .await
                .map_err(|_| Error::internal("planning the statement failed unexpectedly"))?
        };
        tokio::time::timeout(PLANNING_LIMIT, work).await.map_err(|_| slow())?
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
