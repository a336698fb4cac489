//! From a set of row positions to a mask over a span of rows.
//!
//! A scan asks for one mask per row group, so the work is done per 64-bit word wherever the set
//! itself is dense. The roaring crate shows no container, only positions and runs; walking those
//! costs up to several nanoseconds a row in the dense case. Its serialised form, however, holds
//! bitset containers as plain words and run containers as ranges, and writing that form is little
//! more than a copy: so a dense span is cut out, serialised and applied container by container.

use std::borrow::Cow;
use std::ops::Range;

use arrow::buffer::{BooleanBuffer, Buffer};
use roaring::RoaringBitmap;

use super::RowSet;
use super::portable::{Container, Values, walk};
use crate::error::{Error, Result};

/// Up to this many deleted rows, or below one in [`SPARSE`] rows, single positions are the cheapest way.
const FEW: u64 = 1024;
const SPARSE: u64 = 64;

/// See [`RowSet::keep_mask`].
pub(super) fn keep_mask(set: &RowSet, rows: Range<u64>) -> BooleanBuffer {
    let mut mask = Mask::all_kept(&rows);
    for (key, map) in set.maps() {
        let base = u64::from(key) << 32;
        if base >= rows.end {
            break;
        }
        let (Ok(low), last) = (u32::try_from(rows.start.saturating_sub(base)), rows.end - 1 - base) else {
            continue;
        };
        let high = u32::try_from(last).unwrap_or(u32::MAX);
        let deleted = map.range_cardinality(low..=high);
        if deleted == 0 {
            continue;
        }
        let dense = deleted > FEW && deleted.saturating_mul(SPARSE) > u64::from(high - low);
        let by_container = dense && clear_containers(&mut mask, base, map, low, high).is_ok();
        if !by_container {
            for low_bits in map.range(low..=high) {
                mask.clear_row(base + u64::from(low_bits));
            }
        }
    }
    mask.finish()
}

/// Clears the rows `low..=high` of `map` by words and ranges. An error (our own serialised form
/// does not read back, so never) leaves a mask in which no kept row was cleared.
fn clear_containers(mask: &mut Mask, base: u64, map: &RoaringBitmap, low: u32, high: u32) -> Result<()> {
    let inside = map.min() >= Some(low) && map.max() <= Some(high);
    let part = if inside {
        Cow::Borrowed(map)
    } else {
        let mut window = RoaringBitmap::new();
        window.insert_range(low..=high);
        Cow::Owned(map & &window)
    };
    let mut bytes = Vec::with_capacity(part.serialized_size());
    part.serialize_into(&mut bytes)
        .map_err(|e| Error::internal("cannot serialise a row set").with_source(e))?;
    walk(&bytes, |container| {
        mask.clear_container(base, &container);
        Ok(())
    })?;
    Ok(())
}

/// One bit per row of a span, true for the rows that stay.
struct Mask {
    start: u64,
    len: usize,
    words: Vec<u64>,
}

impl Mask {
    fn all_kept(rows: &Range<u64>) -> Self {
        let len = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        Self {
            start: rows.start,
            len,
            words: vec![u64::MAX; len.div_ceil(64)],
        }
    }

    fn finish(self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.len)
    }

    /// Clears the rows of `container`, all of which lie in the span.
    fn clear_container(&mut self, base: u64, container: &Container<'_>) {
        let first = base + (u64::from(container.key) << 16);
        match container.values {
            Values::Array(values) => {
                for value in values {
                    self.clear_row(first + u64::from(u16::from_le_bytes(*value)));
                }
            }
            Values::Runs(runs) => {
                for run in runs {
                    let (value, more) = (u16::from_le_bytes([run[0], run[1]]), u16::from_le_bytes([run[2], run[3]]));
                    let start = first + u64::from(value);
                    self.clear_range(start, start + u64::from(more) + 1);
                }
            }
            Values::Bitset(words) => {
                for (i, word) in (0u64..).zip(words) {
                    self.clear_word(first + i * 64, u64::from_le_bytes(*word));
                }
            }
        }
    }

    fn clear_row(&mut self, row: u64) {
        let bit = row.wrapping_sub(self.start);
        self.clear_bits(bit / 64, 1 << (bit % 64));
    }

    /// Clears the rows `start..end`, both in the span.
    fn clear_range(&mut self, start: u64, end: u64) {
        let (start, end) = (start - self.start, end - self.start);
        let (first, last) = (start / 64, (end - 1) / 64);
        let head = u64::MAX << (start % 64);
        let tail = u64::MAX >> (63 - (end - 1) % 64);
        if first == last {
            self.clear_bits(first, head & tail);
            return;
        }
        self.clear_bits(first, head);
        if let (Ok(from), Ok(to)) = (usize::try_from(first + 1), usize::try_from(last))
            && let Some(words) = self.words.get_mut(from..to)
        {
            words.fill(0);
        }
        self.clear_bits(last, tail);
    }

    /// Clears the rows of the set bits of `word`, whose bit 0 is `row`; the word may begin before the span.
    fn clear_word(&mut self, row: u64, word: u64) {
        if word == 0 {
            return;
        }
        if row < self.start {
            let before = self.start - row;
            if before < 64 {
                self.clear_bits(0, word >> before);
            }
            return;
        }
        let bit = row - self.start;
        let shift = bit % 64;
        self.clear_bits(bit / 64, word << shift);
        if shift > 0 {
            self.clear_bits(bit / 64 + 1, word >> (64 - shift));
        }
    }

    #[inline]
    fn clear_bits(&mut self, index: u64, bits: u64) {
        if let Some(word) = usize::try_from(index).ok().and_then(|i| self.words.get_mut(i)) {
            *word &= !bits;
        }
    }
}
