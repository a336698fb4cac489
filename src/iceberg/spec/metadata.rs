//! Table metadata (spec "Table Metadata"): parsed view plus the JSON it came from.
//!
//! Lossless: keys that are not known here are kept in `raw`, which stays text until somebody writes, and come back when the metadata
//! is written again. Reading stands in `metadata_json`, writing in `metadata_write`, changes in
//! `builder`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{NameMapping, NestedField, PartitionSpec, Schema, Snapshot, SnapshotManifests, SnapshotRef, SortOrder, Type};
use crate::error::{Error, Result, ResultExt};

/// Table property that holds the name mapping.
pub const NAME_MAPPING_PROPERTY: &str = "schema.name-mapping.default";

/// Parsed table metadata, v1 to v3.
#[derive(Debug, Clone)]
pub struct TableMetadata {
    /// 1, 2 or 3; anything else is refused.
    pub format_version: u8,
    pub table_uuid: Option<uuid::Uuid>,
    pub location: String,
    pub last_sequence_number: i64,
    pub last_updated_ms: i64,
    pub last_column_id: i32,
    pub schemas: Vec<Arc<Schema>>,
    pub current_schema_id: i32,
    pub partition_specs: Vec<Arc<PartitionSpec>>,
    pub default_spec_id: i32,
    pub last_partition_id: i32,
    pub properties: BTreeMap<String, String>,
    /// `None` for a table without snapshot (-1, null or absent in JSON).
    pub current_snapshot_id: Option<i64>,
    pub snapshots: Vec<Arc<Snapshot>>,
    /// (timestamp ms, snapshot id), oldest first.
    pub snapshot_log: Vec<(i64, i64)>,
    /// (timestamp ms, metadata file), oldest first.
    pub metadata_log: Vec<(i64, String)>,
    pub sort_orders: Vec<SortOrder>,
    pub default_sort_order_id: i32,
    /// `main` is synthesised from the current snapshot where the JSON has no refs.
    pub refs: BTreeMap<String, SnapshotRef>,
    /// v3; absent in files of some writers for a table that never had a snapshot.
    pub next_row_id: Option<u64>,
    /// The JSON object as text, in the key order of the file that it was read from or grew out of.
    pub raw: Arc<str>,
}

impl TableMetadata {
    /// The members of the JSON object, with those that are not known here.
    ///
    /// Errors: `Corrupt` for members that are nested too deep.
    pub fn raw_object(&self) -> Result<Map<String, Value>> {
        if self.raw.is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_str(&self.raw).map_err(|e| Error::corrupt("table metadata is not valid JSON").with_source(e))
    }

    /// A table property that is a whole number; `None` where it is not set.
    ///
    /// Errors: `InvalidInput` for another text.
    pub fn number_property(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.properties.get(name) else {
            return Ok(None);
        };
        let number = text.trim().parse().map_err(|e: std::num::ParseIntError| {
            let message = format!("property {name} is \"{text}\", which is no number");
            Error::invalid(message).with_source(e)
        });
        number.map(Some)
    }

    /// The schema that new data is written with and that branches are read with.
    pub fn current_schema(&self) -> Result<&Arc<Schema>> {
        self.schema_by_id(self.current_schema_id)
            .ok_or_else(|| Error::corrupt(format!("table has no schema {}, its current one", self.current_schema_id)))
    }

    /// The schema of an id.
    pub fn schema_by_id(&self, schema_id: i32) -> Option<&Arc<Schema>> {
        self.schemas.iter().find(|schema| schema.schema_id() == schema_id)
    }

    /// The partition spec of an id.
    pub fn spec_by_id(&self, spec_id: i32) -> Option<&Arc<PartitionSpec>> {
        self.partition_specs.iter().find(|spec| spec.spec_id == spec_id)
    }

    /// The snapshot of an id.
    pub fn snapshot_by_id(&self, snapshot_id: i64) -> Option<&Arc<Snapshot>> {
        self.snapshots.iter().find(|snapshot| snapshot.snapshot_id == snapshot_id)
    }

    /// The snapshot of an id and those that it came from, the newest first, as far as they are left. A chain of
    /// parents that comes back to itself is damaged, and is walked about once.
    pub fn ancestors(&self, newest: Option<i64>) -> impl Iterator<Item = &Arc<Snapshot>> {
        let found = |id: i64| self.snapshot_by_id(id);
        let parent = move |snapshot: &&Arc<Snapshot>| snapshot.parent_snapshot_id.and_then(found);
        std::iter::successors(newest.and_then(found), parent).take(self.snapshots.len())
    }

    /// Whether a snapshot is part of a branch, as far as the branch's history is kept.
    pub fn is_in_branch(&self, branch: &str, snapshot_id: i64) -> bool {
        let newest = self.refs.get(branch).map(|reference| reference.snapshot_id);
        self.is_ancestor(newest, snapshot_id)
    }

    /// Whether a snapshot is the newest or one that it came from, also where only its id is left.
    pub fn is_ancestor(&self, newest: Option<i64>, snapshot_id: i64) -> bool {
        let is_it = |id: Option<i64>| id == Some(snapshot_id);
        is_it(newest) || self.ancestors(newest).any(|snapshot| is_it(snapshot.parent_snapshot_id))
    }

    /// The newest snapshot of `main`; `None` for a table without one.
    ///
    /// Errors: `Corrupt` where the metadata does not list its current snapshot.
    pub fn current_snapshot(&self) -> Result<Option<&Arc<Snapshot>>> {
        let Some(id) = self.current_snapshot_id else { return Ok(None) };
        match self.snapshot_by_id(id) {
            Some(snapshot) => Ok(Some(snapshot)),
            None => Err(Error::corrupt(format!("table metadata has no snapshot {id}, its current one"))),
        }
    }

    /// The mapping for files without field ids; `None` where the table has none. Errors: `Corrupt`.
    pub fn name_mapping(&self) -> Result<Option<NameMapping>> {
        let text = self.properties.get(NAME_MAPPING_PROPERTY);
        text.map(|text| NameMapping::from_json(text))
            .transpose()
            .context("property", || NAME_MAPPING_PROPERTY)
    }

    /// Estimated bytes of memory, for the weight of a cache entry.
    pub fn memory_size(&self) -> usize {
        let schemas: usize = self.schemas.iter().map(|schema| schema_size(schema)).sum();
        let specs: usize = self
            .partition_specs
            .iter()
            .map(|spec| size_of::<PartitionSpec>() + spec.fields.len() * 128)
            .sum();
        let orders: usize = self
            .sort_orders
            .iter()
            .map(|order| size_of::<SortOrder>() + order.fields.len() * 96)
            .sum();
        let snapshots: usize = self.snapshots.iter().map(|snapshot| snapshot_size(snapshot)).sum();
        let logs = self.snapshot_log.len() * size_of::<(i64, i64)>()
            + self
                .metadata_log
                .iter()
                .map(|(_, file)| size_of::<(i64, String)>() + file.len())
                .sum::<usize>();
        let refs: usize = self
            .refs
            .keys()
            .map(|name| size_of::<SnapshotRef>() + TREE_ENTRY + name.len())
            .sum();
        size_of::<Self>()
            + self.location.len()
            + map_size(&self.properties)
            + schemas
            + specs
            + orders
            + snapshots
            + logs
            + refs
            + self.raw.len()
    }
}

/// Bytes of an entry of a tree map or hash map of strings beside the characters.
const TREE_ENTRY: usize = 64;

fn map_size(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(key, value)| TREE_ENTRY + key.len() + value.len()).sum()
}

fn snapshot_size(snapshot: &Snapshot) -> usize {
    let manifests = match &snapshot.manifests {
        SnapshotManifests::List(list) => list.len(),
        SnapshotManifests::Inline(files) => files.iter().map(|file| size_of::<String>() + file.len()).sum(),
    };
    size_of::<Snapshot>() + manifests + map_size(&snapshot.summary)
}

fn schema_size(schema: &Schema) -> usize {
    size_of::<Schema>() + schema.fields().iter().map(|field| field_size(field)).sum::<usize>()
}

fn field_size(field: &NestedField) -> usize {
    // The two look-up tables of the schema take about 48 bytes a field.
    let own = size_of::<NestedField>() + 48 + field.name.len() + field.doc.as_ref().map_or(0, String::len);
    own + match &field.field_type {
        Type::Primitive(_) | Type::Variant => 0,
        Type::Struct(fields) => fields.fields.iter().map(|field| field_size(field)).sum(),
        Type::List(list) => field_size(&list.element),
        Type::Map(map) => field_size(&map.key) + field_size(&map.value),
    }
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
