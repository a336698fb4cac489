//! Judging files by a change's filter (IC-5): by partition values under each file's own spec, and by
//! counts and bounds. What cannot be told may match.

use std::collections::{HashMap, HashSet};

use crate::iceberg::arrow_schema::{columns, file_names};
use crate::iceberg::manifest::{DataFile, EntryRef};
use crate::iceberg::prune::{MetricsFacts, PartitionProjection, SourceTypes};
use crate::iceberg::spec::{PartitionValues, Schema, TableMetadata};
use crate::table::Predicate;

/// A filter over the files of a table.
#[derive(Debug)]
pub(super) struct Matching<'a> {
    filter: &'a Predicate,
    types: SourceTypes,
    specs: HashMap<i32, PartitionProjection>,
}

impl<'a> Matching<'a> {
    /// `schema` is the one that the filter was written for.
    pub(super) fn new(filter: &'a Predicate, schema: &Schema, metadata: &TableMetadata) -> Self {
        let mapping = metadata.name_mapping().ok().flatten();
        // A column that cannot be read tells nothing, nor do then the others.
        let columns = columns(schema, &file_names(mapping.as_ref())).unwrap_or_default();
        let types = SourceTypes::new(&filter.field_ids(), &columns, metadata);
        let specs = metadata.partition_specs.iter();
        Self {
            filter,
            specs: specs.map(|spec| (spec.spec_id, PartitionProjection::new(spec, &types))).collect(),
            types,
        }
    }

    /// False when no row of the entry's partition can match.
    pub(super) fn partition_may_match(&self, entry: &EntryRef<'_>) -> bool {
        match self.specs.get(&entry.spec_id()) {
            Some(projection) => self.filter.may_match(&projection.of_values(entry.partition())),
            None => true,
        }
    }

    /// False when no row of the data file can match.
    pub(super) fn may_match(&self, entry: EntryRef<'_>) -> bool {
        self.partition_may_match(&entry) && self.filter.may_match(&MetricsFacts::new(entry, &self.types))
    }

    /// True when every row of the data file matches.
    pub(super) fn must_match(&self, entry: EntryRef<'_>) -> bool {
        let by_partition = self
            .specs
            .get(&entry.spec_id())
            .is_some_and(|projection| self.filter.must_match(&projection.of_values(entry.partition())));
        by_partition || self.filter.must_match(&MetricsFacts::new(entry, &self.types))
    }
}

/// The partitions that files are in. A spec that divides nothing stands for the whole table.
#[derive(Debug)]
pub(super) struct Partitions<'a> {
    is_whole_table: bool,
    set: HashSet<(i32, &'a PartitionValues)>,
    metadata: &'a TableMetadata,
}

impl<'a> Partitions<'a> {
    pub(super) fn of(files: impl Iterator<Item = &'a DataFile>, metadata: &'a TableMetadata) -> Self {
        let set: HashSet<_> = files.map(|file| (file.spec_id, &file.partition)).collect();
        let is_whole_table = set.iter().any(|(spec_id, _)| is_unpartitioned(metadata, *spec_id));
        Self {
            is_whole_table,
            set,
            metadata,
        }
    }

    /// Whether a data file is in one of them.
    pub(super) fn contain(&self, entry: &EntryRef<'_>) -> bool {
        self.is_whole_table || self.set.contains(&(entry.spec_id(), entry.partition()))
    }

    /// Whether a delete file may be about one of them: equality deletes without a partition are about all.
    pub(super) fn may_be_hit_by(&self, entry: &EntryRef<'_>) -> bool {
        self.contain(entry) || is_unpartitioned(self.metadata, entry.spec_id())
    }
}

pub(super) fn is_unpartitioned(metadata: &TableMetadata, spec_id: i32) -> bool {
    metadata.spec_by_id(spec_id).is_none_or(|spec| spec.is_unpartitioned())
}
