//! Schemas and field look-up by id (spec "Schemas", "Column Projection").
//!
//! Field ids are unique in a schema and sibling names are unique; names resolve to ids, data
//! is found by id only. The JSON form stands in `schema_json`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::json::clip;
use super::{MAX_TYPE_DEPTH, NestedField, StructType, Type};
use crate::error::{Error, Result};

/// A table schema.
#[derive(Debug, Clone)]
pub struct Schema {
    schema_id: i32,
    root: StructType,
    identifier_field_ids: Vec<i32>,
    by_id: HashMap<i32, Arc<NestedField>>,
    /// Id of the enclosing field; fields of the root have none.
    parents: HashMap<i32, i32>,
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.schema_id == other.schema_id && self.root == other.root && self.identifier_field_ids == other.identifier_field_ids
    }
}

impl Schema {
    /// A schema of `root`. Errors (`Corrupt`): an id that occurs twice, two siblings of one
    /// name, an identifier field that does not exist, nesting beyond [`MAX_TYPE_DEPTH`].
    pub fn new(schema_id: i32, root: StructType, identifier_field_ids: Vec<i32>) -> Result<Self> {
        let mut schema = Self {
            schema_id,
            root: StructType::default(),
            identifier_field_ids,
            by_id: HashMap::new(),
            parents: HashMap::new(),
        };
        schema.index_struct(&root, None, 1)?;
        schema.root = root;
        if let Some(id) = schema.identifier_field_ids.iter().find(|id| !schema.by_id.contains_key(id)) {
            return Err(Error::corrupt(format!(
                "schema {schema_id} has no field {id}, which it names as an identifier field"
            )));
        }
        Ok(schema)
    }

    /// Id of the schema in its table; 0 where the JSON has none (v1).
    pub fn schema_id(&self) -> i32 {
        self.schema_id
    }

    /// The top-level columns in order.
    pub fn fields(&self) -> &[Arc<NestedField>] {
        &self.root.fields
    }

    /// The columns as a struct.
    pub fn root(&self) -> &StructType {
        &self.root
    }

    /// Ids of the fields that identify a row, in the order written.
    pub fn identifier_field_ids(&self) -> &[i32] {
        &self.identifier_field_ids
    }

    /// The field of an id at any depth, list elements, map keys and map values included.
    pub fn field_by_id(&self, id: i32) -> Option<&Arc<NestedField>> {
        self.by_id.get(&id)
    }

    /// All fields at any depth, in no order.
    pub(super) fn all_fields(&self) -> impl Iterator<Item = &NestedField> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Id of the field that encloses `id`; `None` for a top-level column and for an unknown id.
    pub fn parent_of(&self, id: i32) -> Option<i32> {
        self.parents.get(&id).copied()
    }

    /// The names from the column down to the field, joined by dots: `a.element.b`.
    pub fn full_name(&self, id: i32) -> Option<String> {
        let mut names = vec![self.field_by_id(id)?.name.as_str()];
        let mut current = id;
        while let Some(parent) = self.parent_of(current) {
            names.push(self.field_by_id(parent)?.name.as_str());
            current = parent;
        }
        names.reverse();
        Some(names.join("."))
    }

    fn index_struct(&mut self, fields: &StructType, parent: Option<i32>, depth: usize) -> Result<()> {
        let mut names = HashSet::with_capacity(fields.fields.len());
        for field in &fields.fields {
            if !names.insert(field.name.as_str()) {
                return Err(Error::corrupt(format!(
                    "schema {} has two fields named `{}`",
                    self.schema_id,
                    clip(&field.name)
                )));
            }
            self.index(field, parent, depth)?;
        }
        Ok(())
    }

    fn index(&mut self, field: &Arc<NestedField>, parent: Option<i32>, depth: usize) -> Result<()> {
        if depth > MAX_TYPE_DEPTH {
            return Err(too_deep());
        }
        if self.by_id.insert(field.id, Arc::clone(field)).is_some() {
            return Err(Error::corrupt(format!(
                "schema {} uses field id {} twice",
                self.schema_id, field.id
            )));
        }
        if let Some(parent) = parent {
            self.parents.insert(field.id, parent);
        }
        let parent = Some(field.id);
        match &field.field_type {
            Type::Primitive(_) | Type::Variant => Ok(()),
            Type::Struct(fields) => self.index_struct(fields, parent, depth + 1),
            Type::List(list) => self.index(&list.element, parent, depth + 1),
            Type::Map(map) => {
                self.index(&map.key, parent, depth + 1)?;
                self.index(&map.value, parent, depth + 1)
            }
        }
    }
}

pub(super) fn too_deep() -> Error {
    Error::corrupt(format!("schema is nested deeper than {MAX_TYPE_DEPTH} levels"))
}
