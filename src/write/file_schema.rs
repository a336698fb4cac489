//! The schema of the Parquet files of a table (spec appendix A, "Parquet"): physical and logical types, field
//! ids on every level, names as Iceberg Java writes them.
//!
//! Columns of type unknown are not stored. What cannot be written is refused by name before a row is taken.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use parquet::basic::{EdgeInterpolationAlgorithm, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{Type as ParquetType, TypePtr};

use crate::error::{Error, Result};
use crate::iceberg::arrow_columns;
use crate::iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
use crate::table::Column;

/// A column, or a field inside of one, as files store it.
#[derive(Debug)]
pub(super) struct FileColumn {
    pub(super) id: i32,
    /// From the column down, for messages.
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) kind: Kind,
    /// The arrow field of what is stored.
    pub(super) field: FieldRef,
}

/// What a column is made of.
#[derive(Debug)]
pub(super) enum Kind {
    Primitive(PrimitiveType),
    /// Fields in the order of the schema, those of type unknown included.
    Struct(Vec<FileColumn>),
    List(Box<FileColumn>),
    Map(Box<[FileColumn; 2]>),
}

/// The columns of a table's files.
#[derive(Debug)]
pub(super) struct FileSchema {
    /// In the order of the schema, those of type unknown included.
    pub(super) columns: Vec<FileColumn>,
    /// The stored columns as arrow has them.
    pub(super) arrow: SchemaRef,
    pub(super) parquet: TypePtr,
}

impl FileColumn {
    /// Whether files hold the column at all.
    pub(super) fn is_stored(&self) -> bool {
        !matches!(self.kind, Kind::Primitive(PrimitiveType::Unknown))
    }
}

impl FileSchema {
    /// Errors: `Unsupported` for a column that files cannot hold, naming it.
    pub(super) fn new(schema: &Schema) -> Result<Self> {
        let columns: Vec<FileColumn> = arrow_columns(schema)?
            .iter()
            .zip(schema.fields())
            .map(|(column, field)| file_column(column, field, ""))
            .collect::<Result<_>>()?;
        let stored: Vec<&FileColumn> = columns.iter().filter(|column| column.is_stored()).collect();
        if stored.is_empty() {
            return Err(Error::unsupported("a table without a column that files store cannot be written"));
        }
        let arrow = ArrowSchema::new(stored.iter().map(|column| Arc::clone(&column.field)).collect::<Fields>());
        let fields = parquet_fields(&columns)?;
        let parquet = ParquetType::group_type_builder("table").with_fields(fields).build()?;
        Ok(Self {
            columns,
            arrow: Arc::new(arrow),
            parquet: Arc::new(parquet),
        })
    }
}

fn file_column(column: &Column, field: &NestedField, above: &str) -> Result<FileColumn> {
    let name = if above.is_empty() {
        field.name.clone()
    } else {
        format!("{above}.{}", field.name)
    };
    let children = |fields: &[&NestedField]| -> Result<Vec<FileColumn>> {
        let pairs = column.children.iter().zip(fields);
        pairs.map(|(column, field)| file_column(column, field, &name)).collect()
    };
    let (kind, data_type) = match &field.field_type {
        Type::Primitive(primitive) => (Kind::Primitive(primitive.clone()), column.field.data_type().clone()),
        Type::Struct(of) => {
            let fields = children(&of.fields.iter().map(Arc::as_ref).collect::<Vec<_>>())?;
            let stored: Fields = fields.iter().filter(|f| f.is_stored()).map(|f| Arc::clone(&f.field)).collect();
            if stored.is_empty() {
                return Err(Error::unsupported("a struct without a field that files store cannot be written").with("column", name));
            }
            (Kind::Struct(fields), DataType::Struct(stored))
        }
        Type::List(list) => {
            let [element] = stored_parts(children(&[&list.element])?, &name)?;
            let data_type = DataType::List(Arc::clone(&element.field));
            (Kind::List(Box::new(element)), data_type)
        }
        Type::Map(map) => {
            let parts: [FileColumn; 2] = stored_parts(children(&[&map.key, &map.value])?, &name)?;
            let pair = DataType::Struct(parts.iter().map(|part| Arc::clone(&part.field)).collect());
            let data_type = DataType::Map(Arc::new(Field::new("key_value", pair, false)), false);
            (Kind::Map(Box::new(parts)), data_type)
        }
        Type::Variant => {
            return Err(Error::unsupported("a column of type variant cannot be written yet").with("column", name));
        }
    };
    let required = !column.field.is_nullable();
    Ok(FileColumn {
        id: field.id,
        required,
        kind,
        field: Arc::new(Field::new(&field.name, data_type, !required)),
        name,
    })
}

/// The element of a list, or key and value of a map, which files cannot do without.
fn stored_parts<const N: usize>(parts: Vec<FileColumn>, name: &str) -> Result<[FileColumn; N]> {
    if parts.iter().any(|part| !part.is_stored()) {
        return Err(Error::unsupported("a list or map of type unknown cannot be written").with("column", name));
    }
    parts
        .try_into()
        .map_err(|_| Error::internal("a list or map has other parts than its type"))
}

fn parquet_fields(columns: &[FileColumn]) -> Result<Vec<TypePtr>> {
    let mut names = HashSet::new();
    let stored = columns.iter().filter(|column| column.is_stored());
    let fields = stored.map(|column| {
        let mut name = compatible_name(column.field.name());
        if !names.insert(name.clone()) {
            // Readers go by id; within a file names must differ all the same.
            name = format!("{name}_{}", column.id);
            names.insert(name.clone());
        }
        parquet_type(column, &name)
            .map(Arc::new)
            .map_err(|e| e.with("column", &column.name))
    });
    fields.collect()
}

fn parquet_type(column: &FileColumn, name: &str) -> Result<ParquetType> {
    let repetition = if column.required {
        Repetition::REQUIRED
    } else {
        Repetition::OPTIONAL
    };
    let group = |name| {
        ParquetType::group_type_builder(name)
            .with_repetition(repetition)
            .with_id(Some(column.id))
    };
    let repeated = |name, fields| {
        let builder = ParquetType::group_type_builder(name).with_repetition(Repetition::REPEATED);
        builder.with_fields(fields).build().map(Arc::new)
    };
    Ok(match &column.kind {
        Kind::Primitive(primitive) => primitive_type(primitive, name, repetition, column.id)?,
        Kind::Struct(fields) => group(name).with_fields(parquet_fields(fields)?).build()?,
        Kind::List(element) => {
            let element = Arc::new(parquet_type(element, "element")?);
            let list = group(name).with_logical_type(Some(LogicalType::List));
            list.with_fields(vec![repeated("list", vec![element])?]).build()?
        }
        Kind::Map(parts) => {
            let [key, value] = parts.as_ref();
            let parts = vec![Arc::new(parquet_type(key, "key")?), Arc::new(parquet_type(value, "value")?)];
            let map = group(name).with_logical_type(Some(LogicalType::Map));
            map.with_fields(vec![repeated("key_value", parts)?]).build()?
        }
    })
}

fn primitive_type(primitive: &PrimitiveType, name: &str, repetition: Repetition, id: i32) -> Result<ParquetType> {
    use PrimitiveType as P;
    let (physical, logical, length) = match primitive {
        P::Boolean => (Physical::BOOLEAN, None, None),
        P::Int => (Physical::INT32, None, None),
        P::Long => (Physical::INT64, None, None),
        P::Float => (Physical::FLOAT, None, None),
        P::Double => (Physical::DOUBLE, None, None),
        P::Date => (Physical::INT32, Some(LogicalType::Date), None),
        P::Time => (Physical::INT64, Some(LogicalType::time(false, TimeUnit::MICROS)), None),
        P::Timestamp => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::MICROS)), None),
        P::Timestamptz => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS)), None),
        P::TimestampNs => (Physical::INT64, Some(LogicalType::timestamp(false, TimeUnit::NANOS)), None),
        P::TimestamptzNs => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS)), None),
        P::String => (Physical::BYTE_ARRAY, Some(LogicalType::String), None),
        P::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid), Some(16)),
        P::Fixed(length) => {
            let length = i32::try_from(*length).map_err(|_| Error::unsupported(format!("fixed[{length}] cannot be written")))?;
            (Physical::FIXED_LEN_BYTE_ARRAY, None, Some(length))
        }
        P::Binary => (Physical::BYTE_ARRAY, None, None),
        P::Geometry { crs } => (Physical::BYTE_ARRAY, Some(LogicalType::geometry(Some(crs.clone()))), None),
        P::Geography { crs, algorithm } => {
            let algorithm = edges(algorithm)?;
            (
                Physical::BYTE_ARRAY,
                Some(LogicalType::geography(Some(crs.clone()), Some(algorithm))),
                None,
            )
        }
        P::Decimal { precision, scale } => {
            let logical = Some(LogicalType::decimal(i32::from(*scale), i32::from(*precision)));
            match precision {
                0..=9 => (Physical::INT32, logical, None),
                10..=18 => (Physical::INT64, logical, None),
                _ => (Physical::FIXED_LEN_BYTE_ARRAY, logical, Some(decimal_bytes(*precision))),
            }
        }
        P::Unknown => return Err(Error::internal("type unknown is not stored")),
    };
    let mut builder = ParquetType::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_id(Some(id))
        .with_logical_type(logical);
    if let P::Decimal { precision, scale } = primitive {
        builder = builder.with_precision(i32::from(*precision)).with_scale(i32::from(*scale));
    }
    if let Some(length) = length {
        builder = builder.with_length(length);
    }
    Ok(builder.build()?)
}

fn edges(algorithm: &str) -> Result<EdgeInterpolationAlgorithm> {
    use EdgeInterpolationAlgorithm as E;
    let known = [E::SPHERICAL, E::VINCENTY, E::THOMAS, E::ANDOYER, E::KARNEY];
    let found = known.into_iter().find(|known| known.to_string().eq_ignore_ascii_case(algorithm));
    found.ok_or_else(|| Error::unsupported(format!("edges by `{algorithm}` cannot be written")))
}

/// Bytes that hold every signed number of so many digits.
fn decimal_bytes(precision: u8) -> i32 {
    let largest = 10_u128.checked_pow(u32::from(precision)).map_or(u128::MAX, |power| power - 1);
    let bits = 128 - largest.leading_zeros() + 1;
    i32::try_from(bits.div_ceil(8)).unwrap_or(16)
}

/// A name that Avro takes too, which Iceberg Java asks of all files: other characters are escaped.
fn compatible_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.chars().enumerate() {
        match c {
            '_' => out.push(c),
            c if c.is_alphabetic() || (at > 0 && c.is_numeric()) => out.push(c),
            c if c.is_ascii_digit() => {
                out.push('_');
                out.push(c);
            }
            c => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("_x{unit:X}"));
                }
            }
        }
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use parquet::schema::printer::print_schema;
    use serde_json::{Value, json};

    use super::*;

    fn schema(fields: &Value) -> Result<String> {
        let schema = Schema::from_json(&json!({"type": "struct", "fields": fields})).unwrap();
        let files = FileSchema::new(&schema)?;
        let mut out = Vec::new();
        print_schema(&mut out, &files.parquet);
        Ok(String::from_utf8(out).unwrap())
    }

    fn one(name: &str) -> Result<String> {
        let printed = schema(&json!([{"id": 1, "name": "c", "required": false, "type": name}]))?;
        Ok(printed.lines().nth(1).unwrap().trim().to_owned())
    }

    #[test]
    fn types_are_those_of_the_specification() {
        for (name, stored) in [
            ("boolean", "OPTIONAL BOOLEAN c [1];"),
            ("int", "OPTIONAL INT32 c [1];"),
            ("long", "OPTIONAL INT64 c [1];"),
            ("decimal(9,2)", "OPTIONAL INT32 c [1] (DECIMAL(9,2));"),
            ("decimal(10,2)", "OPTIONAL INT64 c [1] (DECIMAL(10,2));"),
            ("decimal(19,0)", "OPTIONAL FIXED_LEN_BYTE_ARRAY (9) c [1] (DECIMAL(19,0));"),
            ("decimal(38,18)", "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) c [1] (DECIMAL(38,18));"),
            ("date", "OPTIONAL INT32 c [1] (DATE);"),
            ("time", "OPTIONAL INT64 c [1] (TIME(MICROS,false));"),
            ("timestamp", "OPTIONAL INT64 c [1] (TIMESTAMP(MICROS,false));"),
            ("timestamptz", "OPTIONAL INT64 c [1] (TIMESTAMP(MICROS,true));"),
            ("timestamp_ns", "OPTIONAL INT64 c [1] (TIMESTAMP(NANOS,false));"),
            ("timestamptz_ns", "OPTIONAL INT64 c [1] (TIMESTAMP(NANOS,true));"),
            ("string", "OPTIONAL BYTE_ARRAY c [1] (STRING);"),
            ("uuid", "OPTIONAL FIXED_LEN_BYTE_ARRAY (16) c [1] (UUID);"),
            ("fixed[3]", "OPTIONAL FIXED_LEN_BYTE_ARRAY (3) c [1];"),
            ("binary", "OPTIONAL BYTE_ARRAY c [1];"),
        ] {
            assert_eq!(one(name).unwrap(), stored, "{name}");
        }
    }

    #[test]
    fn widths_of_decimals_are_minimal() {
        for (precision, bytes) in [
            (19, 9),
            (21, 9),
            (22, 10),
            (23, 10),
            (24, 11),
            (28, 12),
            (31, 13),
            (33, 14),
            (35, 15),
            (36, 16),
            (38, 16),
        ] {
            assert_eq!(decimal_bytes(precision), bytes, "{precision}");
        }
    }

    #[test]
    fn nested_fields_have_ids_and_conventional_names() {
        let printed = schema(&json!([
            {"id": 1, "name": "l", "required": true, "type": {"type": "list", "element-id": 2, "element-required": false, "element": "int"}},
            {"id": 3, "name": "m", "required": false, "type": {"type": "map", "key-id": 4, "key": "string", "value-id": 5,
                "value-required": true, "value": {"type": "struct", "fields": [
                    {"id": 6, "name": "a b", "required": false, "type": "date"},
                    {"id": 7, "name": "nothing", "required": false, "type": "unknown"}]}}}
        ]))
        .unwrap();
        let expected = "message table {
  REQUIRED group l [1] (LIST) {
    REPEATED group list {
      OPTIONAL INT32 element [2];
    }
  }
  OPTIONAL group m [3] (MAP) {
    REPEATED group key_value {
      REQUIRED BYTE_ARRAY key [4] (STRING);
      REQUIRED group value [5] {
        OPTIONAL INT32 a_x20b [6] (DATE);
      }
    }
  }
}
";
        assert_eq!(printed, expected);
    }

    #[test]
    fn names_are_escaped_as_for_avro() {
        for (name, stored) in [
            ("a", "a"),
            ("_1", "_1"),
            ("1a", "_1a"),
            ("a-b", "a_x2Db"),
            ("ü", "ü"),
            ("🦀", "_xD83E_xDD80"),
            ("a.b", "a_x2Eb"),
        ] {
            assert_eq!(compatible_name(name), stored);
        }
        let printed = schema(&json!([
            {"id": 1, "name": "a b", "required": false, "type": "int"},
            {"id": 2, "name": "a_x20b", "required": false, "type": "int"}
        ]));
        assert!(printed.unwrap().contains("INT32 a_x20b_2 [2]"));
    }

    #[test]
    fn what_files_cannot_hold_is_refused_by_name() {
        let variant = json!([{"id": 1, "name": "s", "required": false, "type": {"type": "struct", "fields": [
            {"id": 2, "name": "v", "required": false, "type": "variant"}]}}]);
        let list = json!([{"id": 1, "name": "l", "required": false,
            "type": {"type": "list", "element-id": 2, "element-required": false, "element": "unknown"}}]);
        let nothing = json!([{"id": 1, "name": "u", "required": false, "type": "unknown"}]);
        for (fields, named) in [(variant, "s.v"), (list, "l"), (nothing, "")] {
            let error = schema(&fields).unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
