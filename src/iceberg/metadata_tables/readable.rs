//! `readable_metrics`: what a file's statistics say of each column, with bounds in the column's type.

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;

use super::arrays::{count, literals, longs, structs};
use crate::error::{Error, Result, ResultExt};
use crate::iceberg::manifest::{Counts, EntryRef};
use crate::iceberg::spec::{Literal, PrimitiveType, Schema, StructType, Type};

/// A column that has metrics: of primitive type, at any depth.
#[derive(Debug, Clone)]
pub(super) struct ReadableColumn {
    /// Names from the top down, joined by dots.
    pub(super) name: String,
    id: i32,
    pub(super) primitive: PrimitiveType,
}

/// All columns of a schema that have metrics, in order of name.
pub(super) fn readable_columns(schema: &Schema) -> Vec<ReadableColumn> {
    fn collect(fields: &StructType, schema: &Schema, into: &mut Vec<ReadableColumn>) {
        for field in &fields.fields {
            one(field.id, &field.field_type, schema, into);
        }
    }
    fn one(id: i32, field_type: &Type, schema: &Schema, into: &mut Vec<ReadableColumn>) {
        match field_type {
            Type::Primitive(primitive) => {
                if let Some(name) = schema.full_name(id) {
                    into.push(ReadableColumn {
                        name,
                        id,
                        primitive: primitive.clone(),
                    });
                }
            }
            Type::Struct(fields) => collect(fields, schema, into),
            Type::List(list) => one(list.element.id, &list.element.field_type, schema, into),
            Type::Map(map) => {
                one(map.key.id, &map.key.field_type, schema, into);
                one(map.value.id, &map.value.field_type, schema, into);
            }
            Type::Variant => {}
        }
    }
    let mut columns = Vec::new();
    collect(schema.root(), schema, &mut columns);
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    columns.dedup_by(|later, first| later.name == first.name);
    columns
}

/// The column `readable_metrics` of these entries.
///
/// Errors: `Corrupt` for a bound that is no value of its column's type.
pub(super) fn readable_metrics(data_type: &DataType, columns: &[ReadableColumn], entries: &[EntryRef<'_>]) -> Result<ArrayRef> {
    let DataType::Struct(fields) = data_type else {
        return Err(Error::internal("readable metrics are no struct"));
    };
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, field) in columns.iter().zip(fields) {
        let DataType::Struct(metrics) = field.data_type() else {
            return Err(Error::internal("metrics of a column are no struct"));
        };
        let of = |get: &dyn for<'a> Fn(&EntryRef<'a>) -> Counts<'a>| longs(entries.iter().map(|e| get(e).get(column.id).map(count)));
        let bound_type = metrics.last().map(|f| f.data_type().clone()).unwrap_or(DataType::Null);
        let children = vec![
            of(&|e| e.column_sizes()),
            of(&|e| e.value_counts()),
            of(&|e| e.null_value_counts()),
            of(&|e| e.nan_value_counts()),
            bounds(column, &bound_type, entries, &|e, id| e.lower_bound(id))?,
            bounds(column, &bound_type, entries, &|e, id| e.upper_bound(id))?,
        ];
        arrays.push(structs(field.data_type(), children, entries.len())?);
    }
    structs(data_type, arrays, entries.len())
}

fn bounds(
    column: &ReadableColumn,
    data_type: &DataType,
    entries: &[EntryRef<'_>],
    get: &dyn for<'a> Fn(&EntryRef<'a>, i32) -> Option<&'a [u8]>,
) -> Result<ArrayRef> {
    if column.primitive == PrimitiveType::Unknown {
        return Ok(new_null_array(data_type, entries.len()));
    }
    let values = entries.iter().map(|entry| {
        let bytes = get(entry, column.id);
        let value = bytes.map(|bytes| Literal::from_bytes(&column.primitive, bytes));
        value.transpose().map_err(|e| e.with("file", entry.file_path()))
    });
    let values = values.collect::<Result<Vec<_>>>().context("column", || &column.name)?;
    literals(&values, &column.primitive).context("column", || &column.name)
}
