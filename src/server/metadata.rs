//! Catalogs, schemas, tables, table types and keys.
//!
//! Invariants: rows come in the order the protocol asks for; listing loads no table, and with
//! `include_schema` or for keys tables load a few at a time; a table or catalog that fails does
//! not hide the others, its failure is logged; one that was asked for alone fails the call.
//! Schemas: `reference`; filters: `filter`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int32Array, RecordBatch, StringArray};
use arrow_flight::sql::{CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use super::encode::Rows;
use super::filter::{Pattern, TABLE_TYPE, catalog_matches, tables_wanted};
use super::reference;
use super::wire::{schema_message, wire_schema};
use crate::catalog::{Catalog, Catalogs};
use crate::error::{Result, ResultExt};
use crate::table::{AsOf, Snapshot, TableIdent};

/// Tables that load at the same time for one call.
const CONCURRENT_LOADS: usize = 16;
/// Schemas that are listed at the same time for one call.
const CONCURRENT_LISTS: usize = 8;
/// Tables in one batch of a listing with schemas.
const BATCH: usize = 64;

/// CommandGetCatalogs
pub(super) fn catalogs(catalogs: &Catalogs) -> Result<Rows> {
    let mut names: Vec<&str> = catalogs.iter().map(|c| c.name()).collect();
    names.sort_unstable();
    let names: ArrayRef = Arc::new(StringArray::from(names));
    Ok(Rows::one(RecordBatch::try_new(Arc::clone(&reference::CATALOGS), vec![names])?))
}

/// CommandGetDbSchemas
pub(super) async fn db_schemas(catalogs: &Catalogs, command: &CommandGetDbSchemas) -> Result<Rows> {
    let pattern = Pattern::new(command.db_schema_filter_pattern.as_deref());
    let mut rows = Vec::new();
    for (catalog, schema) in schemas(catalogs, command.catalog.as_deref(), &pattern).await? {
        rows.push((catalog.name().to_owned(), schema));
    }
    rows.sort_unstable();
    let catalogs: ArrayRef = Arc::new(rows.iter().map(|r| Some(&r.0)).collect::<StringArray>());
    let schemas: ArrayRef = Arc::new(rows.iter().map(|r| Some(&r.1)).collect::<StringArray>());
    Ok(Rows::one(RecordBatch::try_new(
        Arc::clone(&reference::DB_SCHEMAS),
        vec![catalogs, schemas],
    )?))
}

/// CommandGetTables
pub(super) async fn tables(catalogs: Arc<Catalogs>, command: &CommandGetTables) -> Result<Rows> {
    let schema_pattern = Pattern::new(command.db_schema_filter_pattern.as_deref());
    let table_pattern = Pattern::new(command.table_name_filter_pattern.as_deref());
    let idents = if tables_wanted(&command.table_types) {
        find_tables(&catalogs, command.catalog.as_deref(), &schema_pattern, |name| {
            table_pattern.matches(name)
        })
        .await?
    } else {
        Vec::new()
    };

    if !command.include_schema {
        let columns = name_columns(&idents);
        return Ok(Rows::one(RecordBatch::try_new(Arc::clone(&reference::TABLES), columns)?));
    }
    let loads: Vec<_> = idents
        .into_iter()
        .map(|ident| {
            let catalogs = Arc::clone(&catalogs);
            async move {
                let message = table_schema(&catalogs, &ident).await;
                (ident, message)
            }
        })
        .collect();
    let batches: BoxStream<'static, Result<RecordBatch>> = stream::iter(loads)
        .buffered(CONCURRENT_LOADS)
        .filter_map(|(ident, message)| async move {
            match message {
                Ok(message) => Some((ident, message)),
                Err(error) => {
                    tracing::warn!(table = %ident, %error, "left out of a listing with schemas: the table does not load");
                    None
                }
            }
        })
        .chunks(BATCH)
        .map(|tables| {
            let (idents, messages): (Vec<TableIdent>, Vec<_>) = tables.into_iter().unzip();
            let mut columns = name_columns(&idents);
            columns.push(Arc::new(BinaryArray::from_iter_values(messages)));
            Ok(RecordBatch::try_new(Arc::clone(&reference::TABLES_WITH_SCHEMA), columns)?)
        })
        .boxed();
    Ok(Rows {
        schema: Arc::clone(&reference::TABLES_WITH_SCHEMA),
        batches,
    })
}

/// CommandGetTableTypes
pub(super) fn table_types() -> Result<Rows> {
    let types: ArrayRef = Arc::new(StringArray::from(vec![TABLE_TYPE]));
    Ok(Rows::one(RecordBatch::try_new(Arc::clone(&reference::TABLE_TYPES), vec![types])?))
}

/// CommandGetPrimaryKeys: the identifier fields of Iceberg.
pub(super) async fn primary_keys(catalogs: &Catalogs, command: &CommandGetPrimaryKeys) -> Result<Rows> {
    let schema = command.db_schema.as_deref();
    let escaped = schema.map(escape);
    let pattern = Pattern::new(escaped.as_deref());
    let idents = find_tables(catalogs, command.catalog.as_deref(), &pattern, |name| name == command.table).await?;
    let alone = idents.len() == 1;
    let loads: Vec<_> = idents
        .into_iter()
        .map(|ident| async move {
            let snapshot = load(catalogs, &ident).await;
            (ident, snapshot)
        })
        .collect();
    let loaded: Vec<(TableIdent, Result<Arc<dyn Snapshot>>)> = stream::iter(loads).buffered(CONCURRENT_LOADS).collect().await;
    let mut rows: Vec<(TableIdent, String, i32)> = Vec::new();
    for (ident, snapshot) in loaded {
        match snapshot {
            Ok(snapshot) => {
                for (column, sequence) in snapshot.identifier_columns().into_iter().zip(1..) {
                    rows.push((ident.clone(), column, sequence));
                }
            }
            Err(error) if alone => return Err(error),
            Err(error) => tracing::warn!(table = %ident, %error, "left out of a listing of keys: the table does not load"),
        }
    }
    let idents: Vec<TableIdent> = rows.iter().map(|r| r.0.clone()).collect();
    let mut columns = name_columns(&idents);
    columns.truncate(3);
    columns.push(Arc::new(rows.iter().map(|r| Some(&r.1)).collect::<StringArray>()));
    columns.push(Arc::new(rows.iter().map(|_| None::<&str>).collect::<StringArray>()));
    columns.push(Arc::new(rows.iter().map(|r| r.2).collect::<Int32Array>()));
    Ok(Rows::one(RecordBatch::try_new(Arc::clone(&reference::PRIMARY_KEYS), columns)?))
}

/// The commands on foreign keys, which no table format has.
pub(super) fn foreign_keys() -> Rows {
    Rows::one(RecordBatch::new_empty(Arc::clone(&reference::FOREIGN_KEYS)))
}

/// A name as a pattern that matches nothing else.
fn escape(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '%' | '_' | super::filter::ESCAPE) {
            pattern.push(super::filter::ESCAPE);
        }
        pattern.push(c);
    }
    pattern
}

/// Catalog, schema, table and type columns.
fn name_columns(idents: &[TableIdent]) -> Vec<ArrayRef> {
    let texts = |get: fn(&TableIdent) -> &str| -> ArrayRef { Arc::new(idents.iter().map(|i| Some(get(i))).collect::<StringArray>()) };
    vec![
        texts(|i| &i.catalog),
        texts(|i| &i.schema),
        texts(|i| &i.table),
        texts(|_| TABLE_TYPE),
    ]
}

/// The schemas that pass, with their catalogs; unsorted.
async fn schemas(catalogs: &Catalogs, filter: Option<&str>, pattern: &Pattern) -> Result<Vec<(Arc<dyn Catalog>, String)>> {
    let mut found = Vec::new();
    for catalog in catalogs.iter().filter(|c| catalog_matches(filter, c.name())) {
        match catalog.list_schemas().await {
            Ok(names) => {
                let names = names.into_iter().filter(|name| pattern.matches(name));
                found.extend(names.map(|name| (Arc::clone(catalog), name)));
            }
            Err(error) if filter == Some(catalog.name()) => return Err(error.with("catalog", catalog.name())),
            Err(error) => tracing::warn!(catalog = catalog.name(), %error, "left out of a listing: the catalog does not list its schemas"),
        }
    }
    Ok(found)
}

/// The tables that pass, sorted.
async fn find_tables(
    catalogs: &Catalogs,
    filter: Option<&str>,
    schema_pattern: &Pattern,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<TableIdent>> {
    let schemas = schemas(catalogs, filter, schema_pattern).await?;
    // Collected first: a closure inside of the stream would keep the future from being `Send`.
    let lists: Vec<_> = schemas
        .into_iter()
        .map(|(catalog, schema)| async move {
            match catalog.list_tables(&schema).await {
                Ok(tables) => Ok(tables),
                Err(error) if filter == Some(catalog.name()) => Err(error.with("schema", &schema)),
                Err(error) => {
                    tracing::warn!(catalog = catalog.name(), schema, %error, "left out of a listing: the schema does not list its tables");
                    Ok(Vec::new())
                }
            }
        })
        .collect();
    let lists: Vec<Vec<TableIdent>> = stream::iter(lists).buffered(CONCURRENT_LISTS).try_collect().await?;
    let mut found: Vec<TableIdent> = lists.into_iter().flatten().filter(|ident| wanted(&ident.table)).collect();
    found.sort_unstable();
    Ok(found)
}

/// The newest snapshot of a listed table.
async fn load(catalogs: &Catalogs, ident: &TableIdent) -> Result<Arc<dyn Snapshot>> {
    let snapshot = async { catalogs.table(ident).await?.snapshot(&AsOf::Latest).await };
    snapshot.await.context("table", || ident.to_string())
}

/// A table's wire schema as an encapsulated message.
async fn table_schema(catalogs: &Catalogs, ident: &TableIdent) -> Result<bytes::Bytes> {
    let snapshot = load(catalogs, ident).await?;
    schema_message(&wire_schema(snapshot.schema(), Some(ident)))
}

#[cfg(test)]
mod tests;
