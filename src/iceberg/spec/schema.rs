//! Schemas and field look-up by id (spec "Schemas", "Column Projection").
//!
//! Field ids are unique in a schema; names resolve to ids, data is found by id only.

use std::collections::HashMap;
use std::sync::Arc;

use super::{NestedField, StructType};

/// A table schema.
#[derive(Debug, Clone)]
pub struct Schema {
    schema_id: i32,
    root: StructType,
    identifier_field_ids: Vec<i32>,
    by_id: HashMap<i32, Arc<NestedField>>,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.schema_id == other.schema_id && self.root == other.root && self.identifier_field_ids == other.identifier_field_ids
    }
}
