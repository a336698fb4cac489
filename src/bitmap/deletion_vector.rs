//! The frame of a deletion vector: Iceberg's `deletion-vector-v1` blob (Puffin specification).
//!
//! ```text
//! length of magic and vector   4 bytes, big endian
//! magic                        D1 D3 39 64
//! vector                       64-bit portable Roaring, little endian
//! CRC-32 of magic and vector   4 bytes, big endian
//! ```
//!
//! Everything is verified: length, magic, checksum, the vector itself and its cardinality.
//! Delta stores the same magic and vector inside a frame of its own; [`decode_vector`] and
//! [`encode_vector`] are the part both share.

use super::{RowSet, portable};
use crate::error::{Error, ErrorKind, Result};

/// The largest blob that is decoded, in bytes.
pub const MAX_BLOB_BYTES: usize = 64 << 20;

const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];
/// Length and CRC, the bytes around magic and vector.
const FRAME_BYTES: usize = 8;

/// Decodes a blob: all of `bytes`, that is `content_size_in_bytes` bytes from `content_offset`.
/// `expected_cardinality` is the delete file's record count (or the blob's `cardinality` property).
/// Whether the last position lies within the data file is for the caller to check, see [`RowSet::max`].
///
/// # Errors
/// [`ErrorKind::Corrupt`] when any part does not match, [`ErrorKind::ResourceExhausted`] above
/// [`MAX_BLOB_BYTES`]. The caller adds the file and offset.
pub fn decode_blob(bytes: &[u8], expected_cardinality: Option<u64>) -> Result<RowSet> {
    check_size(bytes)?;
    let broken = || Error::corrupt(format!("deletion vector blob of {} bytes is too short", bytes.len()));
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
    let (vector, crc) = rest.split_last_chunk::<4>().ok_or_else(broken)?;
    let length = u32::from_be_bytes(*length);
    if length as usize != vector.len() {
        return Err(Error::corrupt(format!(
            "deletion vector declares {length} bytes, its blob of {} bytes holds {}",
            bytes.len(),
            vector.len()
        )));
    }
    // The checksum comes first, so that a flipped bit is reported as what it is.
    let (declared, computed) = (u32::from_be_bytes(*crc), crc32fast::hash(vector));
    if declared != computed {
        return Err(Error::corrupt(format!(
            "deletion vector checksum is {computed:08x}, its blob declares {declared:08x}"
        )));
    }
    decode_vector(vector, expected_cardinality)
}

/// Decodes magic and vector without length and checksum.
///
/// # Errors
/// As [`decode_blob`].
pub fn decode_vector(bytes: &[u8], expected_cardinality: Option<u64>) -> Result<RowSet> {
    check_size(bytes)?;
    let Some(vector) = bytes.strip_prefix(&MAGIC) else {
        let found = bytes.get(..MAGIC.len()).unwrap_or(bytes);
        return Err(Error::corrupt(format!(
            "deletion vector starts with {found:02x?} instead of its magic"
        )));
    };
    let set = portable::decode_64(vector)?;
    if let Some(max) = set.max().filter(|max| i64::try_from(*max).is_err()) {
        return Err(Error::corrupt(format!("deletion vector holds position {max}, above 2^63 - 1")));
    }
    match expected_cardinality {
        Some(expected) if expected != set.len() => Err(Error::corrupt(format!(
            "deletion vector holds {} positions, {expected} are expected",
            set.len()
        ))),
        _ => Ok(set),
    }
}

/// Encodes a blob, run-optimised.
pub fn encode_blob(set: &RowSet) -> Vec<u8> {
    let vector = encode_vector(set);
    let mut out = Vec::with_capacity(vector.len() + FRAME_BYTES);
    out.extend_from_slice(&(vector.len() as u32).to_be_bytes());
    out.extend_from_slice(&vector);
    out.extend_from_slice(&crc32fast::hash(&vector).to_be_bytes());
    out
}

/// Encodes magic and vector without length and checksum.
pub fn encode_vector(set: &RowSet) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(portable::encode_64(set));
    out
}

fn check_size(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= MAX_BLOB_BYTES {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::ResourceExhausted,
        format!("deletion vector of {} bytes is above the limit of {MAX_BLOB_BYTES}", bytes.len()),
    ))
}
