//! Bounds on a parsed statement's shape, and long chains made shallow (SE-31).
//!
//! The parser builds `a OR b OR c` as a left-deep tree without recursion, so its depth is
//! bounded by the text alone; everything after the parser recurses. Here chains of AND, OR and
//! `||` become balanced trees (all three are associative, order of operands kept), a chain of
//! equalities with one left side becomes an IN list, and whatever is still deep is refused.
//!
//! Invariant: a statement that passed is at most [`MAX_DEPTH`] deep.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, GroupByWithModifier, Query, Select, SetExpr, Statement as Ast, TableFactor, Value, VisitMut,
    VisitorMut,
};

use super::literals::make_exact;
use super::row_values::{expand, is_mixed};
use super::standard::{fetch_as_limit, put_not_inside, usual_escape};
use super::table_changes::as_versions;
use crate::error::{Error, Result};

/// Deepest expression, operator chains counted.
const MAX_DEPTH: usize = 200;
/// Most operands of one chain of OR or `||`.
const MAX_CHAIN: usize = 2_000;
/// Most operands of one chain of AND: the planner compares each with each, at their depth.
const MAX_CONJUNCTION: usize = 250;
/// Deepest nesting of subqueries in expressions: planning takes twice as long for each level.
const MAX_SUBQUERIES: usize = 12;
/// Most expressions in a statement.
const MAX_NODES: usize = 100_000;
/// Most branches of one UNION, INTERSECT, EXCEPT chain.
const MAX_BRANCHES: usize = 200;
/// Most joins of one FROM.
const MAX_JOINS: usize = 64;
/// Most columns of one SELECT list.
const MAX_COLUMNS: usize = 4_096;
/// Most entries of an IN list.
const MAX_IN_LIST: usize = 50_000;
/// Most grouping sets of a GROUP BY, all its CUBEs and ROLLUPs multiplied.
const MAX_GROUPING_SETS: usize = 1_024;
/// Most pipe operators of a query.
const MAX_PIPES: usize = 64;

/// Bounds the statement and makes its chains shallow.
///
/// Errors: `InvalidInput` naming the bound.
pub(super) fn reshape(statement: &mut Ast) -> Result<()> {
    as_versions(statement)?;
    let mut shaper = Shaper {
        depth: 0,
        copies: MAX_NODES,
        nodes: 0,
        subqueries: 0,
    };
    match VisitMut::visit(statement, &mut shaper) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Shaper {
    depth: usize,
    /// Expressions that may still be made of others.
    copies: usize,
    nodes: usize,
    subqueries: usize,
}

fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery { .. } | Expr::Exists { .. } | Expr::Subquery(_) | Expr::AnyOp { .. } | Expr::AllOp { .. }
    )
}

fn beyond(what: &str, limit: usize) -> ControlFlow<Error> {
    ControlFlow::Break(Error::invalid(format!("the statement has {what}, the limit is {limit}")))
}

impl VisitorMut for Shaper {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if query.pipe_operators.len() > MAX_PIPES {
            return beyond("too many pipe operators", MAX_PIPES);
        }
        fetch_as_limit(query);
        let mut branches = 1;
        let mut next = query.body.as_ref();
        while let SetExpr::SetOperation { left, .. } = next {
            branches += 1;
            next = left;
        }
        if branches > MAX_BRANCHES {
            return beyond("too many branches of a set operation", MAX_BRANCHES);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if select.projection.len() > MAX_COLUMNS {
            return beyond("too many columns", MAX_COLUMNS);
        }
        let joins: usize = select.from.iter().map(|f| f.joins.len() + 1).sum();
        if joins > MAX_JOINS + 1 {
            return beyond("too many joins", MAX_JOINS);
        }
        if grouping_sets(&select.group_by) > MAX_GROUPING_SETS {
            return beyond("too many grouping sets", MAX_GROUPING_SETS);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } if table_with_joins.joins.len() > MAX_JOINS => {
                beyond("too many joins", MAX_JOINS)
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        put_not_inside(expr);
        usual_escape(expr);
        if is_mixed(expr) {
            let text = "a row value is compared with row values of as many parts only: compare part by part, or use EXISTS";
            return ControlFlow::Break(Error::unsupported(text));
        }
        if expand(expr, &mut self.copies).is_none() {
            return beyond("too many expressions", MAX_NODES);
        }
        if let Expr::BinaryOp { op, .. } = expr
            && is_associative(op)
        {
            rebalance(expr)?;
        }
        if let Expr::InList { list, .. } = expr
            && list.len() > MAX_IN_LIST
        {
            return beyond("too long an IN list", MAX_IN_LIST);
        }
        make_exact(expr);
        self.depth += 1;
        self.nodes += 1;
        if self.depth + left_depth(expr) > MAX_DEPTH {
            return beyond("an expression that is nested too deeply", MAX_DEPTH);
        }
        if self.nodes > MAX_NODES {
            return beyond("too many expressions", MAX_NODES);
        }
        if is_subquery(expr) {
            self.subqueries += 1;
            if self.subqueries > MAX_SUBQUERIES {
                return beyond("subqueries that are nested too deeply", MAX_SUBQUERIES);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if is_subquery(expr) {
            self.subqueries = self.subqueries.saturating_sub(1);
        }
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }
}

/// How many grouping sets a GROUP BY stands for.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let of = |expr: &Expr| match expr {
        Expr::Cube(columns) => cube(columns.len()),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    };
    let (columns, modifiers) = match group_by {
        GroupByExpr::Expressions(columns, modifiers) => (columns.as_slice(), modifiers),
        GroupByExpr::All(modifiers) => (&[][..], modifiers),
    };
    let listed = columns.iter().map(of).fold(1, usize::saturating_mul);
    let modified = modifiers.iter().map(|modifier| match modifier {
        GroupByWithModifier::Cube => cube(columns.len()),
        GroupByWithModifier::Rollup => columns.len() + 1,
        GroupByWithModifier::Totals => 1,
        GroupByWithModifier::GroupingSets(sets) => of(sets),
    });
    modified.fold(listed, usize::saturating_mul)
}

fn cube(columns: usize) -> usize {
    u32::try_from(columns)
        .ok()
        .and_then(|n| 1usize.checked_shl(n))
        .unwrap_or(usize::MAX)
}

fn is_associative(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or | BinaryOperator::StringConcat)
}

/// Length of the chain of left operands, which the parser builds without recursion; counted up
/// to the first chain that will be made shallow by itself.
fn left_depth(expr: &Expr) -> usize {
    let mut depth = 0;
    let mut next = left_child(expr);
    while let Some(current) = next {
        depth += 1;
        if depth > MAX_DEPTH || matches!(current, Expr::BinaryOp { op, .. } if is_associative(op)) {
            break;
        }
        next = left_child(current);
    }
    depth
}

fn left_child(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp { left: inner, .. }
        | Expr::AnyOp { left: inner, .. }
        | Expr::AllOp { left: inner, .. }
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::IsDistinctFrom(inner, _)
        | Expr::IsNotDistinctFrom(inner, _)
        | Expr::IsNormalized { expr: inner, .. }
        | Expr::InList { expr: inner, .. }
        | Expr::InSubquery { expr: inner, .. }
        | Expr::InUnnest { expr: inner, .. }
        | Expr::Between { expr: inner, .. }
        | Expr::Like { expr: inner, .. }
        | Expr::ILike { expr: inner, .. }
        | Expr::SimilarTo { expr: inner, .. }
        | Expr::RLike { expr: inner, .. }
        | Expr::UnaryOp { expr: inner, .. }
        | Expr::Cast { expr: inner, .. }
        | Expr::AtTimeZone { timestamp: inner, .. }
        | Expr::Collate { expr: inner, .. }
        | Expr::CompoundFieldAccess { root: inner, .. }
        | Expr::JsonAccess { value: inner, .. }
        | Expr::OuterJoin(inner)
        | Expr::Nested(inner) => Some(inner),
        _ => None,
    }
}

/// Makes the chain at `expr` a balanced tree.
fn rebalance(expr: &mut Expr) -> ControlFlow<Error> {
    let Expr::BinaryOp { op: chain, .. } = expr else {
        return ControlFlow::Continue(());
    };
    let chain = chain.clone();
    // Walks from right to left, through parentheses around a part of the same chain.
    let mut operands = Vec::new();
    let mut waiting = vec![std::mem::replace(expr, placeholder())];
    while let Some(next) = waiting.pop() {
        match next {
            Expr::BinaryOp { left, op, right } if op == chain => {
                waiting.push(*left);
                waiting.push(*right);
            }
            Expr::Nested(inner) if matches!(inner.as_ref(), Expr::BinaryOp { op, .. } if *op == chain) => waiting.push(*inner),
            operand => operands.push(operand),
        }
    }
    operands.reverse();
    if operands.len() > 2 {
        operands = match chain {
            BinaryOperator::Or => gather(operands, &BinaryOperator::Eq, false),
            BinaryOperator::And => gather(operands, &BinaryOperator::NotEq, true),
            _ => operands,
        };
    }
    let limit = if chain == BinaryOperator::And { MAX_CONJUNCTION } else { MAX_CHAIN };
    if operands.len() > limit {
        let count = operands.len();
        return ControlFlow::Break(Error::invalid(format!(
            "the statement has a chain of {count} terms joined by {chain}, the limit is {limit}: use an IN list or a VALUES table"
        )));
    }
    *expr = balanced(operands, &chain);
    ControlFlow::Continue(())
}

fn placeholder() -> Expr {
    Expr::Tuple(Vec::new())
}

/// A tree of least depth over `operands`, in order; built level by level, without recursion.
fn balanced(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    while operands.len() > 1 {
        let mut level = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            level.push(match rest.next() {
                Some(right) => Expr::BinaryOp {
                    left: Box::new(left),
                    op: op.clone(),
                    right: Box::new(right),
                },
                None => left,
            });
        }
        operands = level;
    }
    operands.pop().unwrap_or_else(placeholder)
}

/// `a = 1 OR a = 2` as `a IN (1, 2)`, and `a <> 1 AND a <> 2` as `a NOT IN (1, 2)`: the same in
/// three-valued logic. Only neighbours are gathered, only for one column, and only literals of
/// one kind, since an IN list compares all of its entries in one type.
fn gather(operands: Vec<Expr>, wanted: &BinaryOperator, negated: bool) -> Vec<Expr> {
    let mut out: Vec<Expr> = Vec::with_capacity(operands.len());
    // True while the last of `out` is a list made here.
    let mut made = false;
    for operand in operands {
        let Expr::BinaryOp { left, op, right } = operand else {
            out.push(operand);
            made = false;
            continue;
        };
        if op == *wanted && is_column(&left) && kind_of(&right).is_some() {
            match out.last_mut() {
                Some(Expr::InList { expr, list, .. }) if made && *expr == left && list.last().and_then(kind_of) == kind_of(&right) => {
                    list.push(*right);
                    continue;
                }
                Some(Expr::BinaryOp {
                    left: before,
                    op: before_op,
                    right: first,
                }) if before_op == wanted && *before == left && kind_of(first) == kind_of(&right) => {
                    let first = std::mem::replace(first.as_mut(), placeholder());
                    out.pop();
                    out.push(Expr::InList {
                        expr: left,
                        list: vec![first, *right],
                        negated,
                    });
                    made = true;
                    continue;
                }
                _ => {}
            }
        }
        out.push(Expr::BinaryOp { left, op, right });
        made = false;
    }
    out
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

#[derive(PartialEq)]
enum Kind {
    /// A whole number that fits 64 bits.
    Integer,
    Text,
}

fn kind_of(expr: &Expr) -> Option<Kind> {
    let Expr::Value(value) = expr else {
        return None;
    };
    match &value.value {
        Value::Number(digits, _) if digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit()) => Some(Kind::Integer),
        Value::SingleQuotedString(_) => Some(Kind::Text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::{parse, tokenize};
    use super::*;

    /// On a thread with the stack that statements have.
    fn reshaped(sql: &str) -> Result<String> {
        let sql = sql.to_owned();
        let work = move || {
            let mut statement = parse(&tokenize(&sql)?.tokens)?;
            reshape(&mut statement)?;
            Ok(statement.to_string())
        };
        let thread = std::thread::Builder::new().stack_size(super::super::pool::STACK);
        thread.spawn(work).unwrap().join().unwrap()
    }

    #[test]
    fn equalities_become_in_lists() {
        assert_eq!(
            reshaped("SELECT 1 WHERE a = 1 OR a = 2 OR (a = 3 OR b = 3) OR b > 4").unwrap(),
            "SELECT 1 WHERE a IN (1, 2, 3) OR b = 3 OR b > 4"
        );
        assert_eq!(
            reshaped("SELECT 1 WHERE t.a <> 1 AND t.a <> 2 AND t.a <> 3").unwrap(),
            "SELECT 1 WHERE t.a NOT IN (1, 2, 3)"
        );
        assert_eq!(
            reshaped("SELECT 1 WHERE a = '1' OR a = '2' OR a = 3 OR a = 4 OR a = 4.5 OR a = NULL OR a = $1").unwrap(),
            "SELECT 1 WHERE a IN ('1', '2') OR a IN (3, 4) OR a = 4.5 OR a = NULL OR a = $1"
        );
        // different columns, other operators and computed values stay
        for same in [
            "SELECT 1 WHERE a = 1 OR b = 2 OR a = 3",
            "SELECT 1 WHERE a = 1 OR a <> 2 OR a = 3",
            "SELECT 1 WHERE a = b OR a = c OR a = d",
            "SELECT 1 WHERE a = 1 AND a = 2 AND a = 3",
            "SELECT 1 WHERE a IN ('x', 1) OR a = 2 OR b = 2",
        ] {
            assert_eq!(reshaped(same).unwrap(), same);
        }
    }

    #[test]
    fn long_chains_are_shallow_or_refused() {
        let chain = |n: usize, term: &str, op: &str| format!("SELECT 1 WHERE {}", vec![term; n].join(op));
        reshaped(&chain(250, "a > b", " AND ")).unwrap();
        reshaped(&chain(2_000, "a > 1", " OR ")).unwrap();
        reshaped(&chain(10_000, "a = 1", " OR ")).unwrap();
        for long in [
            chain(10_000, "a > b", " OR "),
            chain(10_000, "a > b", " AND "),
            chain(300, "1", " + "),
            chain(24_000, "1", " - "),
            format!("SELECT 1{}", " IS NULL".repeat(40_000)),
            format!("SELECT 1{}", "::int".repeat(30_000)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(5_000)),
            format!("SELECT {}1", "NOT ".repeat(5_000)),
            format!("SELECT {}1", "- ".repeat(5_000)),
            format!("SELECT 1 FROM a{}", ", a".repeat(100)),
            format!("SELECT {}1", "1,".repeat(5_000)),
        ] {
            assert!(reshaped(&long).is_err(), "{}", long.get(..60).unwrap());
        }
    }
}
