//! What a query asks of the table that rows are deleted of, read off its optimised plan.
//!
//! Invariants: the predicate is satisfied by every row that the query gives (IC-5: it may be wider, never
//! narrower); what reads the table in more than one place, or is not understood, asks for every row.

use std::sync::Arc;

use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, TableScan};

use super::super::errors::from_datafusion;
use super::super::params::Values;
use crate::error::{Error, Result};
use crate::scan::{LakeTableProvider, misses, predicate};
use crate::table::{Column, HiddenColumn, Predicate, ScanRequest, Snapshot, TableIdent};

/// The part of a query that concerns one table.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// What every row satisfies that the query gives.
    pub(super) predicate: Predicate,
    /// For each condition, what every row satisfies that it does not let through; `None` where the query does more
    /// than ask for the rows that satisfy conditions.
    pub(super) misses: Option<Vec<Predicate>>,
    /// Whether a row is given depends on other rows of the table.
    pub(super) depends: bool,
}

impl Scope {
    /// Of the rows of `table` in a plan.
    pub(super) fn of(plan: &LogicalPlan, table: &TableIdent) -> Result<Self> {
        let mut scans = Vec::new();
        let walk = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(columns) = columns_of(scan, table)
            {
                scans.push((scan.filters.clone(), columns));
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walk.map_err(from_datafusion)?;
        let [(filters, columns)] = scans.as_slice() else {
            // No row of it is asked for, or it is read twice.
            return Ok(Self::default());
        };
        let conditions = conditions(plan, table);
        Ok(Self {
            predicate: predicate(filters, columns),
            misses: conditions.map(|conditions| conditions.iter().map(|condition| misses(condition, columns)).collect()),
            depends: false,
        })
    }

    /// A scan of the files that may have such rows.
    pub(super) fn request(&self, pruning: crate::table::Pruning) -> ScanRequest {
        ScanRequest {
            predicate: self.predicate.clone(),
            misses: self.misses.clone().unwrap_or_default(),
            pruning,
            partition: false,
        }
    }
}

/// Whether the rows that a plan gives of a table depend on other rows of it: the table is read twice, or rows of it are
/// counted, ranked or limited.
pub(super) fn depends_on_other_rows(plan: &LogicalPlan, table: &TableIdent) -> Result<bool> {
    let mut depends = reads(plan, table)? > 1;
    let walk = plan.apply_with_subqueries(|node| {
        let gathers = matches!(
            node,
            LogicalPlan::Limit(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Distinct(_)
        );
        depends |= gathers && reads(node, table).map_or(true, |count| count > 0);
        Ok(TreeNodeRecursion::Continue)
    });
    walk.map(|_| depends).map_err(from_datafusion)
}

/// How often a plan reads a table.
fn reads(plan: &LogicalPlan, table: &TableIdent) -> Result<usize> {
    let mut count = 0;
    let walk = plan.apply_with_subqueries(|node| {
        count += usize::from(matches!(node, LogicalPlan::TableScan(scan) if columns_of(scan, table).is_some()));
        Ok(TreeNodeRecursion::Continue)
    });
    walk.map(|_| count).map_err(from_datafusion)
}

/// Refuses a LIMIT that is NULL, which queries take for none: by mistake all rows would go.
///
/// Errors: `InvalidInput`.
pub(super) fn check_limits(plan: &LogicalPlan, values: &Values) -> Result<()> {
    let limit = match plan {
        LogicalPlan::Limit(limit) => limit,
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Limit(limit) => limit,
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    for row in 0..values.len() {
        let bound = match values.row(row)? {
            None => LogicalPlan::Limit(limit.clone()),
            Some(values) => LogicalPlan::Limit(limit.clone())
                .with_param_values(values)
                .map_err(from_datafusion)?,
        };
        if let LogicalPlan::Limit(Limit { fetch: Some(fetch), .. }) = &bound
            && fetch
                .exists(|part| Ok(matches!(part, Expr::Literal(value, _) if value.is_null())))
                .unwrap_or(true)
        {
            return Err(Error::invalid("LIMIT of a DELETE is NULL: say how many rows at most"));
        }
    }
    Ok(())
}

/// The columns of a scan of the table, under the names that its filters have for them.
fn columns_of(scan: &TableScan, table: &TableIdent) -> Option<Vec<Arc<Column>>> {
    let provider = source_as_provider(&scan.source).ok()?;
    let provider = provider.downcast_ref::<LakeTableProvider>()?;
    let snapshot: &Arc<dyn Snapshot> = provider.snapshot();
    // Which of several versions of the table a scan reads does not matter here.
    (snapshot.table() == table).then(|| snapshot.columns().to_vec())
}

/// The conditions of a plan that does nothing but ask for rows of one table.
fn conditions(plan: &LogicalPlan, table: &TableIdent) -> Option<Vec<Expr>> {
    match plan {
        LogicalPlan::Projection(projection) => conditions(&projection.input, table),
        LogicalPlan::SubqueryAlias(alias) => conditions(&alias.input, table),
        LogicalPlan::Filter(filter) => {
            let mut all = conditions(&filter.input, table)?;
            all.extend(split_conjunction(&filter.predicate).into_iter().cloned());
            Some(all)
        }
        LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
            let hidden = columns_of(scan, table)?;
            // Conditions on where a row lies are nothing that metadata tells.
            let is_hidden = |expr: &Expr| {
                expr.column_refs().iter().any(|of| {
                    hidden
                        .iter()
                        .any(|c| HiddenColumn::from_id(c.id).is_some() && c.field.name() == &of.name)
                })
            };
            (!scan.filters.iter().any(is_hidden)).then(|| scan.filters.clone())
        }
        _ => None,
    }
}
