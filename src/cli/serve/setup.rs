//! The effective configuration of `sandur serve`: file, environment, then flags.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::super::args::ServeArgs;
use super::super::run::Failure;
use crate::catalog::files_catalog;
use crate::config::{CatalogConfig, Config, SqlCatalogConfig, absolute_location};
use crate::error::{Error, Result};
use crate::io::Storage;

/// The warehouse that is used when no other is named.
const DEFAULT_WAREHOUSE: &str = "warehouse";

/// The catalog of the embedded warehouse that holds Iceberg tables, and what pyiceberg and Spark must call it.
pub(super) const ICEBERG: &str = "iceberg";

/// The folders of the embedded warehouse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warehouse {
    /// The SQLite file of catalog `iceberg`.
    pub(super) database: String,
    /// The tables of catalog `iceberg`.
    pub(super) iceberg: String,
    /// Catalog `delta`.
    pub(super) delta: String,
}

impl Warehouse {
    /// The folders of a warehouse.
    ///
    /// Errors: `Unsupported` for a location that is not local.
    fn at(root: &str) -> Result<Self> {
        let root = absolute_location(root)?;
        if root.contains("://") {
            return Err(Error::unsupported("the warehouse must be a local folder").with("warehouse", root));
        }
        let root = root.trim_end_matches('/');
        Ok(Self {
            database: format!("{root}/catalog.db"),
            iceberg: format!("{root}/iceberg"),
            delta: format!("{root}/delta"),
        })
    }

    /// The warehouse's catalogs by name.
    fn catalogs(&self) -> [(&'static str, CatalogConfig); 2] {
        let iceberg = SqlCatalogConfig {
            file: self.database.clone(),
            warehouse: self.iceberg.clone(),
            allowed_locations: Vec::new(),
            catalog_name: None,
        };
        let delta = CatalogConfig::Directory { path: self.delta.clone() };
        [(ICEBERG, CatalogConfig::Sql(iceberg)), ("delta", delta)]
    }
}

/// The catalogs that `sandur serve` has in this working directory where nothing is configured;
/// empty where it never ran.
pub(in super::super) fn default_catalogs() -> Result<BTreeMap<String, CatalogConfig>> {
    let warehouse = Warehouse::at(DEFAULT_WAREHOUSE)?;
    if !Path::new(&warehouse.iceberg).is_dir() {
        return Ok(BTreeMap::new());
    }
    Ok(warehouse.catalogs().map(|(name, catalog)| (name.to_owned(), catalog)).into())
}

/// What `sandur serve` will do.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) config: Config,
    /// Set when the embedded warehouse is among the catalogs.
    pub(super) warehouse: Option<Warehouse>,
}

/// Adds the tables and folders of the command line as catalog `files`.
pub(super) async fn add_locations(config: &mut Config, locations: &[String], storage: &Arc<Storage>) -> Result<(), Failure> {
    if locations.is_empty() {
        return Ok(());
    }
    let files = files_catalog(storage, locations).await.map_err(Failure::Usage)?;
    add(config, "files", "a location", files)
}

/// Applies the other flags to `config`. The embedded warehouse is used when it is asked for (`--warehouse`,
/// `--sample`), and where there is nothing else to serve.
pub(super) fn setup(args: &ServeArgs, mut config: Config) -> Result<Setup, Failure> {
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    check_loopback(args, &config)?;
    let alone = config.catalogs.is_empty() && args.locations.is_empty();
    let mut warehouse = None;
    if alone || args.sample || args.warehouse.is_some() {
        let folders = Warehouse::at(args.warehouse.as_deref().unwrap_or(DEFAULT_WAREHOUSE)).map_err(Failure::Usage)?;
        for (name, catalog) in folders.catalogs() {
            add(&mut config, name, "the embedded warehouse", catalog)?;
        }
        warehouse = Some(folders);
    }
    Ok(Setup { config, warehouse })
}

fn add(config: &mut Config, name: &str, what: &str, catalog: CatalogConfig) -> Result<(), Failure> {
    if config.catalogs.keys().any(|other| other.eq_ignore_ascii_case(name)) {
        return Err(Failure::Usage(Error::invalid(format!(
            "the configuration has a catalog `{name}`, which {what} needs: rename it there or leave the flag out"
        ))));
    }
    config.catalogs.insert(name.to_owned(), catalog);
    Ok(())
}

/// Anyone who reaches the address can read every table, so it must be this machine's own.
fn check_loopback(args: &ServeArgs, config: &Config) -> Result<(), Failure> {
    let listen = config.server.listen;
    if listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let mut message = String::from("only loopback addresses such as 127.0.0.1 are served until authentication is built");
    if args.allow_insecure {
        message.push_str("; --allow-insecure is not honoured yet");
    }
    let error = Error::permission_denied(message).with("listen", listen);
    Err(if args.listen.is_some() {
        Failure::Usage(error)
    } else {
        Failure::Work(error)
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::super::args::{Cli, Command};
    use super::*;

    fn run(flags: &[&str], config: &str) -> Result<Setup, Failure> {
        let line = ["sandur", "serve"].iter().chain(flags);
        let Command::Serve(args) = Cli::try_parse_from(line).unwrap().command else {
            panic!("another command");
        };
        setup(&args, Config::parse(Some(("f", config)), []).unwrap())
    }

    fn names(setup: &Setup) -> Vec<&str> {
        setup.config.catalogs.keys().map(String::as_str).collect()
    }

    const OWN: &str = "[catalog.mine]\ntype = 'directory'\npath = '/lake'";

    #[test]
    fn the_warehouse_serves_where_nothing_else_does() {
        let here = std::env::current_dir().unwrap();
        let setup = run(&[], "").unwrap();
        assert_eq!(names(&setup), ["delta", "iceberg"]);
        let folders = setup.warehouse.unwrap();
        assert_eq!(folders.database, format!("{}/warehouse/catalog.db", here.display()));
        assert_eq!(folders.iceberg, format!("{}/warehouse/iceberg", here.display()));
        assert_eq!(folders.delta, format!("{}/warehouse/delta", here.display()));
        assert_eq!(names(&run(&[], OWN).unwrap()), ["mine"]);
        assert_eq!(names(&run(&["--warehouse", "/w/"], OWN).unwrap()), ["delta", "iceberg", "mine"]);
        assert_eq!(names(&run(&["--sample"], OWN).unwrap()), ["delta", "iceberg", "mine"]);
    }

    #[test]
    fn a_catalog_name_is_not_taken_twice() {
        let config = "[catalog.Iceberg]\ntype = 'directory'\npath = '/lake'";
        assert!(matches!(run(&["--sample"], config), Err(Failure::Usage(_))));
    }

    #[test]
    fn flags_win_over_the_file() {
        let config = "[server]\nlisten = '127.0.0.1:1'";
        assert_eq!(run(&[], config).unwrap().config.server.listen.port(), 1);
        assert_eq!(run(&["--listen", "[::1]:2"], config).unwrap().config.server.listen.port(), 2);
    }

    #[test]
    fn other_than_loopback_addresses_are_refused() {
        for flags in [
            &["--listen", "0.0.0.0:1"][..],
            &["--listen", "192.168.1.1:1"],
            &["--listen", "[::]:1"],
            &["--listen", "[::ffff:10.0.0.1]:1", "--allow-insecure"],
            &["--listen", "0.0.0.0:1", "--allow-insecure"],
        ] {
            let Err(Failure::Usage(error)) = run(flags, "") else {
                panic!("{flags:?} is accepted");
            };
            assert_eq!(error.message().contains("not honoured"), flags.contains(&"--allow-insecure"));
        }
        assert!(matches!(run(&[], "server.listen = '0.0.0.0:1'"), Err(Failure::Work(_))));
        for fine in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "localhost:1"] {
            assert!(run(&["--listen", fine], "").is_ok(), "{fine}");
        }
    }
}
