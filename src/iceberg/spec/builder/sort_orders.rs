//! Sort orders of the table (spec "Sorting").

use super::MetadataBuilder;
use super::partition_specs::check_source;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{Schema, SortField, SortOrder};

impl MetadataBuilder {
    /// Adds a sort order of the current schema and returns its id: 0 without fields, that of an
    /// equal order where the table has one.
    ///
    /// Errors: `InvalidInput` for a source or transform that cannot be.
    pub fn add_sort_order(&mut self, fields: Vec<SortField>) -> Result<i32> {
        let orders = &self.table.sort_orders;
        if let Some(known) = orders.iter().find(|order| order.fields == fields) {
            return Ok(known.order_id);
        }
        // 0 is the unsorted order, whether the table lists it or not.
        let order_id = match orders.iter().map(|order| order.order_id).max() {
            _ if fields.is_empty() => 0,
            highest => highest.unwrap_or(0).max(0).saturating_add(1),
        };
        let order = SortOrder { order_id, fields };
        check_fits(&order, self.current_schema()?.as_ref())?;
        self.table.sort_orders.push(order);
        self.is_changed = true;
        Ok(order_id)
    }

    /// Makes a sort order of the table the one for new data.
    ///
    /// Errors: `InvalidInput` where there is none of this id.
    pub fn set_default_sort_order(&mut self, id: i32) -> Result<()> {
        if !self.table.sort_orders.iter().any(|order| order.order_id == id) {
            return Err(Error::invalid(format!("the table has no sort order {id}")));
        }
        self.is_changed |= self.table.default_sort_order_id != id;
        self.table.default_sort_order_id = id;
        Ok(())
    }
}

/// Whether data of the schema can be sorted by the order.
pub(super) fn check_fits(order: &SortOrder, schema: &Schema) -> Result<()> {
    order
        .fields
        .iter()
        .try_for_each(|field| check_source(field.source_id, &field.transform, schema))
        .context("sort order", || order.order_id)
}
