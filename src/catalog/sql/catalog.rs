//! The catalog as readers see it. Nothing here takes the writer's lock or creates the file.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;

use super::super::{Catalog, LoadTable, Pointer, WritableCatalog, match_name};
use super::database::{BUSY_TIMEOUT, Database};
use super::lock::WriterLock;
use super::places::Places;
use super::rows::{self, Key};
use crate::config::{SqlCatalogConfig, TableFormat};
use crate::error::{Error, Result};
use crate::table::{Table, TableIdent, TableLocation};

/// A SQL catalog on a SQLite file.
#[derive(Debug)]
pub(in super::super) struct SqlCatalog {
    pub(super) name: String,
    /// What the rows of this catalog say as `catalog_name`.
    pub(super) rows_name: String,
    pub(super) database: Arc<Database>,
    pub(super) places: Places,
    pub(super) lock: Arc<WriterLock>,
    /// The file and its tables were there after the lock was taken.
    pub(super) prepared: AtomicBool,
    loader: Arc<dyn LoadTable>,
}

impl SqlCatalog {
    /// A catalog whose file may still be missing, and then has no tables.
    ///
    /// Errors: `InvalidInput` and `Unsupported` for the warehouse's place, `Corrupt` for a file that is no catalog.
    pub(in super::super) async fn new(name: &str, config: &SqlCatalogConfig, loader: Arc<dyn LoadTable>) -> Result<Self> {
        let database = Database::new(PathBuf::from(&config.file), BUSY_TIMEOUT);
        let catalog = Self::over(name, config, database, loader)?;
        // Reads the layout, so that a file of something else is found out at once.
        catalog.database.read(|_, _| Ok(())).await?;
        Ok(catalog)
    }

    pub(super) fn over(name: &str, config: &SqlCatalogConfig, database: Database, loader: Arc<dyn LoadTable>) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            rows_name: config.catalog_name.clone().unwrap_or_else(|| name.to_owned()),
            lock: Arc::new(WriterLock::beside(database.path())),
            database: Arc::new(database),
            places: Places::new(&config.warehouse, &config.allowed_locations)?,
            prepared: AtomicBool::new(false),
            loader,
        })
    }

    /// The row's key of a table.
    pub(super) fn key(&self, ident: &TableIdent) -> Key {
        Key {
            catalog: self.rows_name.clone(),
            schema: ident.schema.clone(),
            table: ident.table.clone(),
        }
    }

    pub(super) async fn pointer_of(&self, ident: &TableIdent) -> Result<Option<Pointer>> {
        let key = self.key(ident);
        let row = self.database.read(move |c, layout| rows::row(c, layout, &key)).await?.flatten();
        let Some(row) = row.filter(|row| row.is_table) else {
            return Ok(None);
        };
        match row.location {
            Some(location) => Ok(Some(Pointer {
                location,
                previous: row.previous,
            })),
            None => Err(Error::corrupt("the catalog has no metadata location for the table").with("table", ident)),
        }
    }

    async fn location(&self, ident: &TableIdent) -> Result<TableLocation> {
        let pointer = self.pointer_of(ident).await?;
        let pointer = pointer.ok_or_else(|| Error::not_found(format!("table \"{ident}\" does not exist")))?;
        self.confined(ident, &pointer.location).await
    }

    /// Where the table of a metadata file lies, if it may be read.
    pub(super) async fn confined(&self, ident: &TableIdent, metadata_location: &str) -> Result<TableLocation> {
        let (places, ident, location) = (self.places.clone(), ident.clone(), metadata_location.to_owned());
        let checked = tokio::task::spawn_blocking(move || places.table(&ident, &location)).await;
        checked.map_err(|e| Error::internal("a blocking task failed").with_source(e))?
    }

    async fn namespaces(&self) -> Result<BTreeSet<String>> {
        let catalog = self.rows_name.clone();
        let names = self.database.read(move |c, layout| rows::namespaces(c, layout, &catalog)).await?;
        Ok(names.unwrap_or_default())
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_schemas(&self) -> Result<Vec<String>> {
        Ok(self.namespaces().await?.into_iter().collect())
    }

    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        let (catalog, namespace) = (self.rows_name.clone(), schema.to_owned());
        let names = self
            .database
            .read(move |c, layout| rows::tables(c, layout, &catalog, &namespace))
            .await?;
        let names = names.unwrap_or_default();
        Ok(names.into_iter().map(|table| TableIdent::new(&self.name, schema, table)).collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        let location = self.location(ident).await?;
        self.loader.load(TableFormat::Iceberg, ident, &location).await
    }

    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        let location = self.location(ident).await?;
        self.loader.load_at(TableFormat::Iceberg, ident, &location, metadata_location).await
    }

    async fn find_table(&self, schema: &str, table: &str) -> Result<Option<TableIdent>> {
        // The usual case, an exact name, is one row however many tables there are.
        let exact = TableIdent::new(&self.name, schema, table);
        let key = self.key(&exact);
        let row = self.database.read(move |c, layout| rows::row(c, layout, &key)).await?.flatten();
        if row.is_some_and(|row| row.is_table) {
            return Ok(Some(exact));
        }
        let schemas = self.namespaces().await?;
        let Some(schema) = match_name("schema", schemas.iter().map(String::as_str), schema)? else {
            return Ok(None);
        };
        let tables = self.list_tables(schema).await?;
        let found = match_name("table", tables.iter().map(|t| t.table.as_str()), table)?;
        Ok(found.map(|table| TableIdent::new(&self.name, schema, table)))
    }

    fn writable(&self) -> Option<&dyn WritableCatalog> {
        Some(self)
    }
}
