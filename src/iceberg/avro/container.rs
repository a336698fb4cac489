//! The object container: magic, metadata, and blocks between sync markers.

use std::collections::HashMap;

use super::codec::Decompressor;
use super::{AvroSchema, Codec, Cursor, Framing};
use crate::error::{Error, Result};

pub(super) const MAGIC: &[u8; 4] = b"Obj\x01";
pub(super) const SYNC_LEN: usize = 16;

/// What Iceberg's AES-GCM streams start with (spec "GCM stream").
const ENCRYPTED_MAGIC: &[u8] = b"AGS1";

/// Key of the writer schema in the metadata.
pub(super) const SCHEMA_KEY: &str = "avro.schema";
/// Key of the codec in the metadata; absent means null.
pub(super) const CODEC_KEY: &str = "avro.codec";

/// A container file whose bytes are all at hand; yields its blocks in order.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    metadata: HashMap<&'a str, &'a [u8]>,
    codec: Codec,
    sync: &'a [u8],
    rest: Cursor<'a>,
}

/// One block, decompressed.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Number of values.
    pub count: u64,
    pub bytes: &'a [u8],
}

/// Memory for decompressed blocks, to be reused for all blocks of a file.
#[derive(Debug, Default)]
pub struct BlockBuffer(Decompressor);

impl<'a> Container<'a> {
    /// Reads the header.
    ///
    /// Errors: `Corrupt` for bytes that are no container, `Unsupported` for an unknown codec
    /// and for an encrypted file.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        if bytes.starts_with(ENCRYPTED_MAGIC) {
            return Err(Error::unsupported("the file is encrypted; encrypted tables are not supported"));
        }
        let mut rest = Cursor::new(bytes);
        if rest.take(MAGIC.len()).ok() != Some(MAGIC) {
            return Err(Error::corrupt("not an avro file: it does not start with the magic bytes"));
        }
        let mut metadata = HashMap::new();
        rest.items(|cursor| {
            let key = cursor.string()?;
            metadata.insert(key, cursor.bytes()?);
            Ok(())
        })?;
        let sync = rest.take(SYNC_LEN)?;
        let codec = Codec::from_name(metadata.get(CODEC_KEY).copied().unwrap_or_default())?;
        Ok(Self {
            metadata,
            codec,
            sync,
            rest,
        })
    }

    /// A value of the file's metadata.
    pub fn metadata(&self, key: &str) -> Option<&'a [u8]> {
        self.metadata.get(key).copied()
    }

    /// A value of the file's metadata as text.
    ///
    /// Errors: `Corrupt` if it is not UTF-8.
    pub fn metadata_text(&self, key: &str) -> Result<Option<&'a str>> {
        self.metadata(key)
            .map(|bytes| {
                std::str::from_utf8(bytes).map_err(|e| Error::corrupt(format!("avro metadata \"{key}\" is not utf-8")).with_source(e))
            })
            .transpose()
    }

    /// How the blocks are compressed.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// How the blocks behind the header are framed.
    ///
    /// Errors: `Internal` when blocks have been read already.
    pub fn framing(&self, header: &[u8]) -> Result<Framing> {
        let len = header.len().checked_sub(self.rest.remaining());
        let sync = <[u8; SYNC_LEN]>::try_from(self.sync);
        match (len, sync) {
            (Some(len), Ok(sync)) => Ok(Framing::new(self.codec, sync, len)),
            _ => Err(Error::internal("avro header of another file")),
        }
    }

    /// The schema that the file was written with.
    pub fn schema(&self) -> Result<AvroSchema> {
        let json = self.metadata(SCHEMA_KEY).ok_or_else(|| Error::corrupt("avro file has no schema"))?;
        AvroSchema::parse(json)
    }

    /// The next block; `None` at the end of the file.
    ///
    /// Errors: `Corrupt` for counts and sizes that do not fit the bytes at hand, a wrong sync
    /// marker or bytes that do not decompress.
    pub fn next_block<'b>(&mut self, buffer: &'b mut BlockBuffer) -> Result<Option<Block<'b>>>
    where
        'a: 'b,
    {
        if self.rest.remaining() == 0 {
            return Ok(None);
        }
        let count = self.rest.long()?;
        let count = u64::try_from(count).map_err(|_| Error::corrupt(format!("avro block declares {count} values")))?;
        let block = self.rest.bytes()?;
        if self.rest.take(SYNC_LEN)? != self.sync {
            return Err(Error::corrupt("avro block does not end with the sync marker"));
        }
        let bytes = buffer.0.decompress(self.codec, block)?;
        Ok(Some(Block { count, bytes }))
    }
}

impl Block<'_> {
    /// Checks that all bytes of the block were read.
    pub fn finish(&self, cursor: &Cursor<'_>) -> Result<()> {
        match cursor.remaining() {
            0 => Ok(()),
            left => Err(Error::corrupt(format!(
                "avro block of {} values has {left} bytes more than they take",
                self.count
            ))),
        }
    }
}
