//! Puffin files: containers of blobs beside a table's data, such as deletion vectors and statistics
//! (Puffin specification, version 1).
//!
//! Nothing here does I/O: [`parse_footer`] takes the end of a file, [`decompress`] one blob's bytes,
//! [`PuffinWriter`] builds a file in memory. A deletion vector is usually read without any of it,
//! straight by the offset and length that its manifest entry names.

mod codec;
mod footer;
mod writer;

pub use codec::{Codec, MAX_BLOB_BYTES, decompress};
pub use footer::{BlobMetadata, DELETION_VECTOR_V1, Footer, FooterRead, MAX_FOOTER_BYTES, check_magic, parse_footer};
pub use writer::PuffinWriter;

/// Four bytes at the start of the file, of the footer, and at the end.
const MAGIC: [u8; 4] = *b"PFA1";

#[cfg(test)]
mod tests;
