//! The portable Roaring format, 32 and 64 bit (RoaringFormatSpec).
//!
//! Decoding checks everything the format says before a value is used: keys ascending, container
//! sizes against the bytes at hand, array values and runs ascending, cardinalities as declared.
//! Nothing is allocated from a declared number that the bytes do not cover. Two liberties of the
//! format are taken as they come: the offset header is skipped, as other readers skip it, and a
//! 64-bit set may hold empty maps (the Java library writes one for every unused key).
//! Encoding uses runs wherever they are smaller.

use roaring::RoaringBitmap;

use super::RowSet;
use crate::error::{Error, Result};

const COOKIE_NO_RUNS: u32 = 12346;
const COOKIE_RUNS: u32 = 12347;
/// A bitmap with runs and fewer containers than this has no offset header.
const OFFSETS_FROM: usize = 4;
/// Containers of up to this many values are arrays, larger ones bitsets (or runs).
const ARRAY_MAX: usize = 4096;
const BITSET_BYTES: usize = 8192;
/// Key, cookie and container count of an empty map: the smallest entry of a 64-bit set.
const MIN_MAP_BYTES: u64 = 12;

/// Decodes a 64-bit set that fills `bytes`.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when the bytes break the format or go on behind the set.
pub fn decode_64(bytes: &[u8]) -> Result<RowSet> {
    let (set, used) = decode_64_prefix(bytes)?;
    no_trailing(bytes, used)?;
    Ok(set)
}

/// Decodes a 64-bit set at the start of `bytes`; also returns how many bytes it takes.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when the bytes break the format.
pub fn decode_64_prefix(bytes: &[u8]) -> Result<(RowSet, usize)> {
    let mut rest = bytes;
    let count = u64::from_le_bytes(take(&mut rest, "number of maps")?);
    if count > rest.len() as u64 / MIN_MAP_BYTES {
        return Err(corrupt(format!("{count} maps are declared, {} bytes follow", rest.len())));
    }
    let mut maps: Vec<(u32, RoaringBitmap)> = Vec::new();
    let mut last_key = None;
    for _ in 0..count {
        let key = u32::from_le_bytes(take(&mut rest, "map key")?);
        if last_key.is_some_and(|last| key <= last) {
            return Err(corrupt(format!("map key {key} does not ascend")));
        }
        last_key = Some(key);
        let (map, used) = decode_map(rest).map_err(|e| e.with("roaring map", key))?;
        rest = rest.get(used..).unwrap_or_default();
        if !map.is_empty() {
            maps.push((key, map));
        }
    }
    Ok((RowSet::from_maps(maps), bytes.len() - rest.len()))
}

/// Decodes a 32-bit bitmap that fills `bytes`; its positions are below 2^32.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when the bytes break the format or go on behind the bitmap.
pub fn decode_32(bytes: &[u8]) -> Result<RowSet> {
    let (set, used) = decode_32_prefix(bytes)?;
    no_trailing(bytes, used)?;
    Ok(set)
}

/// Decodes a 32-bit bitmap at the start of `bytes`; also returns how many bytes it takes.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when the bytes break the format.
pub fn decode_32_prefix(bytes: &[u8]) -> Result<(RowSet, usize)> {
    let (map, used) = decode_map(bytes)?;
    Ok((RowSet::from_maps([(0, map)]), used))
}

/// Encodes as a 64-bit set, run-optimised, without empty maps.
pub fn encode_64(set: &RowSet) -> Vec<u8> {
    let mut out = (set.maps().count() as u64).to_le_bytes().to_vec();
    for (key, map) in set.maps() {
        out.extend_from_slice(&key.to_le_bytes());
        encode_map(map, &mut out);
    }
    out
}

/// Encodes as a 32-bit bitmap, run-optimised.
///
/// # Errors
/// [`crate::error::ErrorKind::InvalidInput`] when a position is 2^32 or above.
pub fn encode_32(set: &RowSet) -> Result<Vec<u8>> {
    if set.max() > Some(u64::from(u32::MAX)) {
        return Err(Error::invalid("row positions from 2^32 on need the 64-bit roaring format"));
    }
    let mut out = Vec::new();
    match set.maps().next() {
        Some((_, map)) => encode_map(map, &mut out),
        None => encode_map(&RoaringBitmap::new(), &mut out),
    }
    Ok(out)
}

fn encode_map(map: &RoaringBitmap, out: &mut Vec<u8>) {
    let mut map = map.clone();
    map.optimize();
    out.reserve(map.serialized_size());
    let written = map.serialize_into(&mut *out);
    debug_assert!(written.is_ok(), "a vector takes all bytes");
}

/// One container of a 32-bit bitmap, as it lies in the bytes.
pub(super) struct Container<'a> {
    /// The upper 16 bits of its values.
    pub(super) key: u16,
    /// How many values it declares, 1 to 65,536.
    pub(super) cardinality: u32,
    /// The lower 16 bits of its values.
    pub(super) values: Values<'a>,
}

/// The three forms of a container; all numbers are little endian.
pub(super) enum Values<'a> {
    /// u16 values, ascending.
    Array(&'a [[u8; 2]]),
    /// 1,024 words of 64 values each.
    Bitset(&'a [[u8; 8]]),
    /// u16 first value and u16 number of further values, ascending.
    Runs(&'a [[u8; 4]]),
}

/// Goes over the containers of the 32-bit bitmap at the start of `bytes` and returns how many bytes
/// it takes. Sizes and the order of keys are checked, the values inside a container are not.
pub(super) fn walk<'a>(bytes: &'a [u8], mut visit: impl FnMut(Container<'a>) -> Result<()>) -> Result<usize> {
    let mut rest = bytes;
    let cookie = u32::from_le_bytes(take(&mut rest, "cookie")?);
    let (count, run_flags) = if cookie == COOKIE_NO_RUNS {
        let count = u32::from_le_bytes(take(&mut rest, "container count")?);
        if count > 1 << 16 {
            return Err(corrupt(format!("{count} containers are declared, at most 65536 are possible")));
        }
        (count as usize, None)
    } else if cookie & 0xffff == COOKIE_RUNS {
        let count = (cookie >> 16) as usize + 1;
        (count, Some(slice(&mut rest, count.div_ceil(8), "run flags")?))
    } else {
        return Err(corrupt(format!("unknown cookie {cookie}")));
    };
    let (headers, _) = slice(&mut rest, count * 4, "container headers")?.as_chunks::<4>();
    if run_flags.is_none() || count >= OFFSETS_FROM {
        slice(&mut rest, count * 4, "container offsets")?;
    }
    let mut last_key = None;
    for (i, header) in headers.iter().enumerate() {
        let key = u16::from_le_bytes([header[0], header[1]]);
        if last_key.is_some_and(|last| key <= last) {
            return Err(corrupt(format!("container key {key} does not ascend")));
        }
        last_key = Some(key);
        let cardinality = usize::from(u16::from_le_bytes([header[2], header[3]])) + 1;
        let is_run = run_flags
            .and_then(|flags| flags.get(i / 8))
            .is_some_and(|flag| flag & (1 << (i % 8)) != 0);
        let values = if is_run {
            let runs = usize::from(u16::from_le_bytes(take(&mut rest, "run count")?));
            Values::Runs(slice(&mut rest, runs * 4, "runs")?.as_chunks().0)
        } else if cardinality <= ARRAY_MAX {
            Values::Array(slice(&mut rest, cardinality * 2, "array values")?.as_chunks().0)
        } else {
            Values::Bitset(slice(&mut rest, BITSET_BYTES, "bitset words")?.as_chunks().0)
        };
        visit(Container {
            key,
            cardinality: cardinality as u32,
            values,
        })?;
    }
    Ok(bytes.len() - rest.len())
}

fn decode_map(bytes: &[u8]) -> Result<(RoaringBitmap, usize)> {
    let mut touching_runs = false;
    let used = walk(bytes, |container| {
        touching_runs |= check_values(&container).map_err(|e| e.with("container", container.key))?;
        Ok(())
    })?;
    let map = if touching_runs {
        rebuild(bytes)?
    } else {
        RoaringBitmap::deserialize_from(bytes.get(..used).unwrap_or_default())
            .map_err(|e| corrupt("the bitmap does not decode").with_source(e))?
    };
    Ok((map, used))
}

/// Checks the values of a container against the format and its declared cardinality; returns whether
/// runs touch each other, which is allowed but nothing the roaring crate reads.
fn check_values(container: &Container<'_>) -> Result<bool> {
    let mut touching = false;
    let found = match container.values {
        Values::Array(values) => {
            if !values.is_sorted_by(|a, b| u16::from_le_bytes(*a) < u16::from_le_bytes(*b)) {
                return Err(corrupt("array values do not ascend"));
            }
            values.len() as u32
        }
        Values::Bitset(words) => words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum(),
        Values::Runs(runs) => {
            let (mut next, mut total) = (0, 0);
            for run in runs {
                let start = u32::from(u16::from_le_bytes([run[0], run[1]]));
                let len = u32::from(u16::from_le_bytes([run[2], run[3]])) + 1;
                if start < next || start + len > 1 << 16 {
                    return Err(corrupt(format!(
                        "run of {len} values from {start} overlaps or leaves the container"
                    )));
                }
                touching |= total > 0 && start == next;
                next = start + len;
                total += len;
            }
            total
        }
    };
    if found != container.cardinality {
        return Err(corrupt(format!("{} values are declared, {found} are there", container.cardinality)));
    }
    Ok(touching)
}

/// Builds a checked bitmap value by value instead of through the crate's reader.
fn rebuild(bytes: &[u8]) -> Result<RoaringBitmap> {
    let mut map = RoaringBitmap::new();
    walk(bytes, |container| {
        let base = u32::from(container.key) << 16;
        match container.values {
            Values::Array(values) => map.extend(values.iter().map(|value| base + u32::from(u16::from_le_bytes(*value)))),
            Values::Bitset(words) => map |= RoaringBitmap::from_lsb0_bytes(base, words.as_flattened()),
            Values::Runs(runs) => {
                for run in runs {
                    let start = base + u32::from(u16::from_le_bytes([run[0], run[1]]));
                    map.insert_range(start..=start + u32::from(u16::from_le_bytes([run[2], run[3]])));
                }
            }
        }
        Ok(())
    })?;
    map.optimize();
    Ok(map)
}

fn take<const N: usize>(bytes: &mut &[u8], what: &str) -> Result<[u8; N]> {
    match bytes.split_first_chunk::<N>() {
        Some((head, tail)) => {
            *bytes = tail;
            Ok(*head)
        }
        None => Err(truncated(what, N, bytes.len())),
    }
}

fn slice<'a>(bytes: &mut &'a [u8], len: usize, what: &str) -> Result<&'a [u8]> {
    match bytes.split_at_checked(len) {
        Some((head, tail)) => {
            *bytes = tail;
            Ok(head)
        }
        None => Err(truncated(what, len, bytes.len())),
    }
}

fn no_trailing(bytes: &[u8], used: usize) -> Result<()> {
    if used == bytes.len() {
        return Ok(());
    }
    Err(corrupt(format!("{} bytes follow the bitmap", bytes.len() - used)))
}

fn truncated(what: &str, needed: usize, left: usize) -> Error {
    corrupt(format!("{what} need {needed} bytes, {left} are left"))
}

fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("roaring bitmap is broken: {what}"))
}
