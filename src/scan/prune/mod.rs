//! Leaving out row groups and pages of an opened Parquet file.
//!
//! Invariants: what is skipped holds no row for which the query's condition is TRUE; row positions
//! stay physical, since a selection of rows is a mask over its row group and is combined with the
//! mask of deleted rows; an index or filter that does not add up is not used, and nothing is
//! allocated from a length that it declares.

mod bloom;
mod chunk;
mod index;
mod leaf;
mod pages;
mod select;

pub(super) use select::{FilePruner, FileView, Selected};
