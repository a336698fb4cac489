//! Literals that the engine would read otherwise than SQL users expect, before and after planning.
//!
//! - A number with a fraction is a double, as in DataFusion; one with more digits than a double
//!   holds becomes a decimal, so that it equals the decimal that was stored. Compared with a
//!   double it is a double after all: a double cast to a decimal would lose values. Compared with a
//!   decimal every number is the decimal that was written: `d = 0.1` is not about the double next to it.
//! - `TIMESTAMP '..'` with digits below the microsecond counts nanoseconds, which the type of that
//!   name does not.
//! - Text or a date compared with a timestamp in microseconds is one; a time literal counts microseconds.
//! - Text compared with a `uuid` column is read as a UUID: a uuid travels as 16 bytes, which the
//!   engine does not compare with text. Text that is no UUID is an error, not a comparison that
//!   is never true.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, cast};
use datafusion::sql::sqlparser::ast;
use uuid::Uuid;

use super::exact::{exact, is_comparison};
use super::floored::floored_cast;
use super::lists::apart;
use super::null_safe::null_safe;
use super::one_number::one_form;
use super::types::ZONE;
use super::uuid_text::uuid_cast;
use crate::error::Error;

/// Digits that every double keeps.
const DOUBLE_DIGITS: usize = 15;
/// Digits of the widest decimal.
const DECIMAL_DIGITS: usize = 38;
/// The extension name that marks a uuid column.
pub(super) const EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.uuid");

/// Fraction digits of a timestamp in microseconds.
const MICROSECOND_DIGITS: usize = 6;

/// Gives number and timestamp literals a type that holds all their digits; other expressions stay.
pub(super) fn make_exact(expr: &mut ast::Expr) {
    match expr {
        ast::Expr::TypedString(literal) => keep_nanoseconds(literal),
        ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Minus,
            expr,
        } => widen_number(expr, i64::MIN.unsigned_abs()),
        _ => widen_number(expr, u64::MAX),
    }
}

fn keep_nanoseconds(literal: &mut ast::TypedString) {
    let zoned = match &literal.data_type {
        ast::DataType::Timestamp(None, zone) => matches!(zone, ast::TimezoneInfo::Tz | ast::TimezoneInfo::WithTimeZone),
        ast::DataType::TimestampNtz(None) => false,
        _ => return,
    };
    let ast::Value::SingleQuotedString(text) = &literal.value.value else {
        return;
    };
    if has_nanoseconds(text) {
        let name = if zoned { "timestamptz_ns" } else { "timestamp_ns" };
        literal.data_type = ast::DataType::Custom(ast::ObjectName::from(vec![ast::Ident::new(name)]), Vec::new());
    }
}

/// Whether the text of a timestamp has digits below the microsecond.
fn has_nanoseconds(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, rest)| rest);
    let digits = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    fraction.get(..digits).unwrap_or_default().trim_end_matches('0').len() > MICROSECOND_DIGITS
}

/// Makes a number with more digits than a double holds a decimal, and a whole one beyond `largest`, which the engine
/// would make a double.
fn widen_number(expr: &mut ast::Expr, largest: u64) {
    let ast::Expr::Value(ast::ValueWithSpan {
        value: ast::Value::Number(text, _),
        span,
    }) = expr
    else {
        return;
    };
    let is_whole = !text.contains('.');
    if is_whole && text.parse::<u64>().is_ok_and(|number| number <= largest) {
        return;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let significant = text.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let precision = whole.trim_start_matches('0').len() + fraction.len();
    if !digits(whole) || !digits(fraction) || significant <= DOUBLE_DIGITS || precision > DECIMAL_DIGITS {
        return;
    }
    let (Ok(wide), Ok(scale)) = (u64::try_from(precision), i64::try_from(fraction.len())) else {
        return;
    };
    let value = ast::Value::SingleQuotedString(text.clone());
    let span = *span;
    *expr = ast::Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(ast::Expr::Value(ast::ValueWithSpan { value, span })),
        data_type: ast::DataType::Decimal(ast::ExactNumberInfo::PrecisionAndScale(wide, scale)),
        array: false,
        format: None,
    };
}

/// Fits literals as soon as a comparison is planned, where the engine types what it is part of (`NOT ..`).
#[derive(Debug)]
pub(super) struct ComparedLiterals;

impl ExprPlanner for ComparedLiterals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> DfResult<PlannerResult<RawBinaryExpr>> {
        use ast::BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let RawBinaryExpr { op, left, right } = expr;
        if !matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        }
        let (left, right) = match (fit(&right, schema), fit(&left, schema)) {
            (Some(fit), _) if is_literal(&left) => (fit(left)?, right),
            (_, Some(fit)) if is_literal(&right) => (left, fit(right)?),
            _ => (left, right),
        };
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

/// Rewrites the literals that are compared with uuid and floating-point expressions, and keeps conditions
/// on one value apart.
pub(super) fn fit_literals(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        for input in node.inputs() {
            schema.merge(input.schema());
        }
        if node.inputs().is_empty() {
            schema.merge(node.schema());
        }
        // Outer nodes know an expression by its name.
        let names = NamePreserver::new(&node);
        let sorts = matches!(node, LogicalPlan::Sort(_));
        let joins = matches!(node, LogicalPlan::Join(_));
        let filters = joins || matches!(node, LogicalPlan::Filter(_));
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let fitted = expr.transform_up(|e| {
                rewrite(e, &schema)?.transform_data(|e| Ok(Transformed::yes(exact(floored_cast(uuid_cast(e, &schema), &schema), &schema)?)))
            })?;
            let fitted = fitted.transform_data(|e| Ok(Transformed::yes(apart(e, filters)?)))?;
            if joins {
                return fitted.transform_data(|e| Ok(Transformed::yes(null_safe(e, &schema)?)));
            }
            if sorts {
                return Ok(fitted.update_data(|expr| one_form(expr, &schema)));
            }
            Ok(fitted.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(rewritten.data)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (new_left, new_right) = match (fit(&right, schema), fit(&left, schema)) {
                (Some(fit), _) => (Box::new(fit(*left)?), right),
                (None, Some(fit)) => (left, Box::new(fit(*right)?)),
                (None, None) => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))),
            };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                left: new_left,
                op,
                right: new_right,
            })))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let Some(fit) = fit(&expr, schema) else {
                return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
            };
            let list = list.into_iter().map(fit).collect::<DfResult<_>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(fit) = fit(&expr, schema) else {
                return Ok(Transformed::no(Expr::Between(Between { expr, negated, low, high })));
            };
            let (low, high) = (Box::new(fit(*low)?), Box::new(fit(*high)?));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        other => Ok(Transformed::no(other)),
    }
}

pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(..) => true,
        Expr::Negative(inner) => is_literal(inner),
        Expr::Cast(cast) => is_literal(&cast.expr),
        _ => false,
    }
}

/// What is done to the literals that `expr` is compared with.
fn fit(expr: &Expr, schema: &DFSchema) -> Option<fn(Expr) -> DfResult<Expr>> {
    // Of two literals neither is the other's measure.
    if is_literal(expr) {
        return None;
    }
    if let Expr::Column(column) = expr
        && let Ok((_, field)) = schema.qualified_field_from_column(column)
        && field.metadata().get(EXTENSION.0).is_some_and(|name| name == EXTENSION.1)
    {
        return Some(uuid_literal);
    }
    match expr.get_type(schema) {
        Ok(DataType::Float32 | DataType::Float64) => Some(double_literal),
        Ok(DataType::Decimal128(..) | DataType::Decimal256(..)) => Some(decimal_literal),
        Ok(DataType::Time64(TimeUnit::Microsecond)) => Some(time_literal),
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None)) => Some(|literal| moment(literal, None)),
        Ok(DataType::Timestamp(TimeUnit::Microsecond, Some(_))) => Some(|literal| moment(literal, Some(ZONE))),
        _ => None,
    }
}

/// Text or a date as a moment in microseconds: the engine would take both sides to nanoseconds,
/// which end in 2262.
fn moment(expr: Expr, zone: Option<&str>) -> DfResult<Expr> {
    let unit = match &expr {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) if has_nanoseconds(text) => TimeUnit::Nanosecond,
        Expr::Literal(ScalarValue::Utf8(Some(_)) | ScalarValue::Date32(Some(_)), _) => TimeUnit::Microsecond,
        Expr::Cast(cast) if is_literal(&expr) && *cast.field.data_type() == DataType::Date32 => TimeUnit::Microsecond,
        _ => return Ok(expr),
    };
    Ok(cast(expr, DataType::Timestamp(unit, zone.map(Into::into))))
}

/// A time in whole microseconds as such: the engine does not compare times of two units.
fn time_literal(expr: Expr) -> DfResult<Expr> {
    let value = match &expr {
        Expr::Literal(value @ ScalarValue::Time64Nanosecond(Some(_)), _) => value.clone(),
        Expr::Cast(cast) => match (cast.expr.as_ref(), cast.field.data_type()) {
            (Expr::Literal(text @ ScalarValue::Utf8(Some(_)), _), to @ DataType::Time64(TimeUnit::Nanosecond)) => text.cast_to(to)?,
            _ => return Ok(expr),
        },
        _ => return Ok(expr),
    };
    Ok(match value {
        ScalarValue::Time64Nanosecond(Some(v)) if v % 1000 == 0 => Expr::Literal(ScalarValue::Time64Microsecond(Some(v / 1000)), None),
        _ => expr,
    })
}

fn uuid_literal(expr: Expr) -> DfResult<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &expr else {
        return Ok(expr);
    };
    let uuid = Uuid::try_parse(text)
        .map_err(|e| DataFusionError::External(Box::new(Error::invalid(format!("'{text}' is not a uuid")).with_source(e))))?;
    let bytes = ScalarValue::FixedSizeBinary(16, Some(uuid.as_bytes().to_vec()));
    Ok(Expr::Literal(bytes, None))
}

/// A double as the decimal that was written: its shortest digits, since it was written with no
/// more than a double keeps.
fn decimal_literal(expr: Expr) -> DfResult<Expr> {
    let number = match &expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), _) => *number,
        Expr::Negative(inner) => match inner.as_ref() {
            Expr::Literal(ScalarValue::Float64(Some(number)), _) => -*number,
            _ => return Ok(expr),
        },
        _ => return Ok(expr),
    };
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let precision = whole.trim_start_matches(['-', '0']).len() + fraction.len();
    let unscaled = format!("{whole}{fraction}").parse::<i128>();
    match (unscaled, u8::try_from(precision.max(1)), i8::try_from(fraction.len())) {
        (Ok(unscaled), Ok(precision), Ok(scale)) if usize::from(precision) <= DECIMAL_DIGITS => {
            Ok(Expr::Literal(ScalarValue::Decimal128(Some(unscaled), precision, scale), None))
        }
        _ => Ok(expr),
    }
}

/// A decimal that [`make_exact`] made, as a double again.
fn double_literal(expr: Expr) -> DfResult<Expr> {
    if let Expr::Cast(cast) = &expr
        && let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = cast.expr.as_ref()
        && let Ok(number) = text.parse::<f64>()
        && matches!(expr.get_type(&DFSchema::empty()), Ok(DataType::Decimal128(..)))
    {
        return Ok(Expr::Literal(ScalarValue::Float64(Some(number)), None));
    }
    Ok(expr)
}
