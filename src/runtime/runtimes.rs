//! The asynchronous runtime of the process.
//!
//! One runtime serves connections and queries. Its threads have big stacks, because planning
//! recurses over the statement; the pages of a stack are only used as deep as it goes.

use std::future::Future;
use std::time::Duration;

use crate::error::{Error, Result};

/// Enough for a statement at the limits of `sql`, also in builds without optimisation.
const STACK_BYTES: usize = 64 << 20;

/// How long blocking file reads may hold up the end of the process.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

/// The runtimes of the process.
#[derive(Debug)]
pub struct Runtimes {
    main: tokio::runtime::Runtime,
}

impl Runtimes {
    /// Starts the threads: one per core, and at least two, so that a busy query does not keep
    /// the server from answering.
    ///
    /// Errors: `ResourceExhausted` when the threads cannot be started.
    pub fn start() -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let main = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.max(2))
            .thread_name("sandur")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|e| Error::resource_exhausted("cannot start threads").with_source(e))?;
        Ok(Self { main })
    }

    /// Runs `work` to its end on the runtime's threads, then ends them. What was spawned and is
    /// still running is dropped.
    ///
    /// Errors: `Internal` when `work` panicked.
    pub fn run<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        // not on the calling thread, whose stack is as small as the system made it
        let task = self.main.spawn(work);
        let done = self.main.block_on(task);
        self.main.shutdown_timeout(BLOCKING_GRACE);
        done.map_err(|e| Error::internal("a task failed").with_source(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_to_its_end() {
        let sum = Runtimes::start()
            .unwrap()
            .run(async { tokio::spawn(async { 40 + 2 }).await.unwrap() });
        assert_eq!(sum.unwrap(), 42);
    }

    #[test]
    fn a_panic_is_an_error() {
        let out: Result<()> = Runtimes::start().unwrap().run(async { panic!("on purpose") });
        assert_eq!(out.unwrap_err().kind(), crate::error::ErrorKind::Internal);
    }
}
