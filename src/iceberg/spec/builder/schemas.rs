//! Schemas of the table.

use std::sync::Arc;

use super::MetadataBuilder;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{Schema, StructType};

impl MetadataBuilder {
    /// Adds a schema that follows the current one and returns its id; one that the table has
    /// already keeps its id. New fields have ids above the table's last column id.
    ///
    /// Errors: `InvalidInput` naming field and rule (see [`Schema::check_writable`],
    /// [`Schema::check_follows`]).
    pub fn add_schema(&mut self, root: StructType, identifier_field_ids: Vec<i32>) -> Result<i32> {
        let table = &self.table;
        let same = |schema: &&Arc<Schema>| *schema.root() == root && same_ids(schema.identifier_field_ids(), &identifier_field_ids);
        if let Some(known) = table.schemas.iter().find(same) {
            return Ok(known.schema_id());
        }
        let highest = table.schemas.iter().map(|schema| schema.schema_id()).max();
        let id = highest.map_or(0, |highest| highest.saturating_add(1));
        let schema = Schema::new(id, root, identifier_field_ids).map_err(as_input)?;
        schema.check_writable(table.format_version)?;
        if !table.schemas.is_empty() {
            let specs: Vec<_> = table.partition_specs.iter().map(Arc::as_ref).collect();
            schema.check_follows(table.current_schema()?, table.last_column_id, table.format_version, &specs)?;
        }
        self.table.last_column_id = table.last_column_id.max(schema.highest_field_id());
        self.table.schemas.push(Arc::new(schema));
        self.is_changed = true;
        Ok(id)
    }

    /// Makes a schema of the table the current one.
    ///
    /// Errors: `InvalidInput` where there is none of this id. That partition spec and sort order
    /// fit is checked when the metadata is built.
    pub fn set_current_schema(&mut self, id: i32) -> Result<()> {
        let known = self.table.schema_by_id(id);
        known.ok_or_else(|| Error::invalid(format!("the table has no schema {id}")))?;
        self.is_changed |= self.table.current_schema_id != id;
        self.table.current_schema_id = id;
        Ok(())
    }
}

/// A schema that comes from a statement and not from a file is a bad request, not a broken table.
pub(super) fn as_input(error: Error) -> Error {
    Error::invalid(error.message()).with_source(error)
}

fn same_ids(a: &[i32], b: &[i32]) -> bool {
    let sorted = |ids: &[i32]| {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids
    };
    sorted(a) == sorted(b)
}

impl MetadataBuilder {
    /// The current schema of the table in the making.
    pub(super) fn current_schema(&self) -> Result<Arc<Schema>> {
        self.table
            .current_schema()
            .cloned()
            .context("table", || self.table.location.clone())
    }
}
