//! Text compared with a `uuid` column is read as a UUID.
//!
//! A uuid travels as 16 bytes, which the engine does not compare with text. Without this,
//! `WHERE id = '8dc314d8-…'` would be a type error. Text that is no UUID is an error, not a
//! comparison that is never true.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result as DfResult, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, Operator};
use uuid::Uuid;

use crate::error::Error;

/// The extension name that marks a uuid column.
const EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.uuid");

/// Rewrites the text literals of all comparisons with uuid columns.
pub(super) fn read_uuid_literals(plan: LogicalPlan) -> DfResult<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let mut schema = DFSchema::empty();
        for input in node.inputs() {
            schema.merge(input.schema());
        }
        if node.inputs().is_empty() {
            schema.merge(node.schema());
        }
        node.map_expressions(|expr| expr.transform_up(|e| rewrite(e, &schema)))
    })?;
    Ok(rewritten.data)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (left, right) = match (is_uuid(&left, schema), is_uuid(&right, schema)) {
                (true, false) => (left, Box::new(literal(*right)?)),
                (false, true) => (Box::new(literal(*left)?), right),
                _ => (left, right),
            };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::InList(InList { expr, list, negated }) if is_uuid(&expr, schema) => {
            let list = list.into_iter().map(literal).collect::<DfResult<_>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) if is_uuid(&expr, schema) => {
            let (low, high) = (Box::new(literal(*low)?), Box::new(literal(*high)?));
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_uuid(expr: &Expr, schema: &DFSchema) -> bool {
    let Expr::Column(column) = expr else { return false };
    schema
        .qualified_field_from_column(column)
        .is_ok_and(|(_, field)| field.metadata().get(EXTENSION.0).is_some_and(|name| name == EXTENSION.1))
}

fn literal(expr: Expr) -> DfResult<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &expr else {
        return Ok(expr);
    };
    let uuid = Uuid::try_parse(text)
        .map_err(|e| DataFusionError::External(Box::new(Error::invalid(format!("'{text}' is not a uuid")).with_source(e))))?;
    let bytes = ScalarValue::FixedSizeBinary(16, Some(uuid.as_bytes().to_vec()));
    Ok(Expr::Literal(bytes, None))
}
