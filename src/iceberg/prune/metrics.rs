//! What the counts and bounds of a manifest entry tell of a file's columns (spec "Data File
//! Fields": value, null and NaN counts, lower and upper bounds).
//!
//! A count that is missing is unknown, never zero. Bounds leave null and NaN out; they may be cut
//! and are typed by the time of the file. A bound that does not read as its column's type, such as
//! text that was cut inside a character, tells nothing.

use super::source::{SourceTypes, datum, has_nan};
use crate::iceberg::manifest::EntryRef;
use crate::iceberg::spec::{Literal, PrimitiveType};
use crate::table::{ColumnStats, Facts};

/// The metrics of one data file.
#[derive(Debug)]
pub struct MetricsFacts<'a> {
    entry: EntryRef<'a>,
    types: &'a SourceTypes,
}

impl<'a> MetricsFacts<'a> {
    /// The metrics of `entry` for the columns of `types`.
    pub fn new(entry: EntryRef<'a>, types: &'a SourceTypes) -> Self {
        Self { entry, types }
    }
}

impl Facts for MetricsFacts<'_> {
    fn column(&self, id: i32) -> ColumnStats {
        let Some(source) = self.types.get(id).map(|s| &s.read_as) else {
            return ColumnStats::unknown();
        };
        let rows = self.entry.record_count();
        let nulls = self.entry.null_value_counts().get(id);
        let values = self.entry.value_counts().get(id);
        let nans = if has_nan(source) {
            self.entry.nan_value_counts().get(id)
        } else {
            Some(0)
        };
        // Some writers count only what is not null as values; then this is not certain.
        let is_counted = values.is_none_or(|v| v >= rows);
        let empty = nulls.unwrap_or(0).saturating_add(nans.unwrap_or(0));
        let stats = ColumnStats {
            // Fewer values than rows: rows in null structs are in neither count (ORC by Iceberg Java).
            may_be_null: nulls != Some(0) || values.is_some_and(|v| v < rows),
            may_be_nan: nans != Some(0) && !(is_counted && nulls.is_some_and(|n| n >= rows)),
            may_be_value: !(is_counted && empty >= rows),
            two_orders: *source == PrimitiveType::Uuid,
            ..ColumnStats::unknown()
        };
        let bound = |bytes: Option<&[u8]>| datum(source, &Literal::from_bytes(source, bytes?).ok()?);
        stats.with_bounds(bound(self.entry.lower_bound(id)), bound(self.entry.upper_bound(id)))
    }
}
