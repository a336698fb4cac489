//! The rayon pool that decodes.
//!
//! Invariants (architecture.md D6): the pool is private; a job is one bounded unit of work and
//! never blocks or awaits; what it needs (data, room for the result) is there before it is
//! spawned; a job whose caller is gone does not run, or stops at its next check; a panic in a
//! job is an error of that one query.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// A private rayon pool.
#[derive(Debug)]
pub struct DecodePool {
    pool: rayon::ThreadPool,
    finished: AtomicU64,
    abandoned: Arc<AtomicU64>,
}

/// Tells a running job whether anyone still waits for it.
#[derive(Debug, Clone)]
pub struct Cancelled(Arc<AtomicBool>);

impl Cancelled {
    /// True once the caller has dropped the [`Job`].
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A spawned job; a future of its result. Dropping it cancels the job.
#[derive(Debug)]
pub struct Job<T> {
    receiver: oneshot::Receiver<Result<T>>,
    cancelled: Arc<AtomicBool>,
}

impl DecodePool {
    /// A pool of `threads` threads (0: one per core).
    pub fn new(threads: usize) -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .stack_size(8 << 20)
            .thread_name(|i| format!("decode-{i}"))
            .build()
            .map_err(|e| Error::internal("cannot start the decode pool").with_source(e))?;
        Ok(Self {
            pool,
            finished: AtomicU64::new(0),
            abandoned: Arc::default(),
        })
    }

    /// Runs `work` on the pool, first come first served.
    pub fn spawn<T, F>(self: &Arc<Self>, work: F) -> Job<T>
    where
        T: Send + 'static,
        F: FnOnce(&Cancelled) -> Result<T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Cancelled(Arc::clone(&cancelled));
        let pool = Arc::clone(self);
        self.pool.spawn_fifo(move || {
            if flag.is_set() {
                pool.abandoned.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let result = std::panic::catch_unwind(AssertUnwindSafe(|| work(&flag)))
                .unwrap_or_else(|_| Err(Error::internal("decoding panicked; the query was stopped")));
            pool.finished.fetch_add(1, Ordering::Relaxed);
            // A receiver that is gone needs no result.
            drop(sender.send(result));
        });
        Job { receiver, cancelled }
    }

    /// Jobs that ran to their end.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Jobs that were dropped before they started.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Threads in the pool.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }
}

impl<T> Future for Job<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(cx)
            .map(|answer| answer.unwrap_or_else(|_| Err(Error::internal("a decode job ended without an answer"))))
    }
}

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_panic_is_an_error_of_that_job_alone() {
        let pool = Arc::new(DecodePool::new(1).unwrap());
        let failed: Result<()> = pool.spawn(|_| panic!("broken")).await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(pool.spawn(|_| Ok(3)).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_dropped_job_does_not_start() {
        let pool = Arc::new(DecodePool::new(1).unwrap());
        let (block, wait) = std::sync::mpsc::channel::<()>();
        let first = pool.spawn(move |_| Ok(wait.recv().is_ok()));
        let second: Job<()> = pool.spawn(|_| Err(Error::internal("must not run")));
        drop(second);
        block.send(()).unwrap();
        assert!(first.await.unwrap());
        assert_eq!(pool.spawn(|_| Ok(1)).await.unwrap(), 1);
        assert_eq!((pool.finished(), pool.abandoned()), (2, 1));
    }
}
