//! The partition struct of a manifest's entries: its Avro type and its values (spec "Partitioning",
//! "Appendix A: Avro").
//!
//! The type of a field is what its transform gives for the source column of today, or of the
//! newest schema that still had it. A value that is not of that type is refused.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::avro_schema::optional;
use crate::error::{Error, Result};
use crate::iceberg::avro::Encoder;
use crate::iceberg::manifest::parsed::source_types;
use crate::iceberg::spec::{Literal, PartitionSpec, PrimitiveType, TableMetadata, Transform};

/// One field of the partition struct.
#[derive(Debug)]
pub(super) struct PartitionColumn {
    field_id: i32,
    pub(super) name: String,
    /// `None` where no schema has the source column any more: then all values must be null.
    pub(super) primitive: Option<PrimitiveType>,
}

impl PartitionColumn {
    /// The columns of a spec.
    ///
    /// Errors: `Unsupported` for a transform that is not known, under which nothing may be committed.
    pub(super) fn of(spec: &PartitionSpec, metadata: &TableMetadata) -> Result<Vec<Self>> {
        let columns = spec.fields.iter().map(|field| {
            if let Transform::Unknown(text) = &field.transform {
                let message = format!("transform {text} is not known, so nothing can be written under this partition spec");
                return Err(Error::unsupported(message)
                    .with("partition field", &field.name)
                    .with("partition spec", spec.spec_id));
            }
            let types = source_types(metadata, field.source_id);
            Ok(Self {
                field_id: field.field_id,
                name: field.name.clone(),
                primitive: types.iter().find_map(|source| field.transform.result_type(source)),
            })
        });
        columns.collect()
    }

    /// The fields of the Avro record.
    pub(super) fn avro_fields(columns: &[Self]) -> Vec<Value> {
        let mut named = HashSet::new();
        let fields = columns.iter().map(|column| {
            let name = avro_name(&column.name);
            let mut field = match column.primitive.as_ref().filter(|p| **p != PrimitiveType::Unknown) {
                Some(primitive) => optional(column.field_id, &name, &avro_type(primitive, &mut named)),
                None => json!({"name": name, "type": "null", "default": null, "field-id": column.field_id}),
            };
            if name != column.name
                && let Some(field) = field.as_object_mut()
            {
                field.insert("iceberg-field-name".to_owned(), json!(column.name));
            }
            field
        });
        fields.collect()
    }

    /// Writes a value.
    ///
    /// Errors: `InvalidInput` for one of another type.
    pub(super) fn encode(&self, value: Option<&Literal>, out: &mut Encoder) -> Result<()> {
        let wrong = |value: &Literal| {
            let wanted = self.primitive.as_ref().map_or("unknown".to_owned(), PrimitiveType::to_string);
            Error::invalid(format!("partition value {value:?} is not of type {wanted}")).with("partition field", &self.name)
        };
        match (self.primitive.as_ref().filter(|p| **p != PrimitiveType::Unknown), value) {
            (None, None) => Ok(()),
            (None, Some(value)) => Err(wrong(value)),
            (Some(_), None) => {
                out.long(0);
                Ok(())
            }
            (Some(primitive), Some(value)) => {
                out.long(1);
                encode(primitive, value, out).ok_or_else(|| wrong(value))
            }
        }
    }
}

/// A name that Avro takes: letters, digits and underscores, no digit first. Others are spelt as
/// the reference implementation does.
fn avro_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (i, c) in name.chars().enumerate() {
        match c {
            'a'..='z' | 'A'..='Z' | '_' => out.push(c),
            '0'..='9' if i > 0 => out.push(c),
            '0'..='9' => {
                out.push('_');
                out.push(c);
            }
            _ => {
                // Java's characters: a code point beyond 16 bits is two of them.
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("_x{unit:X}"));
                }
            }
        }
    }
    if out.is_empty() { "_".to_owned() } else { out }
}

/// The Avro type; a named type that was defined before is referred to.
fn avro_type(primitive: &PrimitiveType, named: &mut HashSet<String>) -> Value {
    use PrimitiveType as P;
    let timestamp = |logical: &str, utc: bool| json!({"type": "long", "logicalType": logical, "adjust-to-utc": utc});
    match primitive {
        P::Boolean => json!("boolean"),
        P::Int => json!("int"),
        P::Long => json!("long"),
        P::Float => json!("float"),
        P::Double => json!("double"),
        P::Date => json!({"type": "int", "logicalType": "date"}),
        P::Time => json!({"type": "long", "logicalType": "time-micros"}),
        P::Timestamp => timestamp("timestamp-micros", false),
        P::Timestamptz => timestamp("timestamp-micros", true),
        P::TimestampNs => timestamp("timestamp-nanos", false),
        P::TimestamptzNs => timestamp("timestamp-nanos", true),
        P::String => json!("string"),
        P::Binary | P::Geometry { .. } | P::Geography { .. } => json!("bytes"),
        P::Unknown => json!("null"),
        P::Uuid => fixed("uuid_fixed".to_owned(), 16, &json!({"logicalType": "uuid"}), named),
        P::Fixed(size) => fixed(format!("fixed_{size}"), *size as usize, &json!({}), named),
        P::Decimal { precision, scale } => fixed(
            format!("decimal_{precision}_{scale}"),
            decimal_bytes(*precision),
            &json!({"logicalType": "decimal", "precision": precision, "scale": scale}),
            named,
        ),
    }
}

fn fixed(name: String, size: usize, attributes: &Value, named: &mut HashSet<String>) -> Value {
    if named.contains(&name) {
        return json!(name);
    }
    let mut fixed = json!({"type": "fixed", "name": name, "size": size});
    if let (Some(fixed), Some(attributes)) = (fixed.as_object_mut(), attributes.as_object()) {
        fixed.extend(attributes.clone());
    }
    named.insert(name);
    fixed
}

/// Bytes of the smallest fixed that holds every decimal of this precision.
fn decimal_bytes(precision: u8) -> usize {
    let largest = 10_i128.checked_pow(u32::from(precision)).map_or(i128::MAX, |power| power - 1);
    // One bit for the sign.
    let bits = 128 - largest.leading_zeros() as usize + 1;
    bits.div_ceil(8)
}

fn encode(primitive: &PrimitiveType, value: &Literal, out: &mut Encoder) -> Option<()> {
    use PrimitiveType as P;
    match (primitive, value) {
        (P::Boolean, Literal::Boolean(v)) => out.boolean(*v),
        (P::Int | P::Date, Literal::Int(v)) => out.long(i64::from(*v)),
        (P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs, Literal::Long(v)) => out.long(*v),
        (P::Float, Literal::Float(v)) => out.float(if v.is_nan() { f32::NAN } else { *v }),
        (P::Double, Literal::Double(v)) => out.double(if v.is_nan() { f64::NAN } else { *v }),
        (P::String, Literal::String(v)) => out.string(v),
        (P::Binary, Literal::Binary(v)) => out.bytes(v),
        (P::Uuid, Literal::Uuid(v)) => out.raw(v),
        (P::Fixed(size), Literal::Binary(v)) if v.len() == *size as usize => out.raw(v),
        (P::Decimal { precision, .. }, Literal::Decimal(v)) => {
            let fits = 10_u128
                .checked_pow(u32::from(*precision))
                .is_some_and(|bound| v.unsigned_abs() < bound);
            let bytes = v.to_be_bytes();
            out.raw(bytes.get(bytes.len().checked_sub(decimal_bytes(*precision))?..).filter(|_| fits)?);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_the_bytes_that_the_reference_implementation_gives_them() {
        let sizes = [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 4), (10, 5), (18, 8), (19, 9), (38, 16)];
        for (precision, size) in sizes {
            assert_eq!(decimal_bytes(precision), size, "decimal({precision})");
        }
    }

    #[test]
    fn names_that_avro_does_not_take_are_spelt_out() {
        for (name, spelt) in [
            ("id", "id"),
            ("a b", "a_x20b"),
            ("1st", "_1st"),
            ("ts.day", "ts_x2Eday"),
            ("ü", "_xFC"),
        ] {
            assert_eq!(avro_name(name), spelt);
        }
    }
}
