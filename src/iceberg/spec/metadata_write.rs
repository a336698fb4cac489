//! Writing of table metadata files (spec "Table Metadata", appendix C).
//!
//! Lossless: metadata that grew out of a file keeps the file's JSON wherever the value did not
//! change, with keys that are not known here and in the order they had.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{PartitionSpec, Schema, Snapshot, TableMetadata};
use crate::error::{Error, Result};

/// How a metadata file is compressed (`write.metadata.compression-codec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataCompression {
    #[default]
    None,
    Gzip,
}

impl MetadataCompression {
    /// Table property that names it.
    pub const PROPERTY: &'static str = "write.metadata.compression-codec";

    /// What the table asks for.
    ///
    /// Errors: `InvalidInput` for a codec that is not known.
    pub fn of(metadata: &TableMetadata) -> Result<Self> {
        match metadata.properties.get(Self::PROPERTY) {
            None => Ok(Self::None),
            Some(name) if name.eq_ignore_ascii_case("none") => Ok(Self::None),
            Some(name) if name.eq_ignore_ascii_case("gzip") => Ok(Self::Gzip),
            Some(name) => Err(Error::invalid(format!(
                "property {} is \"{name}\"; it must be none or gzip",
                Self::PROPERTY
            ))),
        }
    }

    /// What a file's name ends with; readers go by it.
    pub fn file_ending(self) -> &'static str {
        match self {
            Self::None => ".metadata.json",
            Self::Gzip => ".gz.metadata.json",
        }
    }
}

impl TableMetadata {
    /// The JSON with the keys that are not known here, in the order they had.
    pub fn to_json_bytes(&self) -> Vec<u8> {
        self.raw.as_bytes().to_vec()
    }

    /// The bytes of a metadata file.
    pub fn to_file_bytes(&self, compression: MetadataCompression) -> Result<Vec<u8>> {
        let json = self.to_json_bytes();
        match compression {
            MetadataCompression::None => Ok(json),
            MetadataCompression::Gzip => {
                let failed = |e| Error::internal("cannot compress table metadata").with_source(e);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(&json).map_err(failed)?;
                encoder.finish().map_err(failed)
            }
        }
    }
}

/// The JSON of `table`, which grew out of `base` (none for a new table).
pub(super) fn render(table: &TableMetadata, base: Option<&TableMetadata>) -> Result<String> {
    let old = base.map(TableMetadata::raw_object).transpose()?.unwrap_or_default();
    // What may be long is written anew, element by element; the keys keep their places.
    let raw = old.iter().map(|(key, value)| {
        let is_list = matches!(key.as_str(), "snapshots" | "snapshot-log" | "metadata-log");
        (key.clone(), if is_list { Value::Null } else { value.clone() })
    });
    let raw = raw.collect();
    let rendered = Renderer {
        table,
        base,
        old: &old,
        raw,
    }
    .render()?;
    serde_json::to_string(&rendered).map_err(|e| Error::internal("cannot write table metadata").with_source(e))
}

struct Renderer<'a> {
    table: &'a TableMetadata,
    base: Option<&'a TableMetadata>,
    /// The base's members; empty without one.
    old: &'a Map<String, Value>,
    raw: Map<String, Value>,
}

impl<'a> Renderer<'a> {
    /// Sets a key, in its old place if it had one.
    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.raw.insert(key.to_owned(), value.into());
    }

    fn remove(&mut self, key: &str) {
        self.raw.shift_remove(key);
    }

    /// Element `at` of an array of the base's JSON.
    fn old(&self, key: &str, at: Option<usize>) -> Option<&'a Value> {
        self.old.get(key)?.as_array()?.get(at?)
    }

    /// Whether the table leaves v1, whose JSON may lack what later versions require.
    fn leaves_v1(&self) -> bool {
        self.table.format_version > 1 && self.base.is_some_and(|base| base.format_version == 1)
    }

    fn render(mut self) -> Result<Map<String, Value>> {
        let table = self.table;
        let is_v1 = table.format_version == 1;
        self.set("format-version", table.format_version);
        if let Some(uuid) = table.table_uuid {
            self.set("table-uuid", uuid.hyphenated().to_string());
        }
        self.set("location", table.location.as_str());
        if is_v1 {
            self.remove("last-sequence-number");
        } else {
            self.set("last-sequence-number", table.last_sequence_number);
        }
        self.set("last-updated-ms", table.last_updated_ms);
        self.set("last-column-id", table.last_column_id);
        self.schemas()?;
        self.partition_specs();
        let orders = table.sort_orders.iter().map(|order| {
            let at = self.base.and_then(|base| base.sort_orders.iter().position(|old| old == order));
            self.old("sort-orders", at).cloned().unwrap_or_else(|| order.to_json())
        });
        let orders: Vec<Value> = orders.collect();
        self.set("default-sort-order-id", table.default_sort_order_id);
        self.set("sort-orders", orders);
        if self.base.is_none_or(|base| base.properties != table.properties) {
            self.set("properties", json!(table.properties));
        }
        self.current_snapshot();
        if table.format_version > 2 {
            self.set("next-row-id", table.next_row_id.unwrap_or(0));
        }
        self.refs();
        self.snapshots();
        self.logs();
        Ok(self.raw)
    }

    /// A schema as it was, with the id that v1 may leave out.
    fn schema(&self, schema: &Arc<Schema>) -> Result<Value> {
        let Some(base) = self.base else { return schema.to_json() };
        let Some(at) = base.schemas.iter().position(|old| Arc::ptr_eq(old, schema)) else {
            return schema.to_json();
        };
        let listed = self.old("schemas", Some(at));
        match listed.or_else(|| self.old.get("schema")) {
            Some(Value::Object(old)) => {
                let mut old = old.clone();
                if (listed.is_none() || self.leaves_v1()) && !old.contains_key("schema-id") {
                    old.insert("schema-id".to_owned(), json!(schema.schema_id()));
                }
                Ok(Value::Object(old))
            }
            _ => schema.to_json(),
        }
    }

    fn schemas(&mut self) -> Result<()> {
        let table = self.table;
        let schemas: Vec<Value> = table.schemas.iter().map(|schema| self.schema(schema)).collect::<Result<_>>()?;
        if table.format_version == 1 {
            let current = table.schemas.iter().position(|s| s.schema_id() == table.current_schema_id);
            let was = self.base.and_then(|base| base.current_schema().ok());
            let is_new = current.and_then(|at| table.schemas.get(at)) != was || !self.raw.contains_key("schema");
            if let Some(schema) = current.and_then(|at| schemas.get(at)).filter(|_| is_new) {
                self.set("schema", schema.clone());
            }
        } else {
            self.remove("schema");
        }
        self.set("current-schema-id", table.current_schema_id);
        self.set("schemas", schemas);
        Ok(())
    }

    /// A partition spec as it was, with the field ids that v1 may leave out.
    fn spec(&self, spec: &Arc<PartitionSpec>) -> Value {
        let Some(base) = self.base else { return spec.to_json() };
        let Some(at) = base.partition_specs.iter().position(|old| Arc::ptr_eq(old, spec)) else {
            return spec.to_json();
        };
        let listed = self.old("partition-specs", Some(at));
        if let Some(listed) = listed.filter(|_| !self.leaves_v1()) {
            return listed.clone();
        }
        // Before there were several specs, v1 had the fields of the one alone.
        let bare = || {
            self.old
                .get("partition-spec")
                .map(|fields| json!({"spec-id": spec.spec_id, "fields": fields}))
        };
        let Some(mut old) = listed.cloned().or_else(bare) else {
            return spec.to_json();
        };
        let fields = old.get_mut("fields").and_then(Value::as_array_mut);
        for (old, field) in fields.into_iter().flatten().zip(&spec.fields) {
            if let Some(old) = old.as_object_mut().filter(|old| !old.contains_key("field-id")) {
                old.insert("field-id".to_owned(), json!(field.field_id));
            }
        }
        old
    }

    fn partition_specs(&mut self) {
        let table = self.table;
        let specs: Vec<Value> = table.partition_specs.iter().map(|spec| self.spec(spec)).collect();
        if table.format_version == 1 {
            let default = table.partition_specs.iter().position(|s| s.spec_id == table.default_spec_id);
            let was = self.base.and_then(|base| base.spec_by_id(base.default_spec_id));
            let is_new = default.and_then(|at| table.partition_specs.get(at)) != was || !self.raw.contains_key("partition-spec");
            let fields = default.and_then(|at| specs.get(at)).and_then(|spec| spec.get("fields"));
            if let Some(fields) = fields.filter(|_| is_new) {
                self.set("partition-spec", fields.clone());
            }
        } else {
            self.remove("partition-spec");
        }
        self.set("default-spec-id", table.default_spec_id);
        self.set("partition-specs", specs);
        self.set("last-partition-id", table.last_partition_id);
    }

    /// "None" is written as readers of the version expect it, and as it was where nothing changed.
    fn current_snapshot(&mut self) {
        const KEY: &str = "current-snapshot-id";
        match self.table.current_snapshot_id {
            Some(id) if self.base.is_some_and(|base| base.current_snapshot_id == Some(id)) => {}
            Some(id) => self.set(KEY, id),
            None if self.base.is_some_and(|base| base.current_snapshot_id.is_none()) => {}
            None if self.table.format_version > 2 => self.set(KEY, Value::Null),
            None => self.set(KEY, -1),
        }
    }

    fn refs(&mut self) {
        let table = self.table;
        if self.base.is_some_and(|base| base.refs == table.refs) {
            return;
        }
        let mut refs = Map::new();
        for (name, reference) in &table.refs {
            let old = self.old.get("refs").and_then(|refs| refs.get(name)?.as_object());
            let mut object = old.cloned().unwrap_or_default();
            reference.write_json(&mut object);
            refs.insert(name.clone(), Value::Object(object));
        }
        self.set("refs", refs);
    }

    fn snapshots(&mut self) {
        let table = self.table;
        let render = |snapshot: &Arc<Snapshot>| {
            let at = self
                .base
                .and_then(|base| base.snapshots.iter().position(|old| Arc::ptr_eq(old, snapshot)));
            match self.old("snapshots", at) {
                // v1 has no sequence numbers, whatever its writer put there.
                Some(Value::Object(old)) if self.leaves_v1() => {
                    let mut old = old.clone();
                    old.shift_remove("sequence-number");
                    Value::Object(old)
                }
                Some(old) => old.clone(),
                None => snapshot.to_json(),
            }
        };
        let snapshots: Vec<Value> = table.snapshots.iter().map(render).collect();
        self.set("snapshots", snapshots);
    }

    fn logs(&mut self) {
        let (table, base) = (self.table, self.base);
        let snapshots = log(
            &table.snapshot_log,
            base.map(|base| base.snapshot_log.as_slice()),
            |at| self.old("snapshot-log", Some(at)),
            |(time, id)| json!({"timestamp-ms": time, "snapshot-id": id}),
        );
        let files = log(
            &table.metadata_log,
            base.map(|base| base.metadata_log.as_slice()),
            |at| self.old("metadata-log", Some(at)),
            |(time, file)| json!({"timestamp-ms": time, "metadata-file": file}),
        );
        self.set("snapshot-log", snapshots);
        self.set("metadata-log", files);
    }
}

/// The entries of a log: those of the base as they were, new ones as `render` has them. A log
/// loses entries and gains some at its end, so old ones are met in their order.
fn log<'a, T: PartialEq>(
    entries: &[T],
    base: Option<&[T]>,
    old: impl Fn(usize) -> Option<&'a Value>,
    render: impl Fn(&T) -> Value,
) -> Vec<Value> {
    let base = base.unwrap_or_default();
    let mut from = 0;
    let rendered = entries.iter().map(|entry| {
        let found = base.iter().skip(from).position(|other| other == entry).map(|at| at + from);
        let kept = found.and_then(|at| {
            from = at + 1;
            old(at)
        });
        kept.cloned().unwrap_or_else(|| render(entry))
    });
    rendered.collect()
}
