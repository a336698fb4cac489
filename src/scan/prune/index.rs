//! The page index of a Parquet file (parquet-format `PageIndex.md`; parquet.thrift `ColumnIndex`,
//! `OffsetIndex`), read by our own decoder.
//!
//! Invariants: no bytes make this panic or allocate more than a small multiple of themselves; an
//! index whose pages do not lie in their chunk one behind the other, or whose rows do not ascend
//! from 0, is none.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;

use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, Result};
use crate::io::{FileKind, TableIo};
use crate::scan::footer_repair::{MAX_DEPTH, field_header, list_header, skip, take, varint, wire};

/// Largest page index of a file that is read.
const INDEX_LIMIT: u64 = 32 << 20;

/// Bytes of a page location at least: three fields, each with a header, and the end.
const PAGE_BYTES: usize = 7;

/// The part of a file that holds its page index.
#[derive(Debug)]
pub(super) struct PageIndex {
    start: u64,
    bytes: Bytes,
}

impl PageIndex {
    /// The index of a file; `None` where it has none or one that cannot be where it is said to be.
    pub(super) async fn load(
        io: &TableIo,
        caches: &Caches,
        location: &Arc<str>,
        metadata: &ArrowReaderMetadata,
    ) -> Result<Option<Arc<Self>>> {
        let columns = metadata.metadata().row_groups().iter().flat_map(|g| g.columns());
        let spans = columns.flat_map(|c| [column_span(c), offset_span(c)]).flatten();
        let Some(all) = spans.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end)) else {
            return Ok(None);
        };
        if all.end - all.start > INDEX_LIMIT {
            return Ok(None);
        }
        let key = CacheKey::new(CacheKind::ParquetPageIndex, Arc::clone(location), io.cache_scope());
        let index = caches
            .metadata
            .get_or_load(key, async {
                let size = io.size(location, FileKind::Footer).await?;
                let bytes = if all.end > size {
                    Bytes::new()
                } else {
                    let parts = io.read_ranges(location, FileKind::Footer, std::slice::from_ref(&all)).await?;
                    parts
                        .into_iter()
                        .next()
                        .ok_or_else(|| Error::internal("a range read gave nothing"))?
                };
                let weight = bytes.len();
                Ok((Self { start: all.start, bytes }, weight))
            })
            .await?;
        Ok(Some(index))
    }

    fn slice(&self, span: Range<u64>) -> Option<&[u8]> {
        let from = usize::try_from(span.start.checked_sub(self.start)?).ok()?;
        let to = usize::try_from(span.end.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..to)
    }

    /// The pages of a column chunk of a row group of `rows` rows.
    pub(super) fn pages(&self, chunk: &ColumnChunkMetaData, rows: u64) -> Option<Vec<Page>> {
        let pages = parse_pages(self.slice(offset_span(chunk)?)?)?;
        is_consistent(&pages, chunk, rows).then_some(pages)
    }

    /// What is known of the values of each of the `pages` pages of a column chunk.
    pub(super) fn statistics(&self, chunk: &ColumnChunkMetaData, pages: usize) -> Option<Vec<PageStatistics<'_>>> {
        parse_statistics(self.slice(column_span(chunk)?)?, pages)
    }
}

fn span(offset: Option<i64>, length: Option<i32>) -> Option<Range<u64>> {
    let (offset, length) = (u64::try_from(offset?).ok()?, u64::try_from(length?).ok()?);
    (length > 0).then_some(offset..offset.checked_add(length)?)
}

fn column_span(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    span(chunk.column_index_offset(), chunk.column_index_length())
}

fn offset_span(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    span(chunk.offset_index_offset(), chunk.offset_index_length())
}

/// A data page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) offset: i64,
    /// Bytes with header.
    pub(super) size: i32,
    /// Its first row in the row group.
    pub(super) first_row: u64,
}

/// What is known of the values of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageStatistics<'a> {
    pub(super) is_null: bool,
    pub(super) lower: &'a [u8],
    pub(super) upper: &'a [u8],
    pub(super) nulls: Option<u64>,
}

/// The rows of each page.
pub(super) fn page_rows(pages: &[Page], rows: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let ends = pages.iter().skip(1).map(|p| p.first_row).chain([rows]);
    pages.iter().zip(ends).map(|(page, end)| page.first_row..end)
}

/// The index in the form that the decoder takes.
pub(super) fn offset_index(pages: &[Page], rows: u64) -> OffsetIndexMetaData {
    let mut builder = OffsetIndexBuilder::new();
    for (page, span) in pages.iter().zip(page_rows(pages, rows)) {
        builder.append_row_count(i64::try_from(span.end - span.start).unwrap_or(i64::MAX));
        builder.append_offset_and_size(page.offset, page.size);
    }
    builder.build()
}

/// Whether the pages follow each other inside of their chunk, and so do their rows.
fn is_consistent(pages: &[Page], chunk: &ColumnChunkMetaData, rows: u64) -> bool {
    // Some writers give an offset of 0 where there is no dictionary.
    let start = match chunk.dictionary_page_offset() {
        Some(dictionary) if dictionary > 0 && dictionary < chunk.data_page_offset() => dictionary,
        _ => chunk.data_page_offset(),
    };
    let Some(end) = start.checked_add(chunk.compressed_size()) else {
        return false;
    };
    let Some(first) = pages.first() else { return false };
    if first.first_row != 0 || first.offset < start || start < 0 {
        return false;
    }
    let mut behind = start;
    for (page, span) in pages.iter().zip(page_rows(pages, rows)) {
        let Some(page_end) = page.offset.checked_add(i64::from(page.size)) else {
            return false;
        };
        if page.size <= 0 || page.offset < behind || page_end > end || span.start >= span.end {
            return false;
        }
        behind = page_end;
    }
    true
}

fn parse_pages(mut from: &[u8]) -> Option<Vec<Page>> {
    let mut pages = None;
    let mut last = 0;
    while let Some((id, kind)) = field_header(&mut from, last)? {
        last = id;
        if id != 1 || kind != wire::LIST {
            skip(&mut from, kind, MAX_DEPTH)?;
            continue;
        }
        let (element, size) = list_header(&mut from)?;
        if element != wire::STRUCT {
            return None;
        }
        if size > from.len() / PAGE_BYTES {
            return None;
        }
        let mut list = Vec::with_capacity(size);
        for _ in 0..size {
            list.push(parse_page(&mut from)?);
        }
        pages = Some(list);
    }
    pages
}

fn parse_page(from: &mut &[u8]) -> Option<Page> {
    let (mut offset, mut size, mut first_row) = (None, None, None);
    let mut last = 0;
    while let Some((id, kind)) = field_header(from, last)? {
        last = id;
        match (id, kind) {
            (1, wire::I64) => offset = Some(integer(from)?),
            (2, wire::I32) => size = Some(i32::try_from(integer(from)?).ok()?),
            (3, wire::I64) => first_row = Some(u64::try_from(integer(from)?).ok()?),
            _ => skip(from, kind, MAX_DEPTH)?,
        }
    }
    Some(Page {
        offset: offset?,
        size: size?,
        first_row: first_row?,
    })
}

fn parse_statistics(mut from: &[u8], count: usize) -> Option<Vec<PageStatistics<'_>>> {
    let (mut is_null, mut lower, mut upper, mut nulls) = (None, None, None, None);
    let mut last = 0;
    while let Some((id, kind)) = field_header(&mut from, last)? {
        last = id;
        if kind != wire::LIST {
            skip(&mut from, kind, MAX_DEPTH)?;
            continue;
        }
        let start = from;
        let (element, size) = list_header(&mut from)?;
        if matches!(id, 1..=3 | 5) && size != count {
            return None;
        }
        match (id, element) {
            (1, wire::TRUE | wire::FALSE) => is_null = Some(take(&mut from, size)?),
            (2 | 3, wire::BINARY) => {
                let values = (0..size).map(|_| binary(&mut from)).collect::<Option<Vec<_>>>()?;
                if id == 2 {
                    lower = Some(values);
                } else {
                    upper = Some(values);
                }
            }
            (5, wire::I64) => nulls = Some((0..size).map(|_| integer(&mut from)).collect::<Option<Vec<_>>>()?),
            _ => {
                from = start;
                skip(&mut from, wire::LIST, MAX_DEPTH)?;
            }
        }
    }
    let (is_null, lower, upper) = (is_null?, lower?, upper?);
    if lower.len() != is_null.len() || upper.len() != is_null.len() || nulls.as_ref().is_some_and(|n| n.len() != is_null.len()) {
        return None;
    }
    let pages = is_null.iter().zip(lower).zip(upper).enumerate();
    Some(
        pages
            .map(|(i, ((flag, lower), upper))| PageStatistics {
                is_null: *flag == 1,
                lower,
                upper,
                nulls: nulls.as_ref().and_then(|n| u64::try_from(*n.get(i)?).ok()),
            })
            .collect(),
    )
}

/// A zigzag number.
fn integer(from: &mut &[u8]) -> Option<i64> {
    let zigzag = varint(from)?;
    Some((zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed()))
}

fn binary<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(from)?).ok()?;
    take(from, length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_offset_index_is_read() {
        // {1: [{1: 4, 2: 10, 3: 0}, {1: 14, 2: 5, 3: 100}]}
        let bytes = [0x19, 0x2c, 0x16, 8, 0x15, 20, 0x16, 0, 0, 0x16, 28, 0x15, 10, 0x16, 0xc8, 1, 0, 0];
        let pages = parse_pages(&bytes).unwrap();
        let page = |offset, size, first_row| Page { offset, size, first_row };
        assert_eq!(pages, [page(4, 10, 0), page(14, 5, 100)]);
        assert_eq!(page_rows(&pages, 130).collect::<Vec<_>>(), [0..100, 100..130]);
        for cut in 0..bytes.len() - 1 {
            assert_eq!(parse_pages(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_column_index_is_read() {
        // {1: [false, true], 2: ["a", ""], 3: ["b", ""], 4: 0, 5: [1, 7]}
        let bytes = [
            0x19, 0x21, 2, 1, 0x19, 0x28, 1, b'a', 0, 0x19, 0x28, 1, b'b', 0, 0x15, 0, 0x19, 0x26, 2, 14, 0,
        ];
        assert_eq!(parse_statistics(&bytes, 3), None);
        let pages = parse_statistics(&bytes, 2).unwrap();
        let page = |is_null, lower, upper, nulls| PageStatistics {
            is_null,
            lower,
            upper,
            nulls: Some(nulls),
        };
        let nothing: &[u8] = b"";
        assert_eq!(pages, [page(false, b"a".as_slice(), b"b", 1), page(true, nothing, nothing, 7)]);
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_pages(&bytes), parse_statistics(&bytes, 3));
        }
    }
}
