//! Conditions on one value that the engine would put together.
//!
//! It makes one list of `x IN (..) AND x IN (..)` and of other pairs, and lists of much that is not written as one:
//! `x = 1 OR x = 2`, `x LIKE 'a'`, `NOT (x <> 1 AND x <> 2)`, ranges of one value, `array_has`. Of lists that have nothing in
//! common it makes false or true, where NULL is neither, and elements that are no literals it compares as text of the
//! statement. Where rows are asked for that satisfy all of several conditions, NULL is as good as false, and what it does
//! with lists of literals is right; so are lists joined by OR, and NOT IN joined by AND, anywhere.
//!
//! Invariant: but for these, no two conditions that compare the same column with constants are about the same expression
//! for the engine.

use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use super::exact::is_comparison;
use crate::scan::Opaque;

/// The expression with conditions on one value kept apart. `filters` where rows are asked for that satisfy it.
pub(super) fn apart(expr: Expr, filters: bool) -> DfResult<Expr> {
    if !filters {
        return all_apart(expr);
    }
    let done = expr.transform_down(|part| match &part {
        Expr::BinaryExpr(BinaryExpr { op: Operator::And, .. }) => Ok(Transformed::no(part)),
        _ => Ok(Transformed::new(alone(part)?, true, TreeNodeRecursion::Jump)),
    })?;
    Ok(done.data)
}

/// One of several conditions that all must hold.
fn alone(condition: Expr) -> DfResult<Expr> {
    let mut bare = &condition;
    while let Expr::Not(inner) = bare {
        bare = inner;
    }
    match (is_list(bare) || is_comparison_with_constants(bare)) && only_literals(bare) {
        true => Ok(condition),
        false => all_apart(condition),
    }
}

fn all_apart(expr: Expr) -> DfResult<Expr> {
    let done = expr.transform_down(|part| {
        if is_list(&part) || is_comparison_with_constants(&part) {
            return Ok(Transformed::new(hidden(part)?, true, TreeNodeRecursion::Jump));
        }
        Ok(match part {
            // Of what has conditions inside, which come next.
            Expr::InList(mut list) => {
                *list.expr = whole(*list.expr);
                Transformed::yes(Expr::InList(list))
            }
            Expr::ScalarFunction(mut call) if is_list_function(&call) => {
                call.args = call.args.into_iter().map(whole).collect();
                Transformed::yes(Expr::ScalarFunction(call))
            }
            part => Transformed::no(part),
        })
    })?;
    Ok(done.data)
}

/// The value, hidden as a whole; a literal stays.
fn whole(value: Expr) -> Expr {
    match Opaque::is(&value) || !has_columns(&value) {
        true => value,
        false => Opaque::default().of(value),
    }
}

/// The condition about a value that no other condition is about.
fn hidden(condition: Expr) -> DfResult<Expr> {
    let opaque = Opaque::default();
    let done = condition.transform_down(|part| match part {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_) => {
            Ok(Transformed::new(opaque.of(part), true, TreeNodeRecursion::Jump))
        }
        part if Opaque::is(&part) => Ok(Transformed::new(part, false, TreeNodeRecursion::Jump)),
        part => Ok(Transformed::no(part)),
    })?;
    Ok(done.data)
}

/// Whether a part is a list, or is made one rightly: of lists and equalities joined by OR, of NOT IN joined by AND.
fn is_list(part: &Expr) -> bool {
    let op = match part {
        Expr::BinaryExpr(BinaryExpr { op, .. }) if matches!(op, Operator::Or | Operator::And) => *op,
        _ => return false,
    };
    let mut rest = vec![part];
    let mut about = None;
    while let Some(next) = rest.pop() {
        let of = match next {
            Expr::BinaryExpr(BinaryExpr { left, op: joined, right }) if *joined == op => {
                rest.extend([left.as_ref(), right.as_ref()]);
                continue;
            }
            Expr::InList(list) if list.negated == (op == Operator::And) => Some(list.expr.as_ref()),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Eq,
                right,
            }) if op == Operator::Or => match (left.as_ref(), right.as_ref()) {
                (of @ Expr::Column(_), other) | (other, of @ Expr::Column(_)) if is_literal(other) => Some(of),
                _ => None,
            },
            _ => None,
        };
        if of.is_none() || of != *about.get_or_insert(of) {
            return false;
        }
    }
    true
}

/// Whether a part compares with constants and has no conditions inside.
fn is_comparison_with_constants(part: &Expr) -> bool {
    let compares = match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => is_comparison(*op) && !(has_columns(left) && has_columns(right)),
        Expr::InList(_) | Expr::Between(_) | Expr::Like(_) | Expr::SimilarTo(_) => true,
        Expr::ScalarFunction(call) => is_list_function(call),
        _ => false,
    };
    let mut is_simple = true;
    let walk = part.apply_children(|operand| {
        is_simple &= !operand.exists(|inner| Ok(is_condition(inner)))?;
        Ok(TreeNodeRecursion::Continue)
    });
    compares && walk.is_ok() && is_simple
}

fn is_condition(part: &Expr) -> bool {
    match part {
        Expr::BinaryExpr(of) => is_comparison(of.op) || matches!(of.op, Operator::And | Operator::Or),
        Expr::ScalarFunction(call) => is_list_function(call),
        Expr::InList(_) | Expr::Between(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::Case(_) | Expr::Not(_) => true,
        _ => false,
    }
}

/// `array_has(list, x)` and its kind.
fn is_list_function(call: &ScalarFunction) -> bool {
    call.func.name().starts_with("array_has")
}

fn has_columns(expr: &Expr) -> bool {
    let found = expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::ScalarSubquery(_)
        ))
    });
    found.unwrap_or(true)
}

fn only_literals(part: &Expr) -> bool {
    let odd = part.exists(|inner| Ok(matches!(inner, Expr::InList(InList { list, .. }) if !list.iter().all(is_literal))));
    !odd.unwrap_or(true)
}

/// A literal, or a parameter, for which one comes. A list with NULL in it is as odd as one with columns.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => !value.is_null(),
        Expr::Placeholder(_) => true,
        _ => false,
    }
}
