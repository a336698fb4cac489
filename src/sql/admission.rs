//! How many statements run at a time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Error, Result};

/// Lets statements in; the others wait in the order in which they came.
#[derive(Debug, Clone)]
pub(super) struct Admission(Arc<Semaphore>);

impl Admission {
    pub(super) fn new(statements: usize) -> Self {
        Self(Arc::new(Semaphore::new(statements.min(Semaphore::MAX_PERMITS))))
    }

    /// Waits until a statement may run, which it may as long as it keeps the permit.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.0).acquire_owned().await;
        permit.map_err(|e| Error::internal("admission has ended").with_source(e))
    }
}
