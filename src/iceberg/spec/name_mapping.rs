//! Name mapping for files without field ids (spec "Column Projection", appendix C).
//!
//! A dot in a name is part of the name. A name maps to one id within its level.

use std::collections::HashSet;

use serde_json::Value;

use super::json::{Obj, clip};
use crate::error::{Error, Result, ResultExt};

/// A mapping from names in files to field ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameMapping {
    pub fields: Vec<MappedField>,
}

/// Names that a field goes by in files, with the mappings of its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedField {
    /// None for a field of files that the table does not have.
    pub id: Option<i32>,
    pub names: Vec<String>,
    pub fields: Vec<MappedField>,
}

impl NameMapping {
    /// Reads the text of the table property `schema.name-mapping.default`. Errors: `Corrupt`
    /// for text that is not a list of field mappings, and for one name with two ids.
    pub fn from_json(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).map_err(|e| Error::corrupt("name mapping is not valid JSON").with_source(e))?;
        let Value::Array(fields) = &value else {
            return Err(Error::corrupt("name mapping is not a JSON array"));
        };
        Ok(Self {
            fields: level_from_json(fields)?,
        })
    }
}

fn level_from_json(values: &[Value]) -> Result<Vec<MappedField>> {
    let fields: Vec<MappedField> = values.iter().map(field_from_json).collect::<Result<_>>()?;
    let mut names = HashSet::new();
    for field in fields.iter().filter(|field| field.id.is_some()) {
        if let Some(name) = field.names.iter().find(|name| !names.insert(name.as_str())) {
            return Err(Error::corrupt(format!("name mapping has the name `{}` twice", clip(name))));
        }
    }
    Ok(fields)
}

/// Recursion is bounded by the depth that the JSON parser accepts.
fn field_from_json(value: &Value) -> Result<MappedField> {
    let obj = Obj::new(value, "field mapping")?;
    let id = obj.opt_i32("field-id")?;
    let names = obj.opt_strings("names")?.unwrap_or_default();
    let fields = match obj.opt_array("fields")? {
        Some(fields) => level_from_json(fields).context("mapping", || names.first().cloned().unwrap_or_default())?,
        None => Vec::new(),
    };
    Ok(MappedField { id, names, fields })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_spec() {
        let mapping = NameMapping::from_json(
            r#"[ { "field-id": 1, "names": ["id", "record_id"] },
                 { "field-id": 2, "names": ["data"] },
                 { "field-id": 3, "names": ["location"], "fields": [
                     { "field-id": 4, "names": ["latitude", "lat"] },
                     { "field-id": 5, "names": ["longitude", "long"] } ] } ]"#,
        )
        .unwrap();
        assert_eq!(mapping.fields[0].names, ["id", "record_id"]);
        assert_eq!(
            mapping.fields[2].fields[1],
            MappedField {
                id: Some(5),
                names: vec!["longitude".into(), "long".into()],
                fields: Vec::new()
            }
        );
    }

    #[test]
    fn ids_and_names_may_be_missing() {
        let mapping = NameMapping::from_json(r#"[{"names": ["only_in_files"]}, {"field-id": 7, "names": []}, {"field-id": 8}]"#).unwrap();
        assert_eq!(mapping.fields[0].id, None);
        assert_eq!(mapping.fields[1].names.len() + mapping.fields[2].names.len(), 0);
    }

    #[test]
    fn broken_mappings_are_refused() {
        for text in [
            "",
            "{}",
            "[1]",
            r#"[{"field-id": "1"}]"#,
            r#"[{"field-id":1,"names":["a"]},{"field-id":2,"names":["a"]}]"#,
            r#"[{"names": [1]}]"#,
        ] {
            assert!(NameMapping::from_json(text).is_err(), "{text}");
        }
        let deep = "[{\"fields\":".repeat(5000);
        assert!(NameMapping::from_json(&deep).is_err());
    }
}
