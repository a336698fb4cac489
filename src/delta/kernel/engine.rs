//! What the crate is given to read with.

use std::sync::Arc;

use delta_kernel::engine::arrow_expression::ArrowEvaluationHandler;
use delta_kernel::{Engine, EvaluationHandler, JsonHandler, ParquetHandler, StorageHandler};

use super::files::LogFiles;
use super::json::LogJson;
use super::parquet::LogParquet;
use super::seen::Seen;
use super::storage::LogStorage;

/// The handlers over one table's files.
pub(super) struct LogEngine {
    pub(super) seen: Seen,
    storage: Arc<LogStorage>,
    json: Arc<LogJson>,
    parquet: Arc<LogParquet>,
    evaluation: Arc<ArrowEvaluationHandler>,
}

impl LogEngine {
    pub(super) fn new(files: LogFiles, hides_hint: bool) -> Self {
        Self {
            seen: files.seen.clone(),
            storage: Arc::new(LogStorage::new(files.clone(), hides_hint)),
            json: Arc::new(LogJson(files.clone())),
            parquet: Arc::new(LogParquet(files)),
            evaluation: Arc::new(ArrowEvaluationHandler {}),
        }
    }
}

impl Engine for LogEngine {
    fn evaluation_handler(&self) -> Arc<dyn EvaluationHandler> {
        Arc::clone(&self.evaluation) as _
    }

    fn storage_handler(&self) -> Arc<dyn StorageHandler> {
        Arc::clone(&self.storage) as _
    }

    fn json_handler(&self) -> Arc<dyn JsonHandler> {
        Arc::clone(&self.json) as _
    }

    fn parquet_handler(&self) -> Arc<dyn ParquetHandler> {
        Arc::clone(&self.parquet) as _
    }
}
