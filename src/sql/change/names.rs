//! Names of what a statement creates, drops or writes to.

use super::super::engine::Defaults;
use super::super::info_schema::INFORMATION_SCHEMA;
use crate::catalog::{Catalog, Catalogs, DEFAULT_SCHEMA, match_name};
use crate::error::{Error, Result};
use crate::iceberg::spec::{MAIN_BRANCH, RefKind, TableMetadata};
use crate::table::TableIdent;

const BRANCH: &str = "branch_";

/// The catalog and stored schema that a table's name means, and the table as it is written.
///
/// Errors: `NotFound` for a catalog or schema that is not there.
pub(super) async fn new_table(catalogs: &Catalogs, defaults: &Defaults, name: &[String]) -> Result<TableIdent> {
    let (catalog, schema, table) = match name {
        [table] => (defaults.catalog.as_deref(), defaults.schema.as_deref(), table),
        [schema, table] => (defaults.catalog.as_deref(), Some(schema.as_str()), table),
        [catalog, schema, table] => (Some(catalog.as_str()), Some(schema.as_str()), table),
        _ => return Err(Error::invalid(format!("{} is no name of a table", name.join(".")))),
    };
    let catalog = catalogs.catalog(catalog)?;
    let schema = schema.unwrap_or(DEFAULT_SCHEMA);
    let stored = stored_schema(catalog.as_ref(), schema).await?.ok_or_else(|| {
        Error::not_found(format!(
            "schema \"{schema}\" does not exist in catalog \"{}\": CREATE SCHEMA makes it",
            catalog.name()
        ))
    })?;
    if table.contains('$') {
        return Err(Error::invalid(format!(
            "\"{table}\" cannot be a table's name: $ is for metadata tables"
        )));
    }
    Ok(TableIdent::new(catalog.name(), stored, table))
}

/// The stored spelling of a schema's name.
///
/// Errors: `InvalidInput` for an ambiguous name.
pub(super) async fn stored_schema(catalog: &dyn Catalog, schema: &str) -> Result<Option<String>> {
    let schemas = catalog.list_schemas().await?;
    let stored = match_name("schema", schemas.iter().map(String::as_str), schema)?;
    Ok(stored.map(str::to_owned))
}

/// The table that a name means, with a branch where the name ends in `.branch_x` or the session has one.
///
/// Errors: `NotFound`, `InvalidInput` for an ambiguous name.
pub(super) async fn written_table(catalogs: &Catalogs, defaults: &Defaults, name: &[String]) -> Result<(TableIdent, String)> {
    if defaults.as_of.is_some() {
        return Err(Error::invalid(
            "a table cannot be written as of a time or snapshot: unset the session option as_of",
        ));
    }
    let session = defaults.branch.clone().unwrap_or_else(|| MAIN_BRANCH.to_owned());
    let whole = find(catalogs, defaults, name).await;
    let (table, last) = match name.split_last() {
        Some((last, table)) if !table.is_empty() => (table, last),
        _ => return whole.map(|ident| (ident, session)),
    };
    let is_branch = last.get(..BRANCH.len()).is_some_and(|head| head.eq_ignore_ascii_case(BRANCH));
    match whole {
        Ok(ident) => Ok((ident, session)),
        Err(_) if is_branch && last.len() > BRANCH.len() => {
            let branch = last.get(BRANCH.len()..).unwrap_or_default().to_owned();
            find(catalogs, defaults, table).await.map(|ident| (ident, branch))
        }
        Err(error) => match find(catalogs, defaults, table).await {
            Ok(ident) => Err(Error::unsupported(format!(
                "\"{last}\" of a table cannot be written: what can be are tables and their branches, as table.branch_x"
            ))
            .with("table", ident)),
            Err(_) => Err(error),
        },
    }
}

/// The stored spelling of a table's name.
pub(super) async fn find(catalogs: &Catalogs, defaults: &Defaults, name: &[String]) -> Result<TableIdent> {
    let catalog = defaults.catalog.as_deref();
    match name {
        [table] => catalogs.find_table(catalog, defaults.schema.as_deref(), table).await,
        [schema, table] => catalogs.find_table(catalog, Some(schema), table).await,
        [catalog, schema, table] => catalogs.find_table(Some(catalog), Some(schema), table).await,
        _ => Err(Error::not_found(format!("table \"{}\" does not exist", name.join(".")))),
    }
}

/// The catalog and the schema, as it is written, of a schema's name: the first part is a catalog where there
/// is one of that name and more parts follow; the rest is a nested namespace.
pub(super) fn schema<'a>(catalogs: &'a Catalogs, defaults: &Defaults, name: &[String]) -> Result<(&'a dyn Catalog, String)> {
    let (first, rest) = name.split_first().ok_or_else(|| Error::invalid("a schema needs a name"))?;
    if !rest.is_empty()
        && let Ok(catalog) = catalogs.catalog(Some(first))
    {
        return Ok((catalog.as_ref(), rest.join(".")));
    }
    Ok((catalogs.catalog(defaults.catalog.as_deref())?.as_ref(), name.join(".")))
}

/// Refuses a name that a new schema cannot have: its tables would be hidden behind the listings of that name.
///
/// Errors: `InvalidInput`.
pub(super) fn check_new_schema(schema: &str) -> Result<()> {
    if schema.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
        return Err(Error::invalid(format!(
            "\"{schema}\" cannot be a schema's name: every catalog has {INFORMATION_SCHEMA} already"
        )));
    }
    Ok(())
}

/// Refuses a branch that the table does not have: a misspelt one would be made.
///
/// Errors: `NotFound`; `InvalidInput` for a tag.
pub(super) fn check_branch(metadata: &TableMetadata, branch: &str) -> Result<()> {
    match metadata.refs.get(branch).map(|reference| reference.kind) {
        Some(RefKind::Branch) => Ok(()),
        Some(RefKind::Tag) => Err(Error::invalid(format!("\"{branch}\" is a tag, which cannot be written to"))),
        None if branch == MAIN_BRANCH => Ok(()),
        None => Err(Error::not_found(format!("the table has no branch \"{branch}\""))),
    }
}
