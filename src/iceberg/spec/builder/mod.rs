//! Changes of table metadata (spec "Table Metadata", "Schema Evolution", "Partition Evolution",
//! "Snapshots", "Snapshot References").
//!
//! A builder starts from the metadata of a table, or from nothing, and ends in the metadata of
//! the next metadata file. Each change is checked when it is made and refused by name; what is
//! built has been read back, so that whatever a reader refuses is never written. Time is given
//! from outside and never goes back.

mod new_table;
mod partition_specs;
mod properties;
mod schemas;
mod snapshots;
mod sort_orders;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub use new_table::NewTable;
pub use partition_specs::UnboundPartitionField;
pub use properties::{FORMAT_VERSION_PROPERTY, format_version};
pub use snapshots::MAIN_BRANCH;

use super::metadata_json::from_text;
use super::metadata_write::render;
use super::{Snapshot, SortOrder, TableMetadata};
use crate::error::{Error, Result};

/// Table property: how many earlier metadata files the metadata remembers.
pub const PREVIOUS_VERSIONS_MAX_PROPERTY: &str = "write.metadata.previous-versions-max";
const PREVIOUS_VERSIONS_MAX_DEFAULT: usize = 100;

/// The newest format version that can be written.
const NEWEST_FORMAT_VERSION: u8 = 3;

/// Table metadata in the making.
#[derive(Debug)]
pub struct MetadataBuilder {
    base: Option<Arc<TableMetadata>>,
    /// Where the base was read from.
    base_location: Option<String>,
    table: TableMetadata,
    added_snapshots: HashSet<i64>,
    /// Entries of the snapshot log that the base had.
    logged_before: usize,
    is_changed: bool,
}

/// The first row id that no snapshot has taken, for files that do not tell it.
fn rows_handed_out(snapshots: &[Arc<Snapshot>]) -> u64 {
    let ends = snapshots
        .iter()
        .map(|snapshot| snapshot.first_row_id.unwrap_or(0).saturating_add(snapshot.added_rows.unwrap_or(0)));
    ends.max().unwrap_or(0)
}

impl MetadataBuilder {
    /// Starts from a table's metadata. `base_location` is its metadata file, which the new metadata
    /// remembers; `now_ms` is the time, taken later where the table is ahead of it.
    pub fn from_base(base: Arc<TableMetadata>, base_location: Option<&str>, now_ms: i64) -> Self {
        let mut table = TableMetadata {
            raw: "".into(),
            ..(*base).clone()
        };
        let logged = table.snapshot_log.iter().map(|(time, _)| *time);
        let logged = logged.chain(table.metadata_log.iter().map(|(time, _)| *time));
        table.last_updated_ms = logged.chain([now_ms, table.last_updated_ms]).max().unwrap_or(now_ms);
        if table.format_version > 2 && table.next_row_id.is_none() {
            table.next_row_id = Some(rows_handed_out(&table.snapshots));
        }
        Self {
            base_location: base_location.map(str::to_owned),
            logged_before: table.snapshot_log.len(),
            base: Some(base),
            table,
            added_snapshots: HashSet::new(),
            is_changed: false,
        }
    }

    /// A table of nothing yet.
    fn empty(format_version: u8, uuid: uuid::Uuid, location: String, now_ms: i64) -> Self {
        let table = TableMetadata {
            format_version,
            table_uuid: Some(uuid),
            location,
            last_sequence_number: 0,
            last_updated_ms: now_ms,
            last_column_id: 0,
            schemas: Vec::new(),
            current_schema_id: 0,
            partition_specs: Vec::new(),
            default_spec_id: 0,
            last_partition_id: super::FIRST_PARTITION_FIELD_ID - 1,
            properties: BTreeMap::new(),
            current_snapshot_id: None,
            snapshots: Vec::new(),
            snapshot_log: Vec::new(),
            metadata_log: Vec::new(),
            sort_orders: vec![SortOrder::unsorted()],
            default_sort_order_id: 0,
            refs: BTreeMap::new(),
            next_row_id: (format_version > 2).then_some(0),
            raw: "".into(),
        };
        Self {
            base: None,
            base_location: None,
            table,
            added_snapshots: HashSet::new(),
            logged_before: 0,
            is_changed: true,
        }
    }

    /// The metadata with the changes so far. Its `raw` is empty.
    pub fn table(&self) -> &TableMetadata {
        &self.table
    }

    /// The time of the change, in milliseconds since the epoch: that of its snapshots, too.
    pub fn timestamp_ms(&self) -> i64 {
        self.table.last_updated_ms
    }

    /// Whether anything was changed.
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Gives a table of v1 that has none its UUID.
    ///
    /// Errors: `InvalidInput` where it has another one.
    pub fn assign_uuid(&mut self, uuid: uuid::Uuid) -> Result<()> {
        match self.table.table_uuid {
            Some(own) if own != uuid => Err(Error::invalid(format!("the table has uuid {own}, which never changes"))),
            Some(_) => Ok(()),
            None => {
                self.table.table_uuid = Some(uuid);
                self.is_changed = true;
                Ok(())
            }
        }
    }

    /// Raises the format version; the same one changes nothing.
    ///
    /// Errors: `InvalidInput` for a lower one, `Unsupported` for one that is not known.
    pub fn upgrade_format_version(&mut self, version: u8) -> Result<()> {
        let own = self.table.format_version;
        if version > NEWEST_FORMAT_VERSION {
            return Err(Error::unsupported(format!(
                "format version {version} is not supported, only 1 to {NEWEST_FORMAT_VERSION}"
            )));
        }
        if version < own {
            return Err(Error::invalid(format!(
                "a table of format version {own} cannot go back to {version}"
            )));
        }
        if version > own {
            self.table.format_version = version;
            if version > 2 {
                self.table.next_row_id.get_or_insert(0);
            }
            self.is_changed = true;
        }
        Ok(())
    }

    /// The metadata of the next file.
    ///
    /// Errors: `InvalidInput` where the default partition spec or sort order does not fit the
    /// current schema, where a table of v2 or later has no UUID, or for a property that is no number.
    pub fn build(mut self) -> Result<TableMetadata> {
        if self.table.format_version > 1 && self.table.table_uuid.is_none() {
            return Err(Error::invalid("a table of format version 2 or later needs a uuid"));
        }
        let schema = Arc::clone(self.table.current_schema()?);
        if let Some(spec) = self.table.spec_by_id(self.table.default_spec_id) {
            partition_specs::check_fits(spec, &schema)?;
        }
        let order = self.table.default_sort_order_id;
        if let Some(order) = self.table.sort_orders.iter().find(|o| o.order_id == order) {
            sort_orders::check_fits(order, &schema)?;
        }
        self.log_base()?;
        let raw = render(&self.table, self.base.as_deref())?;
        from_text(&raw).map_err(|e| Error::internal("the table metadata that was built cannot be read").with_source(e))
    }

    /// Enters the base's file into the metadata log and drops entries beyond the table's limit.
    fn log_base(&mut self) -> Result<()> {
        let (Some(base), Some(location)) = (&self.base, self.base_location.take()) else {
            return Ok(());
        };
        let most = match self.table.number_property(PREVIOUS_VERSIONS_MAX_PROPERTY)? {
            None => PREVIOUS_VERSIONS_MAX_DEFAULT,
            Some(number) => usize::try_from(number.max(1)).unwrap_or(usize::MAX),
        };
        let log = &mut self.table.metadata_log;
        let surplus = (log.len() + 1).saturating_sub(most);
        log.drain(..surplus.min(log.len()));
        log.push((base.last_updated_ms, location));
        Ok(())
    }
}
