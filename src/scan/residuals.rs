//! Leaves out filters that metadata has proved for every row of a scan.
//!
//! Invariant: only a filter of which planning said that every row passes it is left out
//! ([`crate::table::ScanPlan::proved`]); the rows stay the same, and `count(*)` below such filters
//! alone is answered without reading.

use std::sync::Arc;

use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::{conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use super::source::MergeOnReadSource;

/// The rule; runs before all others, so that they see the plan without those filters.
#[derive(Debug, Default)]
pub struct ProvedFilters;

impl PhysicalOptimizerRule for ProvedFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> DfResult<Arc<dyn ExecutionPlan>> {
        plan.transform_up(without_proved).data()
    }

    fn name(&self) -> &'static str {
        "proved_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn without_proved(plan: Arc<dyn ExecutionPlan>) -> DfResult<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else {
        return Ok(Transformed::no(plan));
    };
    let scan = filter.input().downcast_ref::<DataSourceExec>();
    let Some(source) = scan.and_then(|scan| scan.data_source().downcast_ref::<MergeOnReadSource>()) else {
        return Ok(Transformed::no(plan));
    };
    if filter.projection().is_some() || filter.fetch().is_some() {
        return Ok(Transformed::no(plan));
    }
    let all = split_conjunction(filter.predicate());
    let left: Vec<_> = all
        .iter()
        .filter(|part| !source.is_proved(part))
        .map(|part| Arc::clone(part))
        .collect();
    if left.len() == all.len() {
        return Ok(Transformed::no(plan));
    }
    let input = Arc::clone(filter.input());
    if left.is_empty() {
        return Ok(Transformed::yes(input));
    }
    let kept = FilterExecBuilder::from(filter).with_predicate(conjunction(left)).build()?;
    Ok(Transformed::yes(Arc::new(kept)))
}
