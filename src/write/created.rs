//! The data files of a writer that no commit has taken yet.
//!
//! Exactly the files that the writer created are deleted: a name is remembered when the file may be there.

use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;

use crate::error::Result;
use crate::io::{FileKind, TableIo};

/// Locations of finished files; when dropped, they are deleted in the background as far as that goes.
#[derive(Debug)]
pub(super) struct Created {
    io: TableIo,
    /// Where deletions run that nobody waits for; the last use may end on a thread without one.
    runtime: Option<Handle>,
    locations: Mutex<Vec<String>>,
}

impl Created {
    pub(super) fn new(io: TableIo) -> Self {
        Self {
            io,
            runtime: Handle::try_current().ok(),
            locations: Mutex::default(),
        }
    }

    pub(super) fn add(&self, location: String) {
        self.lock().push(location);
    }

    /// The file turned out to be somebody else's.
    pub(super) fn forget(&self, location: &str) {
        self.lock().retain(|known| known != location);
    }

    /// How many files there are.
    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Hands the files over: they are no longer deleted.
    pub(super) fn release(&self) {
        self.lock().clear();
    }

    /// Deletes the files. All are tried; the first error is given.
    pub(super) async fn delete(&self) -> Result<()> {
        let locations = std::mem::take(&mut *self.lock());
        delete(&self.io, &locations).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.locations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        let locations = std::mem::take(&mut *self.lock());
        if locations.is_empty() {
            return;
        }
        // Without a runtime they stay, as after a crash, and are found as orphans.
        if let Some(runtime) = &self.runtime {
            let io = self.io.clone();
            runtime.spawn(async move {
                if let Err(error) = delete(&io, &locations).await {
                    tracing::warn!(%error, "data files of a write that was given up could not be deleted");
                }
            });
        }
    }
}

async fn delete(io: &TableIo, locations: &[String]) -> Result<()> {
    let mut first = Ok(());
    for location in locations {
        let deleted = io.delete(location, FileKind::Data).await;
        first = first.and(deleted.map(|_| ()));
    }
    first
}
