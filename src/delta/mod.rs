//! Delta Lake tables, read by their log.
//!
//! From the log up: [`kernel`] knows the protocol; [`log`] reads a table's newest or an older version and keeps what it
//! learned; [`live_files`] is a version's list of files with typed statistics and partition values, advanced by what a
//! commit changed, and checked by [`checksum`]; [`plan`] prunes it; [`table`] is what the engine sees; [`loader`] opens
//! tables.
//!
//! Invariant: a query on a table that did not change reads nothing of its log.

mod changes;
mod checksum;
mod commit;
mod kernel;
mod live_files;
mod loader;
mod log;
mod metadata_tables;
mod partition_value;
mod paths;
mod plan;
mod schema;
mod stats;
mod table;
mod vectors;
mod version;

pub use loader::DeltaLoader;
pub use table::{DeltaSnapshot, DeltaTable};
