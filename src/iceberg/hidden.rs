//! Hidden columns of Iceberg tables: their fields, and partition values over all specs.
//!
//! The type of `_partition` is one struct for the whole table: the fields of all its specs by
//! partition field id, ascending, under the name that the newest spec gives them. A file has null
//! in the fields that its spec lacks. A table whose specs have no field at all has a `_partition`
//! that is always null, since clients cannot hold a struct without fields.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, StructArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::arrow_schema::primitive_type;
use super::literal_array::literal_array;
use super::spec::{Literal, PartitionField, PartitionSpec, PrimitiveType, TableMetadata, Transform};
use crate::error::{Error, Result};
use crate::table::{HiddenColumn, TYPE_NAME_KEY};

/// The field of a hidden column; `None` for one that Iceberg tables do not have.
///
/// Errors: `Unsupported` for `_partition` where a transform is not known.
pub(super) fn hidden_field(metadata: &TableMetadata, kind: HiddenColumn) -> Result<Option<FieldRef>> {
    let (data_type, type_name, nullable) = match kind {
        HiddenColumn::File => (DataType::Utf8, "string".to_owned(), false),
        HiddenColumn::Position => (DataType::Int64, "long".to_owned(), false),
        HiddenColumn::SpecId => (DataType::Int32, "int".to_owned(), false),
        HiddenColumn::Partition => {
            let partition = PartitionType::of(metadata)?;
            (partition.data_type()?, partition.name(), true)
        }
        HiddenColumn::RowId | HiddenColumn::LastUpdatedSequenceNumber => (DataType::Int64, "long".to_owned(), true),
        HiddenColumn::RowCommitVersion => return Ok(None),
    };
    let metadata = HashMap::from([(TYPE_NAME_KEY.to_owned(), type_name)]);
    Ok(Some(Arc::new(Field::new(kind.name(), data_type, nullable).with_metadata(metadata))))
}

/// The partition fields of all specs of a table, in order of their ids.
#[derive(Debug)]
pub(super) struct PartitionType {
    fields: Vec<(i32, String, PrimitiveType)>,
}

impl PartitionType {
    /// Errors: `Unsupported` for a transform that is not known, `Corrupt` for one field id that
    /// means different things.
    pub(super) fn of(metadata: &TableMetadata) -> Result<Self> {
        let mut specs: Vec<&Arc<PartitionSpec>> = metadata.partition_specs.iter().collect();
        specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id));
        let mut found: BTreeMap<i32, (&PartitionField, &str)> = BTreeMap::new();
        for field in specs.iter().flat_map(|spec| &spec.fields) {
            match found.get_mut(&field.field_id) {
                None => {
                    found.insert(field.field_id, (field, &field.name));
                }
                // A v1 table drops a field by making it void: the older spec tells its type.
                Some((known, _)) if known.transform == Transform::Void && known.source_id == field.source_id => *known = field,
                Some((known, _)) => {
                    let same = known.source_id == field.source_id && known.transform == field.transform;
                    if !same && field.transform != Transform::Void {
                        return Err(Error::corrupt(format!(
                            "partition field {} is {} in one spec and {} in another",
                            field.field_id, known.transform, field.transform
                        )));
                    }
                }
            }
        }
        let mut names = HashSet::new();
        let fields = found.into_iter().map(|(id, (field, name))| {
            // Two fields of one name could not be told apart in a struct.
            let name = if names.insert(name) {
                name.to_owned()
            } else {
                format!("{name}_{id}")
            };
            Ok((id, name, field_type(metadata, field)?))
        });
        Ok(Self {
            fields: fields.collect::<Result<_>>()?,
        })
    }

    fn data_type(&self) -> Result<DataType> {
        Ok(match self.arrow_fields()? {
            none if none.is_empty() => DataType::Null,
            fields => DataType::Struct(fields),
        })
    }

    fn arrow_fields(&self) -> Result<Fields> {
        let fields = self
            .fields
            .iter()
            .map(|(_, name, primitive)| Ok(Field::new(name, primitive_type(primitive)?, true)));
        fields.collect::<Result<Vec<_>>>().map(Fields::from)
    }

    fn name(&self) -> String {
        if self.fields.is_empty() {
            return PrimitiveType::Unknown.to_string();
        }
        let fields: Vec<String> = self.fields.iter().map(|(_, name, of)| format!("{name}: {of}")).collect();
        format!("struct<{}>", fields.join(", "))
    }

    /// The partition of a file, of one row. `values` are in the order of the spec's fields.
    pub(super) fn array(&self, spec: &PartitionSpec, values: &[Option<Literal>]) -> Result<ArrayRef> {
        if self.fields.is_empty() {
            return Ok(new_null_array(&DataType::Null, 1));
        }
        let arrays = self.fields.iter().map(|(id, _, of)| {
            let at = spec.fields.iter().position(|field| field.field_id == *id);
            let value = at.and_then(|at| values.get(at)).and_then(Option::as_ref);
            literal_array(value, of)
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(StructArray::try_new_with_length(self.arrow_fields()?, arrays, None, 1)?))
    }
}

/// The type of a partition field: by its source column as the table has it now, or last had it.
fn field_type(metadata: &TableMetadata, field: &PartitionField) -> Result<PrimitiveType> {
    if let Transform::Unknown(name) = &field.transform {
        return Err(Error::unsupported(format!(
            "`{}` cannot be given: partition field `{}` has the transform `{name}`, which is not known",
            HiddenColumn::Partition.name(),
            field.name
        )));
    }
    let mut older: Vec<_> = metadata.schemas.iter().collect();
    older.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
    let source = std::iter::once(metadata.current_schema()?)
        .chain(older)
        .find_map(|schema| schema.field_by_id(field.source_id));
    let found = match (source, &field.transform) {
        (Some(source), transform) => transform.result_type(&source.field_type),
        (None, Transform::Bucket(_) | Transform::Year | Transform::Month | Transform::Hour) => Some(PrimitiveType::Int),
        (None, Transform::Day) => Some(PrimitiveType::Date),
        (None, _) => None,
    };
    // Only a field of which no column is left has no type; all that it can be is null.
    Ok(found.unwrap_or(PrimitiveType::Unknown))
}
