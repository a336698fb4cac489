//! The tail of an ORC file: postscript, footer, the places of its stripes.
//!
//! Invariants: every length was checked against the file's size; stripes lie in the file before
//! the footer; the rows of the stripes are those of the footer.

use std::sync::Arc;

use arrow::datatypes::{DataType, Fields, TimeUnit};
use bytes::Bytes;
use prost::Message;

use super::super::ScanContext;
use super::super::adapt::{Adapt, Read};
use super::super::resolve::ReadPlan;
use super::codec::Codec;
use super::proto::{Footer, PostScript};
use super::types::{Node, columns};
use crate::cache::{CacheKey, CacheKind};
use crate::error::{Error, Result, ResultExt};
use crate::io::{FileKind, TableIo};

/// Read at the end of a file in one go; most tails fit.
const TAIL_GUESS: u64 = 64 << 10;
/// Largest footer that is read, compressed and decompressed.
const FOOTER_LIMIT: usize = 64 << 20;

/// A file whose tail was read.
#[derive(Debug)]
pub(in crate::scan) struct OrcFile {
    pub(super) codec: Codec,
    pub(super) columns: Vec<Node>,
    /// Number of types, the root included.
    pub(super) types: usize,
    pub(super) stripes: Vec<StripePlace>,
    /// Columns with their field ids.
    pub(in crate::scan) fields: Fields,
}

/// Where a stripe lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct StripePlace {
    pub(super) offset: u64,
    /// Bytes of index and data streams.
    pub(super) streams: u64,
    pub(super) footer: u64,
    pub(super) rows: u64,
}

impl OrcFile {
    /// Rows of each stripe.
    pub(in crate::scan) fn stripe_rows(&self) -> impl Iterator<Item = u64> + '_ {
        self.stripes.iter().map(|stripe| stripe.rows)
    }

    /// Bytes of a stripe in the file.
    pub(in crate::scan) fn stripe_bytes(&self, stripe: usize) -> u64 {
        self.stripes.get(stripe).map_or(0, |place| place.streams + place.footer)
    }

    /// Refuses to read a local time as an instant or the reverse: what a local time is in UTC the
    /// file does not say.
    pub(in crate::scan) fn check_zones(&self, plan: &ReadPlan) -> Result<()> {
        let kept = self.project(&plan.leaves);
        let fields: Fields = kept.iter().map(|node| Arc::clone(&node.field)).collect();
        plan.reads.iter().try_for_each(|read| check_read(read, &fields))
    }

    /// The columns that the leaves (ascending) belong to, cut down to them.
    pub(super) fn project(&self, leaves: &[usize]) -> Vec<Node> {
        let mut next = 0;
        let mut kept = Vec::new();
        for column in &self.columns {
            kept.extend(column.project(leaves, next));
            next += column.leaf_count();
        }
        kept
    }
}

fn check_read(read: &Read, fields: &Fields) -> Result<()> {
    match read {
        Read::Column { index, adapt } => match fields.get(*index) {
            Some(field) => check_adapt(adapt, field.data_type()).context("column", || field.name()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_adapt(adapt: &Adapt, file: &DataType) -> Result<()> {
    match (adapt, file) {
        (Adapt::Cast(to @ DataType::Timestamp(_, to_zone)), DataType::Timestamp(_, zone)) if to_zone.is_some() != zone.is_some() => {
            Err(Error::corrupt(format!("orc column has type {file}, which cannot be read as {to}")))
        }
        (Adapt::Struct { reads, .. }, DataType::Struct(fields)) => reads.iter().try_for_each(|read| check_read(read, fields)),
        (Adapt::List { adapt, .. }, DataType::List(element)) => check_adapt(adapt, element.data_type()),
        (Adapt::Map { key, value, .. }, DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(pair) => {
                let sides = pair.iter().zip([key, value]);
                sides
                    .into_iter()
                    .try_for_each(|(field, adapt)| check_adapt(adapt, field.data_type()))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Opens a file through the cache.
pub(in crate::scan) async fn open(io: &TableIo, context: &Arc<ScanContext>, location: &Arc<str>) -> Result<Arc<OrcFile>> {
    let key = CacheKey::new(CacheKind::OrcTail, Arc::clone(location), io.cache_scope());
    context
        .caches
        .metadata
        .get_or_load(key, load(io, context, location))
        .await
        .context("file", || location)
}

async fn load(io: &TableIo, context: &Arc<ScanContext>, location: &str) -> Result<(OrcFile, usize)> {
    let size = io.size(location, FileKind::Footer).await?;
    let guess = read(io, location, size - size.min(TAIL_GUESS)..size).await?;
    let (postscript, end) = postscript(&guess)?;
    let codec = Codec::new(postscript.compression.unwrap_or(0), postscript.compression_block_size)?;
    let length = postscript.footer_length.unwrap_or(0);
    let behind = (guess.len() - end) as u64;
    let footer_end = size - behind;
    let start = footer_end
        .checked_sub(length)
        .filter(|_| length <= FOOTER_LIMIT as u64)
        .ok_or_else(|| Error::corrupt(format!("orc footer claims {length} bytes of a file of {size}")))?;
    let footer = match usize::try_from(length).ok().and_then(|length| end.checked_sub(length)) {
        Some(from) => guess.slice(from..end),
        None => read(io, location, start..footer_end).await?,
    };
    let file = context.pool.spawn(move |_| parse(&footer, codec, start)).await?;
    let weight = usize::try_from(length)
        .unwrap_or(usize::MAX)
        .saturating_mul(8)
        .saturating_add(file.types * 300);
    Ok((file, weight))
}

async fn read(io: &TableIo, location: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
    let parts = io.read_ranges(location, FileKind::Footer, &[range]).await?;
    parts.into_iter().next().ok_or_else(|| Error::internal("a range read gave nothing"))
}

/// The postscript, and where in `tail` it starts.
fn postscript(tail: &[u8]) -> Result<(PostScript, usize)> {
    let not_orc = || Error::corrupt("not an orc file: it does not end with a postscript");
    let (length, rest) = tail.split_last().ok_or_else(not_orc)?;
    let start = rest.len().checked_sub(usize::from(*length)).ok_or_else(not_orc)?;
    let message = rest.get(start..).ok_or_else(not_orc)?;
    let postscript = PostScript::decode(message).map_err(|e| not_orc().with_source(e))?;
    if postscript.magic.as_deref() != Some("ORC") {
        return Err(not_orc());
    }
    match postscript.version.as_slice() {
        [] | [0, 11 | 12, ..] => Ok((postscript, start)),
        version => Err(Error::unsupported(format!("orc file version {version:?} cannot be read"))),
    }
}

/// The footer; `end` is where in the file it starts.
fn parse(bytes: &[u8], codec: Codec, end: u64) -> Result<OrcFile> {
    let mut plain = Vec::new();
    codec.decompress(bytes, &mut plain, FOOTER_LIMIT)?;
    let footer = Footer::decode(plain.as_slice()).map_err(|e| Error::corrupt("the orc footer is damaged").with_source(e))?;
    if footer.encryption.is_some_and(|message| !message.is_empty()) {
        return Err(Error::unsupported("orc files with encrypted columns cannot be read"));
    }
    let columns = columns(&footer.types)?;
    let mut stripes = Vec::with_capacity(footer.stripes.len());
    let mut rows = 0u64;
    for stripe in &footer.stripes {
        let outside = || Error::corrupt("an orc stripe does not lie in its file");
        let offset = stripe.offset.unwrap_or(0);
        let lengths = [stripe.index_length, stripe.data_length].map(Option::unwrap_or_default);
        let streams = lengths[0].checked_add(lengths[1]).ok_or_else(outside)?;
        let footer = stripe.footer_length.unwrap_or(0);
        let last = offset.checked_add(streams).and_then(|at| at.checked_add(footer));
        if last.is_none_or(|last| last > end) {
            return Err(outside());
        }
        let count = stripe.number_of_rows.unwrap_or(0);
        rows = rows.checked_add(count).ok_or_else(|| Error::corrupt("orc row counts overflow"))?;
        stripes.push(StripePlace {
            offset,
            streams,
            footer,
            rows: count,
        });
    }
    if rows != footer.number_of_rows.unwrap_or(0) {
        return Err(Error::corrupt(format!(
            "the stripes of the orc file have {rows} rows, its footer says {}",
            footer.number_of_rows.unwrap_or(0)
        )));
    }
    Ok(OrcFile {
        codec,
        types: footer.types.len(),
        fields: columns.iter().map(|node| Arc::clone(&node.field)).collect(),
        columns,
        stripes,
    })
}

/// A file whose bytes are all at hand.
#[cfg(test)]
pub(super) fn parse_file(bytes: &Bytes) -> Result<OrcFile> {
    let (postscript, end) = postscript(bytes)?;
    let codec = Codec::new(postscript.compression.unwrap_or(0), postscript.compression_block_size)?;
    let start = end - usize::try_from(postscript.footer_length.unwrap_or(0)).unwrap_or(usize::MAX);
    parse(&bytes.slice(start..end), codec, start as u64)
}

/// Nanoseconds in a unit of a timestamp.
pub(super) fn nanos_in(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}
