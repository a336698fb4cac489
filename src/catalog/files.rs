//! The catalog `files` of `sandur serve LOCATION...` (interface.md 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::DEFAULT_SCHEMA;
use super::location::{Folder, FolderKind, absolute, is_metadata_file, name, table_location};
use crate::config::{CatalogConfig, TableConfig, TableFormat};
use crate::error::{Error, Result};
use crate::io::Storage;

/// What to configure as catalog `files` for locations on the command line: each a table's folder,
/// one `*.metadata.json`, or a folder of tables. A table is named after its folder, in schema
/// `default` or, inside a folder of folders, in the schema of its folder. One folder of tables
/// alone is a directory catalog, so tables that appear later are seen; else tables are fixed.
///
/// Errors: `NotFound` for a location without tables, `InvalidInput` when two tables get one name.
pub async fn files_catalog(storage: &Arc<Storage>, locations: &[String]) -> Result<CatalogConfig> {
    let mut tables: BTreeMap<String, TableConfig> = BTreeMap::new();
    for location in locations {
        let path = absolute(location)?;
        let folder = Folder::new(storage, &path)?;
        let found = if is_metadata_file(&path) {
            let root = table_location(&path, &[])?.root;
            vec![table(DEFAULT_SCHEMA, name(&root), TableFormat::Iceberg, &path)]
        } else {
            match folder.kind(None).await? {
                FolderKind::Iceberg => vec![table(DEFAULT_SCHEMA, name(&path), TableFormat::Iceberg, &path)],
                FolderKind::Delta => vec![table(DEFAULT_SCHEMA, name(&path), TableFormat::Delta, &path)],
                FolderKind::Plain => tables_below(&folder).await?,
            }
        };
        if found.is_empty() {
            return Err(
                Error::not_found("no table here: expected a table's folder, a *.metadata.json file or a folder of tables")
                    .with("location", location),
            );
        }
        if locations.len() == 1 && found.iter().all(|t| t.location != path) {
            return Ok(CatalogConfig::Directory { path });
        }
        for table in found {
            let (table_name, location) = (table.name.clone(), table.location.clone());
            let other = tables.insert(table_name.clone(), table);
            if let Some(other) = other.filter(|o| o.location != location) {
                return Err(Error::invalid(
                    "two locations give one table name: serve their parent folder, or name them in a configuration",
                )
                .with("table", table_name)
                .with("first", other.location)
                .with("second", location));
            }
        }
    }
    Ok(CatalogConfig::Tables {
        tables: tables.into_values().collect(),
    })
}

async fn tables_below(folder: &Folder) -> Result<Vec<TableConfig>> {
    let mut found = Vec::new();
    for top in folder.folders(None).await? {
        match folder.kind(Some(&top)).await? {
            FolderKind::Iceberg => found.push(table(DEFAULT_SCHEMA, &top, TableFormat::Iceberg, &folder.join(&top))),
            FolderKind::Delta => found.push(table(DEFAULT_SCHEMA, &top, TableFormat::Delta, &folder.join(&top))),
            FolderKind::Plain => {
                for inner in folder.folders(Some(&top)).await? {
                    let inside = format!("{top}/{inner}");
                    match folder.kind(Some(&inside)).await? {
                        FolderKind::Iceberg => found.push(table(&top, &inner, TableFormat::Iceberg, &folder.join(&inside))),
                        FolderKind::Delta => found.push(table(&top, &inner, TableFormat::Delta, &folder.join(&inside))),
                        FolderKind::Plain => {}
                    }
                }
            }
        }
    }
    Ok(found)
}

fn table(schema: &str, name: &str, format: TableFormat, location: &str) -> TableConfig {
    // A dot would split the name elsewhere, so it cannot stand in the table's part.
    let name = name.replace('.', "_");
    TableConfig {
        name: format!("{schema}.{name}"),
        format,
        location: location.to_owned(),
        path_map: Vec::new(),
        read_only: true,
    }
}
