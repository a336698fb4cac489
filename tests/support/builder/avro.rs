//! Avro object container files for manifests and manifest lists.
//!
//! `apache-avro` encodes the records and compresses the blocks. The container itself is framed
//! here, because the header must hold the schema word for word: field ids and logical types
//! that the library does not know would be lost on the way through its own schema type.

use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{Codec as Library, DeflateSettings, ZstandardSettings};
use serde_json::{Value, json};

const SYNC: [u8; 16] = *b"sandur-test-sync";

/// Compression of Avro blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    Null,
    #[default]
    Deflate,
    Snappy,
    Zstd,
}

impl Codec {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Zstd => "zstandard",
        }
    }

    fn library(self) -> Library {
        match self {
            Self::Null => Library::Null,
            Self::Deflate => Library::Deflate(DeflateSettings::default()),
            Self::Snappy => Library::Snappy,
            Self::Zstd => Library::Zstandard(ZstandardSettings::default()),
        }
    }
}

/// How container files are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Container {
    pub codec: Codec,
    /// Records per block; all in one block when `None`.
    pub block_records: Option<usize>,
}

impl Container {
    /// A container file of these records; `metadata` goes into the header beside schema and codec.
    pub fn write(&self, schema: &Value, metadata: &[(&str, String)], records: &[Avro]) -> Vec<u8> {
        let encoding = apache_avro::Schema::parse(&without_logical_types(schema)).expect("a valid Avro schema");
        let writer = GenericDatumWriter::builder(&encoding).build().expect("a schema without open names");
        let mut file = b"Obj\x01".to_vec();
        let own = [("avro.schema", schema.to_string()), ("avro.codec", self.codec.name().to_owned())];
        let entries: Vec<_> = own.iter().chain(metadata).collect();
        long(entries.len() as i64, &mut file);
        for (key, value) in entries {
            bytes(key.as_bytes(), &mut file);
            bytes(value.as_bytes(), &mut file);
        }
        long(0, &mut file);
        file.extend(SYNC);
        for block in records.chunks(self.block_records.unwrap_or(usize::MAX).max(1)) {
            let mut data = Vec::new();
            for record in block {
                writer.write_value_ref(&mut data, record).expect("the record fits its schema");
            }
            self.codec.library().compress(&mut data).expect("compression in memory");
            long(block.len() as i64, &mut file);
            bytes(&data, &mut file);
            file.extend(SYNC);
        }
        file
    }
}

/// Zigzag and base 128.
fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push((rest as u8 & 0x7f) | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    long(value.len() as i64, out);
    out.extend(value);
}

/// The schema in plain types: the same encoding, and values need no wrapping.
fn without_logical_types(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| *key != "logicalType");
            Value::Object(kept.map(|(k, v)| (k.clone(), without_logical_types(v))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_logical_types).collect()),
        other => other.clone(),
    }
}

/// A required field of a record schema.
pub fn required(id: i32, name: &str, of: Value) -> Value {
    let mut field = json!({"name": name, "field-id": id});
    field["type"] = of;
    field
}

/// An optional field of a record schema.
pub fn optional(id: i32, name: &str, of: Value) -> Value {
    let mut field = json!({"name": name, "default": null, "field-id": id});
    field["type"] = Value::Array(vec![json!("null"), of]);
    field
}

/// An Avro name for a column name: characters that Avro refuses are spelled by their code point.
pub fn sanitised(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        match c {
            'a'..='z' | 'A'..='Z' | '_' => out.push(c),
            '0'..='9' if i > 0 => out.push(c),
            '0'..='9' => {
                out.push('_');
                out.push(c);
            }
            other => out.push_str(&format!("_x{:X}", u32::from(other))),
        }
    }
    out
}

/// A value of a union of null and one type.
pub fn nullable(value: Option<Avro>) -> Avro {
    match value {
        None => Avro::Union(0, Box::new(Avro::Null)),
        Some(value) => Avro::Union(1, Box::new(value)),
    }
}

/// A record of named values.
pub fn record<const N: usize>(fields: [(&str, Avro); N]) -> Avro {
    Avro::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_read_back_by_the_library() {
        let schema = json!({"type": "record", "name": "r", "fields": [
            required(1, "a", json!("long")),
            optional(2, "m", json!({"type": "array", "logicalType": "map", "items":
                {"type": "record", "name": "k1_v2", "fields": [required(3, "key", json!("int")), required(4, "value", json!("bytes"))]}})),
        ]});
        let records: Vec<Avro> = (0..10)
            .map(|i| {
                let pair = record([("key", Avro::Int(i)), ("value", Avro::Bytes(vec![7; 3]))]);
                record([
                    ("a", Avro::Long(i64::from(i) - 5)),
                    ("m", nullable((i % 2 == 0).then(|| Avro::Array(vec![pair])))),
                ])
            })
            .collect();
        for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstd] {
            let container = Container {
                codec,
                block_records: Some(3),
            };
            let file = container.write(&schema, &[("content", "data".to_owned())], &records);
            let reader = apache_avro::Reader::new(&file[..]).unwrap();
            assert_eq!(reader.user_metadata()["content"], b"data");
            let read: Vec<Avro> = reader.map(Result::unwrap).collect();
            assert_eq!(read, records, "{codec:?}");
        }
    }

    #[test]
    fn names_are_spelled_as_avro_allows() {
        assert_eq!(sanitised("data#1"), "data_x231");
        assert_eq!(sanitised("1st"), "_1st");
    }
}
