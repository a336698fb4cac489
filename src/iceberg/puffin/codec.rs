//! Compression of blobs and footers (Puffin specification, "Compression codecs").
//!
//! Output is bounded before and while it is made: by the size the frame declares, and by the
//! caller's limit whatever it declares. One frame, nothing behind it.

use std::io::{Read, Write};

use super::BlobMetadata;
use crate::error::{Error, ErrorKind, Result, ResultExt};

/// The largest blob, in bytes, stored or decompressed.
pub const MAX_BLOB_BYTES: u64 = 64 << 20;

/// The largest window a zstd frame may ask for, as a power of two: [`MAX_BLOB_BYTES`].
const MAX_ZSTD_WINDOW_LOG: u32 = 26;
const ZSTD_LEVEL: i32 = 3;

/// How a blob or footer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// One LZ4 frame with its content size.
    Lz4,
    /// One Zstandard frame with its content size.
    Zstd,
}

impl Codec {
    /// The codec's name in `compression-codec`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of a name.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a name the specification does not list.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            other => Err(Error::unsupported(format!("puffin compression codec '{other}' is unknown"))),
        }
    }
}

/// The content of a blob: `stored` are its `blob.length` bytes of the file, from `blob.offset`.
///
/// # Errors
/// [`ErrorKind::Unsupported`] for an unknown codec, [`ErrorKind::Corrupt`] when `stored` is not of the
/// declared length or does not decompress, [`ErrorKind::ResourceExhausted`] above [`MAX_BLOB_BYTES`].
pub fn decompress(blob: &BlobMetadata, stored: &[u8]) -> Result<Vec<u8>> {
    let content = || {
        if stored.len() as u64 != blob.length {
            return Err(Error::corrupt(format!(
                "{} bytes of a puffin blob of {} were read",
                stored.len(),
                blob.length
            )));
        }
        match blob.codec()? {
            Some(codec) => decompress_frame(codec, stored, MAX_BLOB_BYTES),
            None if blob.length > MAX_BLOB_BYTES => Err(too_large(blob.length, MAX_BLOB_BYTES)),
            None => Ok(stored.to_vec()),
        }
    };
    content().context("blob", || format!("{} at {}", blob.blob_type, blob.offset))
}

/// Decompresses one frame that fills `stored`, up to `limit` bytes.
pub(super) fn decompress_frame(codec: Codec, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
    let declared = match codec {
        Codec::Lz4 => lz4_content_size(stored)?,
        Codec::Zstd => zstd_content_size(stored)?,
    };
    if declared > limit {
        return Err(too_large(declared, limit));
    }
    let mut content = Vec::new();
    let rest = match codec {
        Codec::Lz4 => {
            let mut decoder = lz4_flex::frame::FrameDecoder::new(stored);
            read_bounded(&mut decoder, declared, &mut content).map(|()| decoder.into_inner())
        }
        Codec::Zstd => zstd::stream::read::Decoder::with_buffer(stored).and_then(|decoder| {
            let mut decoder = decoder.single_frame();
            decoder.window_log_max(MAX_ZSTD_WINDOW_LOG)?;
            read_bounded(&mut decoder, declared, &mut content).map(|()| decoder.finish())
        }),
    }
    .map_err(|e| broken(codec, "does not decompress").with_source(e))?;
    if content.len() as u64 != declared {
        return Err(broken(codec, &format!("declares {declared} bytes and holds another number")));
    }
    if !rest.is_empty() {
        return Err(broken(codec, &format!("is followed by {} bytes", rest.len())));
    }
    Ok(content)
}

/// Compresses into one frame with its content size.
pub(super) fn compress_frame(codec: Codec, content: &[u8]) -> Result<Vec<u8>> {
    let failed = || Error::internal(format!("cannot compress a {} frame", codec.as_str()));
    match codec {
        Codec::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new().content_size(Some(content.len() as u64));
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(content).map_err(|e| failed().with_source(e))?;
            encoder.finish().map_err(|e| failed().with_source(e))
        }
        Codec::Zstd => zstd::bulk::compress(content, ZSTD_LEVEL).map_err(|e| failed().with_source(e)),
    }
}

/// Reads to the end of the frame, but no more than one byte beyond the declared size.
fn read_bounded(decoder: &mut impl Read, declared: u64, content: &mut Vec<u8>) -> std::io::Result<()> {
    decoder.take(declared + 1).read_to_end(content).map(|_| ())
}

/// The content size of an LZ4 frame: behind the magic come the flags, the block descriptor and,
/// where flag 3 is set, 8 bytes of content size.
fn lz4_content_size(frame: &[u8]) -> Result<u64> {
    const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
    const CONTENT_SIZE_FLAG: u8 = 1 << 3;
    match frame.strip_prefix(&FRAME_MAGIC) {
        Some([flags, _, size @ ..]) if flags & CONTENT_SIZE_FLAG != 0 => match size.first_chunk() {
            Some(size) => Ok(u64::from_le_bytes(*size)),
            None => Err(broken(Codec::Lz4, "is cut off in its header")),
        },
        Some(_) => Err(broken(Codec::Lz4, "does not declare its content size")),
        None => Err(broken(Codec::Lz4, "does not start with its magic")),
    }
}

fn zstd_content_size(frame: &[u8]) -> Result<u64> {
    match zstd::zstd_safe::get_frame_content_size(frame) {
        Ok(Some(size)) => Ok(size),
        Ok(None) => Err(broken(Codec::Zstd, "does not declare its content size")),
        Err(_) => Err(broken(Codec::Zstd, "has no readable header")),
    }
}

fn broken(codec: Codec, what: &str) -> Error {
    Error::corrupt(format!("{} frame {what}", codec.as_str()))
}

pub(super) fn too_large(bytes: u64, limit: u64) -> Error {
    Error::new(
        ErrorKind::ResourceExhausted,
        format!("{bytes} bytes of puffin content are above the limit of {limit}"),
    )
}
