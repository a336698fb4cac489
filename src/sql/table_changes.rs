//! `table_changes('t', start [, end])` in FROM (interface.md 4).
//!
//! The function is brought to the form of a table with a version, so that its table is resolved, pinned and found by the
//! planner as any other: `t CHANGES (..) AT (start) END (end)` in the parser's terms.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Statement as Ast, TableAlias, TableFactor, TableVersion, Value, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SandurDialect;
use crate::error::{Error, Result};

const NAME: &str = "table_changes";

/// Brings every call to the form of a version.
///
/// Errors: `InvalidInput` for arguments that are none.
pub(super) fn as_versions(statement: &mut Ast) -> Result<()> {
    match VisitMut::visit(statement, &mut Calls) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The ends of the range, if a version is what a call was brought to.
pub(super) fn range(version: &TableVersion) -> Option<(&Expr, Option<&Expr>)> {
    match version {
        TableVersion::Changes {
            changes: Expr::Identifier(marker),
            at,
            end,
        } if marker.value == NAME => Some((at, end.as_ref())),
        _ => None,
    }
}

struct Calls;

impl VisitorMut for Calls {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let TableFactor::Table {
            name,
            alias,
            args,
            version,
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let is_call = name.0.len() == 1 && name.to_string().eq_ignore_ascii_case(NAME);
        let Some(given) = args.take_if(|_| is_call) else {
            return ControlFlow::Continue(());
        };
        match arguments(&given.args) {
            Ok((table, at, end)) => {
                let marker = Ident::new(NAME);
                alias.get_or_insert_with(|| TableAlias {
                    explicit: true,
                    name: marker.clone(),
                    columns: Vec::new(),
                    at: None,
                });
                *name = table;
                *version = Some(TableVersion::Changes {
                    changes: Expr::Identifier(marker),
                    at,
                    end,
                });
                ControlFlow::Continue(())
            }
            Err(e) => ControlFlow::Break(e),
        }
    }
}

fn arguments(given: &[FunctionArg]) -> Result<(ObjectName, Expr, Option<Expr>)> {
    let usage = || {
        Error::invalid(format!(
            "{NAME} takes the name of a table as a text, a first and perhaps a last version: {NAME}('schema.t', 3, 7)"
        ))
    };
    let plain = given.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        _ => Err(usage()),
    });
    let plain = plain.collect::<Result<Vec<_>>>()?;
    let (table, at, end) = match plain.as_slice() {
        [table, at] => (*table, *at, None),
        [table, at, end] => (*table, *at, Some((*end).clone())),
        _ => return Err(usage()),
    };
    let Expr::Value(value) = table else { return Err(usage()) };
    let Value::SingleQuotedString(text) = &value.value else {
        return Err(usage());
    };
    let bad_name = |e| Error::invalid(format!("{NAME}: \"{}\" is no name of a table", text.escape_debug())).with_source(e);
    let mut parser = Parser::new(&SandurDialect).try_with_sql(text).map_err(bad_name)?;
    let name = parser.parse_object_name(false).map_err(bad_name)?;
    match parser.peek_token_ref().token == datafusion::sql::sqlparser::tokenizer::Token::EOF {
        true => Ok((name, at.clone(), end)),
        false => Err(usage()),
    }
}
