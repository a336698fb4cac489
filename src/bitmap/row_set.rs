//! The set of physical row positions of one data file.
//!
//! Positions are counted over the whole file, before any filter or pruning, from 0. The set
//! holds no empty 32-bit map, so two sets are equal exactly when they hold the same positions.

use std::ops::Range;

use arrow::buffer::BooleanBuffer;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::mask;

/// A set of row positions (u64), compressed.
///
/// Built by inserting positions or by decoding a deletion vector; read as single positions,
/// counts, or as a mask over a span of rows ([`RowSet::keep_mask`]).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RowSet(RoaringTreemap);

impl RowSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The set over the 32-bit maps of `maps`, by their upper 32 bits. Empty maps are dropped.
    pub(super) fn from_maps(maps: impl IntoIterator<Item = (u32, RoaringBitmap)>) -> Self {
        Self(RoaringTreemap::from_bitmaps(maps.into_iter().filter(|(_, map)| !map.is_empty())))
    }

    /// The 32-bit maps by their upper 32 bits, ascending, none empty.
    pub(super) fn maps(&self) -> impl Iterator<Item = (u32, &RoaringBitmap)> {
        self.0.bitmaps()
    }

    /// Adds one position; false when it was there.
    pub fn insert(&mut self, position: u64) -> bool {
        self.0.insert(position)
    }

    /// Adds all positions of `range`.
    pub fn insert_range(&mut self, range: Range<u64>) {
        self.0.insert_range(range);
    }

    /// Adds positions. Ascending input is the fast case, any order and repetition is right.
    pub fn extend_sorted(&mut self, positions: impl IntoIterator<Item = u64>) {
        for position in positions {
            // Appending fails for a position that is not behind the last one of its map.
            if self.0.try_push(position).is_err() {
                self.0.insert(position);
            }
        }
    }

    /// Whether the set holds `position`.
    pub fn contains(&self, position: u64) -> bool {
        self.0.contains(position)
    }

    /// How many positions the set holds.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether the set holds no position.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all positions of `other`.
    pub fn union_with(&mut self, other: &RowSet) {
        self.0 |= &other.0;
    }

    /// Takes all positions of `other` out.
    pub fn remove_all(&mut self, other: &RowSet) {
        self.0 -= &other.0;
    }

    /// Takes all positions out that `other` has not.
    pub fn keep_common(&mut self, other: &RowSet) {
        self.0 &= &other.0;
    }

    /// How many positions both have.
    pub fn count_common(&self, other: &RowSet) -> u64 {
        self.0.intersection_len(&other.0)
    }

    /// The largest position.
    pub fn max(&self) -> Option<u64> {
        self.0.max()
    }

    /// How many positions lie in `rows`.
    pub fn count_in(&self, rows: Range<u64>) -> u64 {
        self.0.range_cardinality(rows)
    }

    /// All positions, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter()
    }

    /// The positions from `first` on, ascending.
    pub fn iter_from(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        let mut positions = self.0.iter();
        positions.advance_to(first);
        positions
    }

    /// The mask of the rows that stay: bit i is true when row `rows.start + i` is **not** in the set.
    ///
    /// The buffer has `rows.end - rows.start` bits (none when the range is reversed) and offset 0.
    /// It is allocated whole, so `rows` is a span whose length was checked: a row group, a batch.
    pub fn keep_mask(&self, rows: Range<u64>) -> BooleanBuffer {
        mask::keep_mask(self, rows)
    }

    /// Rewrites parts as runs where that is smaller. For sets that are built once and kept.
    pub fn optimize(&mut self) {
        self.0.optimize();
    }

    /// Bytes of memory the set takes, approximately; for cache weights.
    pub fn memory_size(&self) -> usize {
        const BITSET_BYTES: u64 = 8192;
        // Container header, its heap block and the allocator's rounding.
        const CONTAINER_BYTES: u64 = 64;
        const MAP_BYTES: u64 = 64;
        let maps: u64 = self
            .maps()
            .map(|(_, map)| {
                let stats = map.statistics();
                // The crate's own byte figures are off for arrays and bitsets, so they come from the counts.
                MAP_BYTES
                    + u64::from(stats.n_containers) * CONTAINER_BYTES
                    + u64::from(stats.n_values_array_containers) * 2
                    + u64::from(stats.n_bitset_containers) * BITSET_BYTES
                    + stats.n_bytes_run_containers
            })
            .sum();
        size_of::<Self>() + usize::try_from(maps).unwrap_or(usize::MAX / 2)
    }
}

impl FromIterator<u64> for RowSet {
    fn from_iter<T: IntoIterator<Item = u64>>(positions: T) -> Self {
        let mut set = Self::new();
        set.extend_sorted(positions);
        set
    }
}

impl std::fmt::Debug for RowSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowSet({} rows, last {:?})", self.len(), self.max())
    }
}
