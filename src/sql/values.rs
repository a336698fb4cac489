//! VALUES with more in it than expressions of one row.
//!
//! The engine's rows of VALUES are computed one by one and know no subqueries: a row with one becomes a query
//! without a table, which does. What is of many rows (aggregates, window functions, unnest) has no meaning there.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as DfResult};
use datafusion::logical_expr::{EmptyRelation, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Values, cast};

use super::errors::to_datafusion;
use crate::error::Error;

/// Makes VALUES computable.
///
/// Errors: `InvalidInput` for what is of many rows.
pub(super) fn computable(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let mut changed = false;
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Values(values) => {
            check(&values)?;
            if !values.values.iter().any(|row| has_subquery(row)) {
                return Ok(Transformed::no(LogicalPlan::Values(values)));
            }
            changed = true;
            Ok(Transformed::yes(rows(values)?))
        }
        other if changed => Ok(Transformed::yes(other.recompute_schema()?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

fn has_subquery(row: &[Expr]) -> bool {
    let is_one = |expr: &Expr| {
        matches!(
            expr,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
        )
    };
    row.iter().any(|expr| expr.exists(|e| Ok(is_one(e))).unwrap_or(false))
}

fn check(values: &Values) -> DfResult<()> {
    for expr in values.values.iter().flatten() {
        let mut found = None;
        expr.exists(|expr| {
            found = match expr {
                Expr::AggregateFunction(call) => Some(("aggregate function", call.func.name().to_owned())),
                Expr::WindowFunction(call) => Some(("window function", call.fun.name().to_owned())),
                Expr::Unnest(_) => Some(("function of many rows", "unnest".to_owned())),
                _ => None,
            };
            Ok(found.is_some())
        })?;
        if let Some((what, name)) = found {
            let message = format!("VALUES takes no {what}, and {name} is one: write a SELECT");
            return Err(to_datafusion(Error::invalid(message)));
        }
    }
    Ok(())
}

/// The same rows: those with subqueries each as a query, the others together.
fn rows(values: Values) -> DfResult<LogicalPlan> {
    let Values { schema, values } = values;
    let (queries, plain): (Vec<_>, Vec<_>) = values.into_iter().partition(|row| has_subquery(row));
    let nowhere = DFSchema::empty();
    let mut plans = Vec::with_capacity(queries.len() + 1);
    if !plain.is_empty() {
        plans.push(LogicalPlanBuilder::values_with_schema(plain, &schema)?.build()?);
    }
    for row in queries {
        let one_row = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: true,
            schema: Arc::new(DFSchema::empty()),
        });
        let row = row.into_iter().zip(schema.fields()).map(|(expr, field)| {
            let same = expr.get_type(&nowhere).is_ok_and(|of| of == *field.data_type());
            let expr = match field.data_type() {
                DataType::Null => expr,
                _ if same => expr,
                to => cast(expr, to.clone()),
            };
            expr.alias(field.name())
        });
        let row: Vec<Expr> = row.collect();
        plans.push(LogicalPlanBuilder::from(one_row).project(row)?.build()?);
    }
    let mut plans = plans.into_iter();
    let Some(first) = plans.next() else {
        return LogicalPlanBuilder::values_with_schema(Vec::new(), &schema)?.build();
    };
    let all = plans.try_fold(LogicalPlanBuilder::from(first), LogicalPlanBuilder::union)?;
    all.build()
}
