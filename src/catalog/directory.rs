//! Catalog over a folder of tables (`type = "directory"`, interface.md 2).
//!
//! A folder with `metadata/*.metadata.json` is an Iceberg table, one with `_delta_log` a Delta
//! table. A table directly below the root is in schema `default`; any other folder below the
//! root is a schema, and the tables directly below it are its tables. Folders whose name begins
//! with `.` or `_` are not looked at. A symbolic link out of the root is not listed and not
//! loaded (SE-20, SE-21).

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};

use super::location::{Folder, FolderKind, absolute};
use super::{Catalog, DEFAULT_SCHEMA, LoadTable, match_name};
use crate::config::TableFormat;
use crate::error::{Error, Result};
use crate::io::Storage;
use crate::table::{Table, TableIdent, TableLocation};

/// Folders that are looked into at once.
const PROBES: usize = 16;

/// Tables found below a folder, looked up anew each time.
#[derive(Debug)]
pub(super) struct DirectoryCatalog {
    name: String,
    folder: Folder,
    loader: Arc<dyn LoadTable>,
}

impl DirectoryCatalog {
    /// Errors: `InvalidInput` when the path is no path, or is a table itself.
    pub(super) async fn new(name: &str, path: &str, storage: &Arc<Storage>, loader: Arc<dyn LoadTable>) -> Result<Self> {
        let folder = Folder::new(storage, &absolute(path)?)?;
        if folder.kind(None).await? != FolderKind::Plain {
            return Err(Error::invalid(
                "the path of a directory catalog is a table itself: name its parent folder, or use type \"tables\"",
            )
            .with("catalog", name)
            .with("path", folder.path()));
        }
        Ok(Self {
            name: name.to_owned(),
            folder,
            loader,
        })
    }

    /// Every folder directly below `below`, with what it is, in order of name.
    async fn probe(&self, below: Option<&str>) -> Result<Vec<(String, FolderKind)>> {
        let names = self.folder.folders(below).await?;
        let probes = names.into_iter().map(|name| async move {
            let inside = below.map_or_else(|| name.clone(), |b| format!("{b}/{name}"));
            let kind = self.folder.kind(Some(&inside)).await?;
            Ok::<_, Error>((name, kind))
        });
        stream::iter(probes).buffered(PROBES).try_collect().await
    }

    /// The folder of a table, relative to the root, with its kind; `None` when there is none.
    async fn locate(&self, ident: &TableIdent) -> Result<Option<(String, FolderKind)>> {
        let nested = format!("{}/{}", ident.schema, ident.table);
        let direct = (ident.schema == DEFAULT_SCHEMA).then(|| ident.table.clone());
        for inside in direct.into_iter().chain([nested]) {
            let kind = match self.folder.confine(&inside).await {
                Ok(()) => self.folder.kind(Some(&inside)).await?,
                Err(e) if e.kind() == crate::error::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            // A schema may not be a table, or the table would have tables inside.
            let schema_is_table = match inside.split_once('/') {
                Some((schema, _)) => self.folder.kind(Some(schema)).await? != FolderKind::Plain,
                None => false,
            };
            if kind != FolderKind::Plain && !schema_is_table {
                return Ok(Some((inside, kind)));
            }
        }
        Ok(None)
    }

    async fn location(&self, ident: &TableIdent) -> Result<(TableFormat, TableLocation)> {
        let found = self.locate(ident).await?;
        match found.and_then(|(inside, kind)| Some((inside, kind.format()?))) {
            Some((inside, format)) => {
                let location = TableLocation {
                    root: self.folder.join(&inside),
                    ..TableLocation::default()
                };
                Ok((format, location))
            }
            None => Err(Error::not_found(format!("table \"{ident}\" does not exist"))),
        }
    }
}

#[async_trait]
impl Catalog for DirectoryCatalog {
    fn name(&self) -> &str {
        &self.name
    }

    async fn list_schemas(&self) -> Result<Vec<String>> {
        let mut schemas = Vec::new();
        for (name, kind) in self.probe(None).await? {
            schemas.push(if kind == FolderKind::Plain {
                name
            } else {
                DEFAULT_SCHEMA.to_owned()
            });
        }
        schemas.sort();
        schemas.dedup();
        Ok(schemas)
    }

    async fn list_tables(&self, schema: &str) -> Result<Vec<TableIdent>> {
        let mut tables = Vec::new();
        if schema == DEFAULT_SCHEMA {
            tables.extend(self.probe(None).await?);
        }
        let is_folder = self.folder.folders(None).await?.iter().any(|f| f == schema);
        if is_folder && self.folder.kind(Some(schema)).await? == FolderKind::Plain {
            tables.extend(self.probe(Some(schema)).await?);
        }
        let mut names: Vec<String> = tables
            .into_iter()
            .filter(|(_, kind)| *kind != FolderKind::Plain)
            .map(|(name, _)| name)
            .collect();
        names.sort();
        names.dedup();
        Ok(names.into_iter().map(|t| TableIdent::new(&self.name, schema, t)).collect())
    }

    async fn load_table(&self, ident: &TableIdent) -> Result<Arc<dyn Table>> {
        let (format, location) = self.location(ident).await?;
        self.loader.load(format, ident, &location).await
    }

    async fn load_table_at(&self, ident: &TableIdent, metadata_location: &str) -> Result<Arc<dyn Table>> {
        let (format, location) = self.location(ident).await?;
        self.loader.load_at(format, ident, &location, metadata_location).await
    }

    async fn find_table(&self, schema: &str, table: &str) -> Result<Option<TableIdent>> {
        // The usual case, an exact name, costs two or three listings however many tables there are.
        let exact = TableIdent::new(&self.name, schema, table);
        if is_plain_name(schema) && is_plain_name(table) && self.locate(&exact).await?.is_some() {
            return Ok(Some(exact));
        }
        let top = self.folder.folders(None).await?;
        let schemas = top.iter().map(String::as_str).chain([DEFAULT_SCHEMA]);
        let Some(schema) = match_name("schema", schemas, schema)? else {
            return Ok(None);
        };
        let tables = self.list_tables(schema).await?;
        let found = match_name("table", tables.iter().map(|t| t.table.as_str()), table)?;
        Ok(found.map(|table| TableIdent::new(&self.name, schema, table)))
    }
}

/// True for a name that can be one path segment and that a listing would show.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['.', '_']) && !name.contains(['/', '\0'])
}
