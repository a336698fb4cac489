//! Manifests and manifest lists, v1 to v3 (spec "Manifests", "Manifest Lists").

use std::collections::BTreeMap;
use std::rc::Rc;

use apache_avro::types::Value as Avro;
use serde_json::{Value, json};

use super::avro::{self, Container, nullable, optional, record, required, sanitised};
use super::files::{Content, FileEntry, Stored};
use super::partition::PartitionSpec;
use super::types::{Schema, Type};
use super::values::Scalar;

/// An entry's status with the number that manifests give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStatus {
    Existing = 0,
    Added = 1,
    Deleted = 2,
}

/// A manifest entry.
#[derive(Debug, Clone)]
pub struct Entry {
    pub status: EntryStatus,
    pub snapshot_id: i64,
    /// `None` is written as null and inherits.
    pub sequence_number: Option<i64>,
    pub file_sequence_number: Option<i64>,
    /// First row id that is written; else it is inherited.
    pub first_row_id: Option<i64>,
    pub file: Rc<Stored>,
}

impl Entry {
    /// True unless the entry is DELETED.
    pub fn is_live(&self) -> bool {
        self.status != EntryStatus::Deleted
    }
}

/// A manifest as its list describes it, with its entries.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// As recorded.
    pub path: String,
    pub length: i64,
    /// Version of the manifest's own format.
    pub version: u8,
    pub spec_id: i32,
    pub deletes: bool,
    pub sequence_number: i64,
    pub snapshot_id: i64,
    /// Assigned when a list is written (v3, data manifests).
    pub first_row_id: Option<i64>,
    pub entries: Vec<Entry>,
}

impl Manifest {
    /// The data sequence number of an entry after inheritance.
    pub fn sequence_number_of(&self, entry: &Entry) -> i64 {
        if self.version == 1 {
            return 0;
        }
        entry.sequence_number.unwrap_or(self.sequence_number)
    }

    /// The first row id of an entry after inheritance.
    pub fn first_row_id_of(&self, index: usize) -> Option<i64> {
        let entry = &self.entries[index];
        if entry.first_row_id.is_some() {
            return entry.first_row_id;
        }
        let before = self.entries[..index].iter().filter(|e| e.is_live() && e.first_row_id.is_none());
        let rows: i64 = before.map(|e| e.file.entry.record_count).sum();
        Some(self.first_row_id? + rows)
    }

    /// (files, rows) of a status.
    fn counts(&self, status: EntryStatus) -> (i64, i64) {
        let of_status = self.entries.iter().filter(|e| e.status == status);
        of_status.fold((0, 0), |(files, rows), e| (files + 1, rows + e.file.entry.record_count))
    }

    /// Rows that get ids when the manifest gets its first row id.
    pub fn rows_for_ids(&self) -> i64 {
        self.counts(EntryStatus::Added).1 + self.counts(EntryStatus::Existing).1
    }
}

/// What manifests of a table share.
#[derive(Debug)]
pub struct Context<'a> {
    pub container: Container,
    pub schema: &'a Schema,
    /// All schemas of the table, oldest first.
    pub schemas: &'a [Schema],
    pub spec: &'a PartitionSpec,
}

impl Context<'_> {
    /// The bytes of a manifest.
    pub fn write(&self, manifest: &Manifest) -> Vec<u8> {
        let version = manifest.version;
        let types: Vec<(String, Type)> = self
            .spec
            .fields
            .iter()
            .map(|f| (sanitised(&f.name), f.result_type(self.schemas)))
            .collect();
        let schema = entry_schema(version, self.spec, &types);
        let mut metadata = vec![
            ("schema", self.schema.json().to_string()),
            ("schema-id", self.schema.id.to_string()),
            ("partition-spec", self.spec.fields_json().to_string()),
            ("partition-spec-id", self.spec.id.to_string()),
            ("format-version", version.to_string()),
        ];
        if version > 1 {
            metadata.push(("content", if manifest.deletes { "deletes" } else { "data" }.to_owned()));
        }
        let records: Vec<Avro> = manifest.entries.iter().map(|e| entry_record(version, e, &types)).collect();
        self.container.write(&schema, &metadata, &records)
    }
}

/// Field of the entry's `data_file` with the version that brought it.
struct FileField {
    since: u8,
    until: u8,
    schema: Value,
    value: fn(&Entry) -> Avro,
}

fn map_schema(key_id: i32, value_id: i32, value: &str) -> Value {
    json!({
        "type": "array",
        "logicalType": "map",
        "items": {
            "type": "record",
            "name": format!("k{key_id}_v{value_id}"),
            "fields": [required(key_id, "key", json!("int")), required(value_id, "value", json!(value))],
        },
    })
}

fn map_value<T: Clone>(map: &BTreeMap<i32, T>, wrap: fn(T) -> Avro) -> Avro {
    let pairs: Vec<Avro> = map
        .iter()
        .map(|(k, v)| record([("key", Avro::Int(*k)), ("value", wrap(v.clone()))]))
        .collect();
    nullable((!pairs.is_empty()).then_some(Avro::Array(pairs)))
}

fn file_fields() -> Vec<FileField> {
    let always = |schema, value| FileField {
        since: 1,
        until: 3,
        schema,
        value,
    };
    let since = |version, schema, value| FileField {
        since: version,
        ..always(schema, value)
    };
    let list = |id: i32, of: &str| json!({"type": "array", "items": of, "element-id": id});
    vec![
        since(2, required(134, "content", json!("int")), |e| {
            Avro::Int(e.file.entry.content as i32)
        }),
        always(required(100, "file_path", json!("string")), |e| {
            Avro::String(e.file.entry.path.clone())
        }),
        always(required(101, "file_format", json!("string")), |e| {
            Avro::String(e.file.entry.format.clone())
        }),
        // the partition (102) is written in its place by the caller
        always(Value::Null, |_| Avro::Null),
        always(required(103, "record_count", json!("long")), |e| {
            Avro::Long(e.file.entry.record_count)
        }),
        always(required(104, "file_size_in_bytes", json!("long")), |e| {
            Avro::Long(e.file.entry.size)
        }),
        FileField {
            until: 1,
            ..always(required(105, "block_size_in_bytes", json!("long")), |_| Avro::Long(64 << 20))
        },
        always(optional(109, "value_counts", map_schema(119, 120, "long")), |e| {
            map_value(&e.file.entry.metrics.value_counts, Avro::Long)
        }),
        always(optional(110, "null_value_counts", map_schema(121, 122, "long")), |e| {
            map_value(&e.file.entry.metrics.null_counts, Avro::Long)
        }),
        always(optional(137, "nan_value_counts", map_schema(138, 139, "long")), |e| {
            map_value(&e.file.entry.metrics.nan_counts, Avro::Long)
        }),
        always(optional(125, "lower_bounds", map_schema(126, 127, "bytes")), |e| {
            map_value(&e.file.entry.metrics.lower, Avro::Bytes)
        }),
        always(optional(128, "upper_bounds", map_schema(129, 130, "bytes")), |e| {
            map_value(&e.file.entry.metrics.upper, Avro::Bytes)
        }),
        always(optional(131, "key_metadata", json!("bytes")), |_| nullable(None)),
        always(optional(132, "split_offsets", list(133, "long")), |_| nullable(None)),
        since(2, optional(135, "equality_ids", list(136, "int")), |e| {
            let ids = e.file.entry.equality_ids.as_ref();
            nullable(ids.map(|ids| Avro::Array(ids.iter().map(|id| Avro::Int(*id)).collect())))
        }),
        always(optional(140, "sort_order_id", json!("int")), |_| nullable(None)),
        since(3, optional(142, "first_row_id", json!("long")), |e| {
            nullable(e.first_row_id.map(Avro::Long))
        }),
        since(2, optional(143, "referenced_data_file", json!("string")), |e| {
            nullable(e.file.entry.referenced_data_file.clone().map(Avro::String))
        }),
        since(3, optional(144, "content_offset", json!("long")), |e| {
            nullable(e.file.entry.content_offset.map(Avro::Long))
        }),
        since(3, optional(145, "content_size_in_bytes", json!("long")), |e| {
            nullable(e.file.entry.content_size.map(Avro::Long))
        }),
    ]
}

fn entry_schema(version: u8, spec: &PartitionSpec, types: &[(String, Type)]) -> Value {
    let partition: Vec<Value> = spec
        .fields
        .iter()
        .zip(types)
        .map(|(field, (name, of))| optional(field.field_id, name, partition_schema(field.field_id, of)))
        .collect();
    let file: Vec<Value> = file_fields()
        .into_iter()
        .filter(|f| (f.since..=f.until).contains(&version))
        .map(|f| match f.schema {
            Value::Null => required(102, "partition", json!({"type": "record", "name": "r102", "fields": partition})),
            schema => schema,
        })
        .collect();
    let mut fields = vec![required(0, "status", json!("int"))];
    if version == 1 {
        fields.push(required(1, "snapshot_id", json!("long")));
    } else {
        fields.push(optional(1, "snapshot_id", json!("long")));
        fields.push(optional(3, "sequence_number", json!("long")));
        fields.push(optional(4, "file_sequence_number", json!("long")));
    }
    fields.push(required(2, "data_file", json!({"type": "record", "name": "r2", "fields": file})));
    json!({"type": "record", "name": "manifest_entry", "fields": fields})
}

fn entry_record(version: u8, entry: &Entry, types: &[(String, Type)]) -> Avro {
    let partition = entry.file.entry.partition.iter().zip(types);
    let partition = partition.map(|(value, (name, of))| (name.clone(), nullable(value.as_ref().map(|v| partition_value(v, of)))));
    let mut partition = Some(Avro::Record(partition.collect()));
    let mut file = Vec::new();
    for field in file_fields().into_iter().filter(|f| (f.since..=f.until).contains(&version)) {
        match field.schema["name"].as_str() {
            Some(name) => file.push((name.to_owned(), (field.value)(entry))),
            None => file.push(("partition".to_owned(), partition.take().expect("one partition"))),
        }
    }
    let mut fields = vec![("status".to_owned(), Avro::Int(entry.status as i32))];
    let snapshot_id = Avro::Long(entry.snapshot_id);
    if version == 1 {
        fields.push(("snapshot_id".to_owned(), snapshot_id));
    } else {
        // an added entry inherits its snapshot, as writers that retry commits leave it
        let inherits = entry.status == EntryStatus::Added;
        fields.push(("snapshot_id".to_owned(), nullable((!inherits).then_some(snapshot_id))));
        fields.push(("sequence_number".to_owned(), nullable(entry.sequence_number.map(Avro::Long))));
        fields.push((
            "file_sequence_number".to_owned(),
            nullable(entry.file_sequence_number.map(Avro::Long)),
        ));
    }
    fields.push(("data_file".to_owned(), Avro::Record(file)));
    Avro::Record(fields)
}

/// Avro type of a partition value (spec appendix A); names hold the field id, since Avro names are unique.
fn partition_schema(field_id: i32, of: &Type) -> Value {
    let fixed = |size: usize| json!({"type": "fixed", "name": format!("fixed_{field_id}"), "size": size});
    let with = |mut schema: Value, logical: &str| {
        schema["logicalType"] = json!(logical);
        schema
    };
    match of {
        Type::Boolean => json!("boolean"),
        Type::Int => json!("int"),
        Type::Long => json!("long"),
        Type::Float => json!("float"),
        Type::Double => json!("double"),
        Type::Date => json!({"type": "int", "logicalType": "date"}),
        Type::Time => json!({"type": "long", "logicalType": "time-micros"}),
        Type::Timestamp => json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": false}),
        Type::Timestamptz => json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": true}),
        Type::TimestampNs => json!({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": false}),
        Type::TimestamptzNs => json!({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": true}),
        Type::String => json!("string"),
        Type::Binary => json!("bytes"),
        Type::Uuid => with(fixed(16), "uuid"),
        Type::Fixed(n) => fixed(usize::try_from(*n).expect("a width")),
        Type::Decimal(precision, scale) => {
            let mut schema = with(fixed(decimal_width(*precision)), "decimal");
            schema["precision"] = json!(precision);
            schema["scale"] = json!(scale);
            schema
        }
        other => panic!("{other:?} is no partition type"),
    }
}

fn partition_value(value: &Scalar, of: &Type) -> Avro {
    match (value, of) {
        (Scalar::Bool(v), _) => Avro::Boolean(*v),
        (Scalar::Int(v), _) => Avro::Int(*v),
        (Scalar::Long(v), _) => Avro::Long(*v),
        (Scalar::Float(v), _) => Avro::Float(*v),
        (Scalar::Double(v), _) => Avro::Double(*v),
        (Scalar::Text(v), _) => Avro::String(v.clone()),
        (Scalar::Bytes(v), Type::Binary) => Avro::Bytes(v.clone()),
        (Scalar::Bytes(v), _) => Avro::Fixed(v.len(), v.clone()),
        (Scalar::Decimal(v), Type::Decimal(precision, _)) => {
            let width = decimal_width(*precision);
            Avro::Fixed(width, v.to_be_bytes()[16 - width..].to_vec())
        }
        (Scalar::Decimal(_), other) => panic!("a decimal for {other:?}"),
    }
}

/// Bytes that hold every decimal of a precision.
fn decimal_width(precision: u8) -> usize {
    (1..=16)
        .find(|bytes| 10_i128.checked_pow(u32::from(precision)).expect("at most 38") <= 1_i128 << (8 * bytes - 1).min(126) || *bytes == 16)
        .expect("16 bytes hold all")
}

/// The bytes of a manifest list.
pub fn write_list(
    version: u8,
    container: Container,
    snapshot: &[(&str, String)],
    manifests: &[Manifest],
    types_of: &dyn Fn(i32) -> Vec<Type>,
) -> Vec<u8> {
    let counts = |added: &str, existing: &str, deleted: &str| [added, existing, deleted].map(str::to_owned);
    let [added_files, existing_files, deleted_files] = counts("added_files_count", "existing_files_count", "deleted_files_count");
    let [added_rows, existing_rows, deleted_rows] = counts("added_rows_count", "existing_rows_count", "deleted_rows_count");
    let summary = json!({"type": "record", "name": "r508", "fields": [
        required(509, "contains_null", json!("boolean")),
        optional(518, "contains_nan", json!("boolean")),
        optional(510, "lower_bound", json!("bytes")),
        optional(511, "upper_bound", json!("bytes")),
    ]});
    let count = |id, name: &str, of: &str| match version {
        1 => optional(id, name, json!(of)),
        _ => required(id, name, json!(of)),
    };
    let mut fields = vec![
        required(500, "manifest_path", json!("string")),
        required(501, "manifest_length", json!("long")),
        required(502, "partition_spec_id", json!("int")),
    ];
    if version > 1 {
        fields.push(required(517, "content", json!("int")));
        fields.push(required(515, "sequence_number", json!("long")));
        fields.push(required(516, "min_sequence_number", json!("long")));
    }
    fields.extend([
        required(503, "added_snapshot_id", json!("long")),
        count(504, &added_files, "int"),
        count(505, &existing_files, "int"),
        count(506, &deleted_files, "int"),
        count(512, &added_rows, "long"),
        count(513, &existing_rows, "long"),
        count(514, &deleted_rows, "long"),
        optional(507, "partitions", json!({"type": "array", "items": summary, "element-id": 508})),
        optional(519, "key_metadata", json!("bytes")),
    ]);
    if version > 2 {
        fields.push(optional(520, "first_row_id", json!("long")));
    }
    let schema = json!({"type": "record", "name": "manifest_file", "fields": fields});

    let records: Vec<Avro> = manifests
        .iter()
        .map(|m| {
            let [added, existing, deleted] =
                [EntryStatus::Added, EntryStatus::Existing, EntryStatus::Deleted].map(|status| m.counts(status));
            let maybe = |value: Avro| if version == 1 { nullable(Some(value)) } else { value };
            let files = |(files, _): (i64, i64)| maybe(Avro::Int(i32::try_from(files).expect("few files")));
            let rows = |(_, rows): (i64, i64)| maybe(Avro::Long(rows));
            let mut fields: Vec<(&str, Avro)> = vec![
                ("manifest_path", Avro::String(m.path.clone())),
                ("manifest_length", Avro::Long(m.length)),
                ("partition_spec_id", Avro::Int(m.spec_id)),
            ];
            if version > 1 {
                let live = m.entries.iter().filter(|e| e.is_live());
                let oldest = live.map(|e| m.sequence_number_of(e)).min().unwrap_or(m.sequence_number);
                fields.push(("content", Avro::Int(i32::from(m.deletes))));
                fields.push(("sequence_number", Avro::Long(if m.version == 1 { 0 } else { m.sequence_number })));
                fields.push(("min_sequence_number", Avro::Long(oldest)));
            }
            fields.extend([
                ("added_snapshot_id", Avro::Long(m.snapshot_id)),
                ("added_files_count", files(added)),
                ("existing_files_count", files(existing)),
                ("deleted_files_count", files(deleted)),
                ("added_rows_count", rows(added)),
                ("existing_rows_count", rows(existing)),
                ("deleted_rows_count", rows(deleted)),
                ("partitions", nullable(Some(summaries(m, &types_of(m.spec_id))))),
                ("key_metadata", nullable(None)),
            ]);
            if version > 2 {
                fields.push(("first_row_id", nullable(m.first_row_id.map(Avro::Long))));
            }
            Avro::Record(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
        .collect();
    container.write(&schema, snapshot, &records)
}

/// Summary of each partition field over the entries of a manifest.
fn summaries(manifest: &Manifest, types: &[Type]) -> Avro {
    let fields = types.iter().enumerate().map(|(i, _)| {
        let column: Vec<Option<&Scalar>> = manifest.entries.iter().map(|e| e.file.entry.partition[i].as_ref()).collect();
        let values = || column.iter().flatten().filter(|v| !v.is_nan());
        let bound = |value: Option<&&Scalar>| nullable(value.map(|v| Avro::Bytes(v.binary())));
        record([
            ("contains_null", Avro::Boolean(column.iter().any(Option::is_none))),
            (
                "contains_nan",
                nullable(Some(Avro::Boolean(column.iter().flatten().any(|v| v.is_nan())))),
            ),
            ("lower_bound", bound(values().min_by(|a, b| a.order(b)))),
            ("upper_bound", bound(values().max_by(|a, b| a.order(b)))),
        ])
    });
    Avro::Array(fields.collect())
}
