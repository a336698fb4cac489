//! Sort orders (spec "Sorting", appendix C). Readers need none of this to return right rows.

use serde_json::{Map, Value, json};

use super::Transform;
use super::json::{Obj, clip};
use super::partition::{insert_source, source_and_transform};
use crate::error::{Error, Result, ResultExt};

/// A sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortOrder {
    /// 0 is the unsorted order.
    pub order_id: i32,
    pub fields: Vec<SortField>,
}

/// One field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// The first or only source column.
    pub source_id: i32,
    /// All source columns; one, except for multi-argument transforms.
    pub source_ids: Vec<i32>,
    /// [`Transform::Unknown`] where there are several source columns.
    pub transform: Transform,
    pub descending: bool,
    pub nulls_first: bool,
}

impl SortOrder {
    /// The order of a table that declares none.
    pub fn unsorted() -> Self {
        Self {
            order_id: 0,
            fields: Vec::new(),
        }
    }

    /// Reads a sort order. Errors: `Corrupt`.
    pub fn from_json(value: &Value) -> Result<Self> {
        let obj = Obj::new(value, "sort order")?;
        let order_id = obj.i32("order-id")?;
        let fields: Result<_> = obj.array("fields")?.iter().map(field_from_json).collect();
        Ok(Self {
            order_id,
            fields: fields.context("sort order", || order_id)?,
        })
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        let fields = self.fields.iter().map(|field| {
            let mut obj = Map::new();
            obj.insert("transform".to_owned(), json!(field.transform.to_string()));
            insert_source(&mut obj, field.source_id, &field.source_ids);
            obj.insert("direction".to_owned(), json!(if field.descending { "desc" } else { "asc" }));
            obj.insert(
                "null-order".to_owned(),
                json!(if field.nulls_first { "nulls-first" } else { "nulls-last" }),
            );
            Value::Object(obj)
        });
        json!({ "order-id": self.order_id, "fields": fields.collect::<Vec<_>>() })
    }
}

fn field_from_json(value: &Value) -> Result<SortField> {
    let obj = Obj::new(value, "sort field")?;
    let (source_id, source_ids, transform) = source_and_transform(&obj)?;
    Ok(SortField {
        source_id,
        source_ids,
        transform,
        descending: one_of(&obj, "direction", "desc", "asc")?,
        nulls_first: one_of(&obj, "null-order", "nulls-first", "nulls-last")?,
    })
}

/// Whether the key holds `yes` rather than `no`; anything else is an error.
fn one_of(obj: &Obj<'_>, key: &str, yes: &str, no: &str) -> Result<bool> {
    let text = obj.str(key)?;
    if text.eq_ignore_ascii_case(yes) {
        Ok(true)
    } else if text.eq_ignore_ascii_case(no) {
        Ok(false)
    } else {
        Err(Error::corrupt(format!(
            "`{key}` of sort field must be `{yes}` or `{no}`, not `{}`",
            clip(text)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_spec_comes_back() {
        let value = json!({"order-id": 1, "fields": [
            {"transform": "identity", "source-id": 2, "direction": "asc", "null-order": "nulls-first"},
            {"transform": "bucket[4]", "source-id": 3, "direction": "desc", "null-order": "nulls-last"}
        ]});
        let order = SortOrder::from_json(&value).unwrap();
        assert_eq!(order.to_json(), value);
        assert!(!order.fields[0].descending && order.fields[0].nulls_first);
        assert!(order.fields[1].descending && !order.fields[1].nulls_first);
    }

    #[test]
    fn directions_that_are_not_known_are_refused() {
        let order = |direction: &str| {
            let field = json!({"transform": "identity", "source-id": 2, "direction": direction, "null-order": "nulls-first"});
            SortOrder::from_json(&json!({"order-id": 1, "fields": [field]}))
        };
        assert!(order("ASC").is_ok());
        assert!(order("up").is_err());
    }
}
