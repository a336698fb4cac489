//! The result's schema: names as stored or as the user wrote them, types as planned.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{JoinType, TableReference};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{SelectItem, SetExpr, Statement as Ast};

use super::casts::lossless;
use crate::error::{Error, Result};

/// For each table, as its name is spelled in the plan: spelling of a column in the plan and in the table.
pub(super) type Renamed = HashMap<[String; 3], HashMap<String, String>>;

/// The outermost SELECT list as written; `None` stands for a wildcard.
#[derive(Debug, Clone, Default)]
pub(super) struct SelectList(Vec<Option<Option<String>>>);

impl SelectList {
    /// Of a query; empty for anything else.
    pub(super) fn of(statement: &Ast) -> Self {
        let Ast::Query(query) = statement else {
            return Self::default();
        };
        if !query.pipe_operators.is_empty() {
            return Self::default();
        }
        let mut body = query.body.as_ref();
        loop {
            body = match body {
                SetExpr::SetOperation { left, .. } => left,
                SetExpr::Query(inner) => inner.body.as_ref(),
                SetExpr::Select(select) => {
                    return Self(select.projection.iter().map(alias_of).collect());
                }
                _ => return Self::default(),
            };
        }
    }

    /// The alias written for a column of the result, if one can be told: columns before the first
    /// wildcard are counted from the left, those behind the last from the right.
    fn alias(&self, index: usize, columns: usize) -> Option<&str> {
        let first = self.0.iter().position(Option::is_none);
        let last = self.0.iter().rposition(Option::is_none);
        let item = match (first, last) {
            (None, _) | (_, None) => self.0.get(index)?,
            (Some(first), _) if index < first => self.0.get(index)?,
            (_, Some(last)) => {
                let from_right = columns.checked_sub(index)?;
                let at = self.0.len().checked_sub(from_right).filter(|at| *at > last)?;
                self.0.get(at)?
            }
        };
        item.as_ref()?.as_deref()
    }
}

fn alias_of(item: &SelectItem) -> Option<Option<String>> {
    match item {
        SelectItem::UnnamedExpr(_) => Some(None),
        SelectItem::ExprWithAlias { alias, .. } => Some(Some(alias.value.clone())),
        _ => None,
    }
}

/// The schema of a plan's result.
pub(super) fn schema(plan: &LogicalPlan, written: &SelectList, renamed: &Renamed, defaults: [&str; 2]) -> SchemaRef {
    let planned = plan.schema().as_arrow();
    let count = planned.fields().len();
    let fields = planned.fields().iter().enumerate().map(|(index, field)| {
        let alias = written
            .alias(index, count)
            .filter(|a| a.to_lowercase() == field.name().to_lowercase());
        let name = match alias {
            Some(alias) => Some(alias.to_owned()),
            None if renamed.is_empty() => None,
            None => stored_name(plan, index, renamed, defaults),
        };
        match name.filter(|n| n != field.name()) {
            Some(name) => Arc::new(Field::clone(field).with_name(name)),
            None => Arc::clone(field),
        }
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), planned.metadata().clone()))
}

/// The stored name of a column of the result that is a table's column as it is.
fn stored_name(plan: &LogicalPlan, index: usize, renamed: &Renamed, defaults: [&str; 2]) -> Option<String> {
    let (mut plan, mut index) = (plan, index);
    loop {
        match plan {
            LogicalPlan::TableScan(scan) => {
                let name = key(&scan.table_name, defaults);
                let (_, field) = scan.projected_schema.iter().nth(index)?;
                return renamed.get(&name)?.get(field.name()).cloned();
            }
            LogicalPlan::Projection(projection) => {
                let Expr::Column(column) = projection.expr.get(index)? else {
                    return None;
                };
                index = projection.input.schema().index_of_column(column).ok()?;
                plan = &projection.input;
            }
            LogicalPlan::Aggregate(aggregate) => {
                let Expr::Column(column) = aggregate.group_expr.get(index)? else {
                    return None;
                };
                index = aggregate.input.schema().index_of_column(column).ok()?;
                plan = &aggregate.input;
            }
            LogicalPlan::Filter(filter) => plan = &filter.input,
            LogicalPlan::Sort(sort) => plan = &sort.input,
            LogicalPlan::Limit(limit) => plan = &limit.input,
            LogicalPlan::SubqueryAlias(alias) => plan = &alias.input,
            LogicalPlan::Distinct(Distinct::All(input)) => plan = input,
            LogicalPlan::Union(union) => plan = union.inputs.first()?,
            LogicalPlan::Window(window) if index < window.input.schema().fields().len() => plan = &window.input,
            LogicalPlan::Join(join) => {
                let left = join.left.schema().fields().len();
                match join.join_type {
                    JoinType::RightSemi | JoinType::RightAnti => plan = &join.right,
                    _ if index < left => plan = &join.left,
                    _ => {
                        index -= left;
                        plan = &join.right;
                    }
                }
            }
            _ => return None,
        }
    }
}

fn key(name: &TableReference, defaults: [&str; 2]) -> [String; 3] {
    let full = name.clone().resolve(defaults[0], defaults[1]);
    [full.catalog.to_string(), full.schema.to_string(), full.table.to_string()]
}

/// A batch under the planned schema: other names, and other types where a parameter's value
/// brought them.
///
/// Errors: `Internal` for another number of columns, `InvalidInput` for a value that does not fit.
pub(super) fn conform(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::internal("a result has another number of columns than was planned"));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| fit(column, field)).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

fn fit(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    let unfit = || {
        Error::invalid(format!(
            "a bound value does not fit the column of the result, which was announced as {}; cast the parameter: CAST(? AS DOUBLE)",
            field.data_type()
        ))
        .with("column", field.name())
    };
    lossless(column, field.data_type())
        .map_err(|e| unfit().with_source(e))?
        .ok_or_else(unfit)
}
