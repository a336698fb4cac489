//! The columns of a table as writers fill them.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::FieldRef;

use super::arrow_schema::arrow_columns;
use super::literal_array::default_array;
use super::spec::{PrimitiveType, Schema, Type};
use crate::error::Result;

/// A column and what it gets where a row has no value for it.
#[derive(Debug, Clone)]
pub struct WrittenColumn {
    /// As the table is read.
    pub field: FieldRef,
    /// Whether text stands for a uuid.
    pub is_uuid: bool,
    /// One row: the write default (spec "Default values"). `None`: null.
    pub default: Option<ArrayRef>,
}

/// The columns of a schema, in order.
///
/// Errors: `Unsupported` for a column of a type that cannot be read, naming it.
pub fn written_columns(schema: &Schema) -> Result<Vec<WrittenColumn>> {
    let columns = arrow_columns(schema)?;
    let each = schema.fields().iter().zip(columns).map(|(field, column)| {
        let default = field.write_default.as_ref();
        let of = |value| default_array(value, &field.field_type, column.field.data_type(), &column.children);
        Ok(WrittenColumn {
            is_uuid: field.field_type == Type::Primitive(PrimitiveType::Uuid),
            default: default.map(of).transpose()?,
            field: Arc::clone(&column.field),
        })
    });
    each.collect()
}
