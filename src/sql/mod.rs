//! Planning and running SQL over the catalogs.
//!
//! Invariants: only SELECT, EXPLAIN, SHOW and DESCRIBE run, and none of them reaches a file
//! outside the catalogs; every table a statement names is resolved and pinned once, so a
//! [`Statement`] run again reads the same snapshots.

mod admission;
mod bounded;
mod casts;
mod change;
mod dialect;
mod engine;
mod errors;
mod exact;
mod floored;
mod functions;
mod gate;
mod hidden;
mod info_schema;
mod interrupt;
mod lists;
mod literals;
mod looking;
mod memory;
mod metadata;
mod multisets;
mod names;
mod null_safe;
mod one_number;
mod output;
mod params;
mod plans;
mod pool;
mod prepare;
mod providers;
mod regular;
mod relations;
mod resolve;
mod row_values;
mod run;
mod session;
mod shape;
mod show;
mod shown;
mod source;
mod spelling;
mod standard;
mod start;
mod table_changes;
mod three_valued;
mod together;
mod types;
mod unique_names;
mod uuid_text;
mod values;
mod variant_get;
mod versions;

pub use change::{Done, With, Writing};
pub use engine::*;
pub use errors::{from_datafusion, to_datafusion};
pub use providers::TableProviders;
pub use versions::parse_as_of;
