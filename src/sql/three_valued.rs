//! `x IN (SELECT y ..)` with its third value.
//!
//! The engine plans such a condition below OR, NOT, IS NULL and the like as a mark that is true or false. It is
//! NULL where no row is equal but one is NULL, or where `x` is NULL and there are rows; NOT of the mark is then
//! true where it should be NULL. Here such a condition becomes one over EXISTS, which has two values only.
//!
//! Invariant: a condition is left to the engine only where it plans a join that knows nulls (a condition of
//! its own, of a column, with the same rows for all), or where false and NULL come to the same (below AND and
//! OR alone), or where nothing can be NULL.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result as DfResult, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, exists, when};

use crate::error::Error;

/// The plan with conditions that know NULL.
pub(super) fn three_valued(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                check(part)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let done = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => filtered(filter),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(done.data)
}

fn filtered(filter: Filter) -> DfResult<Transformed<LogicalPlan>> {
    let schema = Arc::clone(filter.input.schema());
    let mut changed = false;
    if filter.predicate.exists(|part| Ok(matches!(part, Expr::WindowFunction(_))))? {
        let message = "window functions are not allowed in WHERE: put them into a subquery";
        return Err(DataFusionError::External(Box::new(Error::invalid(message))));
    }
    let predicate = of_one_row(filter.predicate.clone(), &mut changed)?;
    let conditions = split_conjunction_owned(predicate)
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
    let of = match condition {
        Expr::InSubquery(of) => of,
        Expr::Not(inner) => match *inner {
            Expr::InSubquery(of) => InSubquery {
                negated: !of.negated,
                ..of
            },
            inner => return below(Expr::Not(Box::new(inner)), schema, true, changed),
        },
        other => return below(other, schema, true, changed),
    };
    // The engine's join knows nulls where it has a column to join by and the rows are the same for all.
    let joins = of.subquery.outer_ref_columns.is_empty() && !of.expr.column_refs().is_empty();
    if !of.negated || joins || !can_be_null(&of, schema) {
        return Ok(Expr::InSubquery(of));
    }
    *changed = true;
    with_null(of, schema)
}

/// EXISTS and IN of an aggregate over all rows that belong to a row of the outer query, which is one row also where
/// there are none. The engine groups by what belongs together, so that it is no row then.
fn of_one_row(expr: Expr, changed: &mut bool) -> DfResult<Expr> {
    let done = expr.transform_up(|inner| match inner {
        Expr::Exists(of) if is_correlated(&of.subquery) => match aggregate_in(&of.subquery.subquery) {
            None => Ok(Transformed::no(Expr::Exists(of))),
            Some(Rows::One) => {
                *changed = true;
                Ok(Transformed::yes(Expr::Literal(ScalarValue::Boolean(Some(!of.negated)), None)))
            }
            Some(Rows::Some) => Err(refused()),
        },
        Expr::InSubquery(of) if is_correlated(&of.subquery) => match aggregate_in(&of.subquery.subquery) {
            None => Ok(Transformed::no(Expr::InSubquery(of))),
            Some(Rows::One) => {
                *changed = true;
                let (left, value) = (*of.expr, Expr::ScalarSubquery(of.subquery));
                Ok(Transformed::yes(match of.negated {
                    true => left.not_eq(value),
                    false => left.eq(value),
                }))
            }
            Some(Rows::Some) => Err(refused()),
        },
        inner => Ok(Transformed::no(inner)),
    })?;
    Ok(done.data)
}

/// Refuses what the engine takes out of a subquery that depends on the outer row, and then forgets.
fn check(part: &Expr) -> DfResult<()> {
    let (of, is_scalar) = match part {
        Expr::Exists(exists) => (&exists.subquery, false),
        Expr::InSubquery(of) => (&of.subquery, false),
        Expr::ScalarSubquery(of) => (of, true),
        _ => return Ok(()),
    };
    if !is_correlated(of) {
        return Ok(());
    }
    let skips = of.subquery.exists(|node| Ok(matches!(node, LogicalPlan::Limit(limit) if limit.skip.is_some())))?;
    if skips {
        let message = "OFFSET in a subquery that depends on the outer query is not supported";
        return Err(DataFusionError::External(Box::new(Error::unsupported(message))));
    }
    match is_scalar && has_condition(&of.subquery) {
        true => Err(refused()),
        false => Ok(()),
    }
}

/// Whether there is a condition on an aggregate without groups.
fn has_condition(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_condition(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_condition(&alias.input),
        LogicalPlan::Sort(sort) => has_condition(&sort.input),
        LogicalPlan::Limit(limit) => has_condition(&limit.input),
        LogicalPlan::Filter(filter) => aggregate_in(&filter.input).is_some(),
        _ => false,
    }
}

fn is_correlated(of: &Subquery) -> bool {
    !of.outer_ref_columns.is_empty()
}

/// How many rows an aggregate without groups gives, with what stands above it.
enum Rows {
    One,
    /// One or none: there is a condition.
    Some,
}

fn aggregate_in(plan: &LogicalPlan) -> Option<Rows> {
    match plan {
        LogicalPlan::Projection(projection) => aggregate_in(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => aggregate_in(&alias.input),
        LogicalPlan::Sort(sort) => aggregate_in(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => aggregate_in(input),
        LogicalPlan::Filter(filter) => aggregate_in(&filter.input).map(|_| Rows::Some),
        LogicalPlan::Limit(limit) => aggregate_in(&limit.input).map(|_| Rows::Some),
        LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty() => Some(Rows::One),
        _ => None,
    }
}

fn refused() -> DataFusionError {
    let message = "a subquery of an aggregate with HAVING or LIMIT that depends on the outer query is not supported: join with the aggregate";
    DataFusionError::External(Box::new(Error::unsupported(message)))
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
