//! Caches with byte budgets.
//!
//! Invariants: an entry is immutable and complete (a load that fails or is dropped leaves
//! nothing); several callers of one missing key share one load; the sum of weights stays within
//! the budget; a cache never decides a commit. Keys are resolved locations: formats forbid
//! rewriting a file in place, so within a table a location names its content for ever.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// What a cached value is; part of the key, so that one location may have several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheKind {
    TableMetadata,
    ManifestList,
    Manifest,
    ParquetFooter,
    AvroHeader,
    OrcTail,
    ParquetPageIndex,
    ParquetBloomFilter,
    DeletionVector,
    PositionDeletes,
    EqualityDeletes,
    DeltaVersion,
    DeltaFiles,
}

/// Kind, location, and a part of the file (offset, row group, ...) or a digest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    pub kind: CacheKind,
    pub location: Arc<str>,
    pub part: u64,
}

impl CacheKey {
    /// A key.
    pub fn new(kind: CacheKind, location: impl Into<Arc<str>>, part: u64) -> Self {
        Self {
            kind,
            location: location.into(),
            part,
        }
    }

    fn weight(&self) -> usize {
        self.location.len() + 64
    }
}

#[derive(Clone)]
struct Entry {
    value: Arc<dyn Any + Send + Sync>,
    bytes: u32,
}

/// A cache of values of any type under one byte budget.
pub struct ByteCache {
    inner: moka::future::Cache<CacheKey, Entry>,
    budget: u64,
    loads: AtomicU64,
}

impl fmt::Debug for ByteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteCache")
            .field("budget", &self.budget)
            .field("bytes", &self.inner.weighted_size())
            .finish()
    }
}

impl ByteCache {
    /// A cache that holds at most `budget` bytes.
    pub fn new(budget: u64) -> Self {
        let inner = moka::future::Cache::builder()
            .max_capacity(budget)
            .weigher(|_: &CacheKey, entry: &Entry| entry.bytes)
            .build();
        Self {
            inner,
            budget,
            loads: AtomicU64::new(0),
        }
    }

    /// The value under `key`, loaded if it is missing. `load` gives the value and its size in bytes.
    /// A value larger than the whole budget is returned and not kept.
    pub async fn get_or_load<V, F>(&self, key: CacheKey, load: F) -> Result<Arc<V>>
    where
        V: Any + Send + Sync,
        F: Future<Output = Result<(V, usize)>>,
    {
        let key_weight = key.weight();
        let init = async {
            self.loads.fetch_add(1, Ordering::Relaxed);
            let (value, bytes) = load.await?;
            let bytes = u32::try_from(bytes.saturating_add(key_weight)).unwrap_or(u32::MAX);
            Ok::<_, Error>(Entry {
                value: Arc::new(value),
                bytes,
            })
        };
        // On the heap: loads are deep futures, and callers await them in turn.
        let entry = Box::pin(self.inner.try_get_with(key, init)).await.map_err(|e| e.share())?;
        entry
            .value
            .downcast::<V>()
            .map_err(|_| Error::internal("a cache key was used for two types"))
    }

    /// Bytes held now, after pending evictions.
    pub async fn bytes(&self) -> u64 {
        self.inner.run_pending_tasks().await;
        self.inner.weighted_size()
    }

    /// Loads since start, that is misses.
    pub fn loads(&self) -> u64 {
        self.loads.load(Ordering::Relaxed)
    }

    /// The budget in bytes.
    pub fn budget(&self) -> u64 {
        self.budget
    }
}

/// The process's caches.
#[derive(Debug)]
pub struct Caches {
    /// Table metadata, manifest lists, manifests, Parquet footers.
    pub metadata: ByteCache,
    /// Deletion bitmaps and equality key sets.
    pub deletes: ByteCache,
}

impl Caches {
    /// Caches with the given budgets in bytes.
    pub fn new(metadata: u64, deletes: u64) -> Self {
        Self {
            metadata: ByteCache::new(metadata),
            deletes: ByteCache::new(deletes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> CacheKey {
        CacheKey::new(CacheKind::Manifest, name, 0)
    }

    #[tokio::test]
    async fn a_failed_load_leaves_nothing_behind() {
        let cache = ByteCache::new(1 << 20);
        let failed: Result<Arc<u32>> = cache.get_or_load(key("a"), async { Err(Error::corrupt("broken")) }).await;
        assert_eq!(failed.unwrap_err().message(), "broken");
        assert_eq!(*cache.get_or_load(key("a"), async { Ok((7u32, 4)) }).await.unwrap(), 7);
        assert_eq!(*cache.get_or_load(key("a"), async { Ok((8u32, 4)) }).await.unwrap(), 7);
        assert_eq!(cache.loads(), 2);
    }

    #[tokio::test]
    async fn ten_times_the_budget_stays_within_it() {
        let cache = ByteCache::new(100_000);
        for i in 0..1000 {
            cache
                .get_or_load(key(&format!("{i}")), async move { Ok((vec![0u8; 1000], 1000)) })
                .await
                .unwrap();
        }
        assert!(cache.bytes().await <= 100_000);
        assert!(cache.bytes().await > 0);
    }
}
