//! The footer of a Puffin file: which blobs it holds, where, and of what kind.
//!
//! ```text
//! magic, payload, payload size (i32, little endian), flags (4 bytes), magic
//! ```
//!
//! Declared sizes are checked against the file and the limit before anything is read by them, and
//! every blob against the space between the first magic and the footer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::MAGIC;
use super::codec::{Codec, decompress_frame, too_large};
use crate::error::{Error, Result, ResultExt};

/// The largest footer payload, in bytes, stored or decompressed.
pub const MAX_FOOTER_BYTES: u64 = 64 << 20;

/// Blob type of an Iceberg deletion vector.
pub const DELETION_VECTOR_V1: &str = "deletion-vector-v1";

/// What follows the payload: its size, the flags and the magic.
const TRAILER_BYTES: u64 = 12;
const MAGIC_BYTES: u64 = MAGIC.len() as u64;
/// Flag of a footer that is an LZ4 frame.
pub(super) const FLAG_COMPRESSED: u32 = 1;

/// The content of a footer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// The blobs, in the order of the footer.
    pub blobs: Vec<BlobMetadata>,
    /// Properties of the file, such as `created-by`.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

/// One blob of a Puffin file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BlobMetadata {
    /// The kind of the content, for example [`DELETION_VECTOR_V1`].
    #[serde(rename = "type")]
    pub blob_type: String,
    /// Field ids the blob was computed for.
    pub fields: Vec<i32>,
    /// Snapshot the blob was computed from; -1 for deletion vectors.
    pub snapshot_id: i64,
    /// Sequence number of that snapshot; -1 for deletion vectors.
    pub sequence_number: i64,
    /// First byte of the blob in the file.
    pub offset: u64,
    /// Bytes of the blob in the file.
    pub length: u64,
    /// Name of the compression codec, see [`BlobMetadata::codec`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_codec: Option<String>,
    /// Properties of the blob, such as `referenced-data-file` and `cardinality`.
    #[serde(default, deserialize_with = "null_as_empty", skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, String>,
}

impl BlobMetadata {
    /// The codec of the blob, `None` when it is stored as it is.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unsupported`] for a codec the specification does not list.
    pub fn codec(&self) -> Result<Option<Codec>> {
        self.compression_codec.as_deref().map(Codec::from_name).transpose()
    }
}

/// What [`parse_footer`] made of the end of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FooterRead {
    /// The footer.
    Footer(Footer),
    /// The footer is longer than the bytes given: read this many bytes of the file's end and parse again.
    NeedTail(u64),
}

/// Parses the footer out of `tail`, the last bytes of a file of `file_size` bytes (all of it, or
/// as many as the caller cares to read at first).
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when the bytes are not those of a Puffin file,
/// [`crate::error::ErrorKind::Unsupported`] for an unknown flag,
/// [`crate::error::ErrorKind::ResourceExhausted`] for a footer above [`MAX_FOOTER_BYTES`].
pub fn parse_footer(tail: &[u8], file_size: u64) -> Result<FooterRead> {
    let smallest = MAGIC_BYTES * 2 + TRAILER_BYTES;
    if file_size < smallest {
        return Err(corrupt(format!(
            "a file of {file_size} bytes is too small, {smallest} are the least"
        )));
    }
    if tail.len() as u64 > file_size {
        return Err(Error::internal(format!(
            "{} bytes were given of a puffin file of {file_size}",
            tail.len()
        )));
    }
    if tail.len() as u64 == file_size {
        check_magic(tail)?;
    }
    let Some(trailer) = Trailer::split(tail) else {
        return Ok(FooterRead::NeedTail(smallest));
    };
    let Trailer {
        before,
        size,
        flags,
        magic,
    } = trailer;
    if magic != MAGIC {
        return Err(corrupt("it does not end with the magic PFA1"));
    }
    if flags & !FLAG_COMPRESSED != 0 {
        return Err(Error::unsupported(format!("puffin footer has unknown flags {flags:#x}")));
    }
    let payload_size = u64::try_from(size).map_err(|_| corrupt(format!("the footer declares {size} bytes")))?;
    if payload_size > file_size - smallest {
        return Err(corrupt(format!(
            "the footer declares {payload_size} bytes in a file of {file_size}"
        )));
    }
    if payload_size > MAX_FOOTER_BYTES {
        return Err(too_large(payload_size, MAX_FOOTER_BYTES));
    }
    let footer_size = MAGIC_BYTES + payload_size + TRAILER_BYTES;
    let footer = usize::try_from(MAGIC_BYTES + payload_size)
        .ok()
        .and_then(|size| before.len().checked_sub(size))
        .and_then(|start| before.get(start..));
    let Some(footer) = footer else {
        return Ok(FooterRead::NeedTail(footer_size));
    };
    let Some(payload) = footer.strip_prefix(&MAGIC) else {
        return Err(corrupt("the footer does not start with the magic PFA1"));
    };
    let footer = if flags & FLAG_COMPRESSED != 0 {
        let json = decompress_frame(Codec::Lz4, payload, MAX_FOOTER_BYTES).context("part", || "puffin footer")?;
        parse_json(&json)?
    } else {
        parse_json(payload)?
    };
    check_blobs(&footer.blobs, file_size - footer_size)?;
    Ok(FooterRead::Footer(footer))
}

/// The last twelve bytes of a file, and what is known of those before.
struct Trailer<'a> {
    before: &'a [u8],
    size: i32,
    flags: u32,
    magic: [u8; 4],
}

impl<'a> Trailer<'a> {
    fn split(tail: &'a [u8]) -> Option<Self> {
        let (rest, magic) = tail.split_last_chunk()?;
        let (rest, flags) = rest.split_last_chunk()?;
        let (before, size) = rest.split_last_chunk()?;
        Some(Self {
            before,
            size: i32::from_le_bytes(*size),
            flags: u32::from_le_bytes(*flags),
            magic: *magic,
        })
    }
}

/// Checks the first bytes of a Puffin file. Only a caller that has them can; [`parse_footer`] does
/// it when it is given the whole file.
///
/// # Errors
/// [`crate::error::ErrorKind::Corrupt`] when they are not the magic.
pub fn check_magic(start: &[u8]) -> Result<()> {
    if start.starts_with(&MAGIC) {
        return Ok(());
    }
    Err(corrupt("it does not start with the magic PFA1"))
}

fn parse_json(payload: &[u8]) -> Result<Footer> {
    serde_json::from_slice(payload).map_err(|e| corrupt("the footer is not the JSON of a file's metadata").with_source(e))
}

/// Blobs lie between the first magic and the footer, which begins at `end`.
fn check_blobs(blobs: &[BlobMetadata], end: u64) -> Result<()> {
    for blob in blobs {
        let inside = blob.offset >= MAGIC_BYTES && blob.offset.checked_add(blob.length).is_some_and(|last| last <= end);
        if !inside {
            return Err(corrupt(format!(
                "blob {} of {} bytes at {} leaves the {MAGIC_BYTES} to {end} that hold blobs",
                blob.blob_type, blob.length, blob.offset
            )));
        }
    }
    Ok(())
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("puffin file is broken: {what}"))
}
