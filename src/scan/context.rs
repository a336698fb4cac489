//! What all scans of the process share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::prune::Selected;
use crate::cache::Caches;
use crate::runtime::DecodePool;
use crate::table::{PlanCounts, Pruning};

/// How finely a scan works. The rows are the same whatever they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Rows in a batch.
    pub batch_rows: usize,
    /// Batches that one job of the decode pool makes.
    pub unit_batches: usize,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            batch_rows: 8192,
            unit_batches: 8,
        }
    }
}

/// Caches, decode pool, switches and counters, shared by all queries.
#[derive(Debug)]
pub struct ScanContext {
    pub caches: Arc<Caches>,
    pub pool: Arc<DecodePool>,
    pub counters: ScanCounters,
    /// What may be pruned by.
    pub pruning: Pruning,
    pub steps: Steps,
}

impl ScanContext {
    /// A context over the given caches and pool.
    pub fn new(caches: Arc<Caches>, pool: Arc<DecodePool>) -> Self {
        Self {
            caches,
            pool,
            counters: ScanCounters::default(),
            pruning: Pruning::default(),
            steps: Steps::default(),
        }
    }

    /// With these kinds of pruning.
    #[must_use]
    pub fn with_pruning(mut self, pruning: Pruning) -> Self {
        self.pruning = pruning;
        self
    }

    /// With steps of this size.
    #[must_use]
    pub fn with_steps(mut self, steps: Steps) -> Self {
        self.steps = steps;
        self
    }
}

/// Counts since start.
#[derive(Debug, Default)]
pub struct ScanCounters {
    pub(super) row_groups_read: AtomicU64,
    pub(super) row_groups_all_deleted: AtomicU64,
    pub(super) units_decoded: AtomicU64,
    manifests_skipped: AtomicU64,
    files_skipped_by_partition: AtomicU64,
    files_skipped_by_metrics: AtomicU64,
    filters_proved: AtomicU64,
    row_groups_skipped_by_statistics: AtomicU64,
    row_groups_skipped_by_bloom: AtomicU64,
    pages_skipped: AtomicU64,
    rows_skipped_by_pages: AtomicU64,
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

    pub(super) fn add_plan(&self, counts: &PlanCounts) {
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.manifests_skipped, counts.manifests_skipped);
        add(&self.files_skipped_by_partition, counts.files_skipped_by_partition);
        add(&self.files_skipped_by_metrics, counts.files_skipped_by_metrics);
        add(&self.filters_proved, counts.filters_proved);
    }

    pub(super) fn add_file(&self, selected: &Selected) {
        let add = |counter: &AtomicU64, n| counter.fetch_add(n, Ordering::Relaxed);
        add(&self.row_groups_skipped_by_statistics, selected.row_groups_by_statistics);
        add(&self.row_groups_skipped_by_bloom, selected.row_groups_by_bloom);
        add(&self.pages_skipped, selected.pages);
        add(&self.rows_skipped_by_pages, selected.rows_by_pages);
    }

    /// Manifests that were not read because of their partition summaries.
    pub fn manifests_skipped(&self) -> u64 {
        self.manifests_skipped.load(Ordering::Relaxed)
    }

    /// Data files left out by their partition values.
    pub fn files_skipped_by_partition(&self) -> u64 {
        self.files_skipped_by_partition.load(Ordering::Relaxed)
    }

    /// Data files left out by their counts and bounds.
    pub fn files_skipped_by_metrics(&self) -> u64 {
        self.files_skipped_by_metrics.load(Ordering::Relaxed)
    }

    /// Filters that metadata proved for every row of a scan.
    pub fn filters_proved(&self) -> u64 {
        self.filters_proved.load(Ordering::Relaxed)
    }

    /// Row groups left out by the statistics of their columns or of all their pages.
    pub fn row_groups_skipped_by_statistics(&self) -> u64 {
        self.row_groups_skipped_by_statistics.load(Ordering::Relaxed)
    }

    /// Row groups left out by a bloom filter.
    pub fn row_groups_skipped_by_bloom(&self) -> u64 {
        self.row_groups_skipped_by_bloom.load(Ordering::Relaxed)
    }

    /// Data pages of decoded columns that were not fetched because of the page index.
    pub fn pages_skipped(&self) -> u64 {
        self.pages_skipped.load(Ordering::Relaxed)
    }

    /// Rows in pages that cannot match.
    pub fn rows_skipped_by_pages(&self) -> u64 {
        self.rows_skipped_by_pages.load(Ordering::Relaxed)
    }

    /// Units of work that the decode pool finished.
    pub fn units_decoded(&self) -> u64 {
        self.units_decoded.load(Ordering::Relaxed)
    }
}
