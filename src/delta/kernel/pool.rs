//! The threads that wait for the log.

use std::panic::AssertUnwindSafe;

use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// Logs that are read at once. A thread waits for most of its time.
const THREADS: usize = 8;
/// The stack of a thread: schemas and expressions are walked by recursion.
const STACK: usize = 8 << 20;

/// A bounded pool for calls that block.
#[derive(Debug)]
pub(in crate::delta) struct Pool(rayon::ThreadPool);

impl Pool {
    /// Errors: `Internal` where threads cannot be started.
    pub(in crate::delta) fn new() -> Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(THREADS)
            .stack_size(STACK)
            .thread_name(|i| format!("delta-log-{i}"))
            .build();
        pool.map(Self)
            .map_err(|e| Error::internal("cannot start the threads that read Delta logs").with_source(e))
    }

    /// Runs `work` on the pool, first come first served. A call whose caller is gone does not start.
    ///
    /// Errors: those of `work`; `Internal` where it panicked.
    pub(in crate::delta) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.0.spawn_fifo(move || {
            if sender.is_closed() {
                return;
            }
            let panicked = |_| Err(Error::internal("reading the Delta log panicked; the query was stopped"));
            let result = std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked);
            // A receiver that is gone needs no result.
            drop(sender.send(result));
        });
        let ended = |_| Err(Error::internal("a thread that reads Delta logs ended without an answer"));
        receiver.await.unwrap_or_else(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[tokio::test]
    async fn a_panic_is_an_error_of_that_call_alone() {
        let pool = Pool::new().unwrap();
        let failed: Result<()> = pool.run(|| panic!("broken")).await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Internal);
        assert_eq!(pool.run(|| Ok(3)).await.unwrap(), 3);
    }
}
