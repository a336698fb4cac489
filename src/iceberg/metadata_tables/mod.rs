//! Metadata tables: snapshots, files, manifests and partitions of a table as rows, with the columns that
//! Iceberg's own metadata tables have (interface.md 4).
//!
//! Invariants: names, types and order of columns are Iceberg Java's; where a column cannot be trusted
//! (`partitions`) it is null, and columns that are ours come last. Tables that list the files or manifests
//! of one snapshot take a version; the others describe the table as a whole and refuse one.

mod arrays;
mod files;
mod manifests;
mod partitions;
mod read;
mod readable;
mod schemas;
mod snapshots;
mod table;
#[cfg(test)]
mod tests;

pub(super) use table::metadata_table;
