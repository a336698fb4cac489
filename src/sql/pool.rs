//! Where statements are planned and run: a runtime of its own with deep stacks.
//!
//! Planning and evaluation recurse as deep as a statement is nested, and so does dropping a plan;
//! a stack that overflows ends the process (SE-31, SE-45). Hence plans live on these threads
//! alone: callers get batches through a channel.
//!
//! Invariants: a planner that does not end keeps its slot, so no more than the slots are ever
//! stuck; dropping the pool does not block.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinHandle};

use crate::error::{Error, ErrorKind, Result};

/// Stack of each thread in bytes; only what is touched takes memory.
pub(super) const STACK: usize = 256 << 20;
/// Longest time that planning may take.
const PLANNING_LIMIT: Duration = Duration::from_secs(10);
/// Longest time that threads of a dropped pool are waited for.
const END_LIMIT: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(super) struct Pool {
    runtime: Option<Runtime>,
    planners: Arc<Semaphore>,
}

impl Pool {
    /// For `cores` cores, with as many planners. There are two threads more, so that a planner
    /// that computes for long does not hold up running statements.
    pub(super) fn new(cores: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores + 2)
            .thread_name("query")
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map_err(|e| Error::internal("cannot start the query threads").with_source(e))?;
        Ok(Self {
            runtime: Some(runtime),
            planners: Arc::new(Semaphore::new(cores.max(2))),
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
        within_limit(async {
            let slot = self.slot().await?;
            let runtime = self.runtime.as_ref().ok_or_else(ended)?;
            let running = runtime.spawn_blocking(move || {
                let result = step();
                drop(slot);
                result
            });
            running.await.map_err(|_| failed())?
        })
        .await
    }

    /// Runs one step of planning that also waits for I/O.
    ///
    /// Errors: as [`Self::plan`].
    pub(super) async fn plan_async<T: Send + 'static>(&self, step: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        within_limit(async {
            let slot = self.slot().await?;
            let running = self.spawn(async move {
                let result = step.await;
                drop(slot);
                result
            })?;
            let _abort = Abort(running.abort_handle());
            running.await.map_err(|_| failed())?
        })
        .await
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.planners).acquire_owned().await;
        slot.map_err(|_| ended())
    }
}

async fn within_limit<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let slow = |_| {
        let seconds = PLANNING_LIMIT.as_secs();
        Error::new(ErrorKind::DeadlineExceeded, format!("planning took longer than {seconds} seconds"))
    };
    tokio::time::timeout(PLANNING_LIMIT, work).await.map_err(slow)?
}

fn ended() -> Error {
    Error::internal("the query threads have ended")
}

fn failed() -> Error {
    Error::internal("planning the statement failed unexpectedly")
}

/// Ends a task when dropped.
pub(super) struct Abort(pub(super) AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn take(runtime: &Mutex<Option<Runtime>>) -> Option<Runtime> {
    runtime.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Drop for Pool {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // Threads that are let go while they end can crash the process (the C library reads a thread's
        // record after it may be gone), so they are waited for, elsewhere.
        let runtime = Arc::new(Mutex::new(Some(runtime)));
        let taken = Arc::clone(&runtime);
        let end = move || {
            if let Some(runtime) = take(&taken) {
                runtime.shutdown_timeout(END_LIMIT);
            }
        };
        let ending = std::thread::Builder::new().name("query end".to_owned()).spawn(end);
        if ending.is_err()
            && let Some(runtime) = take(&runtime)
        {
            runtime.shutdown_background();
        }
    }
}
