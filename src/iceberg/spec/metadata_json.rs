//! Reading of table metadata files (spec "Table Metadata", appendix C).
//!
//! What older writers left out is filled in as the specification and the reference
//! implementation do; what the reference implementation refuses is refused, so that a table
//! never reads differently here. A file may be compressed with gzip under any name.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::io::Read;
use std::sync::Arc;

use serde_json::Value;

use super::json::{Obj, clip, excerpt};
use super::metadata_lists::{Lists, Usual, UsualSnapshot};
use super::{FIRST_PARTITION_FIELD_ID, PartitionSpec, Schema, Snapshot, SnapshotRef, SortOrder, TableMetadata};
use crate::error::{Error, ErrorKind, Result, ResultExt};

/// Most bytes of a metadata file, after decompression.
const MAX_METADATA_BYTES: u64 = 512 * 1024 * 1024;
/// How far a log may go back in time: clocks of several writers differ.
pub(super) const CLOCK_SKEW_MS: i64 = 60_000;

const SUPPORTED_VERSIONS: std::ops::RangeInclusive<i64> = 1..=3;

impl TableMetadata {
    /// Reads a metadata file, plain or gzip; `file` names it in errors.
    ///
    /// Errors: `Unsupported` for a format version other than 1 to 3, a view, or an unknown type;
    /// `ResourceExhausted` beyond 512 MiB of JSON; `Corrupt` for everything else.
    pub fn from_bytes(bytes: &[u8], file: &str) -> Result<Self> {
        decode(bytes, MAX_METADATA_BYTES).context("file", || file)
    }
}

fn decode(bytes: &[u8], limit: u64) -> Result<TableMetadata> {
    let inflated;
    let json = if bytes.starts_with(&[0x1f, 0x8b]) {
        inflated = inflate(bytes, limit)?;
        inflated.as_slice()
    } else {
        bytes
    };
    if json.len() as u64 > limit {
        return Err(too_large(limit));
    }
    let text = std::str::from_utf8(json).map_err(|e| invalid().with_source(e))?;
    from_text(text)
}

fn invalid() -> Error {
    Error::corrupt("table metadata is not valid JSON")
}

fn inflate(bytes: &[u8], limit: u64) -> Result<Vec<u8>> {
    let mut json = Vec::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    decoder
        .read_to_end(&mut json)
        .map_err(|e| Error::corrupt("table metadata is not valid gzip").with_source(e))?;
    Ok(json)
}

fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::ResourceExhausted, format!("table metadata is larger than {limit} bytes"))
}

/// Reads the JSON of a metadata file. Errors as for [`TableMetadata::from_bytes`].
pub(super) fn from_text(text: &str) -> Result<TableMetadata> {
    match serde_json::from_str(text) {
        Ok(usual) => from_members(text, usual),
        // Anything else is looked at member by member, which also says what is wrong.
        Err(_) => from_members(text, members(text)?),
    }
}

fn members(text: &str) -> Result<Usual> {
    match serde_json::from_str(text) {
        Ok(Value::Object(rest)) => Ok(Usual { rest, lists: None }),
        Ok(other) => Err(Error::corrupt(format!(
            "table metadata is not a JSON object but {}",
            excerpt(&other)
        ))),
        Err(e) => Err(invalid().with_source(e)),
    }
}

fn from_members(text: &str, Usual { rest: raw, mut lists }: Usual) -> Result<TableMetadata> {
    let obj = Obj::of_map(&raw, "table metadata");
    if raw.contains_key("view-uuid") {
        return Err(Error::unsupported("this is the metadata of a view, and views are not supported"));
    }
    let version = obj.i64("format-version")?;
    let format_version = u8::try_from(version)
        .ok()
        .filter(|_| SUPPORTED_VERSIONS.contains(&version))
        .ok_or_else(|| Error::unsupported(format!("format version {version} is not supported, only 1 to 3")))?;
    let listed = lists.as_mut().map(|lists| std::mem::take(&mut lists.snapshots));
    let reader = Reader {
        obj,
        lists: lists.as_ref(),
        format_version,
    };

    let (schemas, current_schema_id) = reader.schemas()?;
    let (partition_specs, default_spec_id) = reader.partition_specs()?;
    let last_partition_id = reader.last_partition_id(&partition_specs)?;
    let (sort_orders, default_sort_order_id) = reader.sort_orders()?;
    let last_sequence_number = if format_version == 1 { 0 } else { obj.i64("last-sequence-number")? };
    let last_updated_ms = obj.i64("last-updated-ms")?;
    let snapshots = reader.snapshots(listed, last_sequence_number)?;
    let current_snapshot_id = obj.opt_snapshot_id("current-snapshot-id")?.filter(|id| *id != -1);
    let refs = reader.refs(current_snapshot_id, &snapshots)?;
    let snapshot_log = reader.log(
        "snapshot-log",
        last_updated_ms,
        |lists| &lists.snapshot_log,
        |entry| entry.snapshot_id("snapshot-id"),
    )?;
    let metadata_log = reader.log(
        "metadata-log",
        last_updated_ms,
        |lists| &lists.metadata_log,
        |entry| entry.str("metadata-file").map(str::to_owned),
    )?;

    Ok(TableMetadata {
        format_version,
        table_uuid: reader.table_uuid()?,
        location: obj.str("location")?.to_owned(),
        last_sequence_number,
        last_updated_ms,
        last_column_id: obj.i32("last-column-id")?,
        schemas,
        current_schema_id,
        partition_specs,
        default_spec_id,
        last_partition_id,
        properties: obj.string_map("properties")?,
        current_snapshot_id,
        snapshots,
        snapshot_log,
        metadata_log,
        sort_orders,
        default_sort_order_id,
        refs,
        next_row_id: if format_version < 3 { None } else { obj.opt_u63("next-row-id")? },
        raw: text.into(),
    })
}

/// The object with its format version, which decides what may be missing.
struct Reader<'a> {
    obj: Obj<'a>,
    /// Read already; `None` where they are members of `obj`.
    lists: Option<&'a Lists>,
    format_version: u8,
}

impl<'a> Reader<'a> {
    /// An array that only v1 may lack.
    fn versioned_array(&self, key: &str) -> Result<Option<&'a [Value]>> {
        if self.format_version == 1 {
            self.obj.opt_array(key)
        } else {
            self.obj.array(key).map(Some)
        }
    }

    /// An int that only v1 may lack.
    fn versioned_i32(&self, key: &str) -> Result<Option<i32>> {
        if self.format_version == 1 {
            self.obj.opt_i32(key)
        } else {
            self.obj.i32(key).map(Some)
        }
    }

    fn table_uuid(&self) -> Result<Option<uuid::Uuid>> {
        let text = if self.format_version == 1 {
            self.obj.opt_str("table-uuid")?
        } else {
            Some(self.obj.str("table-uuid")?)
        };
        text.map(|text| {
            uuid::Uuid::try_parse(text).map_err(|e| Error::corrupt(format!("table uuid `{}` is not valid", clip(text))).with_source(e))
        })
        .transpose()
    }

    /// All schemas and the id of the current one. v1 may have only `schema`, or both without
    /// saying which is current; then `schema` is.
    fn schemas(&self) -> Result<(Vec<Arc<Schema>>, i32)> {
        let mut schemas = Vec::new();
        for value in self.versioned_array("schemas")?.unwrap_or_default() {
            schemas.push(Arc::new(Schema::from_json(value)?));
        }
        unique("schema", schemas.iter().map(|schema| schema.schema_id()))?;
        let named = self
            .versioned_i32("current-schema-id")?
            .filter(|_| self.format_version > 1 || !schemas.is_empty());
        let current = match named {
            Some(id) => id,
            None => {
                let schema = Schema::from_json(self.obj.need("schema")?)?;
                let id = schema.schema_id();
                if !schemas.iter().any(|other| other.schema_id() == id) {
                    schemas.push(Arc::new(schema));
                }
                id
            }
        };
        if !schemas.iter().any(|schema| schema.schema_id() == current) {
            return Err(Error::corrupt(format!("table metadata has no schema {current}, its current one")));
        }
        Ok((schemas, current))
    }

    /// All partition specs and the id of the default one. v1 may have only `partition-spec`
    /// (spec 0), or specs without a default; then the newest is.
    fn partition_specs(&self) -> Result<(Vec<Arc<PartitionSpec>>, i32)> {
        let mut specs = Vec::new();
        match self.versioned_array("partition-specs")? {
            Some(values) if self.format_version > 1 || !values.is_empty() => {
                for value in values {
                    specs.push(Arc::new(PartitionSpec::from_json(value)?));
                }
            }
            _ => {
                let fields = Value::Array(self.obj.array("partition-spec")?.to_vec());
                let spec = PartitionSpec::from_json(&fields)?;
                return Ok((vec![Arc::new(spec)], 0));
            }
        }
        unique("partition spec", specs.iter().map(|spec| spec.spec_id))?;
        let newest = specs.iter().map(|spec| spec.spec_id).max();
        let default = self.versioned_i32("default-spec-id")?.or(newest).unwrap_or(0);
        if !specs.iter().any(|spec| spec.spec_id == default) {
            return Err(Error::corrupt(format!(
                "table metadata has no partition spec {default}, its default one"
            )));
        }
        Ok((specs, default))
    }

    fn last_partition_id(&self, specs: &[Arc<PartitionSpec>]) -> Result<i32> {
        let highest = specs.iter().flat_map(|spec| &spec.fields).map(|field| field.field_id).max();
        let derived = highest.unwrap_or(FIRST_PARTITION_FIELD_ID - 1);
        Ok(self.versioned_i32("last-partition-id")?.unwrap_or(derived))
    }

    /// All sort orders and the id of the default one; v1 may have none, which is unsorted.
    fn sort_orders(&self) -> Result<(Vec<SortOrder>, i32)> {
        let Some(values) = self.versioned_array("sort-orders")? else {
            return Ok((vec![SortOrder::unsorted()], 0));
        };
        let orders: Vec<SortOrder> = values.iter().map(SortOrder::from_json).collect::<Result<_>>()?;
        unique("sort order", orders.iter().map(|order| order.order_id))?;
        if orders.is_empty() {
            return Err(Error::corrupt("`sort-orders` of table metadata is empty"));
        }
        Ok((orders, self.obj.i32("default-sort-order-id")?))
    }

    fn read_snapshots(&self, listed: Option<Vec<UsualSnapshot>>) -> Result<Vec<Snapshot>> {
        if let Some(listed) = listed {
            return Ok(listed.into_iter().map(|usual| usual.snapshot(self.format_version)).collect());
        }
        let values = self.obj.opt_array("snapshots")?.unwrap_or_default();
        values.iter().map(|value| Snapshot::from_json(value, self.format_version)).collect()
    }

    fn snapshots(&self, listed: Option<Vec<UsualSnapshot>>, last_sequence_number: i64) -> Result<Vec<Arc<Snapshot>>> {
        let mut snapshots = Vec::new();
        for snapshot in self.read_snapshots(listed)? {
            if snapshot.sequence_number > last_sequence_number {
                let number = snapshot.sequence_number;
                return Err(Error::corrupt(format!(
                    "snapshot has sequence number {number}, beyond the table's last {last_sequence_number}"
                ))
                .with("snapshot", snapshot.snapshot_id));
            }
            snapshots.push(Arc::new(snapshot));
        }
        unique("snapshot", snapshots.iter().map(|snapshot| snapshot.snapshot_id))?;
        Ok(snapshots)
    }

    /// Branches and tags. `main` is filled in from the current snapshot where it is missing;
    /// where it is there, the two must agree.
    fn refs(&self, current: Option<i64>, snapshots: &[Arc<Snapshot>]) -> Result<BTreeMap<String, SnapshotRef>> {
        let ids: HashSet<i64> = snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect();
        let mut refs = BTreeMap::new();
        for (name, value) in self.obj.opt_object("refs")?.into_iter().flatten() {
            let reference = SnapshotRef::from_json(value).context("ref", || name)?;
            if !ids.contains(&reference.snapshot_id) {
                return Err(Error::corrupt(format!(
                    "reference points to snapshot {}, which does not exist",
                    reference.snapshot_id
                ))
                .with("ref", name));
            }
            refs.insert(name.clone(), reference);
        }
        match (current, refs.get("main").map(|main| main.snapshot_id)) {
            (Some(id), None) if ids.contains(&id) => {
                refs.insert("main".to_owned(), SnapshotRef::branch(id));
            }
            (current, Some(main)) if current != Some(main) => {
                let current = current.map_or("none".to_owned(), |id| id.to_string());
                return Err(Error::corrupt(format!(
                    "branch main points to snapshot {main}, but the current snapshot is {current}"
                )));
            }
            _ => {}
        }
        Ok(refs)
    }

    /// The entries of a log with their times, which must not go back, nor lie after the table's last change.
    fn log<T: Clone>(
        &self,
        key: &'static str,
        last_updated_ms: i64,
        usual: impl Fn(&Lists) -> &[(i64, T)],
        read: impl Fn(&Obj<'_>) -> Result<T>,
    ) -> Result<Vec<(i64, T)>> {
        let entries = match self.lists {
            Some(lists) => usual(lists).to_vec(),
            None => {
                let entry = |value| {
                    let entry = Obj::new(value, "log entry")?;
                    Ok((entry.i64("timestamp-ms")?, read(&entry).context("log", || key)?))
                };
                let values = self.obj.opt_array(key)?.unwrap_or_default();
                values.iter().map(entry).collect::<Result<Vec<_>>>()?
            }
        };
        let mut previous = i64::MIN;
        for (time, _) in &entries {
            if *time < previous.saturating_sub(CLOCK_SKEW_MS) {
                return Err(Error::corrupt(format!(
                    "`{key}` of table metadata goes back in time by more than a minute"
                )));
            }
            previous = *time;
        }
        if last_updated_ms < previous.saturating_sub(CLOCK_SKEW_MS) {
            return Err(Error::corrupt(format!(
                "`last-updated-ms` of table metadata lies before the last entry of `{key}`"
            )));
        }
        Ok(entries)
    }
}

/// Refuses an id that occurs twice.
fn unique<T: Eq + Hash + Copy + std::fmt::Display>(what: &str, ids: impl Iterator<Item = T>) -> Result<()> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(Error::corrupt(format!("table metadata has {what} {id} twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn both_ways_of_reading_give_the_same() {
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let mut read = 0;
        for case in std::fs::read_dir(golden).unwrap() {
            let Ok(files) = std::fs::read_dir(case.unwrap().path().join("table/metadata")) else {
                continue;
            };
            for file in files.map(|file| file.unwrap().path()) {
                let Ok(text) = std::fs::read_to_string(&file) else { continue };
                if !file.to_str().unwrap().ends_with(".metadata.json") {
                    continue;
                }
                let usual: Usual = serde_json::from_str(&text).unwrap();
                let fast = from_members(&text, usual).unwrap();
                let slow = from_members(&text, members(&text).unwrap()).unwrap();
                let lists =
                    |table: &TableMetadata| format!("{:?}", (&table.snapshots, &table.snapshot_log, &table.metadata_log, &table.refs));
                assert_eq!(lists(&fast), lists(&slow), "{}", file.display());
                assert_eq!(fast.raw_object().unwrap(), slow.raw_object().unwrap());
                read += usize::from(fast.snapshots.len() > 1);
            }
        }
        assert!(read > 20, "{read} files with several snapshots");
    }

    #[test]
    fn what_is_unusual_is_read_member_by_member() {
        let case = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/spark_branches_tags/table/metadata");
        let newest = std::fs::read_dir(case).unwrap().map(|f| f.unwrap().path());
        let newest = newest.filter(|f| f.to_str().unwrap().ends_with(".metadata.json")).max().unwrap();
        let text = std::fs::read_to_string(newest).unwrap();
        let known = from_text(&text).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        let id = value["snapshots"][0]["snapshot-id"].clone();
        // a null list is an absent one, and a number in a string is refused in the words of the slow way
        value["metadata-log"] = Value::Null;
        let read = from_text(&value.to_string()).unwrap();
        assert_eq!((read.snapshots.len(), read.metadata_log.len()), (known.snapshots.len(), 0));
        value["snapshots"][0]["sequence-number"] = Value::from("1");
        let error = from_text(&value.to_string()).unwrap_err().to_string();
        assert!(
            error.contains("`sequence-number` of snapshot must be a long") && error.contains(&id.to_string()),
            "{error}"
        );
    }

    #[test]
    fn inflating_stops_at_the_limit() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&vec![b' '; 1 << 20]).unwrap();
        let bytes = gzip.finish().unwrap();
        assert!(bytes.len() < 4096);
        assert_eq!(inflate(&bytes, 1000).unwrap().len(), 1001);
        assert_eq!(decode(&bytes, 1000).unwrap_err().kind(), ErrorKind::ResourceExhausted);
    }

    #[test]
    fn broken_bytes_are_corrupt() {
        for bytes in [
            &b""[..],
            b"{",
            b"[]",
            b"{} {}",
            b"\x1f\x8b",
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03junk",
            &b"[".repeat(100_000),
        ] {
            assert_eq!(decode(bytes, MAX_METADATA_BYTES).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
