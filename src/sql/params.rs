//! Parameters of a statement: which type each has, and the values of one execution.
//!
//! Invariants: every parameter has one concrete type; a value that would change by being brought
//! to that type (microseconds where milliseconds were announced, a fraction where an integer was)
//! is bound as it came, since the comparison and not the announcement must be right.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::can_cast_types;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue, metadata::ScalarAndMetadata};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::casts::{have_same_fields, lossless, strict};
use super::errors::from_datafusion;
use crate::error::{Error, Result};

/// A parameter as it is announced and as it is bound.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// Without `$`.
    pub(super) name: String,
    /// What clients are told.
    pub(super) announced: DataType,
    /// What the statement compares it with, if anything says.
    inferred: Option<DataType>,
}

impl Declared {
    /// The type of a null, and of values that have no better one.
    fn plain(&self) -> &DataType {
        match (&self.announced, &self.inferred) {
            // The engine does not compare times of two units.
            (DataType::Time32(_), Some(inferred)) => inferred,
            (announced, _) => announced,
        }
    }
}

/// The parameters of a plan in order of `names`. Where nothing tells the type it is `fallback`.
pub(super) fn declare(plan: &LogicalPlan, names: &[String], fallback: &DataType) -> Result<Vec<Declared>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut found: HashMap<String, DataType> = HashMap::new();
    let walk = plan.apply_with_subqueries(|node| {
        let counts = matches!(node, LogicalPlan::Limit(_));
        node.apply_expressions(|expr| {
            expr.apply(|inner| {
                let (placeholder, known) = match inner {
                    Expr::Placeholder(placeholder) => (Some(placeholder), counts.then_some(DataType::Int64)),
                    Expr::Cast(cast) => (as_placeholder(&cast.expr), Some(cast.field.data_type().clone())),
                    Expr::TryCast(cast) => (as_placeholder(&cast.expr), Some(cast.field.data_type().clone())),
                    _ => (None, None),
                };
                if let Some(Placeholder { id, field }) = placeholder {
                    let stated = field.as_ref().map(|f| f.data_type().clone()).filter(|t| *t != DataType::Null);
                    if let Some(data_type) = stated.or(known) {
                        found.entry(id.trim_start_matches('$').to_owned()).or_insert(data_type);
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walk.map_err(from_datafusion)?;
    let declared = names.iter().map(|name| {
        let inferred = found.remove(name);
        Declared {
            name: name.clone(),
            announced: announce(inferred.as_ref().unwrap_or(fallback)),
            inferred,
        }
    });
    Ok(declared.collect())
}

fn as_placeholder(expr: &Expr) -> Option<&Placeholder> {
    match expr {
        Expr::Placeholder(placeholder) => Some(placeholder),
        _ => None,
    }
}

/// The type that clients are told: one that every driver can bind (flight-sql.md).
fn announce(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Null | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        // The JDBC drivers put milliseconds into times and moments of any unit.
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone.clone()),
        DataType::Time32(_) | DataType::Time64(_) => DataType::Time32(TimeUnit::Millisecond),
        DataType::Float16 => DataType::Float32,
        DataType::Dictionary(_, value) => announce(value),
        integer if integer.is_integer() => DataType::Int64,
        other => other.clone(),
    }
}

/// Nulls of the announced types: what a statement is planned with before values are known.
pub(super) fn nulls(declared: &[Declared]) -> Result<ParamValues> {
    let values = declared.iter().map(|parameter| {
        let null = ScalarValue::try_from(parameter.plain()).map_err(from_datafusion)?;
        Ok((parameter.name.clone(), ScalarAndMetadata::from(null)))
    });
    Ok(ParamValues::Map(values.collect::<Result<_>>()?))
}

/// Values to execute with, one execution per row.
#[derive(Debug, Clone)]
pub(super) struct Values {
    names: Vec<String>,
    columns: Vec<ArrayRef>,
    rows: usize,
}

impl Values {
    /// From a batch with a column per parameter, matched by name when all parameters have names
    /// and the batch has them all, else by position. Without parameters there is one execution.
    ///
    /// Errors: `InvalidInput` for a wrong number of columns or values that do not fit.
    pub(super) fn new(declared: &[Declared], batch: Option<&RecordBatch>) -> Result<Self> {
        let given = batch.map_or(0, RecordBatch::num_columns);
        if declared.is_empty() && given == 0 {
            return Ok(Self {
                names: Vec::new(),
                columns: Vec::new(),
                rows: 1,
            });
        }
        let batch = batch.filter(|_| given == declared.len()).ok_or_else(|| {
            let wanted = declared.len();
            Error::invalid(format!("the statement has {wanted} parameters, {given} were bound"))
        })?;
        let by_name: Option<Vec<&ArrayRef>> = declared.iter().map(|p| column_of(batch, &p.name)).collect();
        let numbered = declared.iter().all(|p| p.name.bytes().all(|b| b.is_ascii_digit()));
        let columns = match by_name.filter(|_| !numbered) {
            Some(columns) => columns,
            None => batch.columns().iter().collect(),
        };
        let columns = declared.iter().zip(columns).map(|(parameter, values)| bind(parameter, values));
        Ok(Self {
            names: declared.iter().map(|p| p.name.clone()).collect(),
            columns: columns.collect::<Result<_>>()?,
            rows: batch.num_rows(),
        })
    }

    /// Number of executions.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// The values of one execution; `None` without parameters.
    pub(super) fn row(&self, row: usize) -> Result<Option<ParamValues>> {
        if self.names.is_empty() {
            return Ok(None);
        }
        let values = self.names.iter().zip(&self.columns).map(|(name, column)| {
            let value = ScalarValue::try_from_array(column, row).map_err(from_datafusion)?;
            Ok((name.clone(), ScalarAndMetadata::from(value)))
        });
        Ok(Some(ParamValues::Map(values.collect::<Result<_>>()?)))
    }
}

fn column_of<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a ArrayRef> {
    batch.column_by_name(name).or_else(|| batch.column_by_name(&format!("${name}")))
}

/// Brings bound values to a type that the statement can compare without loss.
fn bind(parameter: &Declared, values: &ArrayRef) -> Result<ArrayRef> {
    let announced = &parameter.announced;
    let bound = values.data_type();
    let target = match (bound, announced) {
        (DataType::Dictionary(_, value), _) => value.as_ref().clone(),
        (DataType::Null, _) => parameter.plain().clone(),
        // Numbers are compared across types by the engine, which widens and never rounds.
        (from, to) if from.is_numeric() && to.is_numeric() => match from {
            DataType::UInt64 => DataType::UInt64,
            DataType::Float16 => DataType::Float32,
            integer if integer.is_integer() => DataType::Int64,
            other => other.clone(),
        },
        (from, to) if from.is_numeric() && to.is_temporal() => return Err(unfit(parameter, from)),
        (DataType::Timestamp(unit, _), DataType::Timestamp(_, zone)) => DataType::Timestamp(*unit, zone.clone()),
        (DataType::Timestamp(..), DataType::Date32) => bound.clone(),
        // A text as a timestamp keeps the digits that the column has.
        (_, DataType::Timestamp(..)) => parameter.inferred.clone().unwrap_or_else(|| announced.clone()),
        (_, DataType::Time32(_)) => parameter.plain().clone(),
        // A uuid may come as its bytes.
        (DataType::FixedSizeBinary(16), DataType::Utf8) => bound.clone(),
        (_, to) => to.clone(),
    };
    if bound == &target {
        return Ok(Arc::clone(values));
    }
    if !can_cast_types(bound, &target) || !have_same_fields(bound, &target) {
        return Err(unfit(parameter, bound));
    }
    let cast = match &target {
        DataType::Time32(_) | DataType::Time64(_) => lossless(values, &target),
        _ => strict(values, &target).map(Some),
    };
    cast.map_err(|e| unfit(parameter, bound).with_source(e))?
        .ok_or_else(|| unfit(parameter, bound))
}

fn unfit(parameter: &Declared, bound: &DataType) -> Error {
    Error::invalid(format!(
        "parameter {} was bound as {bound}, which does not fit {}",
        parameter.name, parameter.announced
    ))
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        AsArray, Decimal128Array, Float64Array, Int32Array, Int64Array, NullArray, StringArray, Time32MillisecondArray,
        Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    };
    use arrow::datatypes::{Field, Schema, Time64MicrosecondType};

    use super::*;

    fn declared(name: &str, inferred: Option<DataType>) -> Declared {
        Declared {
            name: name.to_owned(),
            announced: announce(inferred.as_ref().unwrap_or(&DataType::Utf8)),
            inferred,
        }
    }

    fn bound(inferred: DataType, values: impl Array + 'static) -> Result<DataType> {
        let bound = bind(&declared("1", Some(inferred)), &(Arc::new(values) as _))?;
        Ok(bound.data_type().clone())
    }

    #[test]
    fn announced_types_are_ones_that_drivers_bind() {
        assert_eq!(announce(&DataType::UInt8), DataType::Int64);
        assert_eq!(announce(&DataType::Utf8View), DataType::Utf8);
        assert_eq!(
            announce(&DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))),
            DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
        );
        assert_eq!(announce(&DataType::Decimal128(9, 2)), DataType::Decimal128(9, 2));
        let micros = DataType::Time64(TimeUnit::Microsecond);
        assert_eq!(announce(&micros), DataType::Time32(TimeUnit::Millisecond));
    }

    #[test]
    fn times_are_bound_in_the_unit_of_their_column() {
        let micros = DataType::Time64(TimeUnit::Microsecond);
        let parameter = declared("1", Some(micros.clone()));
        let arrays: [(ArrayRef, i64); 4] = [
            (Arc::new(Time32MillisecondArray::from(vec![86_398_000])), 86_398_000_000),
            (Arc::new(Time64MicrosecondArray::from(vec![86_398_000_001])), 86_398_000_001),
            (Arc::new(Time64NanosecondArray::from(vec![1_000])), 1),
            (Arc::new(StringArray::from(vec!["23:59:58"])), 86_398_000_000),
        ];
        for (values, expected) in arrays {
            let bound = bind(&parameter, &values).unwrap();
            assert_eq!(bound.as_primitive::<Time64MicrosecondType>().values(), &[expected]);
        }
        assert!(bound(micros.clone(), Time64NanosecondArray::from(vec![1])).is_err());
        assert!(bound(micros.clone(), Int64Array::from(vec![1])).is_err());
        assert_eq!(bound(micros.clone(), NullArray::new(1)).unwrap(), micros);
        let ParamValues::Map(nulls) = nulls(&[parameter]).unwrap() else {
            panic!()
        };
        assert_eq!(nulls["1"].value().data_type(), micros);
    }

    #[test]
    fn values_keep_what_they_would_lose() {
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(bound(micros.clone(), TimestampMicrosecondArray::from(vec![1])).unwrap(), micros);
        assert_eq!(
            bound(micros.clone(), StringArray::from(vec!["2020-01-01T00:00:00.000001"])).unwrap(),
            micros
        );
        assert_eq!(bound(DataType::Int32, Float64Array::from(vec![1.5])).unwrap(), DataType::Float64);
        assert_eq!(bound(DataType::Int32, Int32Array::from(vec![1])).unwrap(), DataType::Int64);
        let fine = Decimal128Array::from(vec![1]).with_precision_and_scale(20, 9).unwrap();
        assert_eq!(bound(DataType::Decimal128(9, 2), fine).unwrap(), DataType::Decimal128(20, 9));
        assert_eq!(
            bound(DataType::Decimal128(3, 2), Int64Array::from(vec![1000])).unwrap(),
            DataType::Int64
        );
        assert_eq!(bound(DataType::Date32, NullArray::new(1)).unwrap(), DataType::Date32);
        assert_eq!(bound(DataType::Utf8, Int64Array::from(vec![5])).unwrap(), DataType::Utf8);
    }

    #[test]
    fn values_that_do_not_fit_are_refused() {
        use crate::error::ErrorKind::InvalidInput;
        assert_eq!(
            bound(DataType::Int32, StringArray::from(vec!["x"])).unwrap_err().kind(),
            InvalidInput
        );
        assert_eq!(bound(DataType::Date32, Int64Array::from(vec![5])).unwrap_err().kind(), InvalidInput);
        assert_eq!(
            bound(DataType::Boolean, StringArray::from(vec!["maybe"])).unwrap_err().kind(),
            InvalidInput
        );
    }

    #[test]
    fn columns_are_matched_by_name_or_position() {
        let column = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
        let batch = |names: [&str; 2]| {
            let fields = names.map(|n| Field::new(n, DataType::Int64, true)).to_vec();
            RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![column(1), column(2)]).unwrap()
        };
        let first = |declared: &[Declared], batch: &RecordBatch| {
            let values = Values::new(declared, Some(batch)).unwrap();
            ScalarValue::try_from_array(&values.columns[0], 0).unwrap()
        };
        let named = [declared("a", Some(DataType::Int64)), declared("b", Some(DataType::Int64))];
        assert_eq!(first(&named, &batch(["b", "$a"])), ScalarValue::Int64(Some(2)));
        assert_eq!(first(&named, &batch(["x", "a"])), ScalarValue::Int64(Some(1)));
        let numbered = [declared("1", Some(DataType::Int64)), declared("2", Some(DataType::Int64))];
        assert_eq!(first(&numbered, &batch(["2", "1"])), ScalarValue::Int64(Some(1)));
        assert!(Values::new(&named, None).is_err());
        assert!(Values::new(&named[..1], Some(&batch(["a", "b"]))).is_err());
        assert!(Values::new(&[], Some(&batch(["a", "b"]))).is_err());
        let empty = RecordBatch::new_empty(Arc::new(Schema::empty()));
        assert_eq!(Values::new(&[], Some(&empty)).unwrap().len(), 1);
    }
}
