//! Functions that tell about the session: `version()`, `current_catalog()`, `current_schema()`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

/// What `version()` says.
pub(super) const VERSION: &str = concat!("Sandur ", env!("CARGO_PKG_VERSION"));

/// Built-in functions of the engine that are not offered: they look behind the scan.
pub(super) const WITHDRAWN: &[&str] = &["input_file_name", "file_row_index"];

/// The session's function of a name, if it is one.
pub(super) fn session_function(name: &str, catalog: Option<&str>, schema: &str) -> Option<Arc<ScalarUDF>> {
    let value = match name {
        "version" => Some(VERSION.to_owned()),
        "current_catalog" | "current_database" => catalog.map(str::to_owned),
        "current_schema" => Some(schema.to_owned()),
        _ => return None,
    };
    Some(Arc::new(ScalarUDF::from(Constant {
        name: name.to_owned(),
        value,
        signature: Signature::nullary(Volatility::Stable),
    })))
}

/// Names of the session's functions.
pub(super) const SESSION_FUNCTIONS: &[&str] = &["version", "current_catalog", "current_database", "current_schema"];

/// A function without arguments that always gives one text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    name: String,
    value: Option<String>,
    signature: Signature,
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        &self.name
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }
    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8(self.value.clone())))
    }
}
