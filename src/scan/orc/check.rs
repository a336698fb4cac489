//! Checks the streams of a stripe before `orc-rust` sees them: how many values each column must
//! have, followed from the rows down through PRESENT and LENGTH streams, and that they are there.
//!
//! `orc-rust` allocates what a list's lengths add up to, takes a PRESENT stream that ends too
//! early for one without nulls, and computes with scales, seconds and nanoseconds as they come.
//! Numbers of values are bounded by the bytes at hand: no encoding puts more than
//! [`VALUES_PER_BYTE`] values into a byte.

use arrow::datatypes::DataType;

use super::integers::Integers;
use super::types::{Node, kind};
use crate::error::{Error, Result};

/// A boolean run of two bytes has 130 times 8 values.
const VALUES_PER_BYTE: u64 = 520;
/// Bytes that the lists of one batch may take, whatever they took in the file.
const BATCH_LIMIT: u64 = 1 << 30;
/// Seconds from 2015 that a timestamp may be away: 250,000 years.
const MAX_SECONDS: u64 = 7_900_000_000_000;

/// Streams of a column, decompressed.
#[derive(Debug, Default)]
pub(super) struct Streams<'a> {
    pub(super) present: Option<&'a [u8]>,
    pub(super) data: &'a [u8],
    pub(super) length: &'a [u8],
    pub(super) dictionary: &'a [u8],
    pub(super) secondary: &'a [u8],
    /// Second version of the integer encoding.
    pub(super) v2: bool,
    /// `Some` for a dictionary: its entries.
    pub(super) dictionary_size: Option<u64>,
}

fn short(what: &str) -> Error {
    Error::corrupt(format!("an orc {what} stream ends too early"))
}

/// Checks a column that has `rows` values, nulls included, and the columns below it. At most
/// `batch_rows` values of it are decoded at a time.
pub(super) fn check<'a>(node: &Node, rows: u64, batch_rows: u64, streams: &dyn Fn(u32) -> Streams<'a>) -> Result<()> {
    let own = streams(node.column);
    let live = match own.present {
        Some(present) => count_ones(present, rows)?,
        None => rows,
    };
    match node.kind {
        kind::STRUCT => node.children.iter().try_for_each(|child| check(child, live, batch_rows, streams)),
        kind::LIST | kind::MAP => {
            let (total, in_batch) = lists(node, live, batch_rows, &own)?;
            let bytes: u64 = node.children.iter().map(|child| bytes_below(child, streams)).sum();
            if total > bytes.saturating_mul(VALUES_PER_BYTE) {
                return Err(Error::corrupt(format!("orc lists of {total} values have {bytes} bytes of values")));
            }
            node.children.iter().try_for_each(|child| check(child, total, in_batch, streams))
        }
        kind::STRING | kind::VARCHAR | kind::CHAR | kind::BINARY => match own.dictionary_size {
            Some(size) => {
                check_text(&own, size, own.dictionary)?;
                integers(own.data, own.v2, live, false, |index| index < size)
            }
            None => check_text(&own, live, own.data),
        },
        kind::BOOLEAN => count_ones(own.data, live).map(drop),
        kind::BYTE => count_bytes(own.data, live),
        kind::SHORT | kind::INT | kind::LONG | kind::DATE => integers(own.data, own.v2, live, true, |_| true),
        kind::FLOAT => enough(own.data, live, 4),
        kind::DOUBLE => enough(own.data, live, 8),
        kind::TIMESTAMP | kind::TIMESTAMP_INSTANT => {
            integers(own.data, own.v2, live, true, |seconds| {
                seconds.cast_signed().unsigned_abs() <= MAX_SECONDS
            })?;
            integers(own.secondary, own.v2, live, false, |nanos| {
                // The last three bits are the zeros that were cut off, less one.
                let zeros = u32::try_from(nanos & 7).unwrap_or(0);
                let scale = if zeros == 0 { 1 } else { 10u64.pow(zeros + 1) };
                (nanos >> 3).checked_mul(scale).is_some_and(|nanos| nanos < 1_000_000_000)
            })
        }
        kind::DECIMAL => decimals(node, live, &own),
        other => Err(Error::unsupported(format!("orc type number {other} cannot be read"))),
    }
}

/// Values in all lists, and in those of one batch at most.
fn lists(node: &Node, live: u64, batch_rows: u64, own: &Streams<'_>) -> Result<(u64, u64)> {
    let mut lengths = Integers::new(own.length, own.v2, false);
    let (mut total, mut before, mut window, mut most) = (0u64, 0u64, 0u64, 0u64);
    for index in 0..live {
        if index % batch_rows == 0 {
            (before, window) = (window, 0);
        }
        let length = lengths.next()?;
        total = total.checked_add(length).ok_or_else(|| short("LENGTH"))?;
        window = window.saturating_add(length);
        // Nulls shift where batches start, so a batch lies within two windows in a row.
        most = most.max(window.saturating_add(before));
    }
    let width: u64 = node.children.iter().map(fixed_width).sum();
    if most.saturating_mul(width) > BATCH_LIMIT {
        return Err(Error::resource_exhausted("the lists of a few orc rows take more than 1 GiB"));
    }
    Ok((total, most.max(1)))
}

/// `count` lengths must add up to what is there.
fn check_text(own: &Streams<'_>, count: u64, data: &[u8]) -> Result<()> {
    let mut lengths = Integers::new(own.length, own.v2, false);
    let mut total = 0u64;
    for _ in 0..count {
        total = total.saturating_add(lengths.next()?);
        if total > data.len() as u64 {
            return Err(short("DATA"));
        }
    }
    Ok(())
}

fn integers(stream: &[u8], v2: bool, count: u64, signed: bool, is_right: impl Fn(u64) -> bool) -> Result<()> {
    let mut numbers = Integers::new(stream, v2, signed);
    for _ in 0..count {
        if !is_right(numbers.next()?) {
            return Err(Error::corrupt("an orc stream of integers has a number that cannot be right"));
        }
    }
    Ok(())
}

/// Each value is a number of any length and its own scale; in the column's scale it must be exact.
fn decimals(node: &Node, count: u64, own: &Streams<'_>) -> Result<()> {
    let wrong = || Error::corrupt("an orc decimal does not fit its type");
    let DataType::Decimal128(_, to) = *node.field.data_type() else {
        return Err(Error::internal("orc decimal of another type"));
    };
    let mut scales = Integers::new(own.secondary, own.v2, true);
    let mut rest = own.data;
    for _ in 0..count {
        let (mut value, mut shift) = (0u128, 0u32);
        loop {
            let (byte, tail) = rest.split_first().ok_or_else(|| short("DATA"))?;
            rest = tail;
            if shift > 126 || (shift == 126 && byte & 0x7c != 0) {
                return Err(wrong());
            }
            value |= u128::from(byte & 0x7f) << shift;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
        }
        // Rounded up for negative numbers, which is enough.
        let magnitude = (value >> 1) + (value & 1);
        let scale = scales.next()?.cast_signed();
        if !(0..=38).contains(&scale) {
            return Err(wrong());
        }
        let digits = u32::try_from((i64::from(to) - scale).unsigned_abs()).map_err(|_| wrong())?;
        let factor = 10u128.checked_pow(digits).ok_or_else(wrong)?;
        let fits = if scale <= i64::from(to) {
            magnitude.checked_mul(factor).is_some_and(|m| m <= i128::MAX.unsigned_abs())
        } else {
            magnitude.is_multiple_of(factor)
        };
        if !fits {
            return Err(wrong());
        }
    }
    Ok(())
}

fn enough(data: &[u8], count: u64, width: u64) -> Result<()> {
    if count.saturating_mul(width) > data.len() as u64 {
        return Err(short("DATA"));
    }
    Ok(())
}

fn bytes_below<'a>(node: &Node, streams: &dyn Fn(u32) -> Streams<'a>) -> u64 {
    let own = streams(node.column);
    let bytes = own.present.map_or(0, <[u8]>::len) + own.data.len() + own.length.len() + own.secondary.len();
    bytes as u64 + node.children.iter().map(|child| bytes_below(child, streams)).sum::<u64>()
}

/// Bytes that a value takes in memory at least.
fn fixed_width(node: &Node) -> u64 {
    match node.kind {
        kind::STRUCT => node.children.iter().map(fixed_width).sum(),
        kind::DECIMAL | kind::TIMESTAMP | kind::TIMESTAMP_INSTANT => 16,
        _ => 8,
    }
}

/// Walks the runs of a byte stream: (value, how many).
fn byte_runs(stream: &[u8], mut run: impl FnMut(u8, u64) -> bool) -> Result<()> {
    let end = || short("PRESENT or DATA");
    let mut rest = stream;
    loop {
        let (header, tail) = rest.split_first().ok_or_else(end)?;
        if *header < 0x80 {
            let (value, tail) = tail.split_first().ok_or_else(end)?;
            rest = tail;
            if !run(*value, u64::from(*header) + 3) {
                return Ok(());
            }
        } else {
            let (values, tail) = tail.split_at_checked(0x100 - usize::from(*header)).ok_or_else(end)?;
            rest = tail;
            for value in values {
                if !run(*value, 1) {
                    return Ok(());
                }
            }
        }
    }
}

fn count_bytes(stream: &[u8], count: u64) -> Result<()> {
    let mut seen = 0u64;
    if count == 0 {
        return Ok(());
    }
    byte_runs(stream, |_, times| {
        seen += times;
        seen < count
    })
}

/// Set bits among the first `count` of a boolean stream.
fn count_ones(stream: &[u8], count: u64) -> Result<u64> {
    let (mut left, mut ones) = (count, 0u64);
    if count == 0 {
        return Ok(0);
    }
    byte_runs(stream, |byte, times| {
        let whole = times.min(left / 8);
        ones += whole * u64::from(byte.count_ones());
        left -= whole * 8;
        if whole < times && left > 0 {
            // Bits are counted from the highest.
            ones += u64::from((byte & !(0xff_u8 >> left)).count_ones());
            left = 0;
        }
        left > 0
    })?;
    Ok(ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_to_the_row() {
        // "one true followed by seven false values", and runs
        assert_eq!(count_ones(&[0xff, 0x80], 8).unwrap(), 1);
        assert_eq!(count_ones(&[0x00, 0xff], 24).unwrap(), 24);
        assert_eq!(count_ones(&[0x00, 0xff], 11).unwrap(), 11);
        assert_eq!(count_ones(&[0xfe, 0b0100_0100, 0b0100_0101], 16).unwrap(), 5);
        assert!(count_ones(&[0xff, 0x80], 9).is_err());
        assert_eq!(count_ones(&[], 0).unwrap(), 0);
    }
}
