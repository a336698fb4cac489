//! What a schema may be and how it may change (spec "Schemas and Data Types", "Schema Evolution",
//! "Default values", "Identifier Field IDs").
//!
//! Data files are never rewritten for a change of schema: whatever would make old rows
//! unreadable, or read otherwise than they were written, is refused.

use super::json::clip;
use super::{NestedField, PartitionSpec, PrimitiveType, Schema, Transform, Type};
use crate::error::{Error, Result, ResultExt};

/// The highest field id of a table's columns; those beyond are metadata columns.
const MAX_FIELD_ID: i32 = i32::MAX - 200;

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::invalid(message))
}

impl Schema {
    /// The highest field id at any depth; 0 without fields.
    pub fn highest_field_id(&self) -> i32 {
        self.all_fields().map(|field| field.id).max().unwrap_or(0)
    }

    /// Whether a table of this format version can have the schema.
    ///
    /// Errors: `InvalidInput` naming the field: a type or default of a later version, an id that
    /// is reserved, an identifier field that can be null or has no exact equality.
    pub fn check_writable(&self, format_version: u8) -> Result<()> {
        for field in self.all_fields() {
            check_field(field, format_version).context("field", || clip(&field.name).into_owned())?;
        }
        self.identifier_field_ids().iter().try_for_each(|id| {
            self.check_identifier(*id)
                .context("field", || self.full_name(*id).unwrap_or_default())
        })
    }

    fn check_identifier(&self, id: i32) -> Result<()> {
        let Some(field) = self.field_by_id(id) else {
            return refuse(format!("there is no field {id} to identify rows by"));
        };
        match field.field_type.as_primitive() {
            None => return refuse("rows are identified by primitive fields"),
            Some(PrimitiveType::Float | PrimitiveType::Double) => return refuse("rows are not identified by floats"),
            Some(_) if !field.required => return refuse("an identifier field must be required"),
            Some(_) => {}
        }
        let mut parent = self.parent_of(id);
        while let Some(at) = parent {
            match self.field_by_id(at) {
                Some(outer) if outer.required && outer.field_type.as_struct().is_some() => {}
                _ => return refuse("an identifier field lies in required structs only"),
            }
            parent = self.parent_of(at);
        }
        Ok(())
    }

    /// Whether the schema may follow `old` in a table whose columns have had ids up to
    /// `last_column_id`, with partition specs that refer to its columns.
    ///
    /// Errors: `InvalidInput` naming the field and the rule.
    pub fn check_follows(&self, old: &Self, last_column_id: i32, format_version: u8, specs: &[&PartitionSpec]) -> Result<()> {
        for field in self.all_fields() {
            let check = match old.field_by_id(field.id) {
                Some(before) => self.check_change(old, before, field, format_version, specs),
                None => self.check_new(old, field, last_column_id),
            };
            check.context("field", || self.full_name(field.id).unwrap_or_default())?;
        }
        Ok(())
    }

    fn check_new(&self, old: &Self, field: &NestedField, last_column_id: i32) -> Result<()> {
        if field.id <= last_column_id {
            return refuse(format!(
                "field id {} was used before; a new field gets one above {last_column_id}",
                field.id
            ));
        }
        // Within a struct that is new itself there are no old values.
        let outer_is_new = self.parent_of(field.id).is_some_and(|outer| old.field_by_id(outer).is_none());
        if field.required && !outer_is_new && (field.initial_default.is_none() || field.write_default.is_none()) {
            return refuse("a required field can be added only with defaults (format version 3), as old rows have no value");
        }
        Ok(())
    }

    fn check_change(
        &self,
        old: &Self,
        before: &NestedField,
        after: &NestedField,
        format_version: u8,
        specs: &[&PartitionSpec],
    ) -> Result<()> {
        if old.parent_of(before.id) != self.parent_of(after.id) {
            return refuse("a field cannot move into or out of a struct");
        }
        if after.required && !before.required {
            return refuse("an optional field cannot become required: old rows may hold null");
        }
        if before.initial_default != after.initial_default {
            return refuse("the initial default of a field never changes");
        }
        match (&before.field_type, &after.field_type) {
            (Type::Primitive(from), Type::Primitive(to)) if from == to => Ok(()),
            (Type::Primitive(from), Type::Primitive(to)) => {
                if !promotes(from, to, format_version) {
                    return refuse(format!("type {from} cannot become {to} in format version {format_version}"));
                }
                let by_hash = |spec: &PartitionSpec| {
                    let fields = spec.fields.iter().filter(|field| field.source_ids.contains(&after.id));
                    fields.into_iter().any(|field| !survives(&field.transform, from))
                };
                match specs.iter().find(|spec| by_hash(spec)) {
                    Some(spec) => refuse(format!(
                        "type {from} cannot become {to}: partition spec {} divides by it otherwise",
                        spec.spec_id
                    )),
                    None => Ok(()),
                }
            }
            (Type::Primitive(PrimitiveType::Unknown), _) if format_version > 2 => Ok(()),
            (Type::Map(from), Type::Map(to)) if from.key.field_type != to.key.field_type => {
                refuse("the key of a map cannot change: keys that were different could become the same")
            }
            (Type::Struct(_), Type::Struct(_))
            | (Type::List(_), Type::List(_))
            | (Type::Map(_), Type::Map(_))
            | (Type::Variant, Type::Variant) => Ok(()),
            (from, to) => refuse(format!("type {from} cannot become {to}")),
        }
    }
}

fn check_field(field: &NestedField, format_version: u8) -> Result<()> {
    use PrimitiveType as P;
    if field.id < 1 || field.id > MAX_FIELD_ID {
        return refuse(format!("field id {} is reserved", field.id));
    }
    if field.name.is_empty() {
        return refuse("a field needs a name");
    }
    let is_of_v3 = match &field.field_type {
        Type::Primitive(P::TimestampNs | P::TimestamptzNs | P::Unknown | P::Geometry { .. } | P::Geography { .. }) | Type::Variant => true,
        Type::Primitive(_) | Type::Struct(_) | Type::List(_) | Type::Map(_) => false,
    };
    if is_of_v3 && format_version < 3 {
        return refuse(format!(
            "type {} needs format version 3, the table has {format_version}",
            field.field_type
        ));
    }
    if (field.initial_default.is_some() || field.write_default.is_some()) && format_version < 3 {
        return refuse(format!("defaults need format version 3, the table has {format_version}"));
    }
    if field.required && field.field_type == Type::Primitive(P::Unknown) {
        return refuse("a field of type unknown is always null and cannot be required");
    }
    Ok(())
}

/// Whether values of one type can be read as another.
fn promotes(from: &PrimitiveType, to: &PrimitiveType, format_version: u8) -> bool {
    use PrimitiveType as P;
    match (from, to) {
        (P::Int, P::Long) | (P::Float, P::Double) => true,
        (
            P::Decimal { precision, scale },
            P::Decimal {
                precision: wider,
                scale: same,
            },
        ) => scale == same && wider > precision,
        (P::Date, P::Timestamp | P::TimestampNs) | (P::Unknown, _) => format_version > 2,
        _ => false,
    }
}

/// Whether a transform gives equal partition values before and after a promotion from this type.
fn survives(transform: &Transform, from: &PrimitiveType) -> bool {
    match transform {
        // A date is hashed as days, a timestamp as its units.
        Transform::Bucket(_) => *from != PrimitiveType::Date,
        Transform::Unknown(_) => false,
        _ => true,
    }
}
