//! Comparisons of row values, `(a, b) < (c, d)`, as the comparisons of their parts that the standard
//! says they are.
//!
//! Invariant: null makes a comparison unknown where the standard says so; the engine itself would
//! compare structs, for which null is a value.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, visit_expressions};

/// Puts a comparison of row values as one of their parts; other expressions stay. Parts are copied: takes
/// about as many expressions as there are then from `budget`, and gives `None` where that is not enough.
pub(super) fn expand(expr: &mut Expr, budget: &mut usize) -> Option<()> {
    let copies = match expr {
        Expr::InList { expr: row, list, .. } if parts(row).is_some() => size(row.as_ref()).saturating_mul(list.len()),
        Expr::BinaryOp { left: row, .. } | Expr::IsDistinctFrom(row, _) | Expr::IsNotDistinctFrom(row, _) if parts(row).is_some() => 0,
        Expr::Between { expr: row, .. } if parts(row).is_some() => 0,
        _ => return Some(()),
    };
    // An order writes each part twice, a range each of them four times.
    let copies = size(&*expr).saturating_mul(4).saturating_add(copies);
    *budget = budget.checked_sub(copies)?;
    if let Some(expanded) = expanded(expr) {
        *expr = expanded;
    }
    Some(())
}

/// Whether a row value is compared with what is none: a struct or a subquery, which the engine would compare
/// as structs.
pub(super) fn is_mixed(expr: &Expr) -> bool {
    let is_row = |expr: &Expr| parts(expr).is_some_and(|parts| parts.len() > 1);
    match expr {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => is_row(left) != is_row(right),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => is_row(left) != is_row(right),
        Expr::InList { expr, list, .. } => list.iter().any(|item| is_row(item) != is_row(expr)),
        Expr::Between { expr, low, high, .. } => is_row(low) != is_row(expr) || is_row(high) != is_row(expr),
        Expr::InSubquery { expr, .. } => is_row(expr),
        Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => is_row(left),
        _ => false,
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

fn size(expr: &Expr) -> usize {
    let mut size = 0;
    let _ = visit_expressions(expr, |_| {
        size += 1;
        ControlFlow::<()>::Continue(())
    });
    size
}

fn expanded(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::BinaryOp { left, op, right } => compare(parts(left)?, op, parts(right)?),
        Expr::IsDistinctFrom(left, right) => Some(not(same(parts(left)?, parts(right)?)?)),
        Expr::IsNotDistinctFrom(left, right) => same(parts(left)?, parts(right)?),
        Expr::InList { expr, list, negated } => {
            let row = parts(expr)?;
            let equal = list.iter().map(|item| compare(row, &BinaryOperator::Eq, parts(item)?));
            let any = joined(equal.collect::<Option<Vec<_>>>()?, &BinaryOperator::Or)?;
            Some(if *negated { not(any) } else { any })
        }
        Expr::Between { expr, negated, low, high } => {
            let row = parts(expr)?;
            let least = compare(row, &BinaryOperator::GtEq, parts(low)?)?;
            let both = and(least, compare(row, &BinaryOperator::LtEq, parts(high)?)?);
            Some(if *negated { not(both) } else { both })
        }
        _ => None,
    }
}

/// The parts of a row value.
fn parts(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(parts) => Some(parts),
        Expr::Nested(inner) => parts(inner),
        _ => None,
    }
}

fn compare(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if left.len() != right.len() {
        return None;
    }
    let each = |op: &BinaryOperator| left.iter().zip(right).map(|(l, r)| binary(l, op, r)).collect();
    match op {
        Eq => joined(each(&Eq), &BinaryOperator::And),
        NotEq => joined(each(&NotEq), &BinaryOperator::Or),
        Lt | LtEq | Gt | GtEq => {
            let strict = if matches!(op, Lt | LtEq) { Lt } else { Gt };
            let mut pairs = left.iter().zip(right).rev();
            let (last_left, last_right) = pairs.next()?;
            // The first part decides unless it is equal.
            Some(pairs.fold(binary(last_left, op, last_right), |rest, (l, r)| {
                or(binary(l, &strict, r), and(binary(l, &Eq, r), rest))
            }))
        }
        _ => None,
    }
}

fn same(left: &[Expr], right: &[Expr]) -> Option<Expr> {
    if left.len() != right.len() {
        return None;
    }
    let pair = |(l, r): (&Expr, &Expr)| Expr::IsNotDistinctFrom(Box::new(l.clone()), Box::new(r.clone()));
    joined(left.iter().zip(right).map(pair).collect(), &BinaryOperator::And)
}

fn joined(terms: Vec<Expr>, op: &BinaryOperator) -> Option<Expr> {
    terms.into_iter().reduce(|left, right| of(left, op, right))
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> Expr {
    of(left.clone(), op, right.clone())
}

fn and(left: Expr, right: Expr) -> Expr {
    of(left, &BinaryOperator::And, right)
}

fn or(left: Expr, right: Expr) -> Expr {
    of(left, &BinaryOperator::Or, right)
}

fn of(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(expr))),
    }
}
