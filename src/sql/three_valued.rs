//! `x IN (SELECT y ..)` with its third value.
//!
//! The engine plans such a condition below OR, NOT, IS NULL and the like as a mark that is true or false. It is
//! NULL where no row is equal but one is NULL, or where `x` is NULL and there are rows; NOT of the mark is then
//! true where it should be NULL. Here such a condition becomes one over EXISTS, which has two values only.
//!
//! Invariant: a condition is left to the engine only where it plans a join that knows nulls (a condition of
//! its own, or below one NOT), or where false and NULL come to the same (below AND and OR alone), or where
//! nothing can be NULL.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result as DfResult, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, exists, when};

use crate::error::Error;

/// The plan with conditions that know NULL.
pub(super) fn three_valued(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => filtered(filter),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

fn filtered(filter: Filter) -> DfResult<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let mut changed = false;
    let conditions = split_conjunction_owned(filter.predicate.clone())
        .into_iter()
        .map(|condition| condition_of(condition, &schema, &mut changed));
    let conditions: Vec<Expr> = conditions.collect::<DfResult<_>>()?;
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let predicate = conjunction(conditions).unwrap_or_else(|| Expr::Literal(ScalarValue::Boolean(Some(true)), None));
    Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
}

/// A condition of its own.
fn condition_of(condition: Expr, schema: &DFSchema, changed: &mut bool) -> DfResult<Expr> {
    match condition {
        Expr::InSubquery(_) => Ok(condition),
        Expr::Not(inner) if matches!(*inner, Expr::InSubquery(_)) => Ok(Expr::Not(inner)),
        other => below(other, schema, true, changed),
    }
}

/// A part of a condition; `alike` where false and NULL come to the same.
fn below(part: Expr, schema: &DFSchema, alike: bool, changed: &mut bool) -> DfResult<Expr> {
    match part {
        Expr::InSubquery(of) if alike && !of.negated => Ok(Expr::InSubquery(of)),
        Expr::BinaryExpr(mut both) if alike && matches!(both.op, Operator::And | Operator::Or) => {
            both.left = Box::new(below(*both.left, schema, true, changed)?);
            both.right = Box::new(below(*both.right, schema, true, changed)?);
            Ok(Expr::BinaryExpr(both))
        }
        other => {
            let done = other.transform_up(|inner| match inner {
                Expr::InSubquery(of) if can_be_null(&of, schema) => {
                    *changed = true;
                    Ok(Transformed::yes(with_null(of, schema)?))
                }
                inner => Ok(Transformed::no(inner)),
            })?;
            Ok(done.data)
        }
    }
}

fn can_be_null(of: &InSubquery, schema: &DFSchema) -> bool {
    let fields = of.subquery.subquery.schema();
    of.expr.nullable(schema).unwrap_or(true) || fields.fields().iter().any(|field| field.is_nullable())
}

/// True where a row is equal; else NULL where one is NULL, or there is one and the value is NULL; else false.
fn with_null(of: InSubquery, schema: &DFSchema) -> DfResult<Expr> {
    let rows = of.subquery.subquery;
    let column = rows.schema().iter().map(Column::from).next();
    let column = column.ok_or_else(|| DataFusionError::External(Box::new(Error::invalid("IN takes a subquery of one column"))))?;
    let column = Expr::Column(column);
    let value = outer(*of.expr.clone(), schema)?;
    let such = |condition: Expr| -> DfResult<Expr> {
        let plan = LogicalPlanBuilder::from(rows.as_ref().clone()).filter(condition)?.build()?;
        Ok(exists(Arc::new(plan)))
    };
    let equal = such(column.clone().eq(value))?;
    let null = such(column.is_null())?;
    let any = exists(Arc::clone(&rows));
    let boolean = |value: Option<bool>| Expr::Literal(ScalarValue::Boolean(value), None);
    let unknown = null.or(of.expr.is_null().and(any));
    let is_in = when(equal, boolean(Some(!of.negated)))
        .when(unknown, boolean(None))
        .otherwise(boolean(Some(of.negated)))?;
    Ok(is_in)
}

/// An expression over the rows of the outer query, as a subquery names it.
fn outer(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let done = expr.transform_up(|inner| match inner {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            let field = Arc::clone(field);
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => {
            let message = "IN (subquery) below OR or NOT is not supported where its left side is of another query: use EXISTS";
            Err(DataFusionError::External(Box::new(Error::unsupported(message))))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}
