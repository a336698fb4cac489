//! Comparisons that the optimizer would make inexact, put so that it cannot.
//!
//! The engine takes casts off what is compared and puts the inverse on the literal:
//! `CAST(d AS DECIMAL(20, 2)) = 1.23` becomes `d = 1.2300`. That is right only where the cast
//! loses nothing. Hence:
//!
//! - a cast that may lose something is hidden in a function that gives what it is given;
//! - microseconds compared with a literal in nanoseconds are compared with the nearest
//!   microsecond, by the operator that says the same;
//! - an IN list looks floating-point numbers up by their bits, so that 0.0 and -0.0 are made one; what is compared with
//!   zero by `=` is hidden, because literals are told apart by their bits, too, and several become a list;
//! - a BETWEEN whose bounds are of another type is two comparisons.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    cast, not,
};

use super::one_number::{by_value, computed, is_float, one_form};
use super::regular::as_call;
use crate::scan::Opaque;

/// A comparison, an IN list or a BETWEEN with exact operands; other expressions stay.
pub(super) fn exact(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let left = fitted(*left, &right, schema);
            let right = kept(fitted(*right, &left, schema), schema)?;
            let left = kept(left, schema)?;
            if let Some(nearest) = nearest(&left, op, &right, schema) {
                return Ok(nearest);
            }
            let left = as_fine(left, &right, schema);
            let right = as_fine(right, &left, schema);
            let (left, right) = if matches!(op, Operator::Eq | Operator::NotEq) {
                beside_zero(left, right, schema)
            } else {
                (left, right)
            };
            let (left, right) = (Box::new(left), Box::new(right));
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let expr = Box::new(list.iter().fold(*expr, |expr, item| fitted(expr, item, schema)));
            let list: Vec<Expr> = list.into_iter().map(|item| fitted(item, &expr, schema)).collect();
            if expr.is_volatile() || !list.iter().any(|item| is_finer(&expr, item, schema)) {
                let expr = kept(*expr, schema)?;
                return one_zero(expr, list, negated, schema);
            }
            let expr = kept(*expr, schema)?;
            let equal = |item| nearest(&expr, Operator::Eq, &item, schema).unwrap_or_else(|| expr.clone().eq(item));
            let any = list.into_iter().map(equal).reduce(Expr::or);
            let any = any.ok_or_else(|| DataFusionError::Internal("an IN list is empty".to_owned()))?;
            Ok(if negated { not(any) } else { any })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let expr = Box::new(fitted(fitted(*expr, &low, schema), &high, schema));
            let (low, high) = (Box::new(fitted(*low, &expr, schema)), Box::new(fitted(*high, &expr, schema)));
            // Where a bound is of another type, two comparisons say the same, and the engine knows how to compare.
            let of = expr.get_type(schema)?;
            let differs = |bound: &Expr| !has_placeholder(bound) && bound.get_type(schema).is_ok_and(|other| other != of);
            let expr = kept(*expr, schema)?;
            if expr.is_volatile() || has_placeholder(&expr) || !(differs(&low) || differs(&high)) {
                let expr = Box::new(expr);
                return Ok(Expr::Between(Between { expr, negated, low, high }));
            }
            let least = nearest(&expr, Operator::GtEq, &low, schema).unwrap_or_else(|| expr.clone().gt_eq(*low));
            let most = nearest(&expr, Operator::LtEq, &high, schema).unwrap_or_else(|| expr.clone().lt_eq(*high));
            let both = least.and(most);
            Ok(if negated { not(both) } else { both })
        }
        // What is taken twice is nothing to the engine, also where it is null.
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ Operator::BitwiseXor,
            right,
        }) => Ok(Expr::BinaryExpr(BinaryExpr {
            left: Box::new(Opaque::default().of(*left)),
            op,
            right,
        })),
        // The engine would take the answer for one that is never null, and compute one that may be.
        Expr::IsTrue(of) => Ok(is(*of, Operator::IsNotDistinctFrom, true)),
        Expr::IsNotTrue(of) => Ok(is(*of, Operator::IsDistinctFrom, true)),
        Expr::IsFalse(of) => Ok(is(*of, Operator::IsNotDistinctFrom, false)),
        Expr::IsNotFalse(of) => Ok(is(*of, Operator::IsDistinctFrom, false)),
        Expr::IsUnknown(of) => Ok(Expr::IsNull(of)),
        Expr::IsNotUnknown(of) => Ok(Expr::IsNotNull(of)),
        other => Ok(computed(by_value(as_call(other), schema)?, schema)),
    }
}

fn is(of: Expr, op: Operator, value: bool) -> Expr {
    let value = Expr::Literal(ScalarValue::Boolean(Some(value)), None);
    Expr::BinaryExpr(BinaryExpr::new(Box::new(of), op, Box::new(value)))
}

/// What is compared with another type, as the type that both are compared as. A date beside a timestamp in
/// microseconds (or a literal in nanoseconds) is a timestamp in microseconds: the engine would take both to nanoseconds,
/// which end in 2262. A decimal beside a double is a double: the engine would take both to a decimal, which not every
/// double fits.
fn fitted(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::Date32) => {}
        Ok(DataType::Decimal128(..) | DataType::Decimal256(..)) if is_float(other, schema) => return cast(expr, DataType::Float64),
        _ => return expr,
    }
    let zone = match (other.get_type(schema), nanoseconds(other)) {
        (Ok(DataType::Timestamp(TimeUnit::Microsecond, zone)), _) | (_, Some((_, zone))) => zone,
        _ => return expr,
    };
    cast(expr, DataType::Timestamp(TimeUnit::Microsecond, zone))
}

/// Microseconds that are compared with nanoseconds other than a literal as nanoseconds: once those are worked
/// out, the engine would cut them.
fn as_fine(expr: Expr, other: &Expr, schema: &DFSchema) -> Expr {
    let (Ok(DataType::Timestamp(TimeUnit::Microsecond, _)), Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone))) =
        (expr.get_type(schema), other.get_type(schema))
    else {
        return expr;
    };
    if nanoseconds(other).is_some() {
        return expr;
    }
    let fine = cast(expr, DataType::Timestamp(TimeUnit::Nanosecond, zone));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&KEEP), vec![fine]))
}

/// Whether the operator compares values.
pub(super) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// A literal in nanoseconds: its value and zone.
fn nanoseconds(expr: &Expr) -> Option<(i64, Option<Arc<str>>)> {
    let value = match expr {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(cast) => match (cast.expr.as_ref(), cast.field.data_type()) {
            (Expr::Literal(text @ ScalarValue::Utf8(Some(_)), _), to @ DataType::Timestamp(TimeUnit::Nanosecond, _)) => {
                text.cast_to(to).ok()?
            }
            _ => return None,
        },
        _ => return None,
    };
    match value {
        ScalarValue::TimestampNanosecond(Some(value), zone) => Some((value, zone)),
        _ => None,
    }
}

/// Microseconds on one side, a literal in nanoseconds on the other? Where one of them alone has a zone, the other is
/// taken as UTC.
fn is_finer(expr: &Expr, literal: &Expr, schema: &DFSchema) -> bool {
    microseconds(expr, schema).is_some() && nanoseconds(literal).is_some()
}

/// The zone of a value in microseconds; `None` for what is no such value.
fn microseconds(expr: &Expr, schema: &DFSchema) -> Option<Option<Arc<str>>> {
    match expr.get_type(schema) {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, zone)) => Some(zone),
        _ => None,
    }
}

/// The comparison with a literal in microseconds that has the same answer.
fn nearest(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    if is_finer(right, left, schema) {
        return nearest(right, op.swap()?, left, schema);
    }
    // It is written twice below.
    if !is_finer(left, right, schema) || left.is_volatile() {
        return None;
    }
    let (value, _) = nanoseconds(right)?;
    let zone = microseconds(left, schema)?;
    let micros = Expr::Literal(ScalarValue::TimestampMicrosecond(Some(value.div_euclid(1000)), zone), None);
    let left = left.clone();
    if value.rem_euclid(1000) == 0 {
        return Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(micros))));
    }
    // The literal lies between two microseconds, of which `micros` is the lower.
    Some(match op {
        Operator::Lt | Operator::LtEq => left.lt_eq(micros),
        Operator::Gt | Operator::GtEq => left.gt(micros),
        // False and true, but for null, which stays unknown.
        Operator::Eq => left.clone().not_eq(left),
        Operator::NotEq => left.clone().eq(left),
        Operator::IsDistinctFrom => Expr::Literal(ScalarValue::Boolean(Some(true)), None),
        Operator::IsNotDistinctFrom => Expr::Literal(ScalarValue::Boolean(Some(false)), None),
        _ => return None,
    })
}

/// The expression, with a cast that may lose something kept from the optimizer.
fn kept(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let (inner, to) = match &expr {
        Expr::Cast(cast) => (&cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&cast.expr, cast.field.data_type()),
        _ => return Ok(expr),
    };
    let is_constant = matches!(inner.as_ref(), Expr::Literal(..) | Expr::Placeholder(_));
    if is_constant || loses_nothing(&inner.get_type(schema)?, to) {
        return Ok(expr);
    }
    Ok(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&KEEP), vec![expr])))
}

pub(super) fn has_placeholder(expr: &Expr) -> bool {
    expr.exists(|e| Ok(matches!(e, Expr::Placeholder(_)))).unwrap_or(true)
}

/// Both sides of a comparison, the one that is compared with a zero hidden.
fn beside_zero(left: Expr, right: Expr, schema: &DFSchema) -> (Expr, Expr) {
    let may_be_zero = |e: &Expr| is_constant(e) && is_float(e, schema) && number(e).is_none_or(|number| number == 0.0);
    match (may_be_zero(&left), may_be_zero(&right)) {
        (false, true) => (Opaque::default().of(left), right),
        (true, false) => (left, Opaque::default().of(right)),
        _ => (left, right),
    }
}

/// Whether an expression is worked out before there are rows.
fn is_constant(expr: &Expr) -> bool {
    use Expr::{BinaryExpr, Cast, Literal, Negative, ScalarFunction, TryCast};
    let others = expr.exists(|e| {
        Ok(!matches!(
            e,
            Literal(..) | Negative(_) | Cast(_) | TryCast(_) | BinaryExpr(_) | ScalarFunction(_)
        ))
    });
    !others.unwrap_or(true)
}

/// An IN list for which 0.0 and -0.0 are one number, as they are for `=`: the engine looks up bits.
fn one_zero(expr: Expr, list: Vec<Expr>, negated: bool, schema: &DFSchema) -> DfResult<Expr> {
    let floats = is_float(&expr, schema) || list.iter().any(|e| is_float(e, schema));
    // A number other than zero has one form only.
    let may_be_zero = |e: &Expr| match number(e) {
        Some(number) => number == 0.0,
        None => !matches!(e, Expr::Literal(value, _) if value.is_null()),
    };
    if !floats || !list.iter().any(may_be_zero) {
        return Ok(Expr::InList(InList {
            expr: Box::new(expr),
            list,
            negated,
        }));
    }
    let one = |e: Expr| match number(&e) {
        Some(0.0) => Expr::Literal(ScalarValue::Float64(Some(0.0)), None),
        None => one_form(e, schema),
        Some(_) => e,
    };
    Ok(Expr::InList(InList {
        expr: Box::new(one(expr)),
        list: list.into_iter().map(one).collect(),
        negated,
    }))
}

/// The value of a literal number.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Negative(inner) => number(inner).map(|v| -v),
        Expr::Literal(ScalarValue::Float64(value), _) => *value,
        Expr::Literal(ScalarValue::Float32(value), _) => value.map(f64::from),
        // Only whether it is zero matters.
        Expr::Literal(ScalarValue::Int64(value), _) => value.map(|v| if v == 0 { 0.0 } else { 1.0 }),
        _ => None,
    }
}

/// Whether different values stay different and none fails.
fn loses_nothing(from: &DataType, to: &DataType) -> bool {
    use DataType::{Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Timestamp};
    match (from, to) {
        (from, to) if from == to => true,
        (Int8, Int16 | Int32 | Int64) | (Int16, Int32 | Int64) | (Int32, Int64) | (Float32, Float64) | (Date32, Timestamp(..)) => true,
        (Decimal128(p, s), Decimal128(to_p, to_s)) => {
            let whole = |p: u8, s: i8| i16::from(p) - i16::from(s);
            to_s >= s && whole(*to_p, *to_s) >= whole(*p, *s)
        }
        (Timestamp(unit, zone), Timestamp(to_unit, to_zone)) => zone.is_some() == to_zone.is_some() && digits(*to_unit) >= digits(*unit),
        _ => from.is_string() && to.is_string(),
    }
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

static KEEP: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Unary::new("as_written", Ok))));

/// A function of one argument that gives a value of the argument's type. It is known by its name.
#[derive(Debug)]
pub(super) struct Unary {
    name: &'static str,
    signature: Signature,
    of: fn(ColumnarValue) -> DfResult<ColumnarValue>,
}

impl Unary {
    /// Whether a function is one of these.
    pub(super) fn is(function: &ScalarUDF) -> bool {
        function.inner().downcast_ref::<Self>().is_some()
    }

    pub(super) fn new(name: &'static str, of: fn(ColumnarValue) -> DfResult<ColumnarValue>) -> Self {
        Self {
            name,
            signature: Signature::any(1, Volatility::Immutable),
            of,
        }
    }
}

impl PartialEq for Unary {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Unary {}

impl Hash for Unary {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Unary {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        types.first().cloned().ok_or_else(missing)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        (self.of)(args.args.into_iter().next().ok_or_else(missing)?)
    }
}

fn missing() -> DataFusionError {
    DataFusionError::Internal("a function of one argument got none".to_owned())
}
