//! From names to pinned snapshots.
//!
//! Invariants: each table is loaded once, whatever the number of its mentions; a name that asks
//! for a version, a branch or a metadata table is an error, never the newest snapshot.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};

use super::engine::{Defaults, Pin};
use super::info_schema::{INFORMATION_SCHEMA, InfoTable};
use super::source::time_travel_not_built;
use crate::catalog::{Catalogs, DEFAULT_SCHEMA, match_name};
use crate::error::{Error, ErrorKind, Result};
use crate::table::{AsOf, Snapshot, TableIdent};

/// Tables that are loaded at once.
const LOADS: usize = 16;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Table(Arc<dyn Snapshot>),
    Info(TableIdent, Arc<InfoTable>),
}

/// A name of the statement with what it stands for.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    pub(super) parts: Vec<String>,
    pub(super) target: Target,
}

/// Where names are looked up.
pub(super) struct Resolver<'a> {
    pub(super) catalogs: &'a Arc<Catalogs>,
    pub(super) defaults: &'a Defaults,
    /// Set when a pinned statement runs again.
    pub(super) pins: Option<&'a [Pin]>,
}

enum Found {
    Table(TableIdent),
    Info(TableIdent, InfoTable),
}

impl Resolver<'_> {
    /// Resolves all names and loads their tables.
    pub(super) async fn resolve(&self, names: &[Vec<String>]) -> Result<Vec<Resolved>> {
        let found: Vec<_> = names.iter().map(|parts| self.find(parts)).collect();
        let found: Vec<Found> = stream::iter(found).buffered(LOADS).try_collect().await?;
        let mut idents: Vec<&TableIdent> = Vec::new();
        for one in &found {
            if let Found::Table(ident) = one
                && !idents.contains(&ident)
            {
                idents.push(ident);
            }
        }
        let loads: Vec<_> = idents.iter().map(|ident| self.load(ident)).collect();
        let loaded: Vec<Arc<dyn Snapshot>> = stream::iter(loads).buffered(LOADS).try_collect().await?;
        let targets = found.iter().map(|one| match one {
            Found::Info(..) => None,
            Found::Table(ident) => {
                let at = idents.iter().position(|i| *i == ident)?;
                loaded.get(at).map(|snapshot| Target::Table(Arc::clone(snapshot)))
            }
        });
        let targets: Vec<Option<Target>> = targets.collect();
        let resolved = names.iter().zip(found).zip(targets).map(|((parts, found), target)| {
            let target = match (found, target) {
                (Found::Info(ident, info), _) => Target::Info(ident, Arc::new(info)),
                (Found::Table(_), Some(target)) => target,
                (Found::Table(ident), None) => return Err(Error::internal("a table was not loaded").with("table", ident)),
            };
            Ok(Resolved {
                parts: parts.clone(),
                target,
            })
        });
        resolved.collect()
    }

    async fn find(&self, parts: &[String]) -> Result<Found> {
        let (catalog, schema, table) = match parts {
            [table] => (None, None, table),
            [schema, table] => (None, Some(schema), table),
            [catalog, schema, table] => (Some(catalog), Some(schema), table),
            _ => return Err(not_found(parts, None)),
        };
        let default_schema = self.defaults.schema.as_deref().unwrap_or(DEFAULT_SCHEMA);
        let in_schema = schema.map_or(default_schema, String::as_str);
        if in_schema.eq_ignore_ascii_case(INFORMATION_SCHEMA) {
            return self.find_info(catalog.map(String::as_str), parts, table);
        }
        let in_catalog = catalog.map(String::as_str).or(self.defaults.catalog.as_deref());
        let found = match self.pins {
            Some(pins) => self.find_pin(pins, in_catalog, in_schema, table),
            None => self.catalogs.find_table(in_catalog, Some(in_schema), table).await,
        };
        match found {
            Ok(ident) => Ok(Found::Table(ident)),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(not_found(parts, Some(e))),
            Err(e) => Err(e),
        }
    }

    fn find_info(&self, catalog: Option<&str>, parts: &[String], table: &str) -> Result<Found> {
        let only = match catalog {
            Some(name) => Some(self.catalogs.catalog(Some(name))?.name().to_owned()),
            None => None,
        };
        let shown = only.clone().unwrap_or_default();
        let name = table.to_lowercase();
        match InfoTable::new(&name, self.catalogs, only) {
            Some(info) => Ok(Found::Info(TableIdent::new(shown, INFORMATION_SCHEMA, name), info)),
            None => Err(not_found(parts, None)),
        }
    }

    /// The pin of a name: what the catalogs say now does not matter any more.
    fn find_pin(&self, pins: &[Pin], catalog: Option<&str>, schema: &str, table: &str) -> Result<TableIdent> {
        let catalog = self.catalogs.catalog(catalog)?.name();
        let inside = |pin: &&Pin| pin.table.catalog == catalog;
        let schema = match_name("schema", pins.iter().filter(inside).map(|p| p.table.schema.as_str()), schema)?;
        let tables = pins.iter().filter(inside).filter(|p| Some(p.table.schema.as_str()) == schema);
        let found = match_name("table", tables.map(|p| p.table.table.as_str()), table)?;
        match (schema, found) {
            (Some(schema), Some(table)) => Ok(TableIdent::new(catalog, schema, table)),
            _ => Err(Error::not_found("the statement was planned without this table")),
        }
    }

    async fn load(&self, ident: &TableIdent) -> Result<Arc<dyn Snapshot>> {
        let Some(pins) = self.pins else {
            return self.catalogs.table(ident).await?.snapshot(&AsOf::Latest).await;
        };
        let pin = pins.iter().find(|p| p.table == *ident);
        let pin = pin.ok_or_else(|| Error::internal("a pinned table is missing").with("table", ident))?;
        // The newest snapshot of that metadata file is what was planned. It is not asked for by
        // its id: by id a snapshot has the schema it was written with.
        let table = self.catalogs.table_at(ident, &pin.metadata_location).await?;
        let snapshot = table.snapshot(&AsOf::Latest).await?;
        if snapshot.id() != pin.snapshot_id {
            return Err(Error::not_found("the snapshot that the statement was planned with is gone").with("table", ident));
        }
        Ok(snapshot)
    }
}

/// The error for a name that no table has, telling what is not built yet.
fn not_found(parts: &[String], cause: Option<Error>) -> Error {
    const METADATA_TABLES: &[&str] = &[
        "snapshots",
        "history",
        "refs",
        "files",
        "data_files",
        "delete_files",
        "entries",
        "manifests",
        "partitions",
        "metadata_log_entries",
        "properties",
        "health",
    ];
    let last = parts.last().map(|p| p.to_lowercase()).unwrap_or_default();
    let shown = parts.iter().map(|p| format!("\"{p}\"")).collect::<Vec<_>>().join(".");
    let dotted = parts.len() > 1;
    if last.contains('@') {
        return time_travel_not_built();
    }
    if dotted && (last.starts_with("branch_") || last.starts_with("tag_")) {
        return Error::unsupported("reading a branch or tag of a table is not built yet").with("name", shown);
    }
    let metadata = last.strip_prefix("all_").unwrap_or(&last);
    if last.contains('$') || (dotted && METADATA_TABLES.contains(&metadata)) {
        return Error::unsupported("metadata tables are not built yet").with("name", shown);
    }
    cause.unwrap_or_else(|| Error::not_found(format!("table {shown} does not exist")))
}
