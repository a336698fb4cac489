//! From configuration to catalogs.

use std::sync::Arc;

use super::directory::DirectoryCatalog;
use super::sql::SqlCatalog;
use super::tables::TablesCatalog;
use super::{Catalog, Catalogs, LoadTable};
use crate::config::{CatalogConfig, Config};
use crate::error::{Error, Result, ResultExt};
use crate::io::Storage;

/// The catalog that is the default where it is there.
const PREFERRED: &str = "iceberg";

impl Catalogs {
    /// The configured catalogs in order of name, but [`PREFERRED`] first; nothing is loaded.
    ///
    /// Errors: `InvalidInput` for a bad name or location.
    pub async fn from_config(config: &Config, storage: &Arc<Storage>, loader: Arc<dyn LoadTable>) -> Result<Self> {
        let mut list: Vec<Arc<dyn Catalog>> = Vec::new();
        for (name, catalog) in &config.catalogs {
            if name.is_empty() || name.contains('\0') {
                return Err(Error::invalid("a catalog needs a name").with("name", name.escape_debug()));
            }
            let loader = Arc::clone(&loader);
            let built: Result<Arc<dyn Catalog>> = match catalog {
                CatalogConfig::Directory { path } => DirectoryCatalog::new(name, path, storage, loader).await.map(|c| Arc::new(c) as _),
                CatalogConfig::Sql(config) => SqlCatalog::new(name, config, loader).await.map(|c| Arc::new(c) as _),
                CatalogConfig::Tables { tables } => TablesCatalog::new(name, tables, loader).map(|c| Arc::new(c) as _),
            };
            list.push(built.context("catalog", || name.clone())?);
        }
        // What names without a catalog mean should hold tables.
        list.sort_by_key(|catalog| catalog.name() != PREFERRED);
        Ok(Self::new(list))
    }
}
