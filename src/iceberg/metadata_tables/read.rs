//! Reading manifest lists and manifests for listings.
//!
//! Manifests are read with all their columns and are not kept: scans need less of them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};

use super::table::IcebergMetadataTable;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::manifest::{Manifest, ManifestFile};
use crate::iceberg::plan::{MANIFEST_LIMIT, manifest_list};
use crate::iceberg::spec::{Snapshot, TableMetadata};
use crate::io::FileKind;

/// Manifest lists or manifests that are read at once.
const CONCURRENT: usize = 8;

impl IcebergMetadataTable {
    /// Snapshots that the rows are about.
    pub(super) fn snapshots(&self, all: bool) -> Vec<Arc<Snapshot>> {
        if all {
            self.table.metadata.snapshots.clone()
        } else {
            self.snapshot.iter().cloned().collect()
        }
    }

    /// The manifests of snapshots, in their order.
    pub(super) async fn manifest_lists(&self, snapshots: &[Arc<Snapshot>]) -> Result<Vec<Arc<Vec<ManifestFile>>>> {
        let reads: Vec<_> = snapshots
            .iter()
            .map(|snapshot| async move {
                snapshot.check_readable()?;
                manifest_list(&self.table.files, snapshot).await
            })
            .collect();
        stream::iter(reads).buffered(CONCURRENT).try_collect().await
    }

    /// The manifests of one or all snapshots, each once.
    pub(super) async fn distinct_manifests(&self, all: bool) -> Result<Vec<ManifestFile>> {
        let lists = self.manifest_lists(&self.snapshots(all)).await?;
        let mut seen = HashSet::new();
        let listed = lists.iter().flat_map(|list| list.iter());
        Ok(listed.filter(|m| seen.insert(m.location.as_str())).cloned().collect())
    }

    /// What `rows` makes of each manifest, in order; it runs on the decode pool.
    pub(super) async fn each_manifest<T: Send + 'static>(
        &self,
        manifests: Vec<ManifestFile>,
        rows: impl Fn(&Manifest, &TableMetadata) -> Result<T> + Clone + Send + Sync + 'static,
    ) -> Result<Vec<T>> {
        let reads: Vec<_> = manifests
            .into_iter()
            .map(|entry| {
                let rows = rows.clone();
                async move {
                    let name = entry.location.clone();
                    self.one_manifest(entry, rows).await.context("manifest", || name)
                }
            })
            .collect();
        stream::iter(reads).buffered(CONCURRENT).try_collect().await
    }

    async fn one_manifest<T: Send + 'static>(
        &self,
        entry: ManifestFile,
        rows: impl Fn(&Manifest, &TableMetadata) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if entry.has_key_metadata {
            return Err(Error::unsupported("encrypted manifests cannot be read"));
        }
        let files = &self.table.files;
        let location = files.io.resolve(&entry.location)?;
        let bytes = files.io.read(&location, FileKind::Manifest, MANIFEST_LIMIT).await?;
        let metadata = Arc::clone(&self.table.metadata);
        let work = files.pool.spawn(move |_| {
            let manifest = Manifest::parse_in_full(&bytes, &entry, &metadata)?;
            rows(&manifest, &metadata)
        });
        work.await
    }
}

/// All batches in one list.
pub(super) fn flatten(batches: Vec<Vec<RecordBatch>>) -> Vec<RecordBatch> {
    batches.into_iter().flatten().collect()
}
