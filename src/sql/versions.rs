//! Versions of tables in a statement: the forms of interface.md 4, their constants, and where the
//! planner finds each version.
//!
//! The parser knows some forms only, and the planner drops a version without a word (architecture.md
//! 2.4, D5). So tokens are brought to forms that the parser reads in full, versions are worked out
//! before anything is planned, and every mention of a version is replaced by the name of a table that
//! stands for exactly that version.
//!
//! Invariants: no version reaches the planner; one that is not understood, or is not constant, is an error.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Statement as Ast, TableAlias, TableFactor, TableVersion,
    UnaryOperator, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::errors::from_datafusion;
use super::names::{Names, TableMap};
use super::table_changes::range;
use crate::error::{Error, Result, ResultExt};
use crate::table::{AsOf, ChangeRange, Moment};

/// A version that is asked for in a way that is not understood.
pub(super) fn not_understood() -> Error {
    Error::unsupported(
        "this way of naming a table's version is not supported: write t FOR VERSION AS OF n, t FOR TIMESTAMP AS OF ts, \
         or t.branch_x and t.tag_x",
    )
}

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|t| &t.token), Some(Token::Word(w)) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(wanted))
}

/// Brings the forms of a version to those that the parser reads: `AT (VERSION => n)` and
/// `TIMESTAMP AS OF ts`.
pub(super) fn normalise(tokens: &mut Vec<TokenWithSpan>) {
    let as_of = |at: usize| is_word(tokens.get(at), "AS") && is_word(tokens.get(at + 1), "OF");
    if !(0..tokens.len()).any(as_of) {
        return;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let with_for = is_word(Some(token), "FOR");
        let word = at + usize::from(with_for);
        let is = |name: &str| is_word(tokens.get(word), name);
        let behind = is_word(tokens.get(word + 1), "AS") && is_word(tokens.get(word + 2), "OF");
        if behind && (is("VERSION") || with_for && is("SYSTEM_VERSION")) {
            if let Some(value) = version_tokens(tokens, word + 3) {
                let length = value.len();
                let spanned = |token| TokenWithSpan::new(token, tokens.get(word).map_or(token_span(), |t| t.span));
                out.extend(
                    [
                        Token::make_keyword("AT"),
                        Token::LParen,
                        Token::make_keyword("VERSION"),
                        Token::RArrow,
                    ]
                    .map(spanned),
                );
                out.extend(value);
                out.push(spanned(Token::RParen));
                at = word + 3 + length;
                continue;
            }
        } else if behind && with_for && is("TIMESTAMP") {
            // The parser knows this form without FOR.
            at += 1;
            continue;
        }
        out.push(token.clone());
        at += 1;
    }
    *tokens = out;
}

fn token_span() -> datafusion::sql::sqlparser::tokenizer::Span {
    datafusion::sql::sqlparser::tokenizer::Span::empty()
}

/// A number with its sign, a text or a parameter.
fn version_tokens(tokens: &[TokenWithSpan], at: usize) -> Option<Vec<TokenWithSpan>> {
    let first = tokens.get(at)?;
    match &first.token {
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => Some(vec![first.clone()]),
        Token::Minus => match tokens.get(at + 1)? {
            number if matches!(number.token, Token::Number(..)) => Some(vec![first.clone(), number.clone()]),
            _ => None,
        },
        _ => None,
    }
}

enum Asked<'a> {
    Version(&'a Expr),
    Time(&'a Expr),
    Changes(&'a Expr, Option<&'a Expr>),
}

fn asked(version: &TableVersion) -> Result<Asked<'_>> {
    match version {
        TableVersion::ForSystemTimeAsOf(time) | TableVersion::TimestampAsOf(time) => Ok(Asked::Time(time)),
        TableVersion::VersionAsOf(version) => Ok(Asked::Version(version)),
        TableVersion::Function(Expr::Function(function)) if function.name.to_string().eq_ignore_ascii_case("AT") => {
            let FunctionArguments::List(list) = &function.args else {
                return Err(not_understood());
            };
            let plain = list.clauses.is_empty() && function.over.is_none() && function.filter.is_none() && function.within_group.is_empty();
            let (name, value) = match list.args.as_slice() {
                [
                    FunctionArg::Named {
                        name,
                        arg: FunctionArgExpr::Expr(value),
                        ..
                    },
                ] if plain => (name.value.to_ascii_uppercase(), value),
                [
                    FunctionArg::ExprNamed {
                        name: Expr::Identifier(name),
                        arg: FunctionArgExpr::Expr(value),
                        ..
                    },
                ] if plain => (name.value.to_ascii_uppercase(), value),
                _ => return Err(not_understood()),
            };
            match name.as_str() {
                "VERSION" => Ok(Asked::Version(value)),
                "TIMESTAMP" => Ok(Asked::Time(value)),
                _ => Err(not_understood()),
            }
        }
        version @ TableVersion::Changes { .. } => match range(version) {
            Some((since, until)) => Ok(Asked::Changes(since, until)),
            None => Err(not_understood()),
        },
        TableVersion::Function(_) => Err(not_understood()),
    }
}

/// Refuses forms that are not understood.
pub(super) fn check(version: &TableVersion) -> Result<()> {
    asked(version).map(|_| ())
}

/// Works out which version is meant.
///
/// Errors: `InvalidInput` for what is not constant or of the wrong type, `Unsupported` for a form that
/// is not known and for a parameter, since the version decides which columns there are.
pub(super) fn fold(version: &TableVersion, state: &SessionState) -> Result<AsOf> {
    match asked(version)? {
        Asked::Version(value) => id_or_name(value),
        Asked::Time(value) => time(value, state).map(AsOf::Timestamp).context("version", || version.to_string()),
        Asked::Changes(since, until) => {
            let moment = |value: &Expr| moment(value, state).context("version", || value.to_string());
            Ok(AsOf::Changes(ChangeRange {
                since: moment(since)?,
                until: until.map(moment).transpose()?,
            }))
        }
    }
}

/// An end of a range: a version by its number, else a time.
fn moment(value: &Expr, state: &SessionState) -> Result<Moment> {
    let is_number = match value {
        Expr::UnaryOp { expr, .. } => matches!(expr.as_ref(), Expr::Value(v) if matches!(v.value, Value::Number(..))),
        Expr::Value(v) => matches!(v.value, Value::Number(..)),
        _ => false,
    };
    if !is_number {
        return time(value, state).map(Moment::Timestamp);
    }
    match id_or_name(value)? {
        AsOf::Version(number) => Ok(Moment::Version(number)),
        _ => Err(not_understood()),
    }
}

fn parameter() -> Error {
    Error::unsupported("the version of a table cannot be a parameter: it decides which columns there are; write it into the statement")
}

/// A snapshot id. Writers exist that take them for unsigned numbers.
fn snapshot_id(text: &str) -> Option<i64> {
    let signed = text.parse::<i64>().ok();
    signed.or_else(|| text.parse::<u64>().ok().map(u64::cast_signed))
}

fn id_or_name(value: &Expr) -> Result<AsOf> {
    let number = |text: &str| {
        let id = snapshot_id(text).map(AsOf::Version);
        id.ok_or_else(|| Error::invalid(format!("version {text} is no snapshot id: those are whole numbers of 64 bits")))
    };
    match value {
        Expr::Value(value) => match &value.value {
            Value::Number(text, false) => number(text),
            Value::SingleQuotedString(name) => Ok(AsOf::Ref(name.clone())),
            Value::Placeholder(_) => Err(parameter()),
            other => Err(Error::invalid(format!(
                "version {other} is neither a snapshot id nor the name of a branch or tag"
            ))),
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(text, false) => number(&format!("-{text}")),
                _ => Err(not_understood()),
            },
            _ => Err(not_understood()),
        },
        other => Err(Error::invalid(format!(
            "version {other} is neither a snapshot id nor the name of a branch or tag"
        ))),
    }
}

/// Microseconds from the epoch of a constant expression; text and times without zone are UTC.
fn time(value: &Expr, state: &SessionState) -> Result<i64> {
    let mut now = state.clone();
    now.mark_start_execution();
    let tables = TableMap::new();
    let names = Names {
        state: &now,
        tables: &tables,
        defaults: ["", ""],
        current: (None, ""),
    };
    let options = ParserOptions {
        enable_ident_normalization: now.config_options().sql_parser.enable_ident_normalization,
        map_string_types_to_utf8view: now.config_options().sql_parser.map_string_types_to_utf8view,
        ..ParserOptions::new()
    };
    let planner = SqlToRel::new_with_options(&names, options);
    let none = DFSchema::empty();
    let planned = planner
        .sql_to_expr(value.clone(), &none, &mut PlannerContext::new())
        .map_err(from_datafusion)?;
    let is_parameter = planned
        .exists(|e| Ok(matches!(e, PlanExpr::Placeholder(_))))
        .map_err(from_datafusion)?;
    if is_parameter {
        return Err(parameter());
    }
    let context = SimplifyContext::builder()
        .with_config_options(std::sync::Arc::clone(now.config_options()))
        .with_query_execution_start_time(now.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let folded = simplifier
        .coerce(planned, &none)
        .and_then(|e| simplifier.simplify(e))
        .map_err(from_datafusion)?;
    match folded {
        PlanExpr::Literal(scalar, _) => micros(&scalar),
        _ => Err(Error::invalid(
            "the time of a table's version must be constant: a timestamp, or an expression of constants such as current_timestamp - interval '1 day'",
        )),
    }
}

/// The point in time that a value means.
fn micros(scalar: &ScalarValue) -> Result<i64> {
    let no_time = || {
        Error::invalid(format!(
            "{scalar} is no timestamp: write TIMESTAMP '2026-01-31 12:00:00' or a text of that form"
        ))
    };
    match scalar.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {}
        _ => return Err(no_time()),
    }
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    match scalar.cast_to(&utc).map_err(|e| no_time().with_source(e))? {
        ScalarValue::TimestampMicrosecond(Some(micros), _) => Ok(micros),
        _ => Err(no_time()),
    }
}

/// The version that a session option or header asks for: a snapshot id, else a time as in
/// `TIMESTAMP AS OF`.
///
/// Errors: `InvalidInput`.
pub fn parse_as_of(text: &str) -> Result<AsOf> {
    match snapshot_id(text.trim()) {
        Some(id) => Ok(AsOf::Version(id)),
        None => micros(&ScalarValue::Utf8(Some(text.trim().to_owned()))).map(AsOf::Timestamp),
    }
}

/// Replaces tables by the names under which the planner finds their versions. `factors` tells the
/// mention of each table in FROM, in the order of a walk; `place` tells where a mention is found if
/// not under its own name.
///
/// Errors: `Internal` if a version is left.
pub(super) fn relocate<'a>(statement: &mut Ast, factors: &[Option<usize>], place: impl Fn(usize) -> Option<&'a [String; 3]>) -> Result<()> {
    let mut relocator = Relocator { factors, next: 0, place };
    match VisitMut::visit(statement, &mut relocator) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Relocator<'f, P> {
    factors: &'f [Option<usize>],
    next: usize,
    place: P,
}

impl<'a, P: Fn(usize) -> Option<&'a [String; 3]>> VisitorMut for Relocator<'_, P> {
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
        if args.is_none() {
            let mention = self.factors.get(self.next).copied().flatten();
            self.next += 1;
            if let Some(place) = mention.and_then(&self.place) {
                if alias.is_none() {
                    let last = name.0.last().and_then(|part| part.as_ident());
                    *alias = last.map(|last| TableAlias {
                        explicit: true,
                        name: Ident::with_quote('"', &last.value),
                        columns: Vec::new(),
                        at: None,
                    });
                }
                *name = ObjectName::from(place.iter().map(|part| Ident::with_quote('"', part)).collect::<Vec<_>>());
                *version = None;
            }
        }
        if version.is_some() {
            return ControlFlow::Break(Error::internal("the version of a table was not looked up"));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::base_state;
    use super::super::source::{parse, tokenize};
    use super::*;

    fn factor(sql: &str) -> Result<(TableVersion, Option<String>)> {
        let statement = parse(&tokenize(sql)?.tokens)?;
        let Ast::Query(query) = statement else { panic!("{sql}") };
        let select = query.body.as_select().unwrap();
        match &select.from[0].relation {
            TableFactor::Table { version, alias, .. } => Ok((version.clone().unwrap(), alias.as_ref().map(|a| a.name.value.clone()))),
            other => panic!("{other}"),
        }
    }

    fn folded(clause: &str) -> Result<AsOf> {
        let state = base_state(1 << 24, 1)?;
        let (version, alias) = factor(&format!("SELECT 1 FROM t {clause}"))?;
        assert_eq!(alias, None);
        for spelled in ["x", "AS x"] {
            assert_eq!(
                factor(&format!("SELECT 1 FROM t {clause} {spelled}"))?.1.as_deref(),
                Some("x"),
                "{clause}"
            );
        }
        fold(&version, &state)
    }

    #[test]
    fn every_form_of_a_version_is_read() {
        for clause in [
            "FOR VERSION AS OF 7",
            "for version as of 7",
            "FOR SYSTEM_VERSION AS OF 7",
            "VERSION AS OF 7",
            "AT (VERSION => 7)",
            "AT(version => 7)",
        ] {
            assert_eq!(folded(clause).unwrap(), AsOf::Version(7), "{clause}");
        }
        assert_eq!(folded("VERSION AS OF 18446744073709551615").unwrap(), AsOf::Version(-1));
        assert_eq!(folded("VERSION AS OF -7").unwrap(), AsOf::Version(-7));
        assert_eq!(folded("VERSION AS OF 9223372036854775807").unwrap(), AsOf::Version(i64::MAX));
        for clause in [
            "FOR VERSION AS OF 'b-1'",
            "VERSION AS OF 'b-1'",
            "AT (VERSION => 'b-1')",
            "FOR SYSTEM_VERSION AS OF 'b-1'",
        ] {
            assert_eq!(folded(clause).unwrap(), AsOf::Ref("b-1".to_owned()), "{clause}");
        }
    }

    #[test]
    fn every_form_of_a_time_is_read() {
        // 2026-01-31 12:00:00 UTC
        let noon = AsOf::Timestamp(1_769_860_800_000_000);
        for form in ["FOR TIMESTAMP AS OF", "FOR SYSTEM_TIME AS OF", "TIMESTAMP AS OF"] {
            for value in [
                "'2026-01-31 12:00:00'",
                "'2026-01-31T12:00:00Z'",
                "'2026-01-31 14:00:00+02:00'",
                "TIMESTAMP '2026-01-31 12:00:00'",
                "CAST('2026-01-31 12:00:00' AS TIMESTAMP)",
                "TIMESTAMP '2026-01-31' + interval '12 hours'",
                "(TIMESTAMP '2026-02-01 12:00:00' - INTERVAL '1 day')",
            ] {
                assert_eq!(folded(&format!("{form} {value}")).unwrap(), noon, "{form} {value}");
            }
        }
        assert_eq!(folded("AT (TIMESTAMP => '2026-01-31 12:00:00')").unwrap(), noon);
        assert_eq!(folded("AT (TIMESTAMP => TIMESTAMP '2026-01-31 12:00:00')").unwrap(), noon);
        assert_eq!(
            folded("TIMESTAMP AS OF DATE '2026-01-31'").unwrap(),
            AsOf::Timestamp(1_769_817_600_000_000)
        );
        let AsOf::Timestamp(yesterday) = folded("FOR TIMESTAMP AS OF current_timestamp - interval '1 day'").unwrap() else {
            panic!("no time");
        };
        let AsOf::Timestamp(today) = folded("TIMESTAMP AS OF now()").unwrap() else {
            panic!("no time");
        };
        assert!(
            (86_399_000_000..86_460_000_000).contains(&(today - yesterday)),
            "{today} {yesterday}"
        );
    }

    #[test]
    fn what_is_no_constant_or_no_time_is_refused() {
        for clause in [
            "TIMESTAMP AS OF a",
            "TIMESTAMP AS OF random()",
            "TIMESTAMP AS OF 1700000000",
            "TIMESTAMP AS OF NULL",
            "TIMESTAMP AS OF 'yesterday'",
            "TIMESTAMP AS OF (SELECT max(a) FROM t)",
            "AT (VERSION => 1.5)",
            "VERSION AS OF 1.5",
            "VERSION AS OF 99999999999999999999",
            "AT (VERSION => a)",
            "AT (VERSION => 1 + 1)",
            "VERSION AS OF ?",
            "TIMESTAMP AS OF ?",
            "FOR SYSTEM_TIME AS OF $1",
            "BEFORE (VERSION => 1)",
            "AT (OFFSET => 1)",
            "AT (VERSION => 1, TIMESTAMP => 2)",
            "AT (1)",
        ] {
            assert!(folded(clause).is_err(), "{clause}");
        }
        for wrong in [
            "SELECT 1 FROM t VERSION AS OF 1 VERSION AS OF 2",
            "SELECT 1 FROM t FOR SYSTEM_TIME BETWEEN 1 AND 2",
            "SELECT 1 FROM t FOR VERSION AS OF",
            "SELECT 1 FROM t AS x VERSION AS OF 1",
        ] {
            assert!(tokenize(wrong).and_then(|s| parse(&s.tokens)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_are_ids_or_times() {
        assert_eq!(parse_as_of(" 42 ").unwrap(), AsOf::Version(42));
        assert_eq!(parse_as_of("2026-01-31").unwrap(), AsOf::Timestamp(1_769_817_600_000_000));
        assert!(parse_as_of("main").is_err());
    }
}
