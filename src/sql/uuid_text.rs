//! Text as uuids, for columns of that type.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use uuid::Uuid;

use crate::error::Error;

/// The function.
pub(super) static TEXT_TO_UUID: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(TextToUuid {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextToUuid {
    signature: Signature,
}

impl ScalarUDFImpl for TextToUuid {
    fn name(&self) -> &str {
        "text_to_uuid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::FixedSizeBinary(16))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let value = args.args.into_iter().next();
        let value = value.ok_or_else(|| DataFusionError::Internal("a function of one argument got none".to_owned()))?;
        let uuids = uuids_of(&value.into_array(rows)?).map_err(|e| DataFusionError::External(Box::new(e)))?;
        Ok(ColumnarValue::Array(uuids))
    }
}

/// The uuids of texts, or of their bytes.
///
/// Errors: `InvalidInput` for a text that is none.
pub(super) fn uuids_of(texts: &ArrayRef) -> Result<ArrayRef, Error> {
    if *texts.data_type() == DataType::FixedSizeBinary(16) {
        return Ok(Arc::clone(texts));
    }
    let texts = cast(texts, &DataType::Utf8)?;
    let mut uuids = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
    for text in texts.as_string::<i32>() {
        match text {
            None => uuids.append_null(),
            Some(text) => {
                let uuid = Uuid::try_parse(text).map_err(|e| Error::invalid(format!("'{text}' is not a uuid")).with_source(e))?;
                uuids.append_value(uuid.as_bytes())?;
            }
        }
    }
    Ok(Arc::new(uuids.finish()))
}
