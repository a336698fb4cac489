//! Partition specs of the table (spec "Partitioning", "Partition Evolution").

use std::collections::HashSet;
use std::sync::Arc;

use super::MetadataBuilder;
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::spec::{FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec, Schema, Transform};

/// A partition field that has no id yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnboundPartitionField {
    /// Field id of the source column.
    pub source_id: i32,
    pub name: String,
    pub transform: Transform,
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::invalid(message))
}

impl MetadataBuilder {
    /// Adds a partition spec of the current schema and returns its id; one of the same fields
    /// keeps its id. Fields that a spec had before keep theirs. In v1, where fields are found by
    /// position, those of the default spec that are no longer wanted become void, and new ones
    /// stand at the end.
    ///
    /// Errors: `InvalidInput` naming field and rule.
    pub fn add_partition_spec(&mut self, fields: &[UnboundPartitionField]) -> Result<i32> {
        let schema = self.current_schema()?;
        check_new(fields, &schema)?;
        let fields = if self.table.format_version == 1 {
            self.v1_fields(fields)?
        } else {
            fields.to_vec()
        };
        if let Some(known) = self.table.partition_specs.iter().find(|spec| is_same(spec, &fields)) {
            return Ok(known.spec_id);
        }
        let highest = self.table.partition_specs.iter().map(|spec| spec.spec_id).max();
        let spec_id = highest.map_or(0, |highest| highest.saturating_add(1));
        let mut last = self.table.last_partition_id.max(FIRST_PARTITION_FIELD_ID - 1);
        let mut bound: Vec<PartitionField> = Vec::with_capacity(fields.len());
        for (position, field) in fields.into_iter().enumerate() {
            let known = match self.table.format_version {
                1 => i32::try_from(position).ok().map(|at| FIRST_PARTITION_FIELD_ID + at),
                _ => self.field_id_of(&field, &bound),
            };
            let field_id = known.unwrap_or_else(|| last.saturating_add(1));
            last = last.max(field_id);
            bound.push(PartitionField {
                source_id: field.source_id,
                source_ids: vec![field.source_id],
                field_id,
                name: field.name,
                transform: field.transform,
            });
        }
        let spec = PartitionSpec { spec_id, fields: bound };
        check_fits(&spec, &schema)?;
        self.table.last_partition_id = last;
        self.table.partition_specs.push(Arc::new(spec));
        self.is_changed = true;
        Ok(spec_id)
    }

    /// The id that a field of the same source and transform had, the newest one; one of the same
    /// name before others. An id stands for one field of a spec only.
    fn field_id_of(&self, field: &UnboundPartitionField, taken: &[PartitionField]) -> Option<i32> {
        let equal = |known: &&PartitionField| {
            known.source_ids == [field.source_id]
                && known.transform == field.transform
                && taken.iter().all(|other| other.field_id != known.field_id)
        };
        let known = self.table.partition_specs.iter().flat_map(|spec| &spec.fields).filter(equal);
        known
            .max_by_key(|known| (known.name == field.name, known.field_id))
            .map(|known| known.field_id)
    }

    /// The wanted fields in the places that v1 needs.
    fn v1_fields(&self, wanted: &[UnboundPartitionField]) -> Result<Vec<UnboundPartitionField>> {
        let default = self.table.spec_by_id(self.table.default_spec_id);
        let old = default.map(|spec| spec.fields.as_slice()).unwrap_or_default();
        if !old
            .iter()
            .map(|field| field.field_id)
            .eq((FIRST_PARTITION_FIELD_ID..).take(old.len()))
        {
            return refuse("the default partition spec has no sequential field ids, which format version 1 needs; upgrade the table");
        }
        let mut rest = wanted.to_vec();
        let mut fields: Vec<_> = old
            .iter()
            .map(|old| {
                let at = rest
                    .iter()
                    .position(|new| new.source_id == old.source_id && new.transform == old.transform);
                match at {
                    Some(at) => rest.remove(at),
                    None => {
                        let is_wanted = wanted.iter().any(|new| new.name == old.name);
                        UnboundPartitionField {
                            source_id: old.source_id,
                            name: if is_wanted {
                                format!("{}_{}", old.name, old.field_id)
                            } else {
                                old.name.clone()
                            },
                            transform: Transform::Void,
                        }
                    }
                }
            })
            .collect();
        fields.extend(rest);
        Ok(fields)
    }

    /// Makes a partition spec of the table the one for new data.
    ///
    /// Errors: `InvalidInput` where there is none of this id.
    pub fn set_default_partition_spec(&mut self, id: i32) -> Result<()> {
        let known = self.table.spec_by_id(id);
        known.ok_or_else(|| Error::invalid(format!("the table has no partition spec {id}")))?;
        self.is_changed |= self.table.default_spec_id != id;
        self.table.default_spec_id = id;
        Ok(())
    }
}

fn is_same(spec: &PartitionSpec, fields: &[UnboundPartitionField]) -> bool {
    spec.fields.len() == fields.len()
        && spec
            .fields
            .iter()
            .zip(fields)
            .all(|(known, new)| known.source_ids == [new.source_id] && known.transform == new.transform && known.name == new.name)
}

/// The rules for fields that are asked for: names, and no two that say the same.
fn check_new(fields: &[UnboundPartitionField], schema: &Schema) -> Result<()> {
    let mut names = HashSet::new();
    let mut meanings = HashSet::new();
    for field in fields {
        let mut check = || -> Result<()> {
            if field.name.is_empty() {
                return refuse("a partition field needs a name");
            }
            if !names.insert(field.name.as_str()) {
                return refuse("two partition fields have this name");
            }
            let column = schema.fields().iter().find(|column| column.name == field.name);
            let own = matches!(field.transform, Transform::Identity | Transform::Void);
            if column.is_some_and(|column| !own || column.id != field.source_id) {
                return refuse("a column has this name, and the partition field is not its identity");
            }
            // Several periods of one column are as redundant as twice the same.
            let meaning = match &field.transform {
                Transform::Year | Transform::Month | Transform::Day | Transform::Hour => "time".to_owned(),
                other => other.to_string(),
            };
            if field.transform != Transform::Void && !meanings.insert((field.source_id, meaning)) {
                return refuse("another partition field of the same column says as much");
            }
            Ok(())
        };
        check().context("partition field", || &field.name)?;
    }
    Ok(())
}

/// Whether data of the schema can be divided by the spec.
///
/// Errors: `InvalidInput` naming the field.
pub(super) fn check_fits(spec: &PartitionSpec, schema: &Schema) -> Result<()> {
    for field in &spec.fields {
        check_field(field, schema)
            .context("partition field", || &field.name)
            .context("partition spec", || spec.spec_id)?;
    }
    Ok(())
}

fn check_field(field: &PartitionField, schema: &Schema) -> Result<()> {
    // What is dropped takes nothing from its source, which may be dropped too.
    if field.transform == Transform::Void {
        return Ok(());
    }
    check_source(field.source_id, &field.transform, schema)
}

/// Whether the schema has the source column of a transform, where one value belongs to a row.
pub(super) fn check_source(source_id: i32, transform: &Transform, schema: &Schema) -> Result<()> {
    if let Transform::Unknown(text) = transform {
        return refuse(format!("transform {text} is not known"));
    }
    let Some(source) = schema.field_by_id(source_id) else {
        return refuse(format!("the schema has no column {source_id}, its source"));
    };
    let mut outer = schema.parent_of(source_id);
    while let Some(at) = outer {
        if schema.field_by_id(at).is_none_or(|field| field.field_type.as_struct().is_none()) {
            return refuse("its source lies in a list or map");
        }
        outer = schema.parent_of(at);
    }
    match transform.result_type(&source.field_type) {
        Some(_) => Ok(()),
        None => refuse(format!("transform {transform} does not take type {}", source.field_type)),
    }
}
