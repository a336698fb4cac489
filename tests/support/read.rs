//! The seam between tests and engine: SQL on one table, rows in canonical form.
//!
//! The table is served as `t.default.t` by a catalog of single tables, the way a configuration
//! file would do it; names resolve without catalog and schema.

use std::path::Path;

use sandur::error::Result;
use serde_json::Value;

use super::builder::TestTable;
use super::canonical::Rows;
use super::cases::Case;

/// Where a table lies.
#[derive(Debug, Clone)]
pub struct Target {
    /// Metadata file or folder.
    pub location: String,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
}

impl From<&TestTable> for Target {
    fn from(table: &TestTable) -> Self {
        Self::new(&table.metadata_file(), table.path_map())
    }
}

impl From<&Case> for Target {
    fn from(case: &Case) -> Self {
        let location = case.metadata_file().unwrap_or_else(|| case.table_dir());
        Self::new(&location, case.path_map())
    }
}

impl Target {
    fn new(location: &Path, path_map: Vec<(String, String)>) -> Self {
        Self {
            location: location.to_str().expect("paths are UTF-8").to_owned(),
            path_map,
        }
    }
}

/// All rows of the table's current snapshot.
pub fn rows(table: impl Into<Target>) -> Result<Vec<Vec<Value>>> {
    Ok(query(table, "SELECT * FROM t")?.rows)
}

/// The rows of a query; the table is named `t`.
pub fn query(_table: impl Into<Target>, _sql: &str) -> Result<Rows> {
    Err(sandur::error::Error::internal("the engine is not wired to the tests"))
}
