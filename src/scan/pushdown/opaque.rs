//! A value that no rule of the engine looks through.
//!
//! Invariant: it is the value itself, so pruning looks at what is inside.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Makes values of which no two are the same expression to the engine.
#[derive(Debug, Clone)]
pub struct Opaque(ScalarUDF);

impl Default for Opaque {
    fn default() -> Self {
        Self(ScalarUDF::from(Itself {
            signature: Signature::any(1, Volatility::Immutable),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }))
    }
}

impl Opaque {
    /// Whether it is such a value.
    pub fn is(expr: &Expr) -> bool {
        matches!(expr, Expr::ScalarFunction(call) if is_opaque(call))
    }

    /// The value; of one `Opaque` equal values are the same expression.
    pub fn of(&self, value: Expr) -> Expr {
        Expr::ScalarFunction(ScalarFunction::new_udf(self.0.clone().into(), vec![value]))
    }
}

/// The expression with the values themselves. One without any is not copied: copies of deep chains recurse.
pub(super) fn seen_through(expr: &Expr) -> Cow<'_, Expr> {
    if !expr.exists(|part| Ok(Opaque::is(part))).unwrap_or(true) {
        return Cow::Borrowed(expr);
    }
    let done = expr.clone().transform_up(|part| {
        Ok(match part {
            Expr::ScalarFunction(call) if is_opaque(&call) => match <[Expr; 1]>::try_from(call.args) {
                Ok([value]) => Transformed::yes(value),
                Err(args) => Transformed::no(Expr::ScalarFunction(ScalarFunction { args, func: call.func })),
            },
            part => Transformed::no(part),
        })
    });
    // What cannot be walked is not understood either.
    done.map_or_else(|_| Cow::Borrowed(expr), |done| Cow::Owned(done.data))
}

fn is_opaque(call: &ScalarFunction) -> bool {
    call.func.inner().downcast_ref::<Itself>().is_some()
}

#[derive(Debug)]
struct Itself {
    signature: Signature,
    id: u64,
}

impl PartialEq for Itself {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Itself {}

impl Hash for Itself {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

fn lost() -> DataFusionError {
    DataFusionError::Internal("a function of one argument got none".to_owned())
}

impl ScalarUDFImpl for Itself {
    fn name(&self) -> &str {
        "itself"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, of: &[DataType]) -> DfResult<DataType> {
        of.first().cloned().ok_or_else(lost)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        args.arg_fields.first().cloned().ok_or_else(lost)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        args.args.into_iter().next().ok_or_else(lost)
    }
}
