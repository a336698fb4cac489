//! Catalogs: which tables there are, and loading one.
//!
//! Invariants: listing never loads table metadata; a name that is listed can be loaded or
//! gives an error that says why; names keep their case and match without regard to it unless
//! two differ by case alone.

mod configured;
mod directory;
mod files;
mod loader;
mod location;
mod names;
mod sql;
mod tables;
mod traits;
mod writable;

#[cfg(test)]
mod tests;

pub use files::files_catalog;
pub use loader::{LoadTable, TableLoaders};
pub use names::match_name;
pub use traits::*;
pub use writable::{Pointer, SwapOutcome, WritableCatalog};

/// Schema of tables that lie in no schema, and the schema of unqualified names.
pub const DEFAULT_SCHEMA: &str = "default";
