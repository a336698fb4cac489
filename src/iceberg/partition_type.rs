//! The partition struct that values of all partition specs fit (spec "Partition Evolution", as Iceberg's
//! metadata tables and its `_partition` column have it).
//!
//! Fields are told apart by their id: those of all specs whose source column the table still has, in
//! order of id, each under its newest name, optional. Where two of them have one name, which writers
//! allow to fields of different specs, the one of the newer spec keeps it and the other's id is added. Values of a spec are brought into that order by
//! field id; what a spec lacks is null.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::spec::{NestedField, PartitionField, PartitionSpec, StructType, TableMetadata, Transform, Type};
use crate::error::{Error, Result};

/// The unified partition type of a table; without fields for one that was never partitioned.
///
/// Errors: `Unsupported` for a transform that is not known, since its values have no known type;
/// `Corrupt` where two specs give one field id to different fields.
pub fn partition_type(metadata: &TableMetadata) -> Result<StructType> {
    let schema = metadata.current_schema()?;
    let mut specs: Vec<&Arc<PartitionSpec>> = metadata.partition_specs.iter().collect();
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id));
    // By id: the name of the newest spec, and the field that gives the type.
    let mut fields: BTreeMap<i32, (&str, &PartitionField)> = BTreeMap::new();
    for field in specs.iter().flat_map(|spec| &spec.fields) {
        if matches!(field.transform, Transform::Unknown(_)) {
            return Err(
                Error::unsupported(format!("partition values of transform {} have no known type", field.transform))
                    .with("partition_field", &field.name),
            );
        }
        if schema.field_by_id(field.source_id).is_none() {
            continue;
        }
        let known = fields.entry(field.field_id).or_insert((&field.name, field));
        let is_void = |field: &PartitionField| field.transform == Transform::Void;
        let same = known.1.transform == field.transform || is_void(known.1) || is_void(field);
        if known.1.source_id != field.source_id || !same {
            return Err(Error::corrupt(format!(
                "partition field id {} means both {} and {}",
                field.field_id, known.1.name, field.name
            )));
        }
        // A field that v1 dropped is void from then on; its values have the type it had.
        if is_void(known.1) && !is_void(field) {
            known.1 = field;
        }
    }
    // Which field has a name: that of the newest spec.
    let mut owners: HashMap<&str, i32> = HashMap::new();
    for field in specs.iter().flat_map(|spec| &spec.fields) {
        if fields.get(&field.field_id).is_some_and(|(name, _)| *name == field.name) {
            owners.entry(&field.name).or_insert(field.field_id);
        }
    }
    let fields = fields.into_iter().map(|(id, (name, field))| {
        let own = owners.get(name).is_none_or(|owner| *owner == id);
        let source = schema.field_by_id(field.source_id).map(|source| &source.field_type);
        let result = source.and_then(|source| field.transform.result_type(source));
        let result = result.ok_or_else(|| {
            Error::corrupt(format!("transform {} does not take the type of its column", field.transform)).with("partition_field", name)
        })?;
        Ok(Arc::new(NestedField {
            id,
            name: if own { name.to_owned() } else { format!("{name}_{id}") },
            required: false,
            field_type: Type::Primitive(result),
            doc: None,
            initial_default: None,
            write_default: None,
        }))
    });
    Ok(StructType {
        fields: fields.collect::<Result<_>>()?,
    })
}

/// For each field of the unified type, where its value is in a spec's values.
pub(super) fn positions(unified: &StructType, spec: &PartitionSpec) -> Vec<Option<usize>> {
    let position = |id: i32| spec.fields.iter().position(|field| field.field_id == id);
    unified.fields.iter().map(|field| position(field.id)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::ErrorKind;

    /// A table of `a int`, `b timestamp`, `c string` (ids 1 to 3) with these specs, oldest first.
    fn unified(specs: &[Value]) -> Result<Vec<String>> {
        let specs: Vec<Value> = specs
            .iter()
            .enumerate()
            .map(|(id, fields)| json!({"spec-id": id, "fields": fields}))
            .collect();
        let value = json!({
            "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
            "last-sequence-number": 0, "last-updated-ms": 1, "last-column-id": 3,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "a", "required": false, "type": "int"},
                {"id": 2, "name": "b", "required": false, "type": "timestamp"},
                {"id": 3, "name": "c", "required": false, "type": "string"}]}],
            "current-schema-id": 0, "partition-specs": specs, "default-spec-id": specs.len() - 1,
            "last-partition-id": 1010, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
            "properties": {}, "snapshots": []
        });
        let metadata = TableMetadata::from_bytes(value.to_string().as_bytes(), "m.json").unwrap();
        let fields = partition_type(&metadata)?.fields;
        Ok(fields.iter().map(|f| format!("{} {} {}", f.id, f.name, f.field_type)).collect())
    }

    fn field(id: i32, source: i32, name: &str, transform: &str) -> Value {
        json!({"field-id": id, "source-id": source, "name": name, "transform": transform})
    }

    #[test]
    fn fields_of_all_specs_in_order_of_id_under_their_newest_name() {
        let old = json!([field(1001, 3, "c", "identity"), field(1000, 1, "a", "identity")]);
        let new = json!([field(1002, 2, "b_day", "day"), field(1000, 1, "a_renamed", "identity")]);
        assert_eq!(
            unified(&[old, new]).unwrap(),
            ["1000 a_renamed int", "1001 c string", "1002 b_day date"]
        );
        assert!(unified(&[json!([])]).unwrap().is_empty());
    }

    #[test]
    fn a_field_that_v1_made_void_keeps_its_type_and_a_dropped_source_its_none() {
        let old = json!([field(1000, 1, "a_bucket", "bucket[4]"), field(1001, 9, "gone", "identity")]);
        let new = json!([field(1000, 1, "a_bucket", "void"), field(1001, 9, "gone", "void")]);
        assert_eq!(unified(&[old, new]).unwrap(), ["1000 a_bucket int"]);
    }

    #[test]
    fn of_two_fields_of_one_name_the_newer_keeps_it() {
        let old = json!([field(1000, 3, "c", "truncate[1]")]);
        let new = json!([field(1001, 3, "c", "truncate[2]")]);
        assert_eq!(unified(&[old, new]).unwrap(), ["1000 c_1000 string", "1001 c string"]);
    }

    #[test]
    fn what_has_no_type_is_refused() {
        let unknown = unified(&[json!([field(1000, 1, "z", "zorder")])]).unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::Unsupported);
        let clash = unified(&[json!([field(1000, 1, "a", "identity")]), json!([field(1000, 3, "c", "identity")])]);
        assert_eq!(clash.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
