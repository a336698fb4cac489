//! From a snapshot to what the planner scans.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::datasource::TableProvider;

use crate::error::Result;
use crate::scan::{LakeTableProvider, ScanContext};
use crate::table::Snapshot;

/// Gives the provider that scans a snapshot. A snapshot's columns may be spelled otherwise than
/// its table spells them: columns are to be found by field id.
pub trait TableProviders: Send + Sync + Debug {
    /// The provider of one snapshot, under its schema.
    fn provider(self: Arc<Self>, snapshot: Arc<dyn Snapshot>) -> Result<Arc<dyn TableProvider>>;
}

impl TableProviders for ScanContext {
    fn provider(self: Arc<Self>, snapshot: Arc<dyn Snapshot>) -> Result<Arc<dyn TableProvider>> {
        Ok(Arc::new(LakeTableProvider::new(snapshot, self)))
    }
}
