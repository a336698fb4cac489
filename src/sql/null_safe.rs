//! `IS NOT DISTINCT FROM` between the two sides of a join.
//!
//! The engine joins by it with a mark on the whole join that NULL equals NULL there, and then adds equalities of WHERE to
//! such a join, or loses the mark. Hence it is said by equalities alone: of the values with something in place of
//! NULL, and of whether they are NULL.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DfResult, ScalarValue};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::scan::Opaque;

/// What a join asks of its rows, without `IS NOT DISTINCT FROM` among what all must hold.
pub(super) fn null_safe(condition: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let done = condition.transform_down(|part| match part {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => Ok(Transformed::no(part)),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::IsNotDistinctFrom,
            right,
        }) => Ok(Transformed::new(equal(*left, *right, schema), true, TreeNodeRecursion::Jump)),
        part => Ok(Transformed::new(part, false, TreeNodeRecursion::Jump)),
    })?;
    Ok(done.data)
}

fn equal(left: Expr, right: Expr, schema: &DFSchema) -> Expr {
    let (of, other) = (left.get_type(schema).ok(), right.get_type(schema).ok());
    let some = of.filter(|of| other.as_ref() == Some(of) && !left.is_volatile() && !right.is_volatile());
    match some
        .and_then(|of| ScalarValue::new_default(&of).ok())
        .filter(|some| !some.is_null())
    {
        Some(some) => {
            let filled = |value: &Expr| coalesce(vec![value.clone(), Expr::Literal(some.clone(), None)]);
            filled(&left).eq(filled(&right)).and(left.is_null().eq(right.is_null()))
        }
        // As a whole it is no key of the join.
        None => Opaque::default().of(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(left),
            Operator::IsNotDistinctFrom,
            Box::new(right),
        ))),
    }
}
