//! A metadata table as the planner sees it.
//!
//! Invariant: nothing is read before the plan runs, and then only what the columns asked for need.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{TryStreamExt, stream};

use super::errors::to_datafusion;
use crate::table::MetadataTable;

/// See the module.
#[derive(Debug)]
pub(super) struct MetadataProvider {
    table: Arc<dyn MetadataTable>,
}

impl MetadataProvider {
    pub(super) fn new(table: Arc<dyn MetadataTable>) -> Self {
        Self { table }
    }
}

#[async_trait]
impl TableProvider for MetadataProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.table.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.table.schema().fields().len()).collect();
        let wanted: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let schema = Arc::new(self.table.schema().project(&wanted)?);
        let rows = Rows {
            table: Arc::clone(&self.table),
            wanted,
            schema: Arc::clone(&schema),
        };
        let plan = StreamingTableExec::try_new(schema, vec![Arc::new(rows)], None, [], false, limit)?;
        Ok(Arc::new(plan))
    }
}

#[derive(Debug)]
struct Rows {
    table: Arc<dyn MetadataTable>,
    wanted: Vec<usize>,
    schema: SchemaRef,
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (table, wanted) = (Arc::clone(&self.table), self.wanted.clone());
        let batches = async move {
            let batches = table.rows(&wanted).await.map_err(to_datafusion)?;
            Ok::<_, DataFusionError>(stream::iter(batches.into_iter().map(Ok)))
        };
        let rows = stream::once(batches).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}
