//! SHOW and DESCRIBE as queries over `information_schema` and over a table's columns.

use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::{MemTable, TableProvider};
use datafusion::sql::sqlparser::ast::ShowStatementFilter;

use super::errors::from_datafusion;
use super::gate::Show;
use super::info_schema::type_name;
use crate::catalog::{Catalogs, match_name};
use crate::error::{Error, Result};
use crate::table::{DOC_KEY, TableIdent};

/// Full name under which the columns of the described table can be read; no catalog has it.
pub(super) const COLUMNS: [&str; 3] = ["$", "$", "columns"];

/// The query for a listing. `table` is the table of SHOW COLUMNS and DESCRIBE.
///
/// Errors: `NotFound` for a catalog or schema that is not there.
pub(super) async fn query(show: &Show, catalogs: &Catalogs, default_catalog: Option<&str>) -> Result<String> {
    match show {
        Show::Catalogs { filter } => {
            let inner = "SELECT catalog_name FROM information_schema.catalogs";
            Ok(listing(inner, "catalog_name", filter.as_ref(), None))
        }
        Show::Schemas { catalog, filter } => {
            let catalog = catalogs.catalog(catalog.as_deref().or(default_catalog))?.name();
            let inner = format!(
                "SELECT catalog_name, schema_name FROM information_schema.schemata WHERE catalog_name = {}",
                text(catalog)
            );
            Ok(listing(&inner, "schema_name", filter.as_ref(), Some("catalog_name, schema_name")))
        }
        Show::Tables { within, filter } => {
            let mut inner = "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables".to_owned();
            let (catalog, schema) = match within.as_slice() {
                [] => (None, None),
                [schema] => (default_catalog, Some(schema)),
                [catalog, schema, ..] => (Some(catalog.as_str()), Some(schema)),
            };
            match schema {
                None => inner += " WHERE table_schema <> 'information_schema'",
                Some(schema) => {
                    let catalog = catalogs.catalog(catalog)?;
                    let schemas = catalog.list_schemas().await?;
                    let known = schemas.iter().map(String::as_str).chain(["information_schema"]);
                    let schema = match_name("schema", known, schema)?
                        .ok_or_else(|| Error::not_found(format!("schema \"{schema}\" does not exist in catalog \"{}\"", catalog.name())))?;
                    inner += &format!(
                        " WHERE table_catalog = {} AND table_schema = {}",
                        text(catalog.name()),
                        text(schema)
                    );
                }
            }
            let order = Some("table_catalog, table_schema, table_name");
            Ok(listing(&inner, "table_name", filter.as_ref(), order))
        }
        Show::Columns { filter, .. } => {
            let inner = format!(
                "SELECT table_catalog, table_schema, table_name, column_name, data_type, is_nullable FROM {}",
                COLUMNS.map(|part| format!("\"{part}\"")).join(".")
            );
            Ok(listing(&inner, "column_name", filter.as_ref(), None))
        }
        Show::Describe { .. } => Ok(format!(
            "SELECT column_name, data_type, is_nullable, comment FROM {}",
            COLUMNS.map(|part| format!("\"{part}\"")).join(".")
        )),
    }
}

fn listing(inner: &str, column: &str, filter: Option<&ShowStatementFilter>, order: Option<&str>) -> String {
    let mut sql = format!("SELECT * FROM ({inner}) AS listing");
    match filter {
        None => {}
        Some(ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern)) => {
            sql += &format!(" WHERE {column} LIKE {}", text(pattern));
        }
        Some(ShowStatementFilter::ILike(pattern)) => sql += &format!(" WHERE {column} ILIKE {}", text(pattern)),
        Some(ShowStatementFilter::Where(condition)) => sql += &format!(" WHERE {condition}"),
    }
    if let Some(order) = order {
        sql += &format!(" ORDER BY {order}");
    }
    sql
}

/// A string literal.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// The columns of a table, as rows.
pub(super) fn columns(table: &TableIdent, schema: &SchemaRef) -> Result<Arc<dyn TableProvider>> {
    let fields = schema.fields();
    let TableIdent { catalog, schema, table } = table;
    let names = [
        "table_catalog",
        "table_schema",
        "table_name",
        "column_name",
        "data_type",
        "is_nullable",
        "comment",
    ];
    let described = Arc::new(Schema::new(names.map(|n| Field::new(n, DataType::Utf8, n == "comment")).to_vec()));
    let nullable = |f: &Arc<Field>| if f.is_nullable() { "YES" } else { "NO" };
    let arrays = [
        StringArray::from_iter_values(fields.iter().map(|_| catalog)),
        StringArray::from_iter_values(fields.iter().map(|_| schema)),
        StringArray::from_iter_values(fields.iter().map(|_| table)),
        StringArray::from_iter_values(fields.iter().map(|f| f.name())),
        StringArray::from_iter_values(fields.iter().map(|f| type_name(f))),
        StringArray::from_iter_values(fields.iter().map(nullable)),
        StringArray::from_iter(fields.iter().map(|f| f.metadata().get(DOC_KEY))),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&described), arrays.map(|a| Arc::new(a) as _).to_vec())?;
    let table = MemTable::try_new(described, vec![vec![batch]]).map_err(from_datafusion)?;
    Ok(Arc::new(table))
}
