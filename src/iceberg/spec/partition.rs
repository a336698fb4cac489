//! Partition specs and partition values (spec "Partitioning", appendix C).
//!
//! Values are positional: value `i` belongs to field `i` of the spec with the entry's spec id,
//! also where the source column has been dropped since.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::json::Obj;
use super::{Literal, Transform};
use crate::error::{Error, Result, ResultExt};

/// Id of the first partition field where ids are not written (v1).
pub const FIRST_PARTITION_FIELD_ID: i32 = 1000;

/// A partition field: transform of one source column (several in v3 multi-argument transforms).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The first or only source column.
    pub source_id: i32,
    /// All source columns; one, except for multi-argument transforms, which are refused for pruning and kept for reading.
    pub source_ids: Vec<i32>,
    pub field_id: i32,
    pub name: String,
    /// [`Transform::Unknown`] where there are several source columns, whatever the name: the
    /// transforms known here take one.
    pub transform: Transform,
}

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    pub spec_id: i32,
    pub fields: Vec<PartitionField>,
}

/// A partition's values in the order of the spec's fields; shared by all entries of the partition.
pub type PartitionValues = Arc<[Option<Literal>]>;

impl PartitionSpec {
    /// Reads a spec, or the bare array of fields of v1 (spec id 0). Field ids that are absent
    /// count up from [`FIRST_PARTITION_FIELD_ID`]; a spec with ids for only some fields is `Corrupt`.
    pub fn from_json(value: &Value) -> Result<Self> {
        if let Value::Array(fields) = value {
            return Ok(Self {
                spec_id: 0,
                fields: fields_from_json(fields).context("spec", || 0)?,
            });
        }
        let obj = Obj::new(value, "partition spec")?;
        let spec_id = obj.i32("spec-id")?;
        let fields = fields_from_json(obj.array("fields")?).context("spec", || spec_id)?;
        Ok(Self { spec_id, fields })
    }

    /// The JSON form (v2 and later).
    pub fn to_json(&self) -> Value {
        let fields = self.fields.iter().map(|field| {
            let mut obj = Map::new();
            insert_source(&mut obj, field.source_id, &field.source_ids);
            obj.insert("field-id".to_owned(), json!(field.field_id));
            obj.insert("name".to_owned(), json!(field.name));
            obj.insert("transform".to_owned(), json!(field.transform.to_string()));
            Value::Object(obj)
        });
        json!({ "spec-id": self.spec_id, "fields": fields.collect::<Vec<_>>() })
    }

    /// Whether the spec has no field that divides data: none at all, or only void ones.
    pub fn is_unpartitioned(&self) -> bool {
        self.fields.iter().all(|field| field.transform == Transform::Void)
    }
}

fn fields_from_json(values: &[Value]) -> Result<Vec<PartitionField>> {
    let mut fields = Vec::with_capacity(values.len());
    let mut with_id = 0;
    for (value, next_id) in values.iter().zip(FIRST_PARTITION_FIELD_ID..) {
        let obj = Obj::new(value, "partition field")?;
        let name = obj.str("name")?;
        let field_id = obj.opt_i32("field-id").context("field", || name)?;
        with_id += usize::from(field_id.is_some());
        let (source_id, source_ids, transform) = source_and_transform(&obj).context("field", || name)?;
        fields.push(PartitionField {
            source_id,
            source_ids,
            field_id: field_id.unwrap_or(next_id),
            name: name.to_owned(),
            transform,
        });
    }
    if with_id != 0 && with_id != fields.len() {
        return Err(Error::corrupt(format!(
            "partition spec has field ids for only {with_id} of its {} fields",
            fields.len()
        )));
    }
    Ok(fields)
}

/// The source columns and the transform of a partition or sort field.
pub(super) fn source_and_transform(obj: &Obj<'_>) -> Result<(i32, Vec<i32>, Transform)> {
    let text = obj.str("transform")?;
    let several = obj.opt_ints("source-ids")?.filter(|ids| !ids.is_empty());
    let source_ids = match several {
        Some(ids) => ids,
        None => vec![obj.i32("source-id")?],
    };
    let first = source_ids.first().copied().unwrap_or_default();
    let source_id = obj.opt_i32("source-id")?.unwrap_or(first);
    let transform = if source_ids.len() == 1 {
        text.parse()?
    } else {
        Transform::Unknown(text.to_owned())
    };
    Ok((source_id, source_ids, transform))
}

/// Writes `source-id` for one source column and `source-ids` for several, as v3 asks.
pub(super) fn insert_source(obj: &mut Map<String, Value>, source_id: i32, source_ids: &[i32]) {
    if source_ids.len() > 1 {
        obj.insert("source-ids".to_owned(), json!(source_ids));
    } else {
        obj.insert("source-id".to_owned(), json!(source_id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_spec_comes_back() {
        let value = json!({"spec-id": 0, "fields": [
            {"source-id": 4, "field-id": 1000, "name": "ts_day", "transform": "day"},
            {"source-id": 1, "field-id": 1001, "name": "id_bucket", "transform": "bucket[16]"}
        ]});
        let spec = PartitionSpec::from_json(&value).unwrap();
        assert_eq!(spec.to_json(), value);
        assert_eq!(spec.fields[1].transform, Transform::Bucket(16));
        assert_eq!(spec.fields[0].source_ids, [4]);
        assert!(!spec.is_unpartitioned());
    }

    #[test]
    fn a_bare_array_without_ids_counts_from_1000() {
        let spec = PartitionSpec::from_json(&json!([
            {"name": "a", "transform": "identity", "source-id": 1},
            {"name": "b", "transform": "void", "source-id": 2}
        ]))
        .unwrap();
        assert_eq!(spec.spec_id, 0);
        assert_eq!(spec.fields.iter().map(|f| f.field_id).collect::<Vec<_>>(), [1000, 1001]);
        let mixed = json!([{"name": "a", "transform": "identity", "source-id": 1, "field-id": 1000}, {"name": "b", "transform": "void", "source-id": 2}]);
        assert!(
            PartitionSpec::from_json(&mixed)
                .unwrap_err()
                .message()
                .contains("only 1 of its 2 fields")
        );
    }

    #[test]
    fn several_source_columns_are_kept_and_never_look_like_a_known_transform() {
        let value = json!({"spec-id": 1, "fields": [{"source-ids": [1, 2], "field-id": 1000, "name": "b", "transform": "bucket[4]"}]});
        let spec = PartitionSpec::from_json(&value).unwrap();
        assert_eq!(spec.to_json(), value);
        assert_eq!(spec.fields[0].source_id, 1);
        assert_eq!(spec.fields[0].transform, Transform::Unknown("bucket[4]".to_owned()));
        let single = json!({"spec-id": 1, "fields": [{"source-ids": [7], "field-id": 1000, "name": "b", "transform": "bucket[4]"}]});
        let single = PartitionSpec::from_json(&single).unwrap();
        assert_eq!(
            (single.fields[0].source_id, &single.fields[0].transform),
            (7, &Transform::Bucket(4))
        );
    }

    #[test]
    fn void_fields_do_not_partition() {
        let spec = |transforms: &[&str]| {
            let fields: Vec<_> = transforms
                .iter()
                .map(|t| json!({"source-id": 1, "field-id": 1000, "name": t, "transform": t}))
                .collect();
            PartitionSpec::from_json(&json!({"spec-id": 0, "fields": fields})).unwrap()
        };
        assert!(spec(&[]).is_unpartitioned());
        assert!(spec(&["void", "void"]).is_unpartitioned());
        assert!(!spec(&["void", "identity"]).is_unpartitioned());
        assert!(!spec(&["zorder"]).is_unpartitioned());
    }

    #[test]
    fn fields_without_source_or_transform_are_refused() {
        for field in [
            json!({"field-id": 1000, "name": "a", "transform": "identity"}),
            json!({"source-ids": [], "field-id": 1000, "name": "a", "transform": "identity"}),
            json!({"source-id": 1, "field-id": 1000, "name": "a"}),
            json!({"source-id": 1, "field-id": 1000, "transform": "identity"}),
            json!({"source-id": 1, "field-id": 1000, "name": "a", "transform": "bucket[0]"}),
        ] {
            assert!(PartitionSpec::from_json(&json!({"spec-id": 0, "fields": [field]})).is_err());
        }
        assert!(PartitionSpec::from_json(&json!({"fields": []})).is_err());
    }
}
