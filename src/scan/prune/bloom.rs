//! Bloom filters of column chunks (parquet-format `BloomFilter.md`): does a row group hold a value?
//!
//! Only for physical types that hold a value in one form alone: not for floats, nor for decimals
//! in bytes or values of another unit.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::bloom_filter::Sbbf;

use super::leaf::{Decode, Leaf};
use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, Result};
use crate::io::{FileKind, TableIo};
use crate::scan::footer_repair::{MAX_DEPTH, field_header, skip, varint, wire};
use crate::table::{ColumnStats, Comparison, Datum, Facts, Predicate, Test};

/// Largest filter that is read.
const FILTER_LIMIT: u64 = 64 << 20;
/// A header takes about 20 bytes.
const HEADER_GUESS: u64 = 64;

/// A filter, or nothing where there is none that can be used.
#[derive(Debug)]
pub(super) struct Filter(Option<Sbbf>);

/// The columns for which a filter can decide a term of the predicate.
pub(super) fn wanted(predicate: &Predicate) -> Vec<i32> {
    let mut ids = Vec::new();
    predicate.visit(&mut |id, test| {
        if matches!(test, Test::Compare(Comparison::Eq, _) | Test::In(_)) && !ids.contains(&id) {
            ids.push(id);
        }
    });
    ids
}

impl Filter {
    /// The filter of a column chunk; `None` where it says to have none.
    pub(super) async fn load(
        io: &TableIo,
        caches: &Caches,
        location: &Arc<str>,
        metadata: &ArrowReaderMetadata,
        row_group: usize,
        leaf: &Leaf,
    ) -> Result<Option<Arc<Self>>> {
        let chunk = metadata
            .metadata()
            .row_groups()
            .get(row_group)
            .and_then(|g| g.columns().get(leaf.index));
        let Some(chunk) = chunk else { return Ok(None) };
        let Some(start) = chunk.bloom_filter_offset().and_then(|o| u64::try_from(o).ok()) else {
            return Ok(None);
        };
        let part = ((row_group as u64) << 32 | leaf.index as u64) ^ io.cache_scope();
        let key = CacheKey::new(CacheKind::ParquetBloomFilter, Arc::clone(location), part);
        let filter = caches
            .metadata
            .get_or_load(key, async {
                let size = io.size(location, FileKind::Footer).await?;
                let filter = read(io, location, start, size).await?;
                let weight = filter.as_ref().map_or(0, |f| f.num_blocks() * 32);
                Ok((Self(filter), weight))
            })
            .await?;
        Ok(Some(filter))
    }

    /// False when no row of the chunk has the value.
    fn may_contain(&self, decode: Decode, value: &Datum) -> bool {
        let Some(filter) = &self.0 else { return true };
        match (decode, value) {
            // A number that the file's type cannot have is in no row.
            (Decode::Int32(1), Datum::Number(v)) => i32::try_from(*v).is_ok_and(|v| filter.check(&v)),
            (Decode::Int64(1), Datum::Number(v)) => i64::try_from(*v).is_ok_and(|v| filter.check(&v)),
            (Decode::Text | Decode::Bytes, Datum::Bytes(v)) => filter.check(v.as_slice()),
            _ => true,
        }
    }
}

async fn read(io: &TableIo, location: &str, start: u64, size: u64) -> Result<Option<Sbbf>> {
    if start >= size {
        return Ok(None);
    }
    let head = range(io, location, start..size.min(start + HEADER_GUESS)).await?;
    let Some((header, length)) = parse_header(&head) else {
        return Ok(None);
    };
    let start = start + header;
    if length > FILTER_LIMIT || start + length > size {
        return Ok(None);
    }
    let bits = range(io, location, start..start + length).await?;
    Ok(Some(Sbbf::new(&bits)))
}

async fn range(io: &TableIo, location: &str, range: Range<u64>) -> Result<Bytes> {
    let parts = io.read_ranges(location, FileKind::Footer, &[range]).await?;
    parts.into_iter().next().ok_or_else(|| Error::internal("a range read gave nothing"))
}

/// Length of the header and of the bits behind it; `None` for a filter of another kind than split
/// blocks, XXH64 and no compression.
fn parse_header(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut from = bytes;
    let (mut length, mut kinds) = (None, 0);
    let mut last = 0;
    while let Some((id, kind)) = field_header(&mut from, last)? {
        last = id;
        match (id, kind) {
            (1, wire::I32) => {
                let zigzag = varint(&mut from)?;
                length = (zigzag & 1 == 0).then_some(zigzag >> 1);
            }
            // Unions of one member each, whose number is 1.
            (2..=4, wire::STRUCT) => {
                let (member, kind) = field_header(&mut from, 0)??;
                if member != 1 {
                    return None;
                }
                skip(&mut from, kind, MAX_DEPTH)?;
                field_header(&mut from, member)?.is_none().then_some(())?;
                kinds += 1;
            }
            _ => skip(&mut from, kind, MAX_DEPTH)?,
        }
    }
    let length = length.filter(|l| *l > 0 && l % 32 == 0)?;
    (kinds == 3).then_some(((bytes.len() - from.len()) as u64, length))
}

/// Filters of a row group together with what else is known of it.
pub(super) struct BloomFacts<'a> {
    pub(super) filters: &'a HashMap<i32, (Decode, Arc<Filter>)>,
    /// Statistics of the same rows.
    pub(super) statistics: Option<&'a dyn Facts>,
}

impl Facts for BloomFacts<'_> {
    fn column(&self, field_id: i32) -> ColumnStats {
        self.statistics.map_or_else(ColumnStats::unknown, |s| s.column(field_id))
    }

    fn may_contain(&self, field_id: i32, value: &Datum) -> bool {
        self.filters
            .get(&field_id)
            .is_none_or(|(decode, filter)| filter.may_contain(*decode, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        // {1: 64, 2: {1: {}}, 3: {1: {}}, 4: {1: {}}} and the first bits
        let bytes = [0x15, 0x80, 1, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0, 0xff, 0xff];
        assert_eq!(parse_header(&bytes), Some((16, 64)));
        for cut in 0..16 {
            assert_eq!(parse_header(&bytes[..cut]), None, "{cut}");
        }
        let mut other = bytes;
        other[8] = 0x2c; // another hash
        assert_eq!(parse_header(&other), None);
        other = bytes;
        other[1] = 0x82; // 65 bytes are no blocks
        assert_eq!(parse_header(&other), None);
    }

    #[test]
    fn values_are_looked_up_in_the_form_of_the_file() {
        let mut bits = Sbbf::new_with_num_of_bytes(1024);
        bits.insert(&7i32);
        bits.insert("abc");
        let filter = Filter(Some(bits));
        assert!(filter.may_contain(Decode::Int32(1), &Datum::Number(7)));
        assert!(!filter.may_contain(Decode::Int32(1), &Datum::Number(8)));
        assert!(!filter.may_contain(Decode::Int32(1), &Datum::Number(1 << 40)));
        assert!(filter.may_contain(Decode::Int32(1_000), &Datum::Number(8)));
        assert!(filter.may_contain(Decode::Text, &Datum::Bytes(b"abc".to_vec())));
        assert!(!filter.may_contain(Decode::Text, &Datum::Bytes(b"abd".to_vec())));
        assert!(filter.may_contain(Decode::Double, &Datum::Float(1.0)));
        assert!(Filter(None).may_contain(Decode::Int32(1), &Datum::Number(8)));
    }
}
