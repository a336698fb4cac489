//! Writing of object container files.
//!
//! The schema is JSON with Iceberg's field ids as attributes; that rows fit it is the caller's
//! word. Blocks stay below what the reader takes.

use std::io::Write as _;

use serde_json::Value;

use super::container::{CODEC_KEY, MAGIC, SCHEMA_KEY, SYNC_LEN};
use super::{Codec, Encoder, MAX_BLOCK_BYTES};
use crate::error::{Error, Result};

/// A block is closed when it has so many bytes before compression.
const BLOCK_BYTES: usize = 64_000;

/// zstd's level; higher ones cost time and gain little on blocks this small.
const ZSTD_LEVEL: i32 = 3;

/// The sync marker of a file: 16 bytes that are unlikely to occur in its data, so random ones.
pub type SyncMarker = [u8; SYNC_LEN];

/// A container file in the making, in memory.
#[derive(Debug)]
pub struct ContainerWriter {
    file: Encoder,
    codec: Codec,
    sync: SyncMarker,
    block_bytes: usize,
    block: Encoder,
    count: usize,
}

impl ContainerWriter {
    /// A file without rows. `metadata` are its key-value pairs besides schema and codec.
    pub fn new(schema: &Value, metadata: &[(&str, &str)], codec: Codec, sync: SyncMarker) -> Self {
        Self::with_schema_text(&schema.to_string(), metadata, codec, sync)
    }

    /// As [`Self::new`], for a schema that is text already.
    pub fn with_schema_text(schema: &str, metadata: &[(&str, &str)], codec: Codec, sync: SyncMarker) -> Self {
        let mut pairs = vec![(SCHEMA_KEY, schema), (CODEC_KEY, codec.name())];
        pairs.extend_from_slice(metadata);
        let mut file = Encoder::default();
        file.raw(MAGIC);
        file.array(pairs.into_iter(), |file, (key, value)| {
            file.string(key);
            file.string(value);
        });
        file.raw(&sync);
        Self {
            file,
            codec,
            sync,
            block_bytes: BLOCK_BYTES,
            block: Encoder::default(),
            count: 0,
        }
    }

    /// Closes blocks at another size than usual.
    #[must_use]
    pub fn with_block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes.clamp(1, MAX_BLOCK_BYTES);
        self
    }

    /// Adds a row; `write` encodes it. A row whose encoding fails leaves nothing behind.
    ///
    /// Errors: those of `write`, and `ResourceExhausted` for a row beyond [`MAX_BLOCK_BYTES`].
    pub fn append(&mut self, write: impl FnOnce(&mut Encoder) -> Result<()>) -> Result<()> {
        let start = self.block.len();
        let written = write(&mut self.block).and_then(|()| match self.block.len() - start {
            len if len > MAX_BLOCK_BYTES => Err(Error::resource_exhausted(format!("an avro row takes {len} bytes"))),
            _ => Ok(()),
        });
        if let Err(e) = written {
            self.block.truncate(start);
            return Err(e);
        }
        if self.block.len() > MAX_BLOCK_BYTES {
            // The row alone fits a block, with those before it it does not.
            let row = self.block.as_slice().get(start..).unwrap_or_default().to_vec();
            self.block.truncate(start);
            self.close_block()?;
            self.block.raw(&row);
        }
        self.count += 1;
        if self.block.len() >= self.block_bytes {
            self.close_block()?;
        }
        Ok(())
    }

    fn close_block(&mut self) -> Result<()> {
        if self.count > 0 {
            let stored = self.codec.compress(self.block.as_slice())?;
            self.file.length(self.count);
            self.file.bytes(&stored);
            self.file.raw(&self.sync);
            self.block.clear();
            self.count = 0;
        }
        Ok(())
    }

    /// The bytes of the file.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.close_block()?;
        Ok(self.file.into_bytes())
    }
}

impl Codec {
    /// The value of `avro.codec`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Deflate => "deflate",
            Self::Snappy => "snappy",
            Self::Zstandard => "zstandard",
        }
    }

    /// From the value of the table property `write.avro.compression-codec`.
    ///
    /// Errors: `InvalidInput` for another codec.
    pub fn from_property(value: &str) -> Result<Self> {
        match value.to_ascii_lowercase().as_str() {
            "uncompressed" => Ok(Self::Null),
            "gzip" => Ok(Self::Deflate),
            "snappy" => Ok(Self::Snappy),
            "zstd" => Ok(Self::Zstandard),
            _ => Err(Error::invalid(format!(
                "avro compression codec \"{value}\" is not known; use gzip, zstd, snappy or uncompressed"
            ))),
        }
    }

    fn compress(self, block: &[u8]) -> Result<Vec<u8>> {
        let failed = |e: std::io::Error| Error::internal("cannot compress an avro block").with_source(e);
        match self {
            Self::Null => Ok(block.to_vec()),
            Self::Deflate => {
                let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(block).map_err(failed)?;
                encoder.finish().map_err(failed)
            }
            Self::Snappy => {
                let packed = snap::raw::Encoder::new().compress_vec(block);
                let mut packed = packed.map_err(|e| Error::internal("cannot compress an avro block").with_source(e))?;
                packed.extend(crc32fast::hash(block).to_be_bytes());
                Ok(packed)
            }
            Self::Zstandard => zstd::encode_all(block, ZSTD_LEVEL).map_err(failed),
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
