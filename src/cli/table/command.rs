//! Finding the table that the command line names, and printing the report.

use std::path::Path;
use std::sync::Arc;

use super::super::args::{FsckArgs, TableCommand};
use super::super::output::Out;
use super::super::run::Failure;
use super::super::serve::default_catalogs;
use super::super::wiring::Parts;
use super::report;
use crate::catalog::files_catalog;
use crate::config::{CatalogConfig, Config};
use crate::error::{Error, ErrorKind, Result};
use crate::iceberg::{IcebergTable, check_table};
use crate::sql::parse_as_of;
use crate::table::{AsOf, ScanRequest, Table};

/// Runs `sandur table`.
pub(in super::super) async fn table(command: TableCommand) -> Result<(), Failure> {
    let (TableCommand::Inspect(args) | TableCommand::Files(args) | TableCommand::History(args)) = &command;
    let table = load_table(&args.table, args.config.as_deref()).await?;
    let at = as_of(args.as_of.as_deref());
    if let Some(name) = &args.metadata {
        let rows = table.metadata_table(&name.to_lowercase(), &at)?;
        let all: Vec<usize> = (0..rows.schema().fields().len()).collect();
        let text = report::rows(rows.schema(), &rows.rows(&all).await?)?;
        let mut out = Out::new();
        return Ok(out.line(&text)?);
    }
    let metadata = IcebergTable::of(table.as_ref())?.metadata();
    let text = match &command {
        TableCommand::History(_) if args.as_of.is_some() => {
            return Err(Failure::Usage(Error::invalid("history shows all snapshots: leave --as-of out")));
        }
        TableCommand::History(_) => report::history(metadata),
        TableCommand::Inspect(_) | TableCommand::Files(_) => {
            let snapshot = table.snapshot(&at).await?;
            let plan = snapshot.plan_scan(&ScanRequest::default()).await?;
            match &command {
                TableCommand::Files(_) => report::files(metadata, &plan),
                _ => report::inspect(metadata, snapshot.as_ref(), &plan),
            }
        }
    };
    let mut out = Out::new();
    Ok(out.line(&text)?)
}

/// Runs `sandur fsck`: a line for each rule that is broken.
pub(in super::super) async fn fsck(args: FsckArgs) -> Result<(), Failure> {
    let table = load_table(&args.table, args.config.as_deref()).await?;
    let check = check_table(IcebergTable::of(table.as_ref())?).await?;
    let mut out = Out::new();
    for finding in &check.findings {
        out.line(finding)?;
    }
    out.line(&format!(
        "{} snapshots, {} manifests, {} files: {} findings",
        check.snapshots,
        check.manifests,
        check.files,
        check.findings.len()
    ))?;
    match check.findings.len() {
        0 => Ok(()),
        count => Err(Failure::Work(
            Error::corrupt(format!("the table breaks {count} rules")).with("table", table.ident()),
        )),
    }
}

/// A snapshot id or a time, else the name of a branch or tag.
fn as_of(text: Option<&str>) -> AsOf {
    match text {
        None => AsOf::Latest,
        Some(text) => parse_as_of(text).unwrap_or_else(|_| AsOf::Ref(text.to_owned())),
    }
}

/// The table of a location, or of a name in the configured catalogs or, where none is configured,
/// in the warehouse of the working directory. What is a file or folder is a location.
async fn load_table(named: &str, config: Option<&Path>) -> Result<Arc<dyn Table>, Failure> {
    let mut config = Config::load(config)?;
    let parts = Parts::new(&config)?;
    if config.catalogs.is_empty() {
        config.catalogs = default_catalogs()?;
    }
    if config.catalogs.is_empty() || named.contains('/') || Path::new(named).exists() {
        return Ok(load_location(named, &parts).await?);
    }
    // the name's own catalog alone, so that no other can stand in the way
    let (catalog, schema, table) = match split_name(named).map_err(Failure::Usage)?.as_slice() {
        [catalog, schema @ .., table] if !schema.is_empty() => (catalog.clone(), schema.join("."), table.clone()),
        _ => {
            return Err(Failure::Usage(
                Error::invalid("a table's name is `catalog.schema.table`").with("name", named),
            ));
        }
    };
    config.catalogs.retain(|name, _| name.to_lowercase() == catalog.to_lowercase());
    let catalogs = parts.catalogs(&config).await?;
    let ident = catalogs.find_table(Some(&catalog), Some(&schema), &table).await?;
    Ok(catalogs.table(&ident).await?)
}

async fn load_location(location: &str, parts: &Parts) -> Result<Arc<dyn Table>> {
    let no_table = || {
        Error::not_found("no table here: expected a table's folder or a *.metadata.json file; a NAME needs --config")
            .with("location", location)
    };
    let locations = [location.to_owned()];
    let files = match files_catalog(&parts.storage, &locations).await {
        Ok(files @ CatalogConfig::Tables { .. }) => files,
        Ok(CatalogConfig::Directory { .. } | CatalogConfig::Sql(_)) => {
            return Err(Error::invalid("this is a folder of tables: name one of them").with("location", location));
        }
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(no_table()),
        Err(e) => return Err(e),
    };
    let mut config = Config::default();
    config.catalogs.insert("files".to_owned(), files);
    let catalogs = parts.catalogs(&config).await?;
    let catalog = catalogs.catalog(None)?;
    for schema in catalog.list_schemas().await? {
        if let Some(ident) = catalog.list_tables(&schema).await?.first() {
            return catalogs.table(ident).await;
        }
    }
    Err(no_table())
}

/// Parts of a dotted name; dots in double quotes or back-ticks belong to the part.
pub(super) fn split_name(name: &str) -> Result<Vec<String>> {
    let bad = || Error::invalid("a table's name is `catalog.schema.table`").with("name", name);
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut quote = None;
    for c in name.chars() {
        match (quote, c) {
            (None, '"' | '`') if part.is_empty() => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '.') => parts.push(std::mem::take(&mut part)),
            (_, c) => part.push(c),
        }
    }
    parts.push(part);
    if quote.is_some() || parts.iter().any(String::is_empty) {
        return Err(bad());
    }
    Ok(parts)
}
