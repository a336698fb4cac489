//! Delta Lake tables, read by their log.
//!
//! From the log up: [`kernel`] knows the protocol; [`loader`] opens a table's newest or an older version and keeps
//! what it learned; [`live_files`] is a version's list of files with typed statistics and partition values, advanced
//! by what a commit changed; [`plan`] prunes it; [`table`] is what the engine sees.
//!
//! Invariant: a query on a table that did not change reads nothing of its log.

mod changes;
mod checksum;
mod commit;
mod kernel;
mod live_files;
mod loader;
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
