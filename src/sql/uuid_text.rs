//! Text as uuids: for columns of that type, and for `CAST(.. AS UUID)` and `UUID '..'`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use uuid::Uuid;

use super::literals::EXTENSION;
use crate::error::Error;
use crate::table::TYPE_NAME_KEY;

/// Text as the bytes of a uuid for a column; what is one already stays. The rows of VALUES need one form of a type,
/// so this one does not say that it is of uuids: the column does.
pub(super) fn as_uuid(value: Expr) -> Expr {
    match value {
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &FOR_COLUMNS) => Expr::ScalarFunction(call),
        other => Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&FOR_COLUMNS), vec![other])),
    }
}

static FOR_COLUMNS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(false));
static OF_CASTS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(true));

fn function(says_uuid: bool) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(TextToUuid {
        signature: Signature::any(1, Volatility::Immutable),
        says_uuid,
    }))
}

/// The type of uuids, as of a column.
pub(super) fn uuid_field(name: &str) -> FieldRef {
    let metadata = [(TYPE_NAME_KEY, "uuid"), (EXTENSION.0, EXTENSION.1)];
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Arc::new(Field::new(name, DataType::FixedSizeBinary(16), true).with_metadata(metadata.into()))
}

/// A cast to this type; other expressions stay. The engine casts no text to it.
pub(super) fn uuid_cast(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Cast(Cast { expr, field }) if is_uuid(&field) && expr.get_type(schema).is_ok_and(|of| of.is_string()) => {
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&OF_CASTS), vec![*expr]))
        }
        other => other,
    }
}

fn is_uuid(field: &Field) -> bool {
    field.metadata().get(EXTENSION.0).is_some_and(|name| name == EXTENSION.1)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextToUuid {
    signature: Signature,
    /// The result is marked as uuids.
    says_uuid: bool,
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

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.first().is_none_or(|of| of.is_nullable());
        Ok(Arc::new(if self.says_uuid {
            uuid_field(self.name()).as_ref().clone().with_nullable(is_nullable)
        } else {
            Field::new(self.name(), DataType::FixedSizeBinary(16), true)
        }))
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
