//! What can be configured. Defaults stand here and nowhere else.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The whole configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub server: ServerConfig,
    pub limits: LimitsConfig,
    pub cache: CacheConfig,
    pub log: LogConfig,
    pub pruning: PruningConfig,
    /// By catalog name.
    pub catalogs: BTreeMap<String, CatalogConfig>,
}

/// `[server]`
#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: SocketAddr,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 31337)),
        }
    }
}

/// `[limits]`
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Bytes for running queries; `None` is 70 % of the machine's or container's memory.
    pub memory: Option<u64>,
    /// Queries that run at once; others wait.
    pub queries: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self { memory: None, queries: 8 }
    }
}

/// `[cache]`, in bytes
#[derive(Debug, Clone)]
pub struct CacheConfig {
    /// Table metadata, manifests, Parquet footers.
    pub metadata: u64,
    /// Deletion bitmaps and equality key sets.
    pub deletes: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            metadata: 512 << 20,
            deletes: 256 << 20,
        }
    }
}

/// `[log]`
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// A level or a filter directive.
    pub level: String,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned() }
    }
}

/// `[pruning]`: what a scan may leave out because it cannot match; answers are the same either way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct PruningConfig {
    /// Manifests, by the partition summaries of the manifest list.
    pub manifests: bool,
    /// Data files, by partition values.
    pub partitions: bool,
    /// Data files, by counts and bounds.
    pub metrics: bool,
    /// Row groups, by statistics.
    pub row_groups: bool,
    /// Pages, by the page index.
    pub pages: bool,
    /// Row groups, by bloom filters.
    pub bloom: bool,
    /// Filters that every row of the files that are left passes, by partition values, counts and bounds.
    pub residuals: bool,
}

impl Default for PruningConfig {
    fn default() -> Self {
        Self {
            manifests: true,
            partitions: true,
            metrics: true,
            row_groups: true,
            pages: true,
            bloom: true,
            residuals: true,
        }
    }
}

/// `[catalog.NAME]`
#[derive(Debug, Clone)]
pub enum CatalogConfig {
    /// A folder of tables: first level = schema unless it is a table itself, then schema `default`.
    Directory { path: String },
    /// Single tables by location.
    Tables { tables: Vec<TableConfig> },
    /// Iceberg's SQL (JDBC) catalog on SQLite.
    Sql(SqlCatalogConfig),
}

/// `type = "sql"`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlCatalogConfig {
    /// The SQLite file, absolute; created by the first server that may write it.
    pub file: String,
    /// The folder of the tables.
    pub warehouse: String,
    /// More folders that tables may lie in.
    pub allowed_locations: Vec<String>,
    /// What the file's rows call this catalog; `None`: as the catalog is called here.
    pub catalog_name: Option<String>,
}

/// Format of a table given by location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    Iceberg,
    Delta,
}

/// `[[catalog.NAME.table]]`
#[derive(Debug, Clone)]
pub struct TableConfig {
    /// `schema.table`
    pub name: String,
    pub format: TableFormat,
    /// Table root or (Iceberg) one metadata file.
    pub location: String,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
    pub read_only: bool,
}
