//! The effective configuration as TOML, with every default spelled out.

use super::{CatalogConfig, Config, SqlCatalogConfig, TableConfig, TableFormat};
use crate::error::{Error, Result};

impl Config {
    /// TOML text that gives this configuration again when it is loaded.
    ///
    /// Errors: `Internal`, where a value has no TOML form.
    pub fn to_toml(&self) -> Result<String> {
        let mut limits = toml::Table::new();
        if let Some(memory) = self.limits.memory {
            limits.insert("memory".into(), size(memory));
        }
        limits.insert("queries".into(), integer(self.limits.queries as u64)?);
        let mut root = toml::Table::new();
        root.insert("server".into(), table([("listen", self.server.listen.to_string().into())]));
        root.insert("limits".into(), limits.into());
        let cache = [("metadata", size(self.cache.metadata)), ("deletes", size(self.cache.deletes))];
        root.insert("cache".into(), table(cache));
        root.insert("log".into(), table([("level", self.log.level.clone().into())]));
        let pruning = [
            ("manifests", self.pruning.manifests.into()),
            ("partitions", self.pruning.partitions.into()),
            ("metrics", self.pruning.metrics.into()),
            ("row_groups", self.pruning.row_groups.into()),
            ("pages", self.pruning.pages.into()),
            ("bloom", self.pruning.bloom.into()),
            ("residuals", self.pruning.residuals.into()),
        ];
        root.insert("pruning".into(), table(pruning));
        let catalogs: toml::Table = self.catalogs.iter().map(|(name, config)| (name.clone(), catalog(config))).collect();
        if !catalogs.is_empty() {
            root.insert("catalog".into(), catalogs.into());
        }
        toml::to_string(&root).map_err(|e| Error::internal("cannot print the configuration").with_source(e))
    }
}

fn catalog(config: &CatalogConfig) -> toml::Value {
    match config {
        CatalogConfig::Directory { path } => table([("type", "directory".into()), ("path", path.clone().into())]),
        CatalogConfig::Tables { tables } => {
            let tables: Vec<toml::Value> = tables.iter().map(one_table).collect();
            table([("type", "tables".into()), ("table", tables.into())])
        }
        CatalogConfig::Sql(config) => sql(config),
    }
}

fn sql(config: &SqlCatalogConfig) -> toml::Value {
    let mut out = table([
        ("type", "sql".into()),
        ("uri", format!("sqlite:{}", config.file).into()),
        ("warehouse", config.warehouse.clone().into()),
    ]);
    if let Some(fields) = out.as_table_mut() {
        if !config.allowed_locations.is_empty() {
            fields.insert("allowed_locations".into(), config.allowed_locations.clone().into());
        }
        if let Some(name) = &config.catalog_name {
            fields.insert("catalog_name".into(), name.clone().into());
        }
    }
    out
}

fn one_table(config: &TableConfig) -> toml::Value {
    let format = match config.format {
        TableFormat::Iceberg => "iceberg",
        TableFormat::Delta => "delta",
    };
    let rules: Vec<toml::Value> = config
        .path_map
        .iter()
        .map(|(from, to)| table([("from", from.clone().into()), ("to", to.clone().into())]))
        .collect();
    let mut out = table([
        ("name", config.name.clone().into()),
        ("format", format.into()),
        ("location", config.location.clone().into()),
        ("read_only", config.read_only.into()),
    ]);
    if let (false, Some(fields)) = (rules.is_empty(), out.as_table_mut()) {
        fields.insert("path_map".into(), rules.into());
    }
    out
}

fn table<const N: usize>(fields: [(&str, toml::Value); N]) -> toml::Value {
    toml::Value::Table(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn integer(value: u64) -> Result<toml::Value> {
    i64::try_from(value)
        .map(toml::Value::Integer)
        .map_err(|_| Error::internal("a number is too large for TOML"))
}

/// The largest unit that divides the size.
fn size(bytes: u64) -> toml::Value {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    match unit {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
    .into()
}
