//! Building Puffin files in memory.
//!
//! Offsets and lengths are those of the finished file, so that a manifest entry can name them
//! before the file is written.

use std::collections::BTreeMap;

use super::MAGIC;
use super::codec::{Codec, MAX_BLOB_BYTES, compress_frame, too_large};
use super::footer::{BlobMetadata, DELETION_VECTOR_V1, FLAG_COMPRESSED, Footer, MAX_FOOTER_BYTES};
use crate::bitmap::{RowSet, deletion_vector};
use crate::error::{Error, Result};

/// Field id of the row position, which deletion vectors are computed for.
const ROW_POSITION_FIELD_ID: i32 = i32::MAX - 2;

/// A Puffin file in the making.
#[derive(Debug)]
pub struct PuffinWriter {
    bytes: Vec<u8>,
    footer: Footer,
}

impl PuffinWriter {
    /// A file without blobs; `created_by` names the program that writes it.
    pub fn new(created_by: impl Into<String>) -> Self {
        Self {
            bytes: MAGIC.to_vec(),
            footer: Footer {
                blobs: Vec::new(),
                properties: BTreeMap::from([("created-by".to_owned(), created_by.into())]),
            },
        }
    }

    /// Sets a property of the file.
    pub fn set_property(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.footer.properties.insert(key.into(), value.into());
    }

    /// Adds a blob of `content`. Type, fields, snapshot, codec and properties are those of `blob`; its
    /// offset and length are set here. Returns what the footer will say.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::Unsupported`] for an unknown codec,
    /// [`crate::error::ErrorKind::ResourceExhausted`] above [`MAX_BLOB_BYTES`].
    pub fn add_blob(&mut self, mut blob: BlobMetadata, content: &[u8]) -> Result<&BlobMetadata> {
        if content.len() as u64 > MAX_BLOB_BYTES {
            return Err(too_large(content.len() as u64, MAX_BLOB_BYTES));
        }
        blob.offset = self.bytes.len() as u64;
        match blob.codec()? {
            Some(codec) => self.bytes.extend(compress_frame(codec, content)?),
            None => self.bytes.extend_from_slice(content),
        }
        blob.length = self.bytes.len() as u64 - blob.offset;
        Ok(self.footer.blobs.push_mut(blob))
    }

    /// Adds the deletion vector of one data file; `data_file` is its location as the table's metadata has it.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::ResourceExhausted`] above [`MAX_BLOB_BYTES`].
    pub fn add_deletion_vector(&mut self, data_file: &str, rows: &RowSet) -> Result<&BlobMetadata> {
        let blob = BlobMetadata {
            blob_type: DELETION_VECTOR_V1.to_owned(),
            fields: vec![ROW_POSITION_FIELD_ID],
            // Neither is known before the commit (Puffin specification, deletion-vector-v1).
            snapshot_id: -1,
            sequence_number: -1,
            offset: 0,
            length: 0,
            compression_codec: None,
            properties: BTreeMap::from([
                ("referenced-data-file".to_owned(), data_file.to_owned()),
                ("cardinality".to_owned(), rows.len().to_string()),
            ]),
        };
        self.add_blob(blob, &deletion_vector::encode_blob(rows))
    }

    /// The bytes of the file and what its footer says. `compress_footer` writes the footer as an LZ4 frame.
    ///
    /// # Errors
    /// [`crate::error::ErrorKind::ResourceExhausted`] for a footer above [`MAX_FOOTER_BYTES`].
    pub fn finish(mut self, compress_footer: bool) -> Result<(Vec<u8>, Footer)> {
        let json = serde_json::to_vec(&self.footer).map_err(|e| Error::internal("cannot write a puffin footer").with_source(e))?;
        let (payload, flags) = if compress_footer {
            (compress_frame(Codec::Lz4, &json)?, FLAG_COMPRESSED)
        } else {
            (json, 0)
        };
        if payload.len() as u64 > MAX_FOOTER_BYTES {
            return Err(too_large(payload.len() as u64, MAX_FOOTER_BYTES));
        }
        let size = payload.len() as u32;
        self.bytes.extend_from_slice(&MAGIC);
        self.bytes.extend(payload);
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.bytes.extend_from_slice(&flags.to_le_bytes());
        self.bytes.extend_from_slice(&MAGIC);
        Ok((self.bytes, self.footer))
    }
}
