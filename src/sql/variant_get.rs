//! `variant_get(variant, path [, type])`: a part of a variant.
//!
//! Variants are JSON text here (docs/adr/0009). The path is `$` with steps `.name`, `['name']`,
//! `["name"]` and `[0]`. Without a type the part comes as JSON text again; with one (a literal) it
//! is read as that type, text without its quotes. NULL where there is no such part, and with a type
//! for a part that is null.
//!
//! Invariant: a part that is not of the type asked for is an error, never null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{ScalarValue, exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use serde_json::Value;

use super::casts::strict;
use super::types::ZONE;

/// Most steps of a path.
const MAX_STEPS: usize = 64;

/// The function.
pub(super) fn variant_get() -> Arc<ScalarUDF> {
    let texts = |count| TypeSignature::Exact(vec![DataType::Utf8; count]);
    Arc::new(ScalarUDF::from(VariantGet {
        signature: Signature::one_of(vec![texts(2), texts(3)], Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct VariantGet {
    signature: Signature,
}

impl ScalarUDFImpl for VariantGet {
    fn name(&self) -> &str {
        "variant_get"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let data_type = match args.scalar_arguments {
            [_, _] => DataType::Utf8,
            [_, _, Some(ScalarValue::Utf8(Some(name)))] => {
                wanted_type(name).ok_or_else(|| plan_datafusion_err!("variant_get does not give the type {name}"))?
            }
            _ => return plan_err!("the type that variant_get is to give must be a literal"),
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let all_scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if all_scalar { 1 } else { args.number_rows };
        let column = |index: usize| -> Result<ArrayRef> {
            let arg = args
                .args
                .get(index)
                .ok_or_else(|| exec_datafusion_err!("variant_get lacks an argument"))?;
            arg.to_array(rows)
        };
        let (variants, paths) = (column(0)?, column(1)?);
        let (variants, paths) = (variants.as_string::<i32>(), paths.as_string::<i32>());
        let found = match args.args.len() {
            2 => parts(variants, paths, |part| Some(part.to_string()))?,
            _ => parts(variants, paths, |part| match part {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            })?,
        };
        let array = strict(&found, args.return_field.data_type())
            .map_err(|e| exec_datafusion_err!("a part of a variant is not of the type asked for: {e}"))?;
        if all_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

fn wanted_type(name: &str) -> Option<DataType> {
    let name = name.trim().to_ascii_lowercase();
    if let Some(inner) = name.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
        let (precision, scale) = inner.split_once(',')?;
        let (precision, scale) = (precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?);
        let is_valid = (1..=38).contains(&precision) && (0..=38).contains(&scale) && scale.unsigned_abs() <= precision;
        return is_valid.then_some(DataType::Decimal128(precision, scale));
    }
    Some(match name.as_str() {
        "boolean" => DataType::Boolean,
        "int" | "integer" => DataType::Int32,
        "long" | "bigint" => DataType::Int64,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "string" => DataType::Utf8,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        _ => return None,
    })
}

fn parts(variants: &StringArray, paths: &StringArray, show: impl Fn(&Value) -> Option<String>) -> Result<ArrayRef> {
    let mut found = StringBuilder::new();
    let mut known: Option<(&str, Vec<Step>)> = None;
    for row in 0..variants.len() {
        if variants.is_null(row) || paths.is_null(row) {
            found.append_null();
            continue;
        }
        let path = paths.value(row);
        let steps = match &known {
            Some((text, steps)) if *text == path => steps,
            _ => &known.insert((path, steps(path)?)).1,
        };
        let variant: Value = serde_json::from_str(variants.value(row))
            .map_err(|e| exec_datafusion_err!("variant_get needs a variant, not other text: {e}"))?;
        let part = steps.iter().try_fold(&variant, |value, step| match step {
            Step::Field(name) => value.as_object()?.get(name),
            Step::Element(index) => value.as_array()?.get(*index),
        });
        found.append_option(part.and_then(&show));
    }
    Ok(Arc::new(found.finish()))
}

#[derive(Debug, PartialEq)]
enum Step {
    Field(String),
    Element(usize),
}

fn steps(path: &str) -> Result<Vec<Step>> {
    let wrong = || exec_datafusion_err!("variant_get cannot read the path {path}: write $.name, $['name'] or $[0]");
    let mut rest = path.strip_prefix('$').ok_or_else(wrong)?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == MAX_STEPS {
            return Err(exec_datafusion_err!("a path of variant_get has at most {MAX_STEPS} steps"));
        }
        if let Some(named) = rest.strip_prefix('.') {
            let end = named.find(['.', '[']).unwrap_or(named.len());
            let (name, behind) = named.split_at(end);
            if name.is_empty() {
                return Err(wrong());
            }
            steps.push(Step::Field(name.to_owned()));
            rest = behind;
            continue;
        }
        let inner = rest.strip_prefix('[').ok_or_else(wrong)?;
        let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let (step, behind) = match quote {
            Some(quote) => {
                let (name, behind) = inner[1..].split_once(quote).ok_or_else(wrong)?;
                (Step::Field(name.to_owned()), behind)
            }
            None => {
                let end = inner.find(']').ok_or_else(wrong)?;
                let (index, behind) = inner.split_at(end);
                (Step::Element(index.trim().parse().map_err(|_| wrong())?), behind)
            }
        };
        steps.push(step);
        rest = behind.strip_prefix(']').ok_or_else(wrong)?;
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let field = |name: &str| Step::Field(name.to_owned());
        assert_eq!(steps("$").unwrap(), []);
        assert_eq!(
            steps("$.a['b.c'][\"d\"][2].é").unwrap(),
            [field("a"), field("b.c"), field("d"), Step::Element(2), field("é")]
        );
        for wrong in ["", "a", "$a", "$.", "$..a", "$[", "$[x]", "$['a'", "$['a'", "$[-1]"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_keep_their_digits() {
        let variants = StringArray::from(vec![r#"{"a":[1.20,{"b":"x"}],"n":null}"#]);
        let part = |path: &str| {
            let found = parts(&variants, &StringArray::from(vec![path]), |v| Some(v.to_string())).unwrap();
            let found = found.as_string::<i32>();
            found.is_valid(0).then(|| found.value(0).to_owned())
        };
        assert_eq!(part("$.a[0]").as_deref(), Some("1.20"));
        assert_eq!(part("$.a[1].b").as_deref(), Some("\"x\""));
        assert_eq!(part("$.n").as_deref(), Some("null"));
        assert_eq!((part("$.a[2]"), part("$.x.y"), part("$.a.b")), (None, None, None));
    }
}
