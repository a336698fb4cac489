//! Apache Iceberg, v1 to v3: metadata, manifests, Puffin files, delete scope rules and scan planning.
//!
//! `spec` is pure (no I/O, no arrow). Everything that reads files gets bytes from `io`.

mod arrow_schema;
pub mod avro;
pub mod commit;
mod delete_index;
mod delete_targets;
mod fsck;
mod hidden;
mod human;
mod literal_array;
mod loader;
pub mod manifest;
mod metadata_tables;
mod partition_path;
mod partition_type;
mod plan;
pub mod prune;
pub mod puffin;
pub mod rules;
pub mod spec;
mod summary;
mod table;
mod time_travel;
mod written;

pub use arrow_schema::arrow_columns;
pub use delete_targets::{DeletePlan, DeleteTarget};
pub use fsck::{TableCheck, check_table};
pub use loader::{PATH_PROPERTIES, TableLoader};
pub use partition_path::partition_path;
pub use partition_type::partition_type;
pub use summary::{PARTITION_LIMIT_PROPERTY, SummaryBuilder};
pub use table::{IcebergSnapshot, IcebergTable};
pub use written::{WrittenColumn, written_columns};
