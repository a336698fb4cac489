//! What the statistics of a column chunk tell (parquet.thrift `Statistics`).

use std::collections::HashMap;

use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::leaf::{Leaf, Source};
use crate::table::{ColumnStats, Facts};

/// The statistics of one row group.
pub(super) struct ChunkFacts<'a> {
    pub(super) metadata: &'a ArrowReaderMetadata,
    pub(super) row_group: usize,
    pub(super) sources: &'a HashMap<i32, Source>,
}

impl Facts for ChunkFacts<'_> {
    fn column(&self, id: i32) -> ColumnStats {
        match self.sources.get(&id) {
            Some(Source::Constant(stats)) => stats.clone(),
            Some(Source::Leaf(leaf)) => self.chunk(leaf).unwrap_or_else(ColumnStats::unknown),
            _ => ColumnStats::unknown(),
        }
    }
}

impl ChunkFacts<'_> {
    fn chunk(&self, leaf: &Leaf) -> Option<ColumnStats> {
        let group = self.metadata.metadata().row_groups().get(self.row_group)?;
        let rows = u64::try_from(group.num_rows()).ok()?;
        let statistics = group.columns().get(leaf.index)?.statistics()?;
        let nulls = if leaf.is_required { Some(0) } else { statistics.null_count_opt() };
        let is_null = nulls.is_some_and(|n| n >= rows);
        let stats = ColumnStats {
            may_be_null: nulls != Some(0),
            may_be_nan: leaf.decode.has_nan() && !is_null,
            may_be_value: !is_null,
            ..ColumnStats::unknown()
        };
        if !trusts(self.metadata, leaf, statistics.is_min_max_deprecated()) {
            return Some(stats);
        }
        let bound = |bytes: Option<&[u8]>| leaf.decode.bound(bytes?);
        Some(stats.with_bounds(bound(statistics.min_bytes_opt()), bound(statistics.max_bytes_opt())))
    }
}

/// Whether the file orders bounds of the column in the way that they are used.
pub(super) fn trusts(metadata: &ArrowReaderMetadata, leaf: &Leaf, is_deprecated: bool) -> bool {
    let orders = metadata.metadata().file_metadata().column_orders();
    leaf.decode.trusts(orders.and_then(|orders| orders.get(leaf.index)), is_deprecated)
}
