//! Catalog of single tables by location (`type = "tables"`, interface.md 2).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::location::table_location;
use super::{Catalog, DEFAULT_SCHEMA, LoadTable, match_name};
use crate::config::{TableConfig, TableFormat};
use crate::error::{Error, Result};
use crate::table::{Table, TableIdent, TableLocation};

#[derive(Debug)]
struct Entry {
    format: TableFormat,
    location: TableLocation,
}

/// Tables that the configuration names one by one.
#[derive(Debug)]
pub(super) struct TablesCatalog {
    name: String,
    /// By schema, then table.
    schemas: BTreeMap<String, BTreeMap<String, Entry>>,
    loader: Arc<dyn LoadTable>,
}

impl TablesCatalog {
    /// Errors: `InvalidInput` for a bad name or location, or a name that is given twice.
    pub(super) fn new(name: &str, tables: &[TableConfig], loader: Arc<dyn LoadTable>) -> Result<Self> {
        let mut schemas: BTreeMap<String, BTreeMap<String, Entry>> = BTreeMap::new();
        for table in tables {
            let (schema, short) = split_name(&table.name)?;
            let location = table_location(&table.location, &table.path_map)?;
            let entry = Entry {
                format: table.format,
                location,
            };
            let inside = schemas.entry(schema.to_owned()).or_default();
            if inside.insert(short.to_owned(), entry).is_some() {
                return Err(Error::invalid("a table is configured twice")
                    .with("catalog", name)
                    .with("table", &table.name));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            schemas,
            loader,
        })
    }

    fn entry(&self, ident: &TableIdent) -> Result<&Entry> {
        let found = self.schemas.get(&ident.schema).and_then(|s| s.get(&ident.table));
        found.ok_or_else(|| Error::not_found(format!("table \"{ident}\" does not exist")))
    }
}

#[async_trait]
impl Catalog for TablesCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_schemas(&self) -> Result<Vec<String>> {
        Ok(self.schemas.keys().cloned().collect())
    }

    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        let tables = self.schemas.get(schema).into_iter().flat_map(BTreeMap::keys);
        Ok(tables.map(|t| TableIdent::new(&self.name, schema, t)).collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        let entry = self.entry(ident)?;
        self.loader.load(entry.format, ident, &entry.location).await
    }

    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        let entry = self.entry(ident)?;
        self.loader.load_at(entry.format, ident, &entry.location, metadata_location).await
    }

    async fn find_table(&self, schema: &str, table: &str) -> Result<Option<TableIdent>> {
        let Some(schema) = match_name("schema", self.schemas.keys().map(String::as_str), schema)? else {
            return Ok(None);
        };
        let tables = self.schemas.get(schema).into_iter().flat_map(BTreeMap::keys);
        let found = match_name("table", tables.map(String::as_str), table)?;
        Ok(found.map(|table| TableIdent::new(&self.name, schema, table)))
    }
}

/// `schema.table`; the table is what follows the last dot, a name without dot is in the default schema.
fn split_name(name: &str) -> Result<(&str, &str)> {
    let (schema, table) = name.rsplit_once('.').unwrap_or((DEFAULT_SCHEMA, name));
    if schema.is_empty() || table.is_empty() {
        return Err(Error::invalid("a table's name is `schema.table`").with("name", name));
    }
    Ok((schema, table))
}
