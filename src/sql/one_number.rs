//! Floating-point numbers that are one number in several forms: the two zeros, and NaN of either sign.
//!
//! The engine groups by value, but compares, sorts and looks up by bits or by an order that tells the
//! forms apart. Where that decides what is equal, [`one_form`] gives each number one form.
//!
//! Columns of files hold one NaN, without sign; the processor's own (`0.0 / 0.0`) has one. Hence what is
//! computed gives the NaN of the files ([`computed`]).

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::Result as DfResult;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Case, ScalarFunction, Sort, WindowFunction};
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, ExprSchemable, ScalarUDF, when};

use super::exact::Unary;
use super::literals::is_literal;

/// The expression with its numbers in one form; what is no floating-point number stays.
pub(super) fn one_form(expr: Expr, schema: &DFSchema) -> Expr {
    if !is_float(&expr, schema) || matches!(expr, Expr::Literal(..)) {
        return expr;
    }
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&ONE_FORM), vec![expr]))
}

/// Arithmetic and functions whose NaN has no sign; other expressions stay.
pub(super) fn computed(expr: Expr, schema: &DFSchema) -> Expr {
    let may_be_new = match &expr {
        Expr::BinaryExpr(of) => of.op.is_numerical_operators(),
        Expr::Negative(inner) => !is_literal(inner),
        // A field of a struct is a file's value, and what prunes by it must see it.
        Expr::ScalarFunction(call) => !Unary::is(&call.func) && call.func.name() != "get_field",
        Expr::Cast(cast) => cast.field.data_type().is_floating() && cast.expr.get_type(schema).is_ok_and(|of| of.is_string()),
        _ => false,
    };
    if !may_be_new || !is_float(&expr, schema) {
        return expr;
    }
    // The outermost operation decides.
    let expr = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, right) = (Box::new(as_computed(*left)), Box::new(as_computed(*right)));
            Expr::BinaryExpr(BinaryExpr { left, op, right })
        }
        Expr::Negative(inner) => Expr::Negative(Box::new(as_computed(*inner))),
        other => other,
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&ONE_NAN), vec![expr]))
}

/// The expression without the function that [`computed`] put around it.
fn as_computed(expr: Expr) -> Expr {
    match expr {
        Expr::ScalarFunction(mut call) if call.func == *ONE_NAN && call.args.len() == 1 => call.args.remove(0),
        other => other,
    }
}

pub(super) fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of.is_floating())
}

/// What compares numbers inside of it (windows, distinct aggregates, CASE with an operand, NULLIF) by value.
pub(super) fn by_value(expr: Expr, schema: &DFSchema) -> DfResult<Expr> {
    let each = |exprs: Vec<Expr>| exprs.into_iter().map(|e| one_form(e, schema)).collect();
    let sorts = |sorts: Vec<Sort>| -> Vec<Sort> {
        let one = |sort: Sort| Sort {
            expr: one_form(sort.expr, schema),
            ..sort
        };
        sorts.into_iter().map(one).collect()
    };
    Ok(match expr {
        Expr::WindowFunction(window) => {
            let WindowFunction { fun, mut params } = *window;
            params.partition_by = each(params.partition_by);
            params.order_by = sorts(params.order_by);
            if params.distinct {
                params.args = each(params.args);
            }
            Expr::WindowFunction(Box::new(WindowFunction { fun, params }))
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            params.order_by = sorts(params.order_by);
            if params.distinct {
                params.args = each(params.args);
            }
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::Case(Case {
            expr: Some(operand),
            when_then_expr,
            else_expr,
        }) if is_float(&operand, schema) || when_then_expr.iter().any(|(when, _)| is_float(when, schema)) => {
            let branch = |(when, then): (Box<Expr>, Box<Expr>)| (Box::new(positive(*when, schema)), then);
            Expr::Case(Case {
                expr: Some(Box::new(one_form(*operand, schema))),
                when_then_expr: when_then_expr.into_iter().map(branch).collect(),
                else_expr,
            })
        }
        Expr::ScalarFunction(call) if call.func.name() == "nullif" && call.args.iter().any(|e| is_float(e, schema)) => {
            let of = call
                .args
                .first()
                .filter(|_| call.args.len() == 2 && !call.args.iter().any(Expr::is_volatile));
            match (of, call.args.get(1)) {
                (Some(value), Some(other)) => {
                    let to = value.get_type(schema)?;
                    when(value.clone().eq(other.clone()), Expr::Literal(ScalarValue::try_from(&to)?, None)).otherwise(value.clone())?
                }
                _ => Expr::ScalarFunction(call),
            }
        }
        other => other,
    })
}

/// As [`one_form`], also for literals.
fn positive(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(v)), meta) => Expr::Literal(ScalarValue::Float64(Some(one64(v))), meta),
        Expr::Negative(inner) if matches!(inner.as_ref(), Expr::Literal(ScalarValue::Float64(Some(0.0)), _)) => *inner,
        other => one_form(other, schema),
    }
}

/// Zero and NaN without sign.
pub(super) fn one64(v: f64) -> f64 {
    // In round-to-nearest the sum of the two zeros is the positive one.
    if v.is_nan() { f64::NAN } else { v + 0.0 }
}

fn one32(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v + 0.0 }
}

fn unsigned64(v: f64) -> f64 {
    if v.is_nan() { f64::NAN } else { v }
}

fn unsigned32(v: f32) -> f32 {
    if v.is_nan() { f32::NAN } else { v }
}

fn in_one_form(value: ColumnarValue) -> DfResult<ColumnarValue> {
    each(value, one32, one64)
}

fn with_one_nan(value: ColumnarValue) -> DfResult<ColumnarValue> {
    each(value, unsigned32, unsigned64)
}

fn each(value: ColumnarValue, of32: impl Fn(f32) -> f32, of64: impl Fn(f64) -> f64) -> DfResult<ColumnarValue> {
    let array = match &value {
        ColumnarValue::Array(array) => Arc::clone(array),
        ColumnarValue::Scalar(scalar) => scalar.to_array()?,
    };
    let array: ArrayRef = match array.data_type() {
        DataType::Float32 => Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(of32)),
        DataType::Float64 => Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(of64)),
        _ => return Ok(value),
    };
    Ok(match value {
        ColumnarValue::Array(_) => ColumnarValue::Array(array),
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?),
    })
}

static ONE_FORM: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Unary::new("one_form", in_one_form))));
static ONE_NAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(Unary::new("one_nan", with_one_nan))));
