//! Which query of a statement is planned: the statement itself, one that lies inside, or the one that finds the
//! rows that a DELETE is about.
//!
//! Invariant: DELETE becomes an ordinary query over the hidden columns that say where a row lies, so that
//! subqueries, joins, nulls and folded conditions mean what they mean in a query; what a query knows and DELETE
//! does not is refused.

use std::ops::Range;

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Select, SetExpr, Statement as Ast, Value};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Error, Result};
use crate::table::HiddenColumn;

/// Where a row lies, in this order.
pub(super) const PLACE: [HiddenColumn; 2] = [HiddenColumn::File, HiddenColumn::Position];

/// The query of a statement.
#[derive(Debug, Clone)]
pub(super) enum Start {
    /// It begins at this token.
    At(usize),
    /// It finds the rows of a table.
    Rows(RowsOf),
}

impl From<usize> for Start {
    fn from(token: usize) -> Self {
        Self::At(token)
    }
}

/// The rows of a table that a statement is about.
#[derive(Debug, Clone)]
pub(super) struct RowsOf {
    pub(super) table: Vec<String>,
    /// The tokens of the table's name.
    pub(super) name: Range<usize>,
    pub(super) alias: Option<Ident>,
    /// The tokens of the relations behind USING.
    pub(super) using: Option<Range<usize>>,
    /// The token that WHERE is, or what follows instead.
    pub(super) rest: usize,
}

impl RowsOf {
    /// `SELECT _file, _pos FROM table, using WHERE ..`.
    pub(super) fn query(&self, tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
        let word = |text: &str| TokenWithSpan::wrap(Token::make_keyword(text));
        let part = |range: &Range<usize>| tokens.get(range.clone()).unwrap_or_default().iter().cloned();
        let alias = self
            .alias
            .as_ref()
            .map(|alias| TokenWithSpan::wrap(Token::make_word(&alias.value, alias.quote_style)));
        let mut query = vec![word("SELECT")];
        for (at, column) in PLACE.into_iter().enumerate() {
            if at > 0 {
                query.push(TokenWithSpan::wrap(Token::Comma));
            }
            if let Some(alias) = &alias {
                query.extend([alias.clone(), TokenWithSpan::wrap(Token::Period)]);
            }
            query.push(TokenWithSpan::wrap(Token::make_word(column.name(), None)));
        }
        query.push(word("FROM"));
        query.extend(part(&self.name));
        if let Some(alias) = alias {
            query.extend([word("AS"), alias]);
        }
        if let Some(using) = &self.using {
            query.push(TokenWithSpan::wrap(Token::Comma));
            query.extend(part(using));
        }
        query.extend(part(&(self.rest..tokens.len())));
        query
    }

    /// Refuses clauses of queries that DELETE has not.
    ///
    /// Errors: `InvalidInput`.
    pub(super) fn check(&self, statement: &Ast) -> Result<()> {
        let refuse = || Err(Error::invalid("DELETE takes USING, WHERE, ORDER BY and LIMIT, and no other clause"));
        let Ast::Query(query) = statement else { return refuse() };
        let SetExpr::Select(select) = query.body.as_ref() else {
            return refuse();
        };
        let bare = query.with.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && query.for_clause.is_none()
            && query.settings.is_none()
            && query.format_clause.is_none()
            && query.pipe_operators.is_empty();
        if !bare || !is_bare(select) {
            return refuse();
        }
        if self.using.is_some() && (query.order_by.is_some() || query.limit_clause.is_some()) {
            return Err(Error::invalid("DELETE .. USING takes no ORDER BY and no LIMIT"));
        }
        if query.order_by.as_ref().is_some_and(by_number) {
            return Err(Error::invalid(
                "ORDER BY of a DELETE takes columns, not numbers: nothing is selected",
            ));
        }
        if query.order_by.is_some() && query.limit_clause.is_none() {
            return Err(Error::invalid("ORDER BY of a DELETE does nothing without LIMIT"));
        }
        Ok(())
    }
}

fn by_number(order: &OrderBy) -> bool {
    let OrderByKind::Expressions(terms) = &order.kind else {
        return true;
    };
    terms
        .iter()
        .any(|term| matches!(&term.expr, Expr::Value(value) if matches!(value.value, Value::Number(..))))
}

fn is_bare(select: &Select) -> bool {
    let no_groups = matches!(&select.group_by, GroupByExpr::Expressions(groups, with) if groups.is_empty() && with.is_empty());
    no_groups
        && select.projection.len() == PLACE.len()
        && select.distinct.is_none()
        && select.top.is_none()
        && select.into.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none()
}
