//! The merge-on-read scan: data files decoded with their deletes left out.
//!
//! Invariants: deletes are applied by physical row position before any filter counts; a row
//! group of which every row is deleted is never fetched; decoding runs on the rayon pool in
//! bounded units; dropping a stream stops its decoding. Whatever a file holds that cannot be
//! read is an error naming the file, never left out.

mod adapt;
mod avro;
mod casts;
mod context;
mod deletes;
mod file;
mod footer_repair;
mod hidden;
mod open;
mod orc;
mod provider;
mod prune;
mod pushdown;
mod queue;
mod reader;
mod residuals;
mod resolve;
mod source;
mod variant;

pub use context::{ScanContext, ScanCounters, Steps};
pub use deletes::deleted_rows;
pub use provider::LakeTableProvider;
pub use pushdown::{Opaque, misses, predicate};
pub use residuals::ProvedFilters;
