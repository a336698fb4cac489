//! Functions that make much out of little, with a budget (SE-32).
//!
//! `repeat('x', 1500000000)` allocates its result in one go, out of sight of the memory pool. The
//! functions here are the engine's own with a check before: what a call would make for one batch
//! of rows is estimated from its arguments.
//!
//! Invariant: an estimate is never much too low; it may be too high by a small factor.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Most bytes that one call may make.
const BUDGET: u64 = 256 << 20;
/// Most bytes of a call whose arguments are all constant: the planner works it out, and then
/// carries the result around in the plan.
const CONSTANT_BUDGET: u64 = 16 << 20;
/// Bytes of a number or a small value in a list.
const ELEMENT: u64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// text, count
    Repeat,
    /// text, length in characters
    Pad,
    /// element, count
    RepeatElement,
    /// list, length
    Resize,
    /// [start,] stop [, step]
    Range,
}

/// The function with a budget, where it needs one.
pub(super) fn bounded(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let growth = match function.name() {
        "repeat" => Growth::Repeat,
        "lpad" | "rpad" => Growth::Pad,
        "array_repeat" => Growth::RepeatElement,
        "array_resize" => Growth::Resize,
        "range" | "generate_series" => Growth::Range,
        _ => return function,
    };
    let inner = Arc::clone(function.inner());
    Arc::new(ScalarUDF::from(Bounded { inner, growth }))
}

#[derive(Debug)]
struct Bounded {
    inner: Arc<dyn ScalarUDFImpl>,
    growth: Growth,
}

// There is one function of a name, so the name tells them apart.
impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner.name() == other.inner.name()
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.name().hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }
    fn signature(&self) -> &Signature {
        self.inner.signature()
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }
    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, context)
    }
    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let (rows, budget) = if constant {
            (1, CONSTANT_BUDGET)
        } else {
            (args.number_rows, BUDGET)
        };
        let bytes = self.estimate(&args, rows)?;
        if bytes > budget {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{}() would make {bytes} bytes at once, the limit is {budget}",
                self.name()
            )));
        }
        self.inner.invoke_with_args(args)
    }
}

impl Bounded {
    /// Bytes of the result.
    fn estimate(&self, args: &ScalarFunctionArgs, rows: usize) -> Result<u64> {
        let arrays = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let total = match (self.growth, arrays.as_slice()) {
            (Growth::Repeat, [text, count, ..]) => {
                let (sizes, counts) = (text_sizes(text)?, integers(count)?);
                sizes
                    .iter()
                    .zip(counts)
                    .map(|(size, n)| size.saturating_mul(n))
                    .fold(0, u64::saturating_add)
            }
            // A character takes four bytes at most.
            (Growth::Pad, [_, length, ..]) => sum(integers(length)?).saturating_mul(4),
            (Growth::RepeatElement, [element, count, ..]) => {
                let rows = element.len().max(1) as u64;
                let size = (element.get_array_memory_size() as u64 / rows).max(ELEMENT);
                sum(integers(count)?).saturating_mul(size)
            }
            (Growth::Resize, [_, length, ..]) => sum(integers(length)?).saturating_mul(ELEMENT),
            (Growth::Range, bounds) => ranges(bounds)?.saturating_mul(ELEMENT),
            _ => 0,
        };
        Ok(total)
    }
}

fn sum(values: Vec<u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

/// Sizes of texts in bytes.
fn text_sizes(array: &ArrayRef) -> Result<Vec<u64>> {
    let array = cast(array, &DataType::LargeUtf8)?;
    let texts = array.as_string::<i64>();
    Ok((0..texts.len()).map(|i| texts.value_length(i).unsigned_abs()).collect())
}

/// Numbers; nulls and negative ones make nothing.
fn integers(array: &ArrayRef) -> Result<Vec<u64>> {
    let array = cast(array, &DataType::Int64)?;
    let numbers = array.as_primitive::<Int64Type>();
    Ok(numbers.iter().map(|n| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)).collect())
}

/// Elements of the lists from start to stop.
fn ranges(bounds: &[ArrayRef]) -> Result<u64> {
    let Some(last) = bounds.get(bounds.len().saturating_sub(1).min(1)) else {
        return Ok(0);
    };
    let zero = || ScalarValue::Int64(Some(0)).to_array_of_size(last.len());
    let (start, stop) = match bounds {
        [stop] => (zero()?, positions(stop)?),
        [start, stop, ..] => (positions(start)?, positions(stop)?),
        [] => return Ok(0),
    };
    let steps = match bounds.get(2) {
        Some(step) => steps(step)?,
        None => vec![1; last.len()],
    };
    let (start, stop) = (start.as_primitive::<Int64Type>(), stop.as_primitive::<Int64Type>());
    let counts = start.iter().zip(stop).zip(steps).map(|((start, stop), step)| match (start, stop) {
        (Some(start), Some(stop)) => start.abs_diff(stop) / step.max(1) + 1,
        _ => 0,
    });
    Ok(counts.fold(0, u64::saturating_add))
}

/// Bounds of a range as numbers: days become nanoseconds, as steps are.
fn positions(array: &ArrayRef) -> Result<ArrayRef> {
    let numbers = match array.data_type() {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => {
            let zone = match array.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            cast(&cast(array, &DataType::Timestamp(TimeUnit::Nanosecond, zone))?, &DataType::Int64)?
        }
        _ => cast(array, &DataType::Int64)?,
    };
    Ok(numbers)
}

fn steps(array: &ArrayRef) -> Result<Vec<u64>> {
    const DAY: u64 = 86_400_000_000_000;
    if let DataType::Interval(_) = array.data_type() {
        let array = cast(array, &DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano))?;
        let steps = array.as_primitive::<IntervalMonthDayNanoType>().iter().map(|step| {
            step.map_or(1, |s| {
                let days = u64::from(s.months.unsigned_abs()) * 28 + u64::from(s.days.unsigned_abs());
                days.saturating_mul(DAY).saturating_add(s.nanoseconds.unsigned_abs())
            })
        });
        return Ok(steps.collect());
    }
    let array = cast(array, &DataType::Int64)?;
    let steps = array.as_primitive::<Int64Type>();
    Ok(steps.iter().map(|s| s.map_or(1, i64::unsigned_abs)).collect())
}
