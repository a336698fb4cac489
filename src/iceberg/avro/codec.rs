//! Block codecs: null, deflate, snappy and zstandard, with a cap on what comes out.

use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

use crate::error::{Error, Result};

/// Most bytes of one block after decompression.
pub const MAX_BLOCK_BYTES: usize = 64 << 20;

/// log2 of the largest zstd window: that of the largest block.
const ZSTD_WINDOW_LOG: u32 = MAX_BLOCK_BYTES.trailing_zeros();

/// Snappy cannot expand more than this: 64 bytes out of a copy of 3 bytes.
const SNAPPY_MAX_RATIO: usize = 24;

/// How blocks are compressed (`avro.codec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

fn too_large() -> Error {
    Error::corrupt(format!(
        "avro block is larger than {} MiB after decompression",
        MAX_BLOCK_BYTES >> 20
    ))
}

impl Codec {
    /// From the value of `avro.codec`.
    ///
    /// Errors: `Unsupported` for any other codec.
    pub fn from_name(name: &[u8]) -> Result<Self> {
        Ok(match name {
            b"null" | b"" => Self::Null,
            b"deflate" => Self::Deflate,
            b"snappy" => Self::Snappy,
            b"zstandard" => Self::Zstandard,
            other => {
                return Err(Error::unsupported(format!(
                    "avro codec \"{}\" is not supported; rewrite the file with deflate, snappy or zstandard",
                    String::from_utf8_lossy(other)
                )));
            }
        })
    }
}

/// Decompressed bytes and decompressor state, reused from block to block.
#[derive(Debug, Default)]
pub(super) struct Decompressor {
    out: Vec<u8>,
    inflate: Option<Decompress>,
}

impl Decompressor {
    /// The decompressed block; `block` itself without compression.
    pub(super) fn decompress<'b>(&'b mut self, codec: Codec, block: &'b [u8]) -> Result<&'b [u8]> {
        self.out.clear();
        match codec {
            Codec::Null if block.len() > MAX_BLOCK_BYTES => return Err(too_large()),
            Codec::Null => return Ok(block),
            Codec::Deflate => self.inflate(block)?,
            Codec::Snappy => self.snappy(block)?,
            Codec::Zstandard => self.zstd(block)?,
        }
        Ok(&self.out)
    }

    /// Bytes behind the end of the stream are tolerated: some writers leave parts of a zlib checksum.
    fn inflate(&mut self, mut block: &[u8]) -> Result<()> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        inflate.reset(false);
        self.out.reserve((block.len() * 3).clamp(4 << 10, 1 << 20));
        loop {
            let (read, written) = (inflate.total_in(), inflate.total_out());
            let status = inflate
                .decompress_vec(block, &mut self.out, FlushDecompress::None)
                .map_err(|e| Error::corrupt("avro block does not inflate").with_source(e))?;
            let consumed = usize::try_from(inflate.total_in() - read).unwrap_or(usize::MAX);
            block = block.get(consumed..).unwrap_or_default();
            if self.out.len() > MAX_BLOCK_BYTES {
                return Err(too_large());
            }
            if status == Status::StreamEnd {
                return Ok(());
            }
            if self.out.len() == self.out.capacity() {
                let more = self.out.capacity().clamp(4 << 10, MAX_BLOCK_BYTES);
                self.out
                    .reserve_exact(more.min(MAX_BLOCK_BYTES + 1 - self.out.len().min(MAX_BLOCK_BYTES)));
            } else if consumed == 0 && inflate.total_out() == written {
                return Err(Error::corrupt("avro block ends within its deflate stream"));
            }
        }
    }

    fn snappy(&mut self, block: &[u8]) -> Result<()> {
        let (data, crc) = block
            .split_last_chunk::<4>()
            .ok_or_else(|| Error::corrupt("avro snappy block is shorter than its checksum"))?;
        let bad = |e: snap::Error| Error::corrupt("avro block is not snappy").with_source(e);
        let len = snap::raw::decompress_len(data).map_err(bad)?;
        if len > MAX_BLOCK_BYTES {
            return Err(too_large());
        }
        if len / SNAPPY_MAX_RATIO > data.len() {
            return Err(Error::corrupt(format!("avro snappy block of {} bytes declares {len}", data.len())));
        }
        self.out.resize(len, 0);
        let written = snap::raw::Decoder::new().decompress(data, &mut self.out).map_err(bad)?;
        self.out.truncate(written);
        if crc32fast::hash(&self.out) != u32::from_be_bytes(*crc) {
            return Err(Error::corrupt("avro snappy block has a wrong checksum"));
        }
        Ok(())
    }

    fn zstd(&mut self, block: &[u8]) -> Result<()> {
        let bad = |e: std::io::Error| Error::corrupt("avro block is not zstandard").with_source(e);
        let mut decoder = zstd::stream::read::Decoder::with_buffer(block).map_err(bad)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(bad)?;
        decoder.take(MAX_BLOCK_BYTES as u64 + 1).read_to_end(&mut self.out).map_err(bad)?;
        if self.out.len() > MAX_BLOCK_BYTES {
            return Err(too_large());
        }
        Ok(())
    }
}
