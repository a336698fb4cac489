//! Names, places and versions of tables.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `catalog.schema.table`; a nested namespace is joined with dots in `schema`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableIdent {
    pub catalog: String,
    pub schema: String,
    pub table: String,
}

impl TableIdent {
    /// From its three parts.
    pub fn new(catalog: impl Into<String>, schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            catalog: catalog.into(),
            schema: schema.into(),
            table: table.into(),
        }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.schema, self.table)
    }
}

/// Where a table lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableLocation {
    /// The table's folder, absolute, without trailing slash.
    pub root: String,
    /// The metadata file to read (Iceberg); `None` asks for the newest below the root.
    pub metadata_file: Option<String>,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
    /// Folders of the catalog that names the table, absolute. A location that the metadata records is taken at its
    /// word where it lies below one of them; elsewhere the table counts as moved to `root`. Empty: always moved.
    pub catalog_roots: Vec<String>,
}

/// Which version of a table is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AsOf {
    /// The newest committed snapshot.
    Latest,
    /// Snapshot id (Iceberg) or version (Delta).
    Version(i64),
    /// Branch or tag.
    Ref(String),
    /// The snapshot that was current at this time, microseconds since the epoch.
    Timestamp(i64),
}
