//! `x IN (1, 2)` where the engine would put two such lists together.
//!
//! It makes one of `x IN (..) AND x IN (..)` and of other pairs, also of `x = 1 OR x = 2`: of lists that have nothing
//! in common it makes false or true, where NULL is neither, and elements that are no literals it compares as text of
//! the statement. What it does right is left to it: lists joined by OR, and NOT IN joined by AND.
//!
//! Invariant: of all lists of a plan that are about one expression, no two can come together by a rule of the engine
//! but for those that one of these two joins; a list with other elements than literals comes together with none.

use datafusion::common::Result as DfResult;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::scan::Opaque;

/// The expressions that lists of a plan are about so far.
#[derive(Debug, Default)]
pub(super) struct Lists(Vec<Expr>);

/// Lists that the engine may make one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `x = 1`, which becomes part of a list.
    One,
    In,
    NotIn,
}

impl Lists {
    /// The expression with its lists kept apart. `is_condition` where it is one that rows are filtered by: others may
    /// come to stand beside any condition.
    pub(super) fn apart(&mut self, expr: Expr, is_condition: bool) -> DfResult<Expr> {
        let done = expr.transform_down(|part| {
            let Some((of, kind)) = group(&part) else {
                return Ok(Transformed::no(part));
            };
            let of = of.clone();
            let is_first = !self.0.contains(&of);
            if kind == Kind::One || (is_condition && is_first && only_literals(&part)) {
                if is_first && kind != Kind::One {
                    self.0.push(of);
                }
                return Ok(Transformed::new(part, false, TreeNodeRecursion::Jump));
            }
            let opaque = Opaque::default();
            let hidden = part.transform_up(|inner| match inner {
                Expr::InList(mut list) if *list.expr == of => {
                    list.expr = Box::new(opaque.of(*list.expr));
                    Ok(Transformed::yes(Expr::InList(list)))
                }
                Expr::BinaryExpr(mut both) if both.op == Operator::Eq => {
                    for side in [&mut both.left, &mut both.right] {
                        if **side == of {
                            **side = opaque.of(of.clone());
                        }
                    }
                    Ok(Transformed::yes(Expr::BinaryExpr(both)))
                }
                inner => Ok(Transformed::no(inner)),
            })?;
            Ok(Transformed::new(hidden.data, true, TreeNodeRecursion::Jump))
        })?;
        Ok(done.data)
    }
}

/// What a part is a list about, where the engine puts all of it together rightly.
fn group(part: &Expr) -> Option<(&Expr, Kind)> {
    match part {
        Expr::InList(InList { expr, negated, .. }) => Some((expr, if *negated { Kind::NotIn } else { Kind::In })),
        Expr::Not(inner) => match group(inner)? {
            (of, Kind::In) => Some((of, Kind::NotIn)),
            (of, Kind::NotIn) => Some((of, Kind::In)),
            (_, Kind::One) => None,
        },
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Eq => match (left.as_ref(), right.as_ref()) {
                (of @ Expr::Column(_), other) | (other, of @ Expr::Column(_)) if is_literal(other) => Some((of, Kind::One)),
                _ => None,
            },
            Operator::Or | Operator::And => {
                let ((of, left), (other, right)) = (group(left)?, group(right)?);
                let fits = |kind: Kind| match op {
                    Operator::Or => kind != Kind::NotIn,
                    _ => kind == Kind::NotIn,
                };
                let kind = if *op == Operator::Or { Kind::In } else { Kind::NotIn };
                (of == other && fits(left) && fits(right)).then_some((of, kind))
            }
            _ => None,
        },
        _ => None,
    }
}

fn only_literals(part: &Expr) -> bool {
    let odd = part.exists(|inner| Ok(matches!(inner, Expr::InList(list) if !list.list.iter().all(is_literal))));
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
