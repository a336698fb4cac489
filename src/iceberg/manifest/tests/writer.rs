//! Writes manifests and manifest lists of any shape by way of the apache-avro crate.

use apache_avro::types::Value;
use apache_avro::{Codec, Schema, Writer};
use serde_json::{Value as Json, json};

/// How a writer may lay things out, which must make no difference.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::iceberg::manifest) struct Style {
    pub(in crate::iceberg::manifest) null_last: bool,
    pub(in crate::iceberg::manifest) reverse: bool,
    /// int where the specification has long; for values that fit.
    pub(in crate::iceberg::manifest) narrow: bool,
    /// long where the specification has int.
    pub(in crate::iceberg::manifest) wide: bool,
    /// Lists in several blocks with their sizes.
    pub(in crate::iceberg::manifest) blocks: bool,
}

/// A column of a record: its id, type and value.
#[derive(Debug, Clone)]
pub(in crate::iceberg::manifest) struct Column {
    id: i32,
    json: Json,
    nullable: bool,
    value: Option<Value>,
}

impl Column {
    /// Makes the column one that cannot be null.
    pub(in crate::iceberg::manifest) fn required(mut self) -> Self {
        self.nullable = false;
        self
    }

    /// The same column under another id.
    pub(in crate::iceberg::manifest) fn with_id(mut self, id: i32) -> Self {
        self.id = id;
        self
    }

    pub(in crate::iceberg::manifest) fn id(&self) -> i32 {
        self.id
    }
}

/// A column of any type that may be null.
pub(in crate::iceberg::manifest) fn column(id: i32, json: impl Into<Json>, value: Option<Value>) -> Column {
    Column {
        id,
        json: json.into(),
        nullable: true,
        value,
    }
}

pub(in crate::iceberg::manifest) fn text(id: i32, value: Option<&str>) -> Column {
    column(id, "string", value.map(|v| Value::String(v.to_owned())))
}

pub(in crate::iceberg::manifest) fn binary(id: i32, value: Option<&[u8]>) -> Column {
    column(id, "bytes", value.map(|v| Value::Bytes(v.to_vec())))
}

pub(in crate::iceberg::manifest) fn boolean(id: i32, value: Option<bool>) -> Column {
    column(id, "boolean", value.map(Value::Boolean))
}

impl Style {
    fn long_value(self, value: i64) -> Value {
        if self.narrow {
            Value::Int(i32::try_from(value).unwrap())
        } else {
            Value::Long(value)
        }
    }

    fn long_type(self) -> &'static str {
        if self.narrow { "int" } else { "long" }
    }

    fn int_value(self, value: i32) -> Value {
        if self.wide { Value::Long(value.into()) } else { Value::Int(value) }
    }

    fn int_type(self) -> &'static str {
        if self.wide { "long" } else { "int" }
    }

    pub(in crate::iceberg::manifest) fn long(self, id: i32, value: Option<i64>) -> Column {
        column(id, self.long_type(), value.map(|v| self.long_value(v)))
    }

    pub(in crate::iceberg::manifest) fn int(self, id: i32, value: Option<i32>) -> Column {
        column(id, self.int_type(), value.map(|v| self.int_value(v)))
    }

    pub(in crate::iceberg::manifest) fn longs(self, id: i32, element_id: i32, values: Option<&[i64]>) -> Column {
        let list = json!({"type": "array", "items": self.long_type(), "element-id": element_id});
        column(
            id,
            list,
            values.map(|v| Value::Array(v.iter().map(|v| self.long_value(*v)).collect())),
        )
    }

    pub(in crate::iceberg::manifest) fn ints(self, id: i32, element_id: i32, values: Option<&[i32]>) -> Column {
        let list = json!({"type": "array", "items": self.int_type(), "element-id": element_id});
        column(
            id,
            list,
            values.map(|v| Value::Array(v.iter().map(|v| self.int_value(*v)).collect())),
        )
    }

    /// A map of field ids to counts.
    pub(in crate::iceberg::manifest) fn counts(self, id: i32, key_id: i32, pairs: Option<&[(i32, i64)]>) -> Column {
        let pairs = pairs.map(|p| p.iter().map(|(k, v)| (*k, self.long_value(*v))).collect());
        self.map(id, key_id, self.long_type(), pairs)
    }

    /// A map of field ids to bounds.
    pub(in crate::iceberg::manifest) fn bounds(self, id: i32, key_id: i32, pairs: Option<&[(i32, Vec<u8>)]>) -> Column {
        let pairs = pairs.map(|p| p.iter().map(|(k, v)| (*k, Value::Bytes(v.clone()))).collect());
        self.map(id, key_id, "bytes", pairs)
    }

    fn map(self, id: i32, key_id: i32, json: &str, pairs: Option<Vec<(i32, Value)>>) -> Column {
        let pair = json!({"type": "record", "name": format!("k{key_id}_v{}", key_id + 1), "fields": [
            {"name": "key", "type": self.int_type(), "field-id": key_id},
            {"name": "value", "type": json, "field-id": key_id + 1}]});
        let list = json!({"type": "array", "items": pair, "logicalType": "map"});
        let record = |(key, value)| Value::Record(vec![("key".to_owned(), self.int_value(key)), ("value".to_owned(), value)]);
        column(id, list, pairs.map(|pairs| Value::Array(pairs.into_iter().map(record).collect())))
    }

    /// A record as type and value.
    pub(in crate::iceberg::manifest) fn record(self, name: &str, mut columns: Vec<Column>) -> (Json, Value) {
        let mut fields = Vec::new();
        let mut values = Vec::new();
        if self.reverse {
            columns.reverse();
        }
        let null_branch = u32::from(self.null_last);
        for Column { id, json, nullable, value } in columns {
            let name = format!("f{id}");
            let (json, value) = match (nullable, value) {
                (false, value) => (json, value.unwrap()),
                (true, value) => {
                    let union = if self.null_last {
                        json!([json, "null"])
                    } else {
                        json!(["null", json])
                    };
                    let (branch, value) = value.map_or((null_branch, Value::Null), |value| (1 - null_branch, value));
                    (union, Value::Union(branch, Box::new(value)))
                }
            };
            fields.push(json!({"name": name, "type": json, "field-id": id}));
            values.push((name, value));
        }
        (json!({"type": "record", "name": name, "fields": fields}), Value::Record(values))
    }

    /// A required column that is a record.
    pub(in crate::iceberg::manifest) fn nested(self, id: i32, name: &str, columns: Vec<Column>) -> Column {
        let (json, value) = self.record(name, columns);
        column(id, json, Some(value)).required()
    }

    /// A container file of rows that all have the same columns.
    #[allow(clippy::needless_pass_by_value, reason = "callers make the rows in place")]
    pub(in crate::iceberg::manifest) fn container(self, metadata: &[(&str, &str)], codec: Codec, rows: Vec<(Json, Value)>) -> Vec<u8> {
        let schema = Schema::parse(&rows[0].0).unwrap();
        let mut writer = Writer::builder()
            .schema(&schema)
            .writer(Vec::new())
            .codec(codec)
            .block_size(300)
            .maybe_map_array_target_block_size(self.blocks.then_some(2))
            .build()
            .unwrap();
        for (key, value) in metadata {
            writer.add_user_metadata((*key).to_owned(), value).unwrap();
        }
        for (json, value) in &rows {
            assert_eq!(*json, rows[0].0, "rows of different columns");
            writer.append_value_ref(value).unwrap();
        }
        writer.into_inner().unwrap()
    }
}

/// An entry with all fields of v3; each may be changed before it is written.
#[derive(Debug, Clone, Default)]
pub(in crate::iceberg::manifest) struct Entry {
    pub(in crate::iceberg::manifest) status: i32,
    pub(in crate::iceberg::manifest) snapshot_id: Option<i64>,
    pub(in crate::iceberg::manifest) sequence_number: Option<i64>,
    pub(in crate::iceberg::manifest) file_sequence_number: Option<i64>,
    pub(in crate::iceberg::manifest) content: i32,
    pub(in crate::iceberg::manifest) path: String,
    pub(in crate::iceberg::manifest) format: String,
    pub(in crate::iceberg::manifest) partition: Vec<Column>,
    pub(in crate::iceberg::manifest) record_count: i64,
    pub(in crate::iceberg::manifest) file_size: i64,
    pub(in crate::iceberg::manifest) column_sizes: Option<Vec<(i32, i64)>>,
    pub(in crate::iceberg::manifest) value_counts: Option<Vec<(i32, i64)>>,
    pub(in crate::iceberg::manifest) null_value_counts: Option<Vec<(i32, i64)>>,
    pub(in crate::iceberg::manifest) nan_value_counts: Option<Vec<(i32, i64)>>,
    pub(in crate::iceberg::manifest) lower_bounds: Option<Vec<(i32, Vec<u8>)>>,
    pub(in crate::iceberg::manifest) upper_bounds: Option<Vec<(i32, Vec<u8>)>>,
    pub(in crate::iceberg::manifest) key_metadata: Option<Vec<u8>>,
    pub(in crate::iceberg::manifest) split_offsets: Option<Vec<i64>>,
    pub(in crate::iceberg::manifest) equality_ids: Option<Vec<i32>>,
    pub(in crate::iceberg::manifest) sort_order_id: Option<i32>,
    pub(in crate::iceberg::manifest) first_row_id: Option<i64>,
    pub(in crate::iceberg::manifest) referenced: Option<String>,
    pub(in crate::iceberg::manifest) content_offset: Option<i64>,
    pub(in crate::iceberg::manifest) content_size: Option<i64>,
}

impl Entry {
    /// An added Parquet data file of 10 rows, everything inherited.
    pub(in crate::iceberg::manifest) fn added(path: &str) -> Self {
        Self {
            status: 1,
            path: path.to_owned(),
            format: "PARQUET".to_owned(),
            record_count: 10,
            file_size: 1000,
            ..Self::default()
        }
    }

    /// The same as a file that was there before, with sequence numbers of its own.
    pub(in crate::iceberg::manifest) fn existing(path: &str, sequence_number: i64) -> Self {
        Self {
            status: 0,
            sequence_number: Some(sequence_number),
            file_sequence_number: Some(sequence_number),
            ..Self::added(path)
        }
    }

    /// An added deletion vector.
    pub(in crate::iceberg::manifest) fn deletion_vector(path: &str) -> Self {
        Self {
            content: 1,
            format: "puffin".to_owned(),
            referenced: Some("file:/t/data/a.parquet".to_owned()),
            content_offset: Some(4),
            content_size: Some(44),
            ..Self::added(path)
        }
    }

    /// An added equality delete file with a key of column 1.
    pub(in crate::iceberg::manifest) fn equality_delete(path: &str) -> Self {
        Self {
            content: 2,
            equality_ids: Some(vec![1]),
            ..Self::added(path)
        }
    }

    /// The row of the file; `without` names columns that it does not have.
    pub(in crate::iceberg::manifest) fn row(&self, style: Style, without: &[i32]) -> (Json, Value) {
        self.row_with(style, Vec::new(), without)
    }

    /// The same with more columns of the data file.
    pub(in crate::iceberg::manifest) fn row_with(&self, style: Style, extra: Vec<Column>, without: &[i32]) -> (Json, Value) {
        let keep = |columns: Vec<Column>| columns.into_iter().filter(|c| !without.contains(&c.id())).collect::<Vec<_>>();
        let mut file = vec![
            style.int(134, Some(self.content)).required(),
            text(100, Some(&self.path)).required(),
            text(101, Some(&self.format)).required(),
            style.nested(102, "r102", self.partition.clone()),
            style.long(103, Some(self.record_count)).required(),
            style.long(104, Some(self.file_size)).required(),
            style.counts(108, 117, self.column_sizes.as_deref()),
            style.counts(109, 119, self.value_counts.as_deref()),
            style.counts(110, 121, self.null_value_counts.as_deref()),
            style.counts(137, 138, self.nan_value_counts.as_deref()),
            style.bounds(125, 126, self.lower_bounds.as_deref()),
            style.bounds(128, 129, self.upper_bounds.as_deref()),
            binary(131, self.key_metadata.as_deref()),
            style.longs(132, 133, self.split_offsets.as_deref()),
            style.ints(135, 136, self.equality_ids.as_deref()),
            style.int(140, self.sort_order_id),
            style.long(142, self.first_row_id),
            text(143, self.referenced.as_deref()),
            style.long(144, self.content_offset),
            style.long(145, self.content_size),
        ];
        file.extend(extra);
        let entry = vec![
            style.int(0, Some(self.status)).required(),
            style.long(1, self.snapshot_id),
            style.long(3, self.sequence_number),
            style.long(4, self.file_sequence_number),
            style.nested(2, "r2", keep(file)),
        ];
        style.record("manifest_entry", keep(entry))
    }
}

/// A manifest of these entries that says it is of format version 2.
pub(in crate::iceberg::manifest) fn manifest(entries: &[Entry]) -> Vec<u8> {
    let rows = entries.iter().map(|entry| entry.row(Style::default(), &[])).collect();
    Style::default().container(&[("format-version", "2")], Codec::Null, rows)
}
