//! Regular expressions, worked out as they are written.
//!
//! The engine makes LIKE and `=` of some of them and loses what they say there: a backslash is taken for LIKE's own,
//! and `.*` is not unknown for NULL. Hence operators become calls of `regexp_like`, and that function is one of which
//! the engine knows no simpler form.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::regex::regexplike::RegexpLikeFunc;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, not};

use super::exact::has_placeholder;

static REGEXP_LIKE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::from(RegexpLike::default())));

/// `regexp_like(text, pattern [, flags])`.
pub(super) fn regexp_like() -> Arc<ScalarUDF> {
    Arc::clone(&REGEXP_LIKE)
}

/// A match by operator as a call; other expressions stay.
pub(super) fn as_call(expr: Expr) -> Expr {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return expr;
    };
    let (negated, flags) = match op {
        Operator::RegexMatch => (false, None),
        Operator::RegexIMatch => (false, Some("i")),
        Operator::RegexNotMatch => (true, None),
        Operator::RegexNotIMatch => (true, Some("i")),
        _ => return Expr::BinaryExpr(BinaryExpr { left, op, right }),
    };
    // The operator tells what type they are of; once they are bound it is asked again.
    if has_placeholder(&left) || has_placeholder(&right) {
        return Expr::BinaryExpr(BinaryExpr { left, op, right });
    }
    let flags = flags.map(|flags| Expr::Literal(ScalarValue::from(flags), None));
    let args = [*left, *right].into_iter().chain(flags).collect();
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(regexp_like(), args));
    if negated { not(call) } else { call }
}

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct RegexpLike(RegexpLikeFunc);

impl ScalarUDFImpl for RegexpLike {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, of: &[DataType]) -> Result<DataType> {
        self.0.return_type(of)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.0.invoke_with_args(args)
    }
}
