//! The work of one scan, shared by its partitions: files not opened yet and row groups of opened ones.
//!
//! Row groups go before files, so that only a few files are open at a time; a partition that
//! finds nothing to do waits while another opens a file, since that may bring row groups.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::source::OpenFile;
use crate::table::FileScanTask;

/// A piece of work.
#[derive(Debug)]
pub(super) enum Work {
    File(Arc<FileScanTask>),
    RowGroup(Arc<OpenFile>, usize),
}

#[derive(Debug, Default)]
struct Inner {
    files: VecDeque<Arc<FileScanTask>>,
    row_groups: VecDeque<(Arc<OpenFile>, usize)>,
    opening: usize,
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    inner: Mutex<Inner>,
    changed: Notify,
}

impl WorkQueue {
    /// All files, largest first.
    pub(super) fn new(tasks: &[Arc<FileScanTask>]) -> Self {
        let mut files = tasks.to_vec();
        files.sort_by_key(|t| std::cmp::Reverse(t.record_count));
        Self {
            inner: Mutex::new(Inner {
                files: files.into(),
                ..Inner::default()
            }),
            changed: Notify::new(),
        }
    }

    /// The next piece of work; `None` when there is none and none can come. A file that is handed
    /// out must be answered with [`Self::opened`], also when opening failed.
    pub(super) async fn next(&self) -> Option<Work> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a change in between is not missed.
            changed.as_mut().enable();
            {
                let mut inner = self.lock();
                if let Some((file, row_group)) = inner.row_groups.pop_front() {
                    return Some(Work::RowGroup(file, row_group));
                }
                if let Some(task) = inner.files.pop_front() {
                    inner.opening += 1;
                    return Some(Work::File(task));
                }
                if inner.opening == 0 {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// A file was opened and has these row groups to read (none when opening failed).
    pub(super) fn opened(&self, row_groups: impl IntoIterator<Item = (Arc<OpenFile>, usize)>) {
        let mut inner = self.lock();
        inner.opening = inner.opening.saturating_sub(1);
        inner.row_groups.extend(row_groups);
        drop(inner);
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
