//! Names for columns of a SELECT list that the engine would call the same: it names a cast by what is cast, and
//! all subqueries alike.

use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, SetExpr, SetQuantifier, Statement as Ast, VisitMut, VisitorMut};

/// Whether two columns of one name are what is wrong with a statement.
pub(super) fn is_about_names(error: &DataFusionError) -> bool {
    error.strip_backtrace().contains("unique expression names")
}

/// Gives casts and subqueries without a name in SELECT lists their text as name; whether there were any.
pub(super) fn name_by_text(statement: &mut Ast) -> bool {
    let mut namer = Namer { named: false };
    let _ = VisitMut::visit(statement, &mut namer);
    namer.named
}

/// Names what has no name in the SELECT lists that rows come from, for a statement that takes columns by position;
/// whether there was any. Sides that are matched by their names keep them.
pub(super) fn name_by_position(query: &mut SetExpr) -> bool {
    match query {
        SetExpr::Select(select) => {
            let mut named = false;
            for (at, item) in select.projection.iter_mut().enumerate() {
                if let SelectItem::UnnamedExpr(expr) = item {
                    *item = SelectItem::ExprWithAlias {
                        expr: expr.clone(),
                        alias: Ident::with_quote('"', format!("column {}", at + 1)),
                    };
                    named = true;
                }
            }
            named
        }
        SetExpr::Query(query) => name_by_position(&mut query.body),
        SetExpr::SetOperation {
            set_quantifier: SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
            ..
        } => false,
        SetExpr::SetOperation { left, right, .. } => {
            let named = name_by_position(left);
            name_by_position(right) || named
        }
        _ => false,
    }
}

/// Whether the engine names it by less than its text.
fn is_named_alike(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_named_alike(inner),
        Expr::Cast { .. } | Expr::Subquery(_) => true,
        _ => false,
    }
}

struct Namer {
    named: bool,
}

impl VisitorMut for Namer {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut seen: Vec<String> = Vec::new();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if !is_named_alike(expr) {
                continue;
            }
            let text = expr.to_string();
            // The same one twice is for the user to name.
            if seen.contains(&text) {
                continue;
            }
            seen.push(text.clone());
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('"', text),
            };
            self.named = true;
        }
        ControlFlow::Continue(())
    }
}
