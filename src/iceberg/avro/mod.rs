//! Avro object container files (Avro specification 1.12), read by field id and written with them
//! (spec "Appendix A: Avro").
//!
//! Invariants for foreign bytes: no allocation from a declared length before it was checked
//! against the bytes at hand; a block takes at most [`MAX_BLOCK_BYTES`] after decompression;
//! schemas and values nest at most [`MAX_DEPTH`] deep; work is bounded by the bytes read.

mod codec;
mod container;
mod cursor;
mod encoder;
mod rows;
mod schema;
mod schema_json;
mod stream;
#[cfg(test)]
mod tests;
mod wanted;
mod writer;

pub use codec::{Codec, MAX_BLOCK_BYTES};
pub use container::{Block, BlockBuffer, Container};
pub use cursor::Cursor;
pub use encoder::Encoder;
pub use rows::{RowDecoder, file_fields};
pub use schema::{AvroSchema, Field, Kind, Logical, Node, NodeId};
pub use stream::{Frame, Framing, OpenBlock};
pub use wanted::{Optional, Presence};
pub use writer::{ContainerWriter, SyncMarker};

/// How deep schemas and values may nest.
pub const MAX_DEPTH: usize = 64;
