//! The name of a partition, `a=1/b_bucket=3`, as summaries and folders of data files have it.

use super::human::human;
use super::spec::{Literal, PartitionSpec, PrimitiveType, Schema};

/// The path of these values of a spec; empty for a spec without fields. `schema` gives the types of the sources.
pub fn partition_path(spec: &PartitionSpec, schema: &Schema, values: &[Option<Literal>]) -> String {
    let parts = spec.fields.iter().zip(values).map(|(field, value)| {
        let source = schema.field_by_id(field.source_id).map(|source| &source.field_type);
        let primitive = source.and_then(|source| field.transform.result_type(source));
        let text = human(&field.transform, &primitive.unwrap_or(PrimitiveType::Unknown), value.as_ref());
        format!("{}={}", escaped(&field.name), escaped(&text))
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Text as HTML forms encode it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn text_is_encoded_as_in_forms() {
        assert_eq!(escaped("a b/ü=1"), "a+b%2F%C3%BC%3D1");
        assert_eq!(escaped("2017-12-01T10:12:55"), "2017-12-01T10%3A12%3A55");
    }
}
