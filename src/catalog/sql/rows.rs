//! The statements of the SQL catalog: its two tables, with and without the column `iceberg_type`.
//!
//! A row whose `iceberg_type` is null is a table, in every statement: rows older than the column, and rows that a
//! program working with layout V0 adds, have no type. Rows of another type (views) are never touched.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension, params};

use super::database::sql_error;
use crate::error::{Error, Result};

/// Property that a namespace without any other gets, since it exists by its rows only.
pub(super) const EXISTS: &str = "exists";

/// As Iceberg Java creates them, with the column of layout V1; pyiceberg's differ in white space.
const CREATE_TABLES: &str = "
CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255),
    property_value VARCHAR(1000),
    PRIMARY KEY (catalog_name, namespace, property_key)
);";

/// What the file's tables look like. Asked anew in each transaction: another program may add the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// V1: there is a column `iceberg_type`.
    pub(super) typed: bool,
    /// The table of namespace properties is there too.
    pub(super) complete: bool,
}

impl Layout {
    /// `None` when the file has no catalog.
    ///
    /// Errors: `Corrupt` when its tables have other columns.
    pub(super) fn of(connection: &Connection) -> Result<Option<Self>> {
        let tables = columns(connection, "iceberg_tables")?;
        if tables.is_empty() {
            return Ok(None);
        }
        let properties = columns(connection, "iceberg_namespace_properties")?;
        let needed = [
            "catalog_name",
            "table_namespace",
            "table_name",
            "metadata_location",
            "previous_metadata_location",
        ];
        let missing = needed.iter().find(|name| !tables.contains(**name));
        let needed = ["catalog_name", "namespace", "property_key", "property_value"];
        let missing = missing.or_else(|| needed.iter().find(|n| !properties.is_empty() && !properties.contains(**n)));
        if let Some(name) = missing {
            return Err(Error::corrupt("the file's tables are not those of an Iceberg catalog: a column is missing").with("column", name));
        }
        Ok(Some(Self {
            typed: tables.contains("iceberg_type"),
            complete: !properties.is_empty(),
        }))
    }

    /// The condition that keeps tables only.
    fn tables_only(self) -> &'static str {
        if self.typed {
            " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
        } else {
            ""
        }
    }
}

fn columns(connection: &Connection, table: &str) -> Result<BTreeSet<String>> {
    let mut statement = connection
        .prepare_cached("SELECT lower(name) FROM pragma_table_info(?1)")
        .map_err(sql_error)?;
    let names = statement.query_map([table], |row| row.get(0)).map_err(sql_error)?;
    names.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// Creates what is missing.
pub(super) fn create_tables(connection: &Connection) -> Result<()> {
    connection.execute_batch(CREATE_TABLES).map_err(sql_error)
}

/// One row of `iceberg_tables`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) location: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) is_table: bool,
}

/// Names a table in the file.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) catalog: String,
    pub(super) schema: String,
    pub(super) table: String,
}

/// Namespaces that have tables, views or properties, and the parents of nested ones.
pub(super) fn namespaces(connection: &Connection, layout: Layout, catalog: &str) -> Result<BTreeSet<String>> {
    let mut sql = "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1".to_owned();
    if layout.complete {
        sql.push_str(" UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1");
    }
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let names = statement.query_map([catalog], |row| row.get::<_, String>(0)).map_err(sql_error)?;
    let mut out = BTreeSet::new();
    for name in names {
        let name = name.map_err(sql_error)?;
        out.extend(
            name.match_indices('.')
                .filter(|(at, _)| *at > 0)
                .map(|(at, _)| name[..at].to_owned()),
        );
        out.insert(name);
    }
    Ok(out)
}

/// Names of the tables of a namespace, sorted.
pub(super) fn tables(connection: &Connection, layout: Layout, catalog: &str, schema: &str) -> Result<Vec<String>> {
    let sql = format!(
        "SELECT table_name FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2{} ORDER BY table_name",
        layout.tables_only()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let names = statement.query_map([catalog, schema], |row| row.get(0)).map_err(sql_error)?;
    names.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// Names and metadata files of all tables in the file, whichever catalog they are of.
pub(super) fn locations(connection: &Connection, layout: Layout) -> Result<Vec<(String, String)>> {
    let sql = format!(
        "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables \
         WHERE metadata_location IS NOT NULL{} ORDER BY 1",
        layout.tables_only()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(sql_error)?;
    rows.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// True when a namespace holds a table or view.
pub(super) fn has_rows(connection: &Connection, catalog: &str, schema: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2 LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(sql_error)?;
    statement.exists([catalog, schema]).map_err(sql_error)
}

/// The row of a name, whatever its type.
pub(super) fn row(connection: &Connection, layout: Layout, key: &Key) -> Result<Option<Row>> {
    let kind = if layout.typed { "iceberg_type" } else { "NULL" };
    let sql = format!(
        "SELECT metadata_location, previous_metadata_location, {kind} FROM iceberg_tables \
         WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let found = statement.query_row(params![key.catalog, key.schema, key.table], |row| {
        Ok(Row {
            location: row.get(0)?,
            previous: row.get(1)?,
            is_table: row.get::<_, Option<String>>(2)?.is_none_or(|kind| kind == "TABLE"),
        })
    });
    found.optional().map_err(sql_error)
}

/// Adds a table. The primary key refuses a second one.
pub(super) fn insert(connection: &Connection, layout: Layout, key: &Key, location: &str) -> Result<()> {
    let (column, value) = if layout.typed { (", iceberg_type", ", 'TABLE'") } else { ("", "") };
    let sql = format!(
        "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location{column}) \
         VALUES (?1, ?2, ?3, ?4, NULL{value})"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement
        .execute(params![key.catalog, key.schema, key.table, location])
        .map_err(sql_error)?;
    one_row(rows)
}

/// The compare-and-swap: rows changed, which is 1 or 0.
pub(super) fn swap(connection: &Connection, layout: Layout, key: &Key, base: &str, new: &str) -> Result<usize> {
    let sql = format!(
        "UPDATE iceberg_tables SET metadata_location = ?1, previous_metadata_location = ?2 \
         WHERE catalog_name = ?3 AND table_namespace = ?4 AND table_name = ?5 AND metadata_location = ?2{}",
        layout.tables_only()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement.execute(params![new, base, key.catalog, key.schema, key.table]);
    rows.map_err(sql_error)
}

/// Removes a table's row.
pub(super) fn delete(connection: &Connection, layout: Layout, key: &Key) -> Result<()> {
    let sql = format!(
        "DELETE FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3{}",
        layout.tables_only()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    one_row(statement.execute(params![key.catalog, key.schema, key.table]).map_err(sql_error)?)
}

/// Gives a table's row another name.
pub(super) fn rename(connection: &Connection, layout: Layout, from: &Key, to: &Key) -> Result<()> {
    let sql = format!(
        "UPDATE iceberg_tables SET table_namespace = ?1, table_name = ?2 \
         WHERE catalog_name = ?3 AND table_namespace = ?4 AND table_name = ?5{}",
        layout.tables_only()
    );
    let mut statement = connection.prepare_cached(&sql).map_err(sql_error)?;
    let rows = statement.execute(params![to.schema, to.table, from.catalog, from.schema, from.table]);
    one_row(rows.map_err(sql_error)?)
}

fn one_row(rows: usize) -> Result<()> {
    match rows {
        1 => Ok(()),
        n => Err(Error::internal(format!(
            "a statement of the catalog changed {n} rows where one was meant"
        ))),
    }
}

/// A namespace's properties, without the one that only keeps it there.
pub(super) fn properties(connection: &Connection, layout: Layout, catalog: &str, schema: &str) -> Result<BTreeMap<String, String>> {
    if !layout.complete {
        return Ok(BTreeMap::new());
    }
    let sql = "SELECT property_key, property_value FROM iceberg_namespace_properties \
               WHERE catalog_name = ?1 AND namespace = ?2 AND property_key <> ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sql_error)?;
    let pairs = statement.query_map([catalog, schema, EXISTS], |row| {
        Ok((row.get(0)?, row.get::<_, Option<String>>(1)?.unwrap_or_default()))
    });
    pairs.map_err(sql_error)?.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// Sets one property.
pub(super) fn set_property(connection: &Connection, catalog: &str, schema: &str, key: &str, value: &str) -> Result<()> {
    remove_property(connection, catalog, schema, key)?;
    let sql = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) VALUES (?1, ?2, ?3, ?4)";
    let mut statement = connection.prepare_cached(sql).map_err(sql_error)?;
    one_row(statement.execute([catalog, schema, key, value]).map_err(sql_error)?)
}

/// Removes one property where it is there.
pub(super) fn remove_property(connection: &Connection, catalog: &str, schema: &str, key: &str) -> Result<()> {
    let sql = "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ?1 AND namespace = ?2 AND property_key = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(sql_error)?;
    statement.execute([catalog, schema, key]).map_err(sql_error).map(drop)
}

/// Removes a namespace's properties, and with them an empty namespace.
pub(super) fn remove_properties(connection: &Connection, catalog: &str, schema: &str) -> Result<()> {
    let sql = "DELETE FROM iceberg_namespace_properties WHERE catalog_name = ?1 AND namespace = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(sql_error)?;
    statement.execute([catalog, schema]).map_err(sql_error).map(drop)
}

/// Writes a page without changing anything, so that the transaction around it leaves a mark in the file: what an
/// earlier transaction left half-written is rolled back or written over by that.
pub(super) fn touch(connection: &Connection) -> Result<()> {
    let version: i64 = connection
        .query_row("PRAGMA user_version", (), |row| row.get(0))
        .map_err(sql_error)?;
    connection
        .execute_batch(&format!("PRAGMA user_version = {version}"))
        .map_err(sql_error)
}
