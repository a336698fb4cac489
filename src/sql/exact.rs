//! Comparisons that the optimizer would make inexact, put so that it cannot.
//!
//! The engine takes casts off what is compared and puts the inverse on the literal:
//! `CAST(d AS DECIMAL(20, 2)) = 1.23` becomes `d = 1.2300`. That is right only where the cast
//! loses nothing. Hence:
//!
//! - a cast that may lose something is hidden in a function that gives what it is given;
//! - microseconds compared with a literal in nanoseconds are compared with the nearest
//!   microsecond, by the operator that says the same.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{
    Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    not,
};

/// A comparison, an IN list or a BETWEEN with exact operands; other expressions stay.
pub(super) fn exact(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            if let Some(nearest) = nearest(&left, op, &right, schema) {
                return Ok(nearest);
            }
            let (left, right) = (Box::new(kept(*left, schema)?), Box::new(kept(*right, schema)?));
            Ok(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::InList(InList { expr, list, negated }) => {
            if !list.iter().any(|item| is_finer(&expr, item, schema)) {
                let expr = Box::new(kept(*expr, schema)?);
                return Ok(Expr::InList(InList { expr, list, negated }));
            }
            let equal = |item| nearest(&expr, Operator::Eq, &item, schema).unwrap_or_else(|| expr.as_ref().clone().eq(item));
            let any = list.into_iter().map(equal).reduce(Expr::or);
            let any = any.ok_or_else(|| DataFusionError::Internal("an IN list is empty".to_owned()))?;
            Ok(if negated { not(any) } else { any })
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            if !is_finer(&expr, &low, schema) && !is_finer(&expr, &high, schema) {
                let expr = Box::new(kept(*expr, schema)?);
                return Ok(Expr::Between(Between { expr, negated, low, high }));
            }
            let least = nearest(&expr, Operator::GtEq, &low, schema).unwrap_or_else(|| expr.as_ref().clone().gt_eq(*low));
            let most = nearest(&expr, Operator::LtEq, &high, schema).unwrap_or_else(|| expr.as_ref().clone().lt_eq(*high));
            let both = least.and(most);
            Ok(if negated { not(both) } else { both })
        }
        other => Ok(other),
    }
}

fn compares(op: Operator) -> bool {
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

/// Microseconds on one side, a literal in nanoseconds on the other, both with or both without zone?
fn is_finer(expr: &Expr, literal: &Expr, schema: &DFSchema) -> bool {
    let Ok(DataType::Timestamp(TimeUnit::Microsecond, zone)) = expr.get_type(schema) else {
        return false;
    };
    nanoseconds(literal).is_some_and(|(_, other)| zone.is_some() == other.is_some())
}

/// The comparison with a literal in microseconds that has the same answer.
fn nearest(left: &Expr, op: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    if is_finer(right, left, schema) {
        return nearest(right, op.swap()?, left, schema);
    }
    if !is_finer(left, right, schema) {
        return None;
    }
    let (value, zone) = nanoseconds(right)?;
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

static KEEP: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(Keep {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

/// Gives its argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Keep {
    signature: Signature,
}

impl ScalarUDFImpl for Keep {
    fn name(&self) -> &'static str {
        "as_written"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> DfResult<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| DataFusionError::Internal("as_written has one argument".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let first = args.args.into_iter().next();
        first.ok_or_else(|| DataFusionError::Internal("as_written has one argument".to_owned()))
    }
}
