//! Data files and position delete files: rows in, files that a commit can add out; and the commits themselves
//! ([`commit`]).
//!
//! Invariants: a file is whole, durable and described (partition, counts, bounds) before it is handed out; a
//! row is in exactly one file, in the partition that its values say; memory is bounded by [`WriterLimits`]
//! however many rows and partitions there are; a writer that is aborted or dropped takes its files with it.

mod bounds;
pub mod commit;
mod created;
mod data_writer;
mod delete_mode;
#[cfg(test)]
mod delete_tests;
mod file_schema;
mod lineage;
#[cfg(test)]
mod lineage_tests;
mod locations;
mod metrics;
mod metrics_mode;
mod parquet_file;
mod partition;
mod partition_key;
mod position_deletes;
mod properties;
mod row_delete;
mod setup;
mod sort;
mod source;
mod stored;
#[cfg(test)]
mod tests;
mod values;

pub use data_writer::DataWriter;
pub use delete_mode::{DeleteMode, delete_isolation, delete_mode};
pub use locations::data_folder;
pub use position_deletes::{DeletedRows, write_position_deletes};
pub use row_delete::{PartlyDeleted, RowDelete, RowsByFile};
pub use setup::WriterLimits;
