//! Bound values in the type of the column that they go to, without loss. Doubles that go to decimals are rounded to
//! the column's scale, as those that are written out.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use super::decimals;
use super::insert::{external, stored_as};

/// `value` as this type: a cast that fails where it would cut something off, but for the digits of a double.
pub(super) fn exactly(value: Expr, to: &DataType) -> Expr {
    let function = Exactly {
        signature: Signature::any(1, Volatility::Immutable),
        to: to.clone(),
    };
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Exactly {
    signature: Signature,
    to: DataType,
}

impl ScalarUDFImpl for Exactly {
    fn name(&self) -> &str {
        "exactly"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let value = args.args.into_iter().next();
        let value = value.ok_or_else(|| DataFusionError::Internal("a function of one argument got none".to_owned()))?;
        let values: ArrayRef = value.into_array(rows)?;
        let stored = match &self.to {
            DataType::Decimal128(precision, scale) if values.data_type().is_floating() => {
                decimals::of_numbers(&values, *precision, *scale).map(|decimals| decimals.values)
            }
            to => stored_as(&values, to),
        };
        Ok(ColumnarValue::Array(stored.map_err(external)?))
    }
}
