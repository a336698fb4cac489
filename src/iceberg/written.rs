//! The columns of a table as writers fill them.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};

use super::arrow_schema::arrow_columns;
use super::literal_array::default_array;
use super::spec::{PrimitiveType, Schema, Type};
use crate::error::Result;
use crate::table::TYPE_NAME_KEY;

/// A column and what it gets where a row has no value for it.
#[derive(Debug, Clone)]
pub struct WrittenColumn {
    /// As the table is read.
    pub field: FieldRef,
    /// Whether text stands for a uuid.
    pub is_uuid: bool,
    /// The field's type, with [`TYPE_NAME_KEY`] in the metadata of nested fields where text stands for a uuid.
    pub shape: DataType,
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
            shape: marked(&field.field_type, column.field.data_type()),
            field: Arc::clone(&column.field),
        })
    });
    each.collect()
}

/// The type with marks at the uuids in it.
fn marked(of: &Type, arrow: &DataType) -> DataType {
    let inside = |of: &Type, field: &FieldRef| {
        let mut field = field.as_ref().clone().with_data_type(marked(of, field.data_type()));
        if *of == Type::Primitive(PrimitiveType::Uuid) {
            field.metadata_mut().insert(TYPE_NAME_KEY.to_owned(), of.to_string());
        }
        Arc::new(field)
    };
    match (of, arrow) {
        (Type::Struct(of), DataType::Struct(fields)) => {
            let pairs = of.fields.iter().zip(fields);
            DataType::Struct(pairs.map(|(of, field)| inside(&of.field_type, field)).collect())
        }
        (Type::List(of), DataType::List(element)) => DataType::List(inside(&of.element.field_type, element)),
        (Type::Map(of), DataType::Map(entries, sorted)) => {
            let pair = match entries.data_type() {
                DataType::Struct(pair) => {
                    let types = [&of.key.field_type, &of.value.field_type];
                    DataType::Struct(types.into_iter().zip(pair).map(|(of, field)| inside(of, field)).collect())
                }
                other => other.clone(),
            };
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *sorted)
        }
        (_, other) => other.clone(),
    }
}
