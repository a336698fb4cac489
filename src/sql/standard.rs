//! Forms of standard SQL that the engine does not read, put as those that it does.
//!
//! Invariant: what is put otherwise means the same; what cannot be is left as it is, to be refused.

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, UnaryOperator, Value, ValueWithSpan};

/// The escape character that patterns have without saying so.
const ESCAPE: char = '\\';

/// `FETCH FIRST n ROWS ONLY` as `LIMIT n`.
pub(super) fn fetch_as_limit(query: &mut Query) {
    let Some(fetch) = query.fetch.as_ref().filter(|fetch| !fetch.with_ties && !fetch.percent) else {
        return;
    };
    let one = || Expr::Value(ValueWithSpan::from(Value::Number("1".to_owned(), false)));
    let quantity = fetch.quantity.clone().unwrap_or_else(one);
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(quantity),
        none @ None => {
            *none = Some(LimitClause::LimitOffset {
                limit: Some(quantity),
                offset: None,
                limit_by: Vec::new(),
            });
        }
        Some(_) => return,
    }
    query.fetch = None;
}

/// `LIKE '..' ESCAPE '!'` as a pattern with the usual escape character.
pub(super) fn usual_escape(expr: &mut Expr) {
    let (Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. }) = expr else {
        return;
    };
    let Some(Value::SingleQuotedString(escape)) = escape_char.as_ref().map(|value| &value.value) else {
        return;
    };
    let mut chars = escape.chars();
    let (Some(escape), None) = (chars.next(), chars.next()) else {
        return;
    };
    let Expr::Value(ValueWithSpan {
        value: Value::SingleQuotedString(text),
        ..
    }) = pattern.as_mut()
    else {
        return;
    };
    if escape == ESCAPE {
        *escape_char = None;
        return;
    }
    let mut usual = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let literal = if c == escape {
            // A pattern that ends in its escape character means nothing.
            let Some(next) = rest.next() else { return };
            matches!(next, '%' | '_' | ESCAPE)
                .then_some(ESCAPE)
                .into_iter()
                .chain([next])
                .collect::<String>()
        } else if c == ESCAPE {
            [ESCAPE, ESCAPE].iter().collect()
        } else {
            c.to_string()
        };
        usual.push_str(&literal);
    }
    *text = usual;
    *escape_char = None;
}

/// `NOT (a IS DISTINCT FROM b)` as `a IS NOT DISTINCT FROM b`: below a NOT the engine wants both sides typed
/// before literals are fitted to uuids.
pub(super) fn put_not_inside(expr: &mut Expr) {
    let Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: negated,
    } = &*expr
    else {
        return;
    };
    let mut negated = negated.as_ref();
    while let Expr::Nested(inner) = negated {
        negated = inner;
    }
    *expr = match negated {
        Expr::IsDistinctFrom(left, right) => Expr::IsNotDistinctFrom(left.clone(), right.clone()),
        Expr::IsNotDistinctFrom(left, right) => Expr::IsDistinctFrom(left.clone(), right.clone()),
        _ => return,
    };
}
