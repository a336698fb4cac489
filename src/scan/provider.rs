//! A snapshot as a DataFusion table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as DfResult};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::ScanContext;
use super::prune::FilePruner;
use super::pushdown::{misses, predicate};
use super::source::MergeOnReadSource;
use crate::table::{Column, HiddenColumn, Predicate, ScanRequest, Snapshot};

/// One pinned snapshot of a table. Read-only.
#[derive(Debug)]
pub struct LakeTableProvider {
    snapshot: Arc<dyn Snapshot>,
    context: Arc<ScanContext>,
}

impl LakeTableProvider {
    /// A provider of exactly this snapshot.
    pub fn new(snapshot: Arc<dyn Snapshot>, context: Arc<ScanContext>) -> Self {
        Self { snapshot, context }
    }

    /// What it scans.
    pub fn snapshot(&self) -> &Arc<dyn Snapshot> {
        &self.snapshot
    }
}

#[async_trait]
impl TableProvider for LakeTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.snapshot.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// What prunes is taken, but never as the whole of a filter: the engine keeps its own.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let columns = self.snapshot.columns();
        let prunes = |filter: &&Expr| predicate([*filter], columns) != Predicate::True;
        Ok(filters
            .iter()
            .map(|filter| {
                if prunes(filter) {
                    TableProviderFilterPushDown::Inexact
                } else {
                    TableProviderFilterPushDown::Unsupported
                }
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let all = self.snapshot.columns();
        let external = |e: crate::error::Error| DataFusionError::External(Box::new(e.with("table", self.snapshot.table())));
        let (columns, schema) = match projection {
            None => (all.to_vec(), Arc::clone(self.snapshot.schema())),
            Some(indices) => (
                indices.iter().filter_map(|i| all.get(*i).cloned()).collect(),
                Arc::new(self.snapshot.schema().project(indices)?),
            ),
        };
        let request = ScanRequest {
            predicate: predicate(filters, all),
            misses: filters.iter().map(|filter| misses(filter, all)).collect(),
            pruning: self.context.pruning,
            partition: columns.iter().any(|c: &Arc<Column>| c.id == HiddenColumn::Partition.id()),
        };
        let plan = self.snapshot.plan_scan(&request).await.map_err(external)?;
        self.context.counters.add_plan(&plan.counts);
        let proved = proved(state, filters, &plan.proved, &schema)?;
        let pruner = FilePruner::new(request.predicate, all, request.pruning);
        let target = state.config().target_partitions();
        let source = MergeOnReadSource::new(
            self.snapshot.table().clone(),
            plan,
            columns,
            schema,
            Arc::clone(&self.context),
            target,
            limit,
        )
        .with_pruner(pruner)
        .with_proved(proved);
        Ok(DataSourceExec::from_data_source(source))
    }
}

/// The filters among `filters` that are proved, over the columns of the scan.
fn proved(state: &dyn Session, filters: &[Expr], proved: &[bool], schema: &SchemaRef) -> DfResult<Vec<Arc<dyn PhysicalExpr>>> {
    let proved = filters.iter().zip(proved).filter(|(_, proved)| **proved);
    let schema = DFSchema::try_from(Arc::clone(schema))?;
    let names = |filter: &Expr| filter.column_refs().iter().all(|c| schema.has_column(c));
    proved
        .filter(|(filter, _)| names(filter))
        .map(|(filter, _)| state.create_physical_expr(filter.clone(), &schema))
        .collect()
}
