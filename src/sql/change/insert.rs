//! INSERT: a query's rows as rows of the table (interface.md 4).
//!
//! Invariants: each column of the table gets a value, its default or null, and a column that needs a value
//! is named when it gets none; a value changes its type only where it keeps what it says, or fails; numbers
//! with a fraction are not cut to integers unless the statement casts them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Column, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};

use super::super::casts::{lossless, parts_agree, strict};
use super::super::errors::from_datafusion;
use super::super::floored::floored;
use super::super::uuid_text::{as_uuid, uuids_of};
use super::decimals;
use super::literals::with_literals;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::WrittenColumn;

/// A column that is written.
#[derive(Debug, Clone)]
pub(in super::super) struct Written {
    /// Required fields of structs may be null here, as in what a query gives: the writer refuses such rows.
    pub(super) field: FieldRef,
    pub(super) is_uuid: bool,
    /// The field's type, with marks at the uuids in it.
    pub(super) shape: DataType,
    /// One row; what rows get that do not name the column. `None`: null.
    pub(super) default: Option<ScalarValue>,
}

/// Where the values of a statement go.
#[derive(Debug, Clone)]
pub(in super::super) struct Target {
    pub(super) columns: Vec<Written>,
    /// For each column of the table the position among the query's, or none.
    pub(super) sources: Sources,
}

#[derive(Debug, Clone)]
pub(super) enum Sources {
    /// All columns in order.
    InOrder,
    /// The columns of the table that the query's columns go to.
    Listed(Vec<usize>),
    ByName,
}

impl Written {
    /// From the table's column.
    pub(super) fn new(column: WrittenColumn) -> Result<Self> {
        let of = nullable_inside(column.field.data_type());
        let default = column.default.map(|value| {
            let value = strict(&value, &of)?;
            ScalarValue::try_from_array(&value, 0).map_err(from_datafusion)
        });
        Ok(Self {
            default: default.transpose()?,
            is_uuid: column.is_uuid,
            shape: nullable_inside(&column.shape),
            field: Arc::new(column.field.as_ref().clone().with_data_type(of)),
        })
    }
}

/// The type with parts that may be null, but for keys of maps.
fn nullable_inside(of: &DataType) -> DataType {
    let inside = |field: &FieldRef, nullable: bool| {
        let of = nullable_inside(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(of).with_nullable(nullable))
    };
    match of {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| inside(field, true)).collect()),
        DataType::List(element) => DataType::List(inside(element, true)),
        DataType::Map(entries, sorted) => {
            let pair = match entries.data_type() {
                DataType::Struct(pair) => {
                    let parts = pair.iter().enumerate().map(|(at, field)| inside(field, at > 0));
                    DataType::Struct(parts.collect())
                }
                other => other.clone(),
            };
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *sorted)
        }
        other => other.clone(),
    }
}

impl Target {
    /// The columns that a list names.
    ///
    /// Errors: `InvalidInput` for one that the table does not have or that is named twice.
    pub(super) fn new(columns: Vec<Written>, listed: &[String], by_name: bool) -> Result<Self> {
        let sources = if by_name {
            Sources::ByName
        } else if listed.is_empty() {
            Sources::InOrder
        } else {
            let mut at = Vec::with_capacity(listed.len());
            for name in listed {
                let position = position(&columns, name)?;
                if at.contains(&position) {
                    return Err(Error::invalid(format!("column \"{name}\" is listed twice")));
                }
                at.push(position);
            }
            Sources::Listed(at)
        };
        Ok(Self { columns, sources })
    }

    /// Whether names of the query's columns do not matter.
    pub(in super::super) fn goes_by_position(&self) -> bool {
        !matches!(self.sources, Sources::ByName)
    }

    /// The schema of the rows that are written.
    pub(in super::super) fn schema(&self) -> Arc<Schema> {
        // Nulls are refused by the writer, which can name the row's column.
        let fields = self.columns.iter().map(|c| Arc::new(c.field.as_ref().clone().with_nullable(true)));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The query with the table's columns, in order.
    ///
    /// Errors: `InvalidInput` for columns that do not fit.
    pub(in super::super) fn fit(&self, plan: LogicalPlan) -> DfResult<LogicalPlan> {
        let count = plan.schema().fields().len();
        let sources = self.sources_of(&plan).map_err(external)?;
        // What of the query goes to which column of the table.
        let mut targets: Vec<Option<&Written>> = vec![None; count];
        for (column, source) in self.columns.iter().zip(&sources) {
            if let Some(target) = source.and_then(|at| targets.get_mut(at)) {
                *target = Some(column);
            }
        }
        let plan = with_literals(plan, &targets)?;
        let columns: Vec<Column> = plan.schema().iter().map(Column::from).collect();
        let types: Vec<DataType> = plan.schema().fields().iter().map(|f| f.data_type().clone()).collect();
        let mut exprs = Vec::with_capacity(self.columns.len());
        for (column, source) in self.columns.iter().zip(&sources) {
            let found = source.and_then(|at| Some((columns.get(at)?.clone(), types.get(at)?)));
            let value = match found {
                Some((of, from)) => converted(Expr::Column(of), from, column)?,
                None => missing(column)?,
            };
            exprs.push(value.alias(column.field.name()));
        }
        LogicalPlanBuilder::from(plan).project(exprs)?.build()
    }

    /// A batch of rows that came with their names as rows of the table.
    ///
    /// Errors: `InvalidInput` for a column that the table does not have, that does not fit or that is missing.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut sources: Vec<Option<&ArrayRef>> = vec![None; self.columns.len()];
        for (field, values) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            match sources.get_mut(position(&self.columns, field.name())?) {
                Some(slot @ None) => *slot = Some(values),
                _ => return Err(Error::invalid(format!("the stream has column \"{}\" twice", field.name()))),
            }
        }
        let count = batch.num_rows();
        let arrays = self.columns.iter().zip(sources).map(|(column, values)| match values {
            Some(values) => stored(values, column).context("column", || column.field.name().clone()),
            None => {
                let Expr::Literal(value, _) = missing(column).map_err(from_datafusion)? else {
                    return Err(Error::internal("a default is no literal"));
                };
                value.to_array_of_size(count).map_err(from_datafusion)
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(
            self.schema(),
            arrays.collect::<Result<_>>()?,
            &options,
        )?)
    }

    fn sources_of(&self, plan: &LogicalPlan) -> Result<Vec<Option<usize>>> {
        let given = plan.schema().fields().len();
        let wrong = |wanted: usize| {
            Error::invalid(format!(
                "INSERT gives {given} columns, {wanted} are wanted; list the columns that get a value: INSERT INTO t (a, b)"
            ))
        };
        match &self.sources {
            Sources::InOrder if given == self.columns.len() => Ok((0..given).map(Some).collect()),
            Sources::InOrder => Err(wrong(self.columns.len())),
            Sources::Listed(listed) if listed.len() == given => {
                let of = |at: usize| listed.iter().position(|listed| *listed == at);
                Ok((0..self.columns.len()).map(of).collect())
            }
            Sources::Listed(listed) => Err(wrong(listed.len())),
            Sources::ByName => {
                let mut sources = vec![None; self.columns.len()];
                for (at, field) in plan.schema().fields().iter().enumerate() {
                    let to = position(&self.columns, field.name())?;
                    match sources.get_mut(to) {
                        Some(slot @ None) => *slot = Some(at),
                        _ => return Err(Error::invalid(format!("INSERT BY NAME gives column \"{}\" twice", field.name()))),
                    }
                }
                Ok(sources)
            }
        }
    }
}

/// The column of a name; exact spelling wins.
fn position(columns: &[Written], name: &str) -> Result<usize> {
    let exact = columns.iter().position(|c| c.field.name() == name);
    let any = || {
        let mut found = columns
            .iter()
            .enumerate()
            .filter(|(_, c)| c.field.name().eq_ignore_ascii_case(name));
        let first = found.next().map(|(at, _)| at);
        first.filter(|_| found.next().is_none())
    };
    exact
        .or_else(any)
        .ok_or_else(|| Error::invalid(format!("the table has no column \"{name}\"")))
}

pub(super) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Values in the type of a column.
fn stored(values: &ArrayRef, column: &Written) -> Result<ArrayRef> {
    if column.is_uuid && values.data_type().is_string() {
        return uuids_of(values);
    }
    stored_as(values, column.field.data_type())
}

/// Values in the type that they are stored in.
///
/// Errors: `InvalidInput` for values of a type that is not stored so, or that would lose something.
pub(super) fn stored_as(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let from = values.data_type();
    if from == to {
        return Ok(Arc::clone(values));
    }
    if !is_assignable(from, to) {
        return Err(Error::invalid(format!("the column is of type {to} and gets values of type {from}")));
    }
    let unfit = || Error::invalid(format!("a value does not fit type {to} without loss"));
    // A float keeps as much of a double as it can, here as everywhere.
    let cast = match to {
        DataType::Float32 if from.is_floating() => strict(values, to).map(Some),
        DataType::Decimal128(precision, scale) if from.is_floating() => {
            return decimals::of_numbers(values, *precision, *scale)?.exact().ok_or_else(unfit);
        }
        _ => lossless(values, to),
    };
    cast.map_err(|e| unfit().with_source(e))?.ok_or_else(unfit)
}

fn missing(column: &Written) -> DfResult<Expr> {
    match &column.default {
        Some(value) => Ok(Expr::Literal(value.clone(), None)),
        None if column.field.is_nullable() => Ok(Expr::Literal(ScalarValue::try_from(column.field.data_type())?, None)),
        None => Err(external(Error::invalid(format!(
            "column \"{}\" needs a value: it is NOT NULL and has no default",
            column.field.name()
        )))),
    }
}

pub(super) fn converted(value: Expr, from: &DataType, column: &Written) -> DfResult<Expr> {
    let to = column.field.data_type();
    if column.is_uuid && from.is_string() {
        return Ok(as_uuid(value));
    }
    if !is_assignable(from, to) {
        return Err(external(Error::invalid(format!(
            "column \"{}\" is of type {to} and gets a value of type {from}: write CAST",
            column.field.name()
        ))));
    }
    Ok(if from == to {
        value
    } else {
        cast(floored(value, from, to), to.clone())
    })
}

/// Whether values of one type are stored as another without a cast in the statement. The cast itself fails
/// for a value that does not fit.
pub(super) fn is_assignable(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let zoneless = |of: &DataType| matches!(of, D::Date32 | D::Date64 | D::Timestamp(..));
    let number = |of: &DataType| of.is_numeric();
    match (from, to) {
        (from, to) if from == to => true,
        (D::Null, _) => true,
        (D::Dictionary(_, from), to) => is_assignable(from, to),
        (from, to) if to.is_integer() => from.is_integer() || from.is_string(),
        (from, to) if to.is_floating() || to.is_decimal() => number(from) || from.is_string(),
        (D::Boolean, D::Utf8) => true,
        (from, D::Utf8) => from.is_string() || number(from) || from.is_temporal(),
        (from, D::Boolean | D::Date32 | D::Time64(_) | D::Timestamp(..)) if from.is_string() => true,
        (from, D::Date32 | D::Timestamp(..)) => zoneless(from),
        (D::Time32(_) | D::Time64(_), D::Time64(_)) => true,
        (D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_), D::Binary | D::FixedSizeBinary(_)) => true,
        (from, to) => parts_agree(from, to, is_assignable).unwrap_or(false),
    }
}
