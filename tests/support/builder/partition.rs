//! Partition specs of built tables (spec "Partitioning").
//!
//! Tests give partition values themselves, in the canonical form of the transform's result, so
//! that a built table can also be wrong on purpose.

use serde_json::{Value, json};

use super::types::{Schema, Type};
use super::values::Scalar;

/// A partition field.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionField {
    pub source_id: i32,
    /// 0 until the table assigns one.
    pub field_id: i32,
    pub name: String,
    /// As metadata spells it: `identity`, `bucket[16]`, `truncate[4]`, `year`, `month`, `day`, `hour`, `void`.
    pub transform: String,
}

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PartitionSpec {
    /// Set by the table.
    pub id: i32,
    pub fields: Vec<PartitionField>,
}

/// A partition field by source column, name and transform.
pub fn partition(source_id: i32, name: &str, transform: &str) -> PartitionField {
    PartitionField {
        source_id,
        field_id: 0,
        name: name.to_owned(),
        transform: transform.to_owned(),
    }
}

/// An identity partition field.
pub fn identity(source_id: i32, name: &str) -> PartitionField {
    partition(source_id, name, "identity")
}

impl PartitionField {
    /// Gives the field an id of the test's choice.
    #[must_use]
    pub fn field_id(mut self, id: i32) -> Self {
        self.field_id = id;
        self
    }

    /// Type of the partition value; `schemas` are all of the table, because a source may have been dropped.
    pub fn result_type(&self, schemas: &[Schema]) -> Type {
        let source = || {
            let field = schemas.iter().rev().find_map(|s| s.find(self.source_id));
            field
                .unwrap_or_else(|| panic!("no source column {}", self.source_id))
                .field_type
                .clone()
        };
        match self.transform.as_str() {
            "year" | "month" | "hour" => Type::Int,
            "day" => Type::Date,
            t if t.starts_with("bucket") => Type::Int,
            _ => source(),
        }
    }
}

impl PartitionSpec {
    /// A spec of these fields.
    pub fn new(fields: impl IntoIterator<Item = PartitionField>) -> Self {
        Self {
            id: 0,
            fields: fields.into_iter().collect(),
        }
    }

    /// True where every delete of the spec is global: no fields, or only void ones.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|f| f.transform == "void")
    }

    /// The fields as metadata has them.
    pub fn fields_json(&self) -> Value {
        let fields = self
            .fields
            .iter()
            .map(|f| json!({"source-id": f.source_id, "field-id": f.field_id, "name": f.name, "transform": f.transform}));
        Value::Array(fields.collect())
    }

    /// The spec as metadata has it.
    pub fn json(&self) -> Value {
        json!({"spec-id": self.id, "fields": self.fields_json()})
    }

    /// A partition given as list in order of the fields, or as object by name; null gives nulls.
    pub fn values(&self, given: &Value, schemas: &[Schema]) -> Vec<Option<Scalar>> {
        let of = |field: &PartitionField, value: &Value| Scalar::new(&field.result_type(schemas), value);
        match given {
            Value::Null => vec![None; self.fields.len()],
            Value::Array(list) => {
                assert_eq!(list.len(), self.fields.len(), "one value per field of spec {}", self.id);
                self.fields.iter().zip(list).map(|(f, v)| of(f, v)).collect()
            }
            Value::Object(by_name) => {
                let known = by_name.keys().all(|name| self.fields.iter().any(|f| f.name == *name));
                assert!(known, "spec {} has not all of {given}", self.id);
                self.fields
                    .iter()
                    .map(|f| of(f, by_name.get(&f.name).unwrap_or(&Value::Null)))
                    .collect()
            }
            other => panic!("{other} is no partition"),
        }
    }
}
