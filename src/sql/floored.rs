//! Casts of moments to a coarser unit.
//!
//! Invariant: digits that the coarser unit does not have are cut off alike before and after 1970: what is left is
//! the last moment of that unit, as for text that is cast. The engine's own cast cuts towards 1970.

use std::hash::{Hash, Hasher};

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};

use super::casts;

const NAME: &str = "moment_before";

/// What is to be cast to a type, with its moments floored where the cast would cut them.
pub(super) fn floored(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    let is_floored = matches!(&expr, Expr::ScalarFunction(call) if call.func.name() == NAME);
    if is_floored || !casts::cuts_moments(from, to) {
        return expr;
    }
    let function = Floored {
        signature: Signature::any(1, Volatility::Immutable),
        to: to.clone(),
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(ScalarUDF::from(function).into(), vec![expr]))
}

/// The same for a cast that a statement has; other expressions stay.
pub(super) fn floored_cast(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            let expr = Box::new(operand(*expr, field.data_type(), schema));
            Expr::Cast(Cast { expr, field })
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let expr = Box::new(operand(*expr, field.data_type(), schema));
            Expr::TryCast(TryCast { expr, field })
        }
        other => other,
    }
}

fn operand(expr: Expr, to: &DataType, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(from) => floored(expr, &from, to),
        // Nobody knows yet what it is: a parameter.
        Err(_) => expr,
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Floored {
    signature: Signature,
    to: DataType,
}

impl Hash for Floored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to.hash(state);
    }
}

impl ScalarUDFImpl for Floored {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, of: &[DataType]) -> Result<DataType> {
        let of = of.first().cloned();
        of.ok_or_else(|| DataFusionError::Internal("a function of one argument got none".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let value = args.args.into_iter().next();
        let value = value.ok_or_else(|| DataFusionError::Internal("a function of one argument got none".to_owned()))?;
        let values = value.into_array(rows)?;
        Ok(ColumnarValue::Array(casts::floored(&values, &self.to)?))
    }
}
