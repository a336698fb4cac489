//! What all scans of the process share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::Caches;
use crate::runtime::DecodePool;

/// Caches, decode pool and counters, shared by all queries.
#[derive(Debug)]
pub struct ScanContext {
    pub caches: Arc<Caches>,
    pub pool: Arc<DecodePool>,
    pub counters: ScanCounters,
}

impl ScanContext {
    /// A context over the given caches and pool.
    pub fn new(caches: Arc<Caches>, pool: Arc<DecodePool>) -> Self {
        Self {
            caches,
            pool,
            counters: ScanCounters::default(),
        }
    }
}

/// Counts since start.
#[derive(Debug, Default)]
pub struct ScanCounters {
    pub(super) row_groups_read: AtomicU64,
    pub(super) row_groups_all_deleted: AtomicU64,
    pub(super) units_decoded: AtomicU64,
}

impl ScanCounters {
    /// Row groups whose data was fetched.
    pub fn row_groups_read(&self) -> u64 {
        self.row_groups_read.load(Ordering::Relaxed)
    }

    /// Row groups left out because every row of them is deleted.
    pub fn row_groups_all_deleted(&self) -> u64 {
        self.row_groups_all_deleted.load(Ordering::Relaxed)
    }

    /// Units of work that the decode pool finished.
    pub fn units_decoded(&self) -> u64 {
        self.units_decoded.load(Ordering::Relaxed)
    }
}
