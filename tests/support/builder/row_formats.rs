//! Rows as Avro and ORC files (spec "Appendix A").
//!
//! Avro records are encoded by `apache-avro`, ORC stripes by the writer of `orc-rust`; field ids,
//! which neither can write, are put in here: into the Avro schema, and into the ORC footer, which
//! is written anew. The ORC writer knows flat columns of the plainer types alone.

use apache_avro::types::Value as Avro;
use arrow::array::RecordBatch;
use orc_rust::ArrowWriterBuilder;
use prost::Message;
use serde_json::{Value, json};

use super::avro::{self, Codec, Container};
use super::types::{Field, Schema, Type};
use super::values::Scalar;

/// The rows as an Avro data file.
pub fn avro_file(schema: &Schema, rows: &[Vec<Value>], ids: bool, codec: Codec, block_rows: Option<usize>) -> Vec<u8> {
    let root = Type::Struct(schema.fields.clone());
    let json = avro_type(&root, "table", ids);
    let records: Vec<Avro> = rows
        .iter()
        .map(|row| {
            Avro::Record(
                schema
                    .fields
                    .iter()
                    .zip(row)
                    .map(|(f, v)| (avro::sanitised(&f.name), field_value(f, v)))
                    .collect(),
            )
        })
        .collect();
    let container = Container {
        codec,
        block_records: block_rows,
    };
    container.write(&json, &[], &records)
}

fn with_id(mut json: Value, key: &str, id: i32, ids: bool) -> Value {
    if ids {
        json[key] = json!(id);
    }
    json
}

fn field_type(field: &Field, ids: bool) -> Value {
    let of = avro_type(&field.field_type, &format!("r{}", field.id), ids);
    match (field.required, &field.field_type) {
        (true, _) | (_, Type::Unknown) => of,
        // null is first where a default of null is, and may be last
        (false, _) if field.id % 2 == 0 => json!([of, "null"]),
        (false, _) => json!(["null", of]),
    }
}

fn field_value(field: &Field, value: &Value) -> Avro {
    if field.field_type == Type::Unknown {
        return Avro::Null;
    }
    let null_last = u32::from(field.id % 2 == 0);
    match (field.required, value) {
        (true, value) => avro_value(&field.field_type, value),
        (false, Value::Null) => Avro::Union(null_last, Box::new(Avro::Null)),
        (false, value) => Avro::Union(1 - null_last, Box::new(avro_value(&field.field_type, value))),
    }
}

fn avro_type(of: &Type, name: &str, ids: bool) -> Value {
    let fixed = |size: usize| json!({"type": "fixed", "name": format!("fixed_{name}"), "size": size});
    let logical = |mut of: Value, name: &str| {
        of["logicalType"] = json!(name);
        of
    };
    let instant = |name: &str, utc: bool| json!({"type": "long", "logicalType": name, "adjust-to-utc": utc});
    match of {
        Type::Boolean => json!("boolean"),
        Type::Int => json!("int"),
        Type::Long => json!("long"),
        Type::Float => json!("float"),
        Type::Double => json!("double"),
        Type::Decimal(precision, scale) => {
            let mut of = logical(fixed(decimal_size(*precision)), "decimal");
            of["precision"] = json!(precision);
            of["scale"] = json!(scale);
            of
        }
        Type::Date => json!({"type": "int", "logicalType": "date"}),
        Type::Time => json!({"type": "long", "logicalType": "time-micros"}),
        Type::Timestamp => instant("timestamp-micros", false),
        Type::Timestamptz => instant("timestamp-micros", true),
        Type::TimestampNs => instant("timestamp-nanos", false),
        Type::TimestamptzNs => instant("timestamp-nanos", true),
        Type::String => json!("string"),
        Type::Uuid => logical(fixed(16), "uuid"),
        Type::Fixed(size) => fixed(*size as usize),
        Type::Binary => json!("bytes"),
        Type::Unknown => json!("null"),
        Type::Struct(fields) => json!({"type": "record", "name": name, "fields": fields.iter().map(|f| {
            with_id(json!({"name": avro::sanitised(&f.name), "type": field_type(f, ids)}), "field-id", f.id, ids)
        }).collect::<Vec<_>>()}),
        Type::List(element) => with_id(
            json!({"type": "array", "items": field_type(element, ids)}),
            "element-id",
            element.id,
            ids,
        ),
        Type::Map(key, value) if key.field_type == Type::String => {
            let map = json!({"type": "map", "values": field_type(value, ids)});
            with_id(with_id(map, "key-id", key.id, ids), "value-id", value.id, ids)
        }
        Type::Map(key, value) => json!({"type": "array", "logicalType": "map", "items": {
            "type": "record", "name": format!("k{}_v{}", key.id, value.id), "fields": [
                with_id(json!({"name": "key", "type": field_type(key, ids)}), "field-id", key.id, ids),
                with_id(json!({"name": "value", "type": field_type(value, ids)}), "field-id", value.id, ids),
            ],
        }}),
    }
}

fn avro_value(of: &Type, value: &Value) -> Avro {
    let items = || value.as_array().unwrap_or_else(|| panic!("{value} is no list"));
    match of {
        Type::Struct(fields) => Avro::Record(
            fields
                .iter()
                .map(|f| (avro::sanitised(&f.name), field_value(f, value.get(&f.name).unwrap_or(&Value::Null))))
                .collect(),
        ),
        Type::List(element) => Avro::Array(items().iter().map(|v| field_value(element, v)).collect()),
        Type::Map(key, to) if key.field_type == Type::String => Avro::Map(
            items()
                .iter()
                .map(|pair| (pair[0].as_str().expect("a text").to_owned(), field_value(to, &pair[1])))
                .collect(),
        ),
        Type::Map(key, to) => {
            let pair = |pair: &Value| avro::record([("key", field_value(key, &pair[0])), ("value", field_value(to, &pair[1]))]);
            Avro::Array(items().iter().map(pair).collect())
        }
        primitive => match Scalar::new(primitive, value).unwrap_or_else(|| panic!("null in a required field of {primitive:?}")) {
            Scalar::Bool(v) => Avro::Boolean(v),
            Scalar::Int(v) => Avro::Int(v),
            Scalar::Long(v) => Avro::Long(v),
            Scalar::Float(v) => Avro::Float(v),
            Scalar::Double(v) => Avro::Double(v),
            Scalar::Text(v) => Avro::String(v),
            Scalar::Bytes(v) if *primitive == Type::Binary => Avro::Bytes(v),
            Scalar::Bytes(v) => Avro::Fixed(v.len(), v),
            Scalar::Decimal(v) => {
                let Type::Decimal(precision, _) = primitive else {
                    unreachable!("a decimal")
                };
                let size = decimal_size(*precision);
                Avro::Fixed(size, v.to_be_bytes()[16 - size..].to_vec())
            }
        },
    }
}

/// Bytes that any number of so many digits fits into.
fn decimal_size(precision: u8) -> usize {
    let most = 10i128.pow(u32::from(precision)) - 1;
    (1..=16)
        .find(|n| *n == 16 || most < 1i128 << (8 * n - 1))
        .expect("16 bytes hold 38 digits")
}

/// The batch as an ORC file; `stripe_rows` rows per stripe.
pub fn orc_file(schema: &Schema, batch: &RecordBatch, ids: bool, stripe_rows: Option<usize>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = ArrowWriterBuilder::new(&mut file, batch.schema());
    if let Some(rows) = stripe_rows {
        writer = writer.with_batch_size(rows).with_stripe_byte_size(0);
    }
    let mut writer = writer.try_build().expect("columns that the ORC writer knows");
    writer.write(batch).expect("memory");
    writer.close().expect("memory");
    if ids {
        add_ids(schema, &mut file);
    }
    file
}

#[derive(Clone, PartialEq, Message)]
struct PostScript {
    #[prost(uint64, tag = "1")]
    footer_length: u64,
    #[prost(int32, tag = "2")]
    compression: i32,
    #[prost(uint64, optional, tag = "3")]
    block_size: Option<u64>,
    #[prost(uint32, repeated, tag = "4")]
    version: Vec<u32>,
    #[prost(uint64, optional, tag = "5")]
    metadata_length: Option<u64>,
    #[prost(string, tag = "8000")]
    magic: String,
}

#[derive(Clone, PartialEq, Message)]
struct Footer {
    #[prost(uint64, optional, tag = "1")]
    header_length: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    content_length: Option<u64>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    stripes: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "4")]
    types: Vec<OrcType>,
    #[prost(uint64, optional, tag = "6")]
    rows: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct OrcType {
    #[prost(int32, optional, tag = "1")]
    kind: Option<i32>,
    #[prost(uint32, repeated, tag = "2")]
    subtypes: Vec<u32>,
    #[prost(string, repeated, tag = "3")]
    names: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// Rewrites the tail of a file without compression with field ids.
fn add_ids(schema: &Schema, file: &mut Vec<u8>) {
    let length = usize::from(file.pop().expect("a file"));
    let mut postscript = PostScript::decode(&file.split_off(file.len() - length)[..]).expect("a postscript");
    assert_eq!(postscript.compression, 0, "the footer is not compressed");
    let footer = file.split_off(file.len() - usize::try_from(postscript.footer_length).unwrap());
    let mut footer = Footer::decode(&footer[..]).expect("a footer");
    for (field, of) in schema.fields.iter().zip(footer.types.iter_mut().skip(1)) {
        let pair = |key: &str, value: String| Pair {
            key: key.to_owned(),
            value,
        };
        of.attributes = vec![
            pair("iceberg.id", field.id.to_string()),
            pair("iceberg.required", field.required.to_string()),
        ];
    }
    let footer = footer.encode_to_vec();
    postscript.footer_length = footer.len() as u64;
    let postscript = postscript.encode_to_vec();
    file.extend(footer);
    file.extend(&postscript);
    file.push(u8::try_from(postscript.len()).expect("a short postscript"));
}
