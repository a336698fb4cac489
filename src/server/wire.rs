//! The schema that clients see, and bringing batches into it.
//!
//! Invariants: FlightInfo, GetSchema, prepared statements, table listings and result streams all
//! take their schema from [`wire_schema`]; every batch of a stream has exactly that schema (types,
//! names, nullability, metadata), or the stream fails. No view, dictionary, run-end or small
//! decimal type is on the wire, at any depth; large lists stay large. Every field has metadata.
//! Types: flight-sql.md 1.8; metadata keys: 1.3.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::{IpcMessage, SchemaAsIpc};
use bytes::Bytes;

use crate::error::{Error, Result, ResultExt};
use crate::table::{DOC_KEY, TYPE_NAME_KEY, TableIdent};

/// Key of extension type names; with [`EXTENSION_METADATA`] the only foreign keys that are sent.
const EXTENSION_NAME: &str = "ARROW:extension:name";
/// Key of extension type parameters.
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
/// Extension type of UUIDs.
const UUID_EXTENSION: &str = "arrow.uuid";

/// Length that drivers report for strings and bytes without one of their own.
const TEXT_SIZE: &str = "65536";

/// The wire schema of a result (`table` is `None`) or of a table.
pub fn wire_schema(schema: &Schema, table: Option<&TableIdent>) -> SchemaRef {
    let fields: Vec<FieldRef> = schema
        .fields()
        .iter()
        .map(|field| {
            let mut wire = wire_field(field);
            let mut metadata = wire.metadata().clone();
            if let Some(table) = table {
                metadata.insert(key("CATALOG_NAME"), table.catalog.clone());
                metadata.insert(key("DB_SCHEMA_NAME"), table.schema.clone());
                metadata.insert(key("TABLE_NAME"), table.table.clone());
            }
            describe(wire.data_type(), &mut metadata);
            wire.set_metadata(metadata);
            Arc::new(wire)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// A schema as an encapsulated IPC message: continuation marker, length, flatbuffer.
pub fn schema_message(schema: &Schema) -> Result<Bytes> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) = SchemaAsIpc::new(schema, &options).try_into()?;
    Ok(bytes)
}

fn key(name: &str) -> String {
    format!("ARROW:FLIGHT:SQL:{name}")
}

/// A field with its wire type and the metadata that nested fields have too.
fn wire_field(field: &Field) -> Field {
    let data_type = wire_type(field.data_type());
    let mut metadata = HashMap::new();
    for name in [EXTENSION_NAME, EXTENSION_METADATA] {
        if let Some(value) = field.metadata().get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let type_name = field.metadata().get(TYPE_NAME_KEY).cloned().unwrap_or_else(|| {
        if metadata.get(EXTENSION_NAME).is_some_and(|name| name == UUID_EXTENSION) {
            "uuid".to_owned()
        } else {
            type_name(&data_type)
        }
    });
    if type_name == "uuid" && data_type == DataType::FixedSizeBinary(16) {
        metadata
            .entry(EXTENSION_NAME.to_owned())
            .or_insert_with(|| UUID_EXTENSION.to_owned());
        metadata.entry(EXTENSION_METADATA.to_owned()).or_default();
    }
    metadata.insert(key("TYPE_NAME"), type_name);
    if let Some(doc) = field.metadata().get(DOC_KEY).filter(|doc| !doc.is_empty()) {
        metadata.insert(key("REMARKS"), doc.clone());
    }
    Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)
}

fn wire_child(field: &FieldRef) -> FieldRef {
    Arc::new(wire_field(field))
}

/// The type that stands for an engine type on the wire.
fn wire_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, value) => wire_type(value),
        DataType::RunEndEncoded(_, value) => wire_type(value.data_type()),
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => DataType::Decimal128(*precision, *scale),
        DataType::Timestamp(unit, Some(zone)) if matches!(zone.as_ref(), "+00:00" | "Z") => DataType::Timestamp(*unit, Some("UTC".into())),
        DataType::List(field) | DataType::ListView(field) => DataType::List(wire_child(field)),
        DataType::LargeList(field) | DataType::LargeListView(field) => DataType::LargeList(wire_child(field)),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(wire_child(field), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(wire_child).collect()),
        DataType::Map(entries, sorted) => DataType::Map(wire_entries(entries), *sorted),
        other => other.clone(),
    }
}

/// Java finds the children of a map's entries by the names `key` and `value`.
fn wire_entries(entries: &FieldRef) -> FieldRef {
    let wire = wire_field(entries);
    let DataType::Struct(children) = wire.data_type() else {
        return Arc::new(wire);
    };
    let children: Vec<FieldRef> = children
        .iter()
        .zip(["key", "value"])
        .map(|(child, name)| Arc::new(child.as_ref().clone().with_name(name)))
        .collect();
    let data_type = DataType::Struct(children.into());
    Arc::new(wire.with_name("entries").with_nullable(false).with_data_type(data_type))
}

/// Metadata of columns beyond their type name.
fn describe(data_type: &DataType, metadata: &mut HashMap<String, String>) {
    let text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8);
    metadata.insert(key("IS_AUTO_INCREMENT"), "0".to_owned());
    metadata.insert(key("IS_CASE_SENSITIVE"), if text { "1" } else { "0" }.to_owned());
    metadata.insert(key("IS_READ_ONLY"), "1".to_owned());
    metadata.insert(key("IS_SEARCHABLE"), "1".to_owned());
    let digits = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    // The width of the text form, as drivers compute it: "HH:MM:ss" with point and fraction.
    let clock = |unit: &TimeUnit| match digits(unit) {
        0 => 8,
        fraction => 9 + fraction,
    };
    let (precision, scale) = match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (Some(precision.to_string()), Some(scale.to_string()))
        }
        DataType::Time32(unit) | DataType::Time64(unit) => (Some(clock(unit).to_string()), Some(digits(unit).to_string())),
        DataType::Timestamp(unit, _) => (Some((11 + clock(unit)).to_string()), Some(digits(unit).to_string())),
        DataType::Date32 | DataType::Date64 => (Some("10".to_owned()), None),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => (Some(TEXT_SIZE.to_owned()), None),
        DataType::FixedSizeBinary(size) => (Some(size.to_string()), None),
        _ => (None, None),
    };
    if let Some(precision) = precision {
        metadata.insert(key("PRECISION"), precision);
    }
    if let Some(scale) = scale {
        metadata.insert(key("SCALE"), scale);
    }
}

/// The name of a type where no table says one: Iceberg's, else arrow's.
fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "tinyint".to_owned(),
        DataType::Int16 => "smallint".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 => "string".to_owned(),
        DataType::Binary | DataType::LargeBinary => "binary".to_owned(),
        DataType::FixedSizeBinary(size) => format!("fixed({size})"),
        DataType::Date32 | DataType::Date64 => "date".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "time".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "timestamp_ns".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => "timestamptz_ns".to_owned(),
        DataType::Timestamp(_, None) => "timestamp".to_owned(),
        DataType::Timestamp(_, Some(_)) => "timestamptz".to_owned(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => format!("decimal({precision},{scale})"),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("list<{}>", type_name(item.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|f| format!("{}: {}", f.name(), type_name(f.data_type())))
                .collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(children) if children.len() == 2 => {
                let children: Vec<String> = children.iter().map(|f| type_name(f.data_type())).collect();
                format!("map<{}>", children.join(", "))
            }
            _ => "map".to_owned(),
        },
        other => other.to_string().to_lowercase(),
    }
}

/// Brings a batch into the wire schema. Columns go by position.
///
/// Errors: `Internal` when the batch does not fit, for example a null in a column that was
/// announced without.
pub fn to_wire(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::internal(format!(
            "the result has {} columns, {} were announced",
            batch.num_columns(),
            schema.fields().len()
        )));
    }
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| convert(column, field.data_type()).context("column", || field.name().clone()))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// An array as another type that holds the same values. Nested types are taken apart here, since
/// the cast kernel does not rename fields.
fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    Ok(match (array.data_type(), to) {
        (DataType::Dictionary(_, value), _) => convert(&plain_cast(array, value)?, to)?,
        (DataType::RunEndEncoded(_, value), _) => convert(&plain_cast(array, value.data_type())?, to)?,
        (DataType::ListView(field), DataType::List(_)) => convert(&plain_cast(array, &DataType::List(Arc::clone(field)))?, to)?,
        (DataType::LargeListView(field), DataType::LargeList(_)) => {
            convert(&plain_cast(array, &DataType::LargeList(Arc::clone(field)))?, to)?
        }
        (DataType::List(_), DataType::List(field)) => {
            let list = array.as_list::<i32>();
            let values = convert(list.values(), field.data_type())?;
            Arc::new(ListArray::try_new(
                Arc::clone(field),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            )?)
        }
        (DataType::LargeList(_), DataType::LargeList(field)) => {
            let list = array.as_list::<i64>();
            let values = convert(list.values(), field.data_type())?;
            Arc::new(LargeListArray::try_new(
                Arc::clone(field),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            )?)
        }
        (DataType::FixedSizeList(_, from), DataType::FixedSizeList(field, size)) if from == size => {
            let list = array.as_fixed_size_list();
            let values = convert(list.values(), field.data_type())?;
            Arc::new(FixedSizeListArray::try_new(
                Arc::clone(field),
                *size,
                values,
                list.nulls().cloned(),
            )?)
        }
        (DataType::Struct(from), DataType::Struct(fields)) if from.len() == fields.len() => {
            let rows = array.as_struct();
            if fields.is_empty() {
                Arc::new(StructArray::new_empty_fields(rows.len(), rows.nulls().cloned()))
            } else {
                let columns = rows
                    .columns()
                    .iter()
                    .zip(fields)
                    .map(|(column, field)| convert(column, field.data_type()))
                    .collect::<Result<Vec<_>>>()?;
                Arc::new(StructArray::try_new(fields.clone(), columns, rows.nulls().cloned())?)
            }
        }
        (DataType::Map(_, _), DataType::Map(field, sorted)) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = convert(&entries, field.data_type())?;
            let entries = entries.as_struct().clone();
            Arc::new(MapArray::try_new(
                Arc::clone(field),
                map.offsets().clone(),
                entries,
                map.nulls().cloned(),
                *sorted,
            )?)
        }
        _ => plain_cast(array, to)?,
    })
}

/// The cast kernel, failing instead of making nulls.
fn plain_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..Default::default()
    };
    Ok(cast_with_options(array, to, &options)?)
}

#[cfg(test)]
mod tests;
