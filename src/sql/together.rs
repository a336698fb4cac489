//! Several executions of a statement as one, where each only makes rows of VALUES: `INSERT INTO t VALUES (?, ?)` with
//! thousands of rows of values would be planned as many times.
//!
//! Invariant: what comes of it is what the executions give one after the other, since every row of VALUES stands for
//! itself and has the same types.

use std::ops::Range;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Values as Rows};

use super::errors::from_datafusion;
use super::params::Values;
use crate::error::{Error, Result};

/// Values that are planned at once: planning has a limit of time, and each value is an expression.
const AT_ONCE: usize = 1024;

/// How many executions at a time can be one.
pub(super) fn at_once(plan: &LogicalPlan, values: &Values) -> Result<usize> {
    let can = values.len() > 1 && makes_rows_only(plan, values)?;
    let width = plan.schema().fields().len().max(1);
    Ok(if can { (AT_ONCE / width).max(1) } else { 1 })
}

fn makes_rows_only(plan: &LogicalPlan, values: &Values) -> Result<bool> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let bound = projection.expr.iter().any(|expr| expr.exists(is_placeholder).unwrap_or(true));
            Ok(!bound && makes_rows_only(&projection.input, values)?)
        }
        LogicalPlan::SubqueryAlias(alias) => makes_rows_only(&alias.input, values),
        // All values of a parameter have one type, so the first ones tell for all.
        LogicalPlan::Values(rows) => {
            let nowhere = DFSchema::empty();
            let types = rows.schema.fields();
            let first = bound(rows, values, 0)?;
            Ok(first.iter().all(|row| {
                let mut each = row.iter().zip(types);
                each.all(|(expr, field)| expr.get_type(&nowhere).is_ok_and(|of| of == *field.data_type()))
            }))
        }
        _ => Ok(false),
    }
}

fn is_placeholder(expr: &Expr) -> EngineResult<bool> {
    Ok(matches!(expr, Expr::Placeholder(_)))
}

/// The plan with the rows of all these executions, for a plan that makes rows only.
pub(super) fn together(plan: &LogicalPlan, values: &Values, executions: Range<usize>) -> Result<LogicalPlan> {
    let mut failed = None;
    let all = plan.clone().transform_down(|node| {
        let LogicalPlan::Values(rows) = &node else {
            return Ok(Transformed::no(node));
        };
        let mut all = Vec::with_capacity(executions.len() * rows.values.len());
        for execution in executions.clone() {
            match bound(rows, values, execution) {
                Ok(rows) => all.extend(rows),
                Err(e) => failed = Some(e),
            }
        }
        let schema = rows.schema.clone();
        let rows = LogicalPlan::Values(Rows { schema, values: all });
        Ok(Transformed::new(rows, true, TreeNodeRecursion::Jump))
    });
    match failed {
        Some(error) => Err(error),
        None => all.map(|all| all.data).map_err(from_datafusion),
    }
}

/// The rows of VALUES in one execution.
fn bound(rows: &Rows, values: &Values, execution: usize) -> Result<Vec<Vec<Expr>>> {
    let plan = LogicalPlan::Values(rows.clone());
    let plan = match values.row(execution)? {
        Some(values) => plan.with_param_values(values).map_err(from_datafusion)?,
        None => plan,
    };
    match plan {
        LogicalPlan::Values(rows) => Ok(rows.values),
        _ => Err(Error::internal("values are no values once they are bound")),
    }
}
