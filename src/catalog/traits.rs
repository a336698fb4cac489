//! The catalog seam, and finding a table by a name as a statement writes it.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::{DEFAULT_SCHEMA, WritableCatalog, match_name};
use crate::error::{Error, Result, ResultExt};
use crate::table::{Table, TableIdent};

/// One configured catalog. Schemas are namespaces; a nested namespace is one name joined with dots.
#[async_trait]
pub trait Catalog: Send + Sync + Debug {
    /// The catalog's name.
    fn name(&self) -> &str;
    /// Schema names, sorted.
    async fn list_schemas(&self) -> Result<Vec<String>>;
    /// Tables of a schema, sorted; empty for a schema that is not there. The schema is spelled
    /// as [`Self::list_schemas`] gives it.
    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>>;
    /// The table with its newest metadata. The name is spelled as the listing gives it.
    ///
    /// Errors: `NotFound`; `Unsupported` for a format that is not built.
    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>>;
    /// The table as a given metadata file describes it, to run a pinned statement again.
    ///
    /// Errors: `NotFound` when the file is gone; `PermissionDenied` when it does not belong to the table.
    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>>;

    /// The stored spelling of a table's name, or `None` when there is no such table. Exact
    /// spelling wins; else a name matches without regard to case.
    ///
    /// Errors: `InvalidInput` when several names match and none exactly.
    async fn find_table(&self, schema: &str, table: &str) -> Result<Option<TableIdent>> {
        let schemas = self.list_schemas().await?;
        let Some(schema) = match_name("schema", schemas.iter().map(String::as_str), schema)? else {
            return Ok(None);
        };
        let tables = self.list_tables(schema).await?;
        let Some(table) = match_name("table", tables.iter().map(|t| t.table.as_str()), table)? else {
            return Ok(None);
        };
        Ok(Some(TableIdent::new(self.name(), schema, table)))
    }

    /// The writing side, of a catalog that can be changed.
    fn writable(&self) -> Option<&dyn WritableCatalog> {
        None
    }
}

/// All configured catalogs, in order of configuration.
#[derive(Debug, Default)]
pub struct Catalogs {
    pub(crate) list: Vec<Arc<dyn Catalog>>,
}

impl Catalogs {
    /// From catalogs in order; the first is the default. Names are taken to be distinct.
    pub fn new(list: Vec<Arc<dyn Catalog>>) -> Self {
        Self { list }
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Catalog>> {
        self.list.iter()
    }

    /// The catalog of a name; `None` asks for the default, which is the first.
    ///
    /// Errors: `NotFound`; `InvalidInput` when the name is ambiguous.
    pub fn catalog(&self, name: Option<&str>) -> Result<&Arc<dyn Catalog>> {
        let Some(name) = name else {
            return self.list.first().ok_or_else(|| Error::not_found("no catalog is configured"));
        };
        let found = match_name("catalog", self.list.iter().map(|c| c.name()), name)?;
        found
            .and_then(|found| self.list.iter().find(|c| c.name() == found))
            .ok_or_else(|| Error::not_found(format!("catalog \"{name}\" does not exist; SHOW CATALOGS lists what there is")))
    }

    /// The writing side of the catalog of an exact name.
    ///
    /// Errors: `NotFound`; `Unsupported` for a catalog that is read only by its kind.
    pub fn writable(&self, name: &str) -> Result<&dyn WritableCatalog> {
        self.exact(name)?.writable().ok_or_else(|| {
            Error::unsupported(format!(
                "catalog \"{name}\" is read-only by its kind: what can be changed are catalogs of type \"sql\""
            ))
        })
    }

    /// The stored spelling of a name; missing parts are the default catalog and schema `default`.
    ///
    /// Errors: `NotFound`; `InvalidInput` when a part is ambiguous.
    pub async fn find_table(&self, catalog: Option<&str>, schema: Option<&str>, table: &str) -> Result<TableIdent> {
        let catalog = self.catalog(catalog)?;
        let schema = schema.unwrap_or(DEFAULT_SCHEMA);
        let found = catalog.find_table(schema, table).await;
        found.context("catalog", || catalog.name().to_owned())?.ok_or_else(|| {
            Error::not_found(format!(
                "table \"{}\" does not exist",
                TableIdent::new(catalog.name(), schema, table)
            ))
        })
    }

    /// The table of an exact name, with its newest metadata.
    ///
    /// Errors: `NotFound`; what the table's format says.
    pub async fn table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        let catalog = self.exact(&ident.catalog)?;
        catalog.load_table(ident).await.context("table", || ident.to_string())
    }

    /// The table of an exact name as a metadata file describes it.
    ///
    /// Errors: `NotFound`; what the table's format says.
    pub async fn table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        let catalog = self.exact(&ident.catalog)?;
        let table = catalog.load_table_at(ident, metadata_location).await;
        table.context("table", || ident.to_string())
    }

    fn exact(&self, name: &str) -> Result<&Arc<dyn Catalog>> {
        let found = self.list.iter().find(|c| c.name() == name);
        found.ok_or_else(|| Error::not_found(format!("catalog \"{name}\" does not exist")))
    }
}
