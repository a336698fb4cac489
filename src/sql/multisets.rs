//! `EXCEPT ALL` and `INTERSECT ALL` as multisets.
//!
//! The engine plans them as joins that ask whether a row occurs on the right side at all. Here the occurrences
//! of each row are numbered on both sides and the numbers compared too: the n-th one on the left goes with the
//! n-th one on the right, or with none. With DISTINCT there is one occurrence of each, and the join is right.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result as DfResult};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};

/// Names of the numbers of occurrences.
const LEFT: &str = "__left_occurrence";
const RIGHT: &str = "__right_occurrence";

/// The plan with its set operations as multisets.
pub(super) fn count_occurrences(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let counted = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_of_all(&join) => Ok(Transformed::yes(counted(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(counted.data)
}

/// Nothing else that is planned joins half of both sides with nulls as equals.
fn is_of_all(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)))
}

fn counted(join: Join) -> DfResult<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().iter().map(|field| Expr::Column(Column::from(field))).collect();
    let mut keys: (Vec<Column>, Vec<Column>) = (Vec::new(), Vec::new());
    for (left, right) in &join.on {
        keys.0.push(
            left.get_as_join_column()
                .cloned()
                .unwrap_or_else(|| Column::from_name(left.schema_name().to_string())),
        );
        keys.1.push(
            right
                .get_as_join_column()
                .cloned()
                .unwrap_or_else(|| Column::from_name(right.schema_name().to_string())),
        );
    }
    keys.0.push(Column::from_name(LEFT));
    keys.1.push(Column::from_name(RIGHT));
    let right = numbered(Arc::unwrap_or_clone(join.right), RIGHT)?;
    let left = numbered(Arc::unwrap_or_clone(join.left), LEFT)?;
    LogicalPlanBuilder::from(left)
        .join_detailed(right, join.join_type, keys, None, NullEquality::NullEqualsNull)?
        .project(columns)?
        .build()
}

/// The rows with the number that each has among those that are equal to it.
fn numbered(plan: LogicalPlan, name: &str) -> DfResult<LogicalPlan> {
    let columns = plan.schema().iter().map(|field| Expr::Column(Column::from(field)));
    let number = Expr::from(WindowFunction::new(row_number_udwf(), Vec::new()));
    let number = number.partition_by(columns.collect()).build()?;
    LogicalPlanBuilder::from(plan).window([number.alias(name)])?.build()
}
