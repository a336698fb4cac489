//! How much a table wants to know of each column: `write.metadata.metrics.*`.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Error, Result};
use crate::iceberg::spec::{Schema, SortOrder, Transform, Type};

const DEFAULT_PROPERTY: &str = "write.metadata.metrics.default";
const COLUMN_PREFIX: &str = "write.metadata.metrics.column.";
const INFERRED_PROPERTY: &str = "write.metadata.metrics.max-inferred-column-defaults";
const INFERRED_DEFAULT: usize = 100;
const DEFAULT_MODE: MetricsMode = MetricsMode::Bounds(16);

/// What a manifest entry says of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsMode {
    None,
    Counts,
    /// Counts and bounds of at most so many characters or bytes.
    Bounds(usize),
}

/// The mode of each field.
#[derive(Debug)]
pub(super) struct MetricsModes {
    fields: HashMap<i32, MetricsMode>,
    /// Of fields that are not in the table's schema.
    others: MetricsMode,
}

impl MetricsModes {
    /// The modes that a table's properties give its fields.
    ///
    /// Errors: `InvalidInput` for a mode or number that is none, naming the property.
    pub(super) fn new(schema: &Schema, properties: &BTreeMap<String, String>, order: &SortOrder) -> Result<Self> {
        let mut modes = HashMap::new();
        let default = match properties.get(DEFAULT_PROPERTY) {
            Some(text) => mode(DEFAULT_PROPERTY, text)?,
            None => {
                let inferred = inferred_columns(properties)?;
                if schema.fields().len() <= inferred {
                    DEFAULT_MODE
                } else {
                    for field in schema.fields().iter().take(inferred) {
                        set_below(field.id, &field.field_type, DEFAULT_MODE, &mut modes);
                    }
                    MetricsMode::None
                }
            }
        };
        // A column that files are sorted by prunes well: it is never without bounds by default.
        let sorted = match default {
            MetricsMode::Bounds(_) => default,
            _ => DEFAULT_MODE,
        };
        let keeps_order = |transform: &Transform| !matches!(transform, Transform::Bucket(_) | Transform::Void | Transform::Unknown(_));
        for field in order.fields.iter().filter(|field| keeps_order(&field.transform)) {
            modes.insert(field.source_id, sorted);
        }
        let mut all = HashMap::new();
        for field in schema.fields() {
            set_below(field.id, &field.field_type, default, &mut all);
        }
        for (id, own) in &mut all {
            let property = schema.full_name(*id).map(|name| format!("{COLUMN_PREFIX}{name}"));
            if let Some((name, text)) = property.and_then(|name| properties.get_key_value(&name)) {
                *own = mode(name, text)?;
            } else if let Some(known) = modes.get(id) {
                *own = *known;
            }
        }
        Ok(Self {
            fields: all,
            others: default,
        })
    }

    /// Counts and whole bounds of every field.
    pub(super) fn full() -> Self {
        Self {
            fields: HashMap::new(),
            others: MetricsMode::Bounds(usize::MAX),
        }
    }

    /// The mode of a field.
    pub(super) fn of(&self, id: i32) -> MetricsMode {
        self.fields.get(&id).copied().unwrap_or(self.others)
    }
}

fn set_below(id: i32, field_type: &Type, mode: MetricsMode, modes: &mut HashMap<i32, MetricsMode>) {
    modes.insert(id, mode);
    match field_type {
        Type::Primitive(_) | Type::Variant => {}
        Type::Struct(fields) => {
            for field in &fields.fields {
                set_below(field.id, &field.field_type, mode, modes);
            }
        }
        Type::List(list) => set_below(list.element.id, &list.element.field_type, mode, modes),
        Type::Map(map) => {
            for field in [&map.key, &map.value] {
                set_below(field.id, &field.field_type, mode, modes);
            }
        }
    }
}

fn inferred_columns(properties: &BTreeMap<String, String>) -> Result<usize> {
    match properties.get(INFERRED_PROPERTY) {
        None => Ok(INFERRED_DEFAULT),
        Some(text) => text.trim().parse().map_err(|e| {
            Error::invalid(format!("property {INFERRED_PROPERTY} is \"{text}\", which is no number of columns")).with_source(e)
        }),
    }
}

fn mode(property: &str, text: &str) -> Result<MetricsMode> {
    let lower = text.trim().to_ascii_lowercase();
    let length = |inner: &str| inner.trim().parse().ok().filter(|length| *length > 0);
    let known = match lower.as_str() {
        "none" => Some(MetricsMode::None),
        "counts" => Some(MetricsMode::Counts),
        "full" => Some(MetricsMode::Bounds(usize::MAX)),
        other => other
            .strip_prefix("truncate(")
            .and_then(|rest| rest.strip_suffix(')'))
            .and_then(length)
            .map(MetricsMode::Bounds),
    };
    known.ok_or_else(|| {
        Error::invalid(format!(
            "property {property} is \"{text}\": it must be none, counts, truncate(n) or full"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn modes(columns: i32, properties: &[(&str, &str)], sorted_by: Option<(i32, Transform)>) -> Result<MetricsModes> {
        let mut fields: Vec<_> = (1..=columns)
            .map(|id| json!({"id": id, "name": format!("c{id}"), "required": false, "type": "int"}))
            .collect();
        fields.push(
            json!({"id": 900, "name": "s", "required": false, "type": {"type": "struct", "fields": [
            {"id": 901, "name": "inner", "required": false, "type": "int"}]}}),
        );
        let schema = Schema::from_json(&json!({"type": "struct", "fields": fields})).unwrap();
        let mut order = SortOrder::unsorted();
        if let Some((source_id, transform)) = sorted_by {
            order.fields.push(crate::iceberg::spec::SortField {
                source_id,
                source_ids: vec![source_id],
                transform,
                descending: false,
                nulls_first: true,
            });
        }
        let properties = properties.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        MetricsModes::new(&schema, &properties, &order)
    }

    #[test]
    fn columns_have_the_default_or_their_own() {
        let all = modes(
            3,
            &[
                ("write.metadata.metrics.column.c2", "FULL"),
                ("write.metadata.metrics.column.s.inner", "none"),
            ],
            None,
        )
        .unwrap();
        assert_eq!(all.of(1), MetricsMode::Bounds(16));
        assert_eq!(all.of(2), MetricsMode::Bounds(usize::MAX));
        assert_eq!(all.of(901), MetricsMode::None);
        let all = modes(3, &[("write.metadata.metrics.default", "truncate(4)")], None).unwrap();
        assert_eq!((all.of(1), all.of(901)), (MetricsMode::Bounds(4), MetricsMode::Bounds(4)));
    }

    #[test]
    fn wide_tables_have_metrics_of_the_first_columns() {
        let all = modes(120, &[], None).unwrap();
        assert_eq!(
            (all.of(100), all.of(101), all.of(901)),
            (MetricsMode::Bounds(16), MetricsMode::None, MetricsMode::None)
        );
        let limit = ("write.metadata.metrics.max-inferred-column-defaults", "2");
        let all = modes(3, &[limit], None).unwrap();
        assert_eq!((all.of(2), all.of(3)), (MetricsMode::Bounds(16), MetricsMode::None));
        // A default that was set is for all of them.
        let all = modes(3, &[limit, ("write.metadata.metrics.default", "counts")], None).unwrap();
        assert_eq!(all.of(3), MetricsMode::Counts);
    }

    #[test]
    fn columns_of_the_sort_order_have_bounds() {
        let counts = [("write.metadata.metrics.default", "counts")];
        let all = modes(3, &counts, Some((3, Transform::Truncate(2)))).unwrap();
        assert_eq!((all.of(2), all.of(3)), (MetricsMode::Counts, MetricsMode::Bounds(16)));
        let all = modes(3, &counts, Some((3, Transform::Bucket(2)))).unwrap();
        assert_eq!(all.of(3), MetricsMode::Counts);
    }

    #[test]
    fn modes_that_are_none_are_refused() {
        for text in ["some", "truncate(0)", "truncate(x)", "truncate"] {
            let error = modes(1, &[("write.metadata.metrics.column.c1", text)], None).unwrap_err();
            assert!(error.message().contains("write.metadata.metrics.column.c1"), "{error}");
        }
    }
}
