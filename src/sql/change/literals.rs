//! What is written out in an INSERT, in the types of the table's columns.
//!
//! Invariant: a number keeps the digits that are written. The engine reads 0.7 as a double and brings the
//! values of a column, or of a list, to one type first: beside 0.1 the integer 99999999999999999 would be the
//! double next to it. So each value becomes one of its own column, field or element by itself.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{DFSchema, DFSchemaRef, Result as DfResult, ScalarValue};
use datafusion::functions::core::named_struct;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Values, cast, lit};
use datafusion::sql::planner::{ContextProvider, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{self, SetExpr, Statement};

use super::super::floored::floored;
use super::super::uuid_text::as_uuid;
use super::decimals::rounded;
use super::exactly::exactly;
use super::insert::{Sources, Target, Written, converted, external, is_assignable};
use crate::error::Error;
use crate::table::TYPE_NAME_KEY;

impl Target {
    /// The plan of a query that is `VALUES` and nothing more; `None` for any other.
    pub(in super::super) fn plan_values<S: ContextProvider>(
        &self,
        planner: &SqlToRel<'_, S>,
        statement: &Statement,
    ) -> Option<DfResult<LogicalPlan>> {
        let rows = &values_of(statement)?.rows;
        let columns: Vec<&Written> = match &self.sources {
            Sources::InOrder => self.columns.iter().collect(),
            Sources::Listed(listed) => listed.iter().filter_map(|at| self.columns.get(*at)).collect(),
            Sources::ByName => return None,
        };
        // A row of another length is for the engine to refuse.
        if rows.iter().any(|row| row.content.len() != columns.len()) {
            return None;
        }
        let schema = Arc::new(DFSchema::empty());
        let mut context = PlannerContext::new();
        let mut planned = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(columns.len());
            for (value, column) in row.content.iter().zip(&columns) {
                match planner.sql_to_expr(value.clone(), &schema, &mut context) {
                    Ok(value) => values.push((value, *column)),
                    Err(e) => return Some(Err(e)),
                }
            }
            planned.push(values);
        }
        Some(as_columns(planned, &columns, &schema))
    }
}

/// The rows of a statement that has nothing beside them.
fn values_of(statement: &Statement) -> Option<&ast::Values> {
    let Statement::Query(query) = statement else { return None };
    let is_more = query.with.is_some()
        || query.order_by.is_some()
        || query.limit_clause.is_some()
        || query.fetch.is_some()
        || !query.pipe_operators.is_empty();
    match query.body.as_ref() {
        SetExpr::Values(values) if !is_more && !values.value_keyword => Some(values),
        _ => None,
    }
}

fn as_columns(rows: Vec<Vec<(Expr, &Written)>>, columns: &[&Written], schema: &DFSchemaRef) -> DfResult<LogicalPlan> {
    let rows = rows.into_iter().map(|row| {
        let values = row.into_iter().map(|(value, column)| {
            let value = typed_literal(value, column)?;
            match &value {
                Expr::Literal(ScalarValue::Null, _) => Ok(value),
                _ => {
                    let from = value.get_type(schema)?;
                    match converted(value, &from, column)? {
                        // Also what a cast makes one, so that all rows have one form.
                        bytes if column.is_uuid => Ok(as_uuid(bytes)),
                        value => Ok(value),
                    }
                }
            }
        });
        values.collect::<DfResult<Vec<_>>>()
    });
    let rows = rows.collect::<DfResult<Vec<_>>>()?;
    let fields = columns.iter().enumerate().map(|(at, column)| {
        let name = format!("column{}", at + 1);
        Field::new(name, column.field.data_type().clone(), true)
    });
    let schema = DFSchema::try_from(Schema::new(fields.collect::<Vec<_>>()))?;
    LogicalPlanBuilder::values_with_schema(rows, &Arc::new(schema))?.build()
}

/// Literals and parameters that stand in the query's own columns in the type of the table's column.
pub(super) fn with_literals(plan: LogicalPlan, targets: &[Option<&Written>]) -> DfResult<LogicalPlan> {
    match plan {
        LogicalPlan::Values(Values { values, .. }) => {
            let rows = values.into_iter().map(|row| typed(row, targets)).collect::<DfResult<Vec<_>>>()?;
            LogicalPlanBuilder::values(rows)?.build()
        }
        LogicalPlan::Projection(projection) => {
            let exprs = typed(projection.expr, targets)?;
            LogicalPlanBuilder::from(Arc::unwrap_or_clone(projection.input))
                .project(exprs)?
                .build()
        }
        other => Ok(other),
    }
}

fn typed(row: Vec<Expr>, targets: &[Option<&Written>]) -> DfResult<Vec<Expr>> {
    let each = row.into_iter().zip(targets).map(|(expr, target)| match target {
        Some(target) => typed_literal(expr, target),
        None => Ok(expr),
    });
    each.collect()
}

fn typed_literal(expr: Expr, target: &Written) -> DfResult<Expr> {
    let to = target.field.data_type();
    match expr {
        Expr::Alias(alias) => Ok(typed_literal(*alias.expr, target)?.alias(alias.name)),
        Expr::Placeholder(placeholder) if target.is_uuid => Ok(bound_as_uuid(placeholder)),
        Expr::Placeholder(placeholder) => Ok(bound_as(placeholder, to)),
        other => written_as(other, &target.shape, target),
    }
}

fn bound_as_uuid(placeholder: Placeholder) -> Expr {
    let text = Arc::new(Field::new(&placeholder.id, DataType::Utf8, true));
    as_uuid(Expr::Placeholder(Placeholder::new_with_field(placeholder.id, Some(text))))
}

fn bound_as(placeholder: Placeholder, to: &DataType) -> Expr {
    let field = Arc::new(Field::new(&placeholder.id, to.clone(), true));
    exactly(Expr::Placeholder(Placeholder::new_with_field(placeholder.id, Some(field))), to)
}

/// What is written out, all the way down, as a type; other expressions stay.
fn written_as(expr: Expr, to: &DataType, target: &Written) -> DfResult<Expr> {
    match (expr, to) {
        (Expr::Literal(ScalarValue::Float64(Some(number)), _), DataType::Decimal128(precision, scale)) => {
            decimal(number, *precision, *scale, target)
        }
        (Expr::Negative(inner), DataType::Decimal128(precision, scale)) => match inner.as_ref() {
            Expr::Literal(ScalarValue::Float64(Some(number)), _) => decimal(-number, *precision, *scale, target),
            _ => Ok(Expr::Negative(inner)),
        },
        (Expr::ScalarFunction(call), DataType::List(_) | DataType::Struct(_) | DataType::Map(..)) => {
            parts_as(call, to, target).map(Expr::ScalarFunction)
        }
        (other, _) => Ok(other),
    }
}

/// A list, struct or map that is written out, of parts in the types that they are to have.
fn parts_as(mut call: ScalarFunction, to: &DataType, target: &Written) -> DfResult<ScalarFunction> {
    let name = call.func.name().to_owned();
    match (name.as_str(), to) {
        ("make_array", DataType::List(element)) => {
            let parts = call.args.into_iter().map(|part| part_as(part, element, target));
            call.args = parts.collect::<DfResult<_>>()?;
        }
        ("named_struct", DataType::Struct(fields)) => {
            let mut of = None;
            let parts = call.args.into_iter().enumerate().map(|(at, part)| {
                if at % 2 == 0 {
                    of = field_name(&part).and_then(|name| fields.find(name)).map(|(_, field)| field);
                    return Ok(part);
                }
                match of {
                    Some(field) => part_as(part, field, target),
                    None => Ok(part),
                }
            });
            call.args = parts.collect::<DfResult<_>>()?;
        }
        // ROW(..) has no names: its parts go by position.
        ("struct", DataType::Struct(fields)) if call.args.len() == fields.len() => {
            let mut args = Vec::with_capacity(2 * fields.len());
            for (field, part) in fields.iter().zip(call.args) {
                args.extend([lit(field.name().as_str()), part_as(part, field, target)?]);
            }
            call = ScalarFunction::new_udf(named_struct(), args);
        }
        ("map", DataType::Map(entries, _)) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Ok(call);
            };
            let parts = call.args.into_iter().zip(pair).map(|(part, field)| match part {
                Expr::ScalarFunction(list) => parts_as(list, &DataType::List(Arc::clone(field)), target).map(Expr::ScalarFunction),
                other => Ok(other),
            });
            call.args = parts.collect::<DfResult<_>>()?;
        }
        _ => {}
    }
    Ok(call)
}

fn field_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(name)) | ScalarValue::Utf8View(Some(name)), _) => Some(name),
        _ => None,
    }
}

/// A part in its type, where it fits.
fn part_as(part: Expr, field: &FieldRef, target: &Written) -> DfResult<Expr> {
    let is_uuid = field.metadata().get(TYPE_NAME_KEY).is_some_and(|name| name == "uuid");
    let to = unmarked(field.data_type());
    let part = match part {
        Expr::Placeholder(placeholder) if is_uuid => return Ok(bound_as_uuid(placeholder)),
        Expr::Placeholder(placeholder) => return Ok(bound_as(placeholder, &to)),
        other => written_as(other, field.data_type(), target)?,
    };
    // What is of columns has its type from the engine.
    match part.get_type(&DFSchema::empty()) {
        Ok(from) if is_uuid && (from.is_string() || from == to) => Ok(as_uuid(part)),
        Ok(from) if from != to && is_assignable(&from, &to) => Ok(cast(floored(part, &from, &to), to)),
        _ => Ok(part),
    }
}

/// The type without the marks of a shape.
fn unmarked(of: &DataType) -> DataType {
    let inside = |field: &FieldRef| {
        let of = unmarked(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(of).with_metadata(HashMap::new()))
    };
    match of {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inside).collect()),
        DataType::List(element) => DataType::List(inside(element)),
        DataType::Map(entries, sorted) => DataType::Map(inside(entries), *sorted),
        other => other.clone(),
    }
}

/// A double literal as the decimal that was written: its shortest digits, rounded half away from zero.
fn decimal(number: f64, precision: u8, scale: i8, target: &Written) -> DfResult<Expr> {
    let wrong = || external(Error::invalid(format!("{number} does not fit column \"{}\"", target.field.name())));
    let rounded = rounded(&number.to_string(), precision, scale).ok_or_else(wrong)?;
    Ok(Expr::Literal(
        ScalarValue::Decimal128(Some(rounded.unscaled), precision, scale),
        None,
    ))
}
