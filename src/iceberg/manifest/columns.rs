//! Column storage of a manifest: sparse integer columns, strings in one arena, and statistics
//! as flat arrays.
//!
//! Invariants: offsets fit `u32` (a manifest that needs more is refused); ids within one
//! entry's statistics are strictly ascending, so a field is found by binary search.

use super::entry::Flags;
use crate::error::{Error, ErrorKind, Result};

/// Marks an absent value in an integer column. Not a legal value of any of these columns.
const ABSENT: i64 = i64::MIN;

/// A range in an arena.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

fn too_large() -> Error {
    Error::new(ErrorKind::ResourceExhausted, "manifest needs more than 4 GiB of memory")
}

fn offset(value: usize) -> Result<u32> {
    u32::try_from(value).map_err(|_| too_large())
}

/// Bytes of all strings and bounds of a manifest, end to end.
#[derive(Debug, Default)]
pub(super) struct Arena(Vec<u8>);

impl Arena {
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Span> {
        let span = Span {
            start: offset(self.0.len())?,
            len: offset(bytes.len())?,
        };
        offset(self.0.len() + bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(span)
    }

    pub(super) fn get(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.0.get(start..start + span.len as usize).unwrap_or_default()
    }

    /// The text of a span that was checked to be UTF-8 when it was pushed.
    pub(super) fn text(&self, span: Span) -> &str {
        std::str::from_utf8(self.get(span)).unwrap_or_default()
    }

    fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    fn memory(&self) -> usize {
        self.0.capacity()
    }
}

/// Optional integers; takes no memory behind the last present value.
#[derive(Debug, Default)]
pub(super) struct OptionColumn(Vec<i64>);

impl OptionColumn {
    pub(super) fn set(&mut self, row: usize, value: Option<i64>) {
        if let Some(value) = value {
            self.0.resize(row, ABSENT);
            self.0.push(value);
        }
    }

    pub(super) fn get(&self, row: usize) -> Option<i64> {
        self.0.get(row).copied().filter(|v| *v != ABSENT)
    }

    fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    fn memory(&self) -> usize {
        self.0.capacity() * size_of::<i64>()
    }
}

/// Optional lists of numbers, flat; takes no memory behind the last present list.
#[derive(Debug)]
pub(super) struct ListColumn<T> {
    /// `None` where the list is null.
    spans: Vec<Option<Span>>,
    values: Vec<T>,
}

impl<T> Default for ListColumn<T> {
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<T: Copy> ListColumn<T> {
    pub(super) fn set(&mut self, row: usize, list: Option<&[T]>) -> Result<()> {
        if let Some(list) = list {
            let span = Span {
                start: offset(self.values.len())?,
                len: offset(list.len())?,
            };
            self.values.extend_from_slice(list);
            self.spans.resize(row, None);
            self.spans.push(Some(span));
        }
        Ok(())
    }

    pub(super) fn get(&self, row: usize) -> Option<&[T]> {
        let span = (*self.spans.get(row)?)?;
        let start = span.start as usize;
        self.values.get(start..start + span.len as usize)
    }

    fn shrink(&mut self) {
        self.spans.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Option<Span>>() + self.values.capacity() * size_of::<T>()
    }
}

/// One statistic (a map of field id to value) of all entries. Runs of entries with the same
/// ids share one list of ids.
#[derive(Debug)]
pub(super) struct StatColumn<V> {
    /// Where the ids, and where the values of an entry start; the length is that of `ids`.
    entries: Vec<(Span, u32)>,
    ids: Vec<i32>,
    values: Vec<V>,
}

impl<V> Default for StatColumn<V> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            ids: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl<V: Copy> StatColumn<V> {
    /// Sets the map of an entry. Of equal ids the last one counts, as in a map that is filled in order.
    pub(super) fn set(&mut self, row: usize, pairs: &mut Vec<(i32, V)>) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        if !pairs.is_sorted_by(|a, b| a.0 < b.0) {
            pairs.reverse();
            pairs.sort_by_key(|(id, _)| *id);
            pairs.dedup_by_key(|(id, _)| *id);
        }
        let previous = self.entries.last().map(|(span, _)| *span).unwrap_or_default();
        let ids = if self.ids_of(previous).iter().eq(pairs.iter().map(|(id, _)| id)) {
            previous
        } else {
            let span = Span {
                start: offset(self.ids.len())?,
                len: offset(pairs.len())?,
            };
            self.ids.extend(pairs.iter().map(|(id, _)| *id));
            span
        };
        let start = offset(self.values.len())?;
        self.values.extend(pairs.iter().map(|(_, value)| *value));
        self.entries.resize(row, (Span::default(), 0));
        self.entries.push((ids, start));
        Ok(())
    }

    fn ids_of(&self, span: Span) -> &[i32] {
        let start = span.start as usize;
        self.ids.get(start..start + span.len as usize).unwrap_or_default()
    }

    /// Ids and values of an entry, ids ascending.
    pub(super) fn get(&self, row: usize) -> (&[i32], &[V]) {
        let Some((span, start)) = self.entries.get(row) else {
            return (&[], &[]);
        };
        let ids = self.ids_of(*span);
        let start = *start as usize;
        (ids, self.values.get(start..start + ids.len()).unwrap_or_default())
    }

    /// The value of one field.
    pub(super) fn find(&self, row: usize, field_id: i32) -> Option<V> {
        let (ids, values) = self.get(row);
        let at = ids.binary_search(&field_id).ok()?;
        values.get(at).copied()
    }

    fn shrink(&mut self) {
        self.entries.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<(Span, u32)>()
            + self.ids.capacity() * size_of::<i32>()
            + self.values.capacity() * size_of::<V>()
    }
}

/// All columns of a manifest; row `i` is entry `i`.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// Status in bits 0-1, content in bits 2-3, format in bits 4-5, key metadata in bit 6.
    pub(super) flags: Vec<u8>,
    pub(super) partition: Vec<u32>,
    pub(super) path: Vec<Span>,
    pub(super) sequence_number: Vec<i64>,
    pub(super) record_count: Vec<u64>,
    pub(super) file_size: Vec<u64>,
    pub(super) snapshot_id: OptionColumn,
    pub(super) file_sequence_number: OptionColumn,
    pub(super) sort_order_id: OptionColumn,
    pub(super) first_row_id: OptionColumn,
    pub(super) content_offset: OptionColumn,
    pub(super) content_size: OptionColumn,
    pub(super) referenced: ListColumn<u8>,
    pub(super) split_offsets: ListColumn<i64>,
    pub(super) equality_ids: ListColumn<i32>,
    pub(super) key_metadata: ListColumn<u8>,
    /// Empty unless asked for.
    pub(super) column_sizes: StatColumn<u64>,
    pub(super) value_counts: StatColumn<u64>,
    pub(super) null_value_counts: StatColumn<u64>,
    pub(super) nan_value_counts: StatColumn<u64>,
    pub(super) lower_bounds: StatColumn<Span>,
    pub(super) upper_bounds: StatColumn<Span>,
    pub(super) arena: Arena,
}

impl Columns {
    /// Rows of existing, added and deleted files.
    pub(super) fn rows_by_status(&self) -> [u64; 3] {
        let mut rows = [0_u64; 3];
        for (flags, count) in self.flags.iter().zip(&self.record_count) {
            let slot = &mut rows[Flags::unpack(*flags).status as usize];
            *slot = slot.saturating_add(*count);
        }
        rows
    }

    pub(super) fn shrink(&mut self) {
        self.flags.shrink_to_fit();
        self.partition.shrink_to_fit();
        self.path.shrink_to_fit();
        self.sequence_number.shrink_to_fit();
        self.record_count.shrink_to_fit();
        self.file_size.shrink_to_fit();
        for column in [
            &mut self.snapshot_id,
            &mut self.file_sequence_number,
            &mut self.sort_order_id,
            &mut self.first_row_id,
            &mut self.content_offset,
            &mut self.content_size,
        ] {
            column.shrink();
        }
        self.referenced.shrink();
        self.split_offsets.shrink();
        self.equality_ids.shrink();
        self.key_metadata.shrink();
        self.column_sizes.shrink();
        self.value_counts.shrink();
        self.null_value_counts.shrink();
        self.nan_value_counts.shrink();
        self.lower_bounds.shrink();
        self.upper_bounds.shrink();
        self.arena.shrink();
    }

    pub(super) fn memory(&self) -> usize {
        self.flags.capacity()
            + self.partition.capacity() * size_of::<u32>()
            + self.path.capacity() * size_of::<Span>()
            + self.sequence_number.capacity() * size_of::<i64>()
            + (self.record_count.capacity() + self.file_size.capacity()) * size_of::<u64>()
            + self.snapshot_id.memory()
            + self.file_sequence_number.memory()
            + self.sort_order_id.memory()
            + self.first_row_id.memory()
            + self.content_offset.memory()
            + self.content_size.memory()
            + self.referenced.memory()
            + self.split_offsets.memory()
            + self.equality_ids.memory()
            + self.key_metadata.memory()
            + self.column_sizes.memory()
            + self.value_counts.memory()
            + self.null_value_counts.memory()
            + self.nan_value_counts.memory()
            + self.lower_bounds.memory()
            + self.upper_bounds.memory()
            + self.arena.memory()
    }
}
