//! From text to [`Config`]: the file, then the environment over it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use super::paths::sqlite_file;
use super::section::{Origins, Section};
use super::{CatalogConfig, Config, SqlCatalogConfig, TableConfig, TableFormat, absolute_location};
use crate::error::{Error, Result};

/// Environment variables with this prefix set keys: `SANDUR__LIMITS__QUERIES` sets `limits.queries`.
pub const ENV_PREFIX: &str = "SANDUR__";

/// A configuration file larger than this is refused.
const MAX_FILE_BYTES: u64 = 16 << 20;

impl Config {
    /// Reads `file`, if given, and the process's environment over it.
    ///
    /// Errors: `InvalidInput` naming the key and the file or variable; `NotFound` for a missing file.
    pub fn load(file: Option<&Path>) -> Result<Self> {
        let text = file.map(read).transpose()?;
        let name = file.map(|f| f.display().to_string());
        // variables of other programs may hold anything; ours are text
        let mut env = Vec::new();
        for (variable, value) in std::env::vars_os() {
            let Some(variable) = variable.to_str().filter(|v| v.starts_with(ENV_PREFIX)) else {
                continue;
            };
            let value = value
                .into_string()
                .map_err(|_| Error::invalid("value is not UTF-8").with("environment variable", variable))?;
            env.push((variable.to_owned(), value));
        }
        Self::parse(name.as_deref().zip(text.as_deref()), env)
    }

    /// From the text of a file (with its name for messages) and environment variables.
    ///
    /// Errors: as [`Config::load`].
    pub fn parse(file: Option<(&str, &str)>, env: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut root = match file {
            Some((name, text)) => parse_toml(name, text)?,
            None => toml::Table::new(),
        };
        let mut origins = Origins {
            file: file.map(|(name, _)| name.to_owned()),
            env: BTreeMap::new(),
        };
        let mut env: Vec<_> = env.into_iter().filter(|(variable, _)| variable.starts_with(ENV_PREFIX)).collect();
        // sorted, so that a variable for a whole table comes before those for keys in it
        env.sort();
        for (variable, value) in env {
            let path = set_from_env(&mut root, &variable, &value)?;
            origins.env.insert(path, variable);
        }
        read_root(Section::new(String::new(), root, &origins))
    }
}

fn read(file: &Path) -> Result<String> {
    let failed = |e: std::io::Error| {
        let error = match e.kind() {
            std::io::ErrorKind::NotFound => Error::not_found("configuration file does not exist"),
            _ => Error::invalid("cannot read configuration file"),
        };
        error.with("file", file.display()).with_source(e)
    };
    let metadata = std::fs::metadata(file).map_err(failed)?;
    // A device or a pipe has no size and may have no end.
    if !metadata.is_file() {
        return Err(Error::invalid("configuration is no regular file").with("file", file.display()));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(Error::invalid("configuration file is too large").with("file", file.display()));
    }
    std::fs::read_to_string(file).map_err(failed)
}

fn parse_toml(name: &str, text: &str) -> Result<toml::Table> {
    text.parse::<toml::Table>().map_err(|e| {
        // the error's own text quotes the line, which may hold a secret
        let start = e.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        Error::invalid(format!("not valid TOML: {}", e.message().trim())).with("file", format!("{name}:{line}"))
    })
}

/// Sets the key that `variable` names and returns the key's path.
fn set_from_env(root: &mut toml::Table, variable: &str, value: &str) -> Result<String> {
    let refuse = |message: &str| Error::invalid(message).with("environment variable", variable);
    let parts: Vec<&str> = variable[ENV_PREFIX.len()..].split("__").collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(refuse("the name has an empty part"));
    }
    let mut table = root;
    let mut path = String::new();
    for (i, part) in parts.iter().enumerate() {
        // keys are lower case except for names that users chose
        let name = match table.keys().find(|key| key.eq_ignore_ascii_case(part)) {
            Some(existing) => existing.clone(),
            None => part.to_ascii_lowercase(),
        };
        if i > 0 {
            path.push('.');
        }
        path.push_str(&name);
        if i + 1 == parts.len() {
            table.insert(name, env_value(value).ok_or_else(|| refuse("the value is not valid TOML"))?);
            return Ok(path);
        }
        let next = table.entry(name).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        table = next.as_table_mut().ok_or_else(|| refuse(&format!("`{path}` is not a table")))?;
    }
    Err(refuse("the name has no key"))
}

/// Arrays and inline tables are TOML, everything else is text that the key's reader interprets.
fn env_value(value: &str) -> Option<toml::Value> {
    if value.trim_start().starts_with(['[', '{']) {
        let table = format!("value = {value}").parse::<toml::Table>().ok()?;
        return table.into_iter().next().map(|(_, value)| value);
    }
    Some(toml::Value::String(value.to_owned()))
}

fn read_root(mut root: Section<'_>) -> Result<Config> {
    let mut config = Config::default();
    if let Some(mut server) = root.section("server")? {
        server.not_built(&["advertise", "ticket_key", "drain_timeout", "tls"])?;
        if let Some(listen) = server.string("listen")? {
            config.server.listen = parse_listen(&listen)
                .ok_or_else(|| server.error("listen", "must be an IP address and a port such as \"127.0.0.1:31337\""))?;
        }
        server.finish()?;
    }
    root.not_built(&["admin", "auth", "audit", "storage"])?;
    if let Some(mut limits) = root.section("limits")? {
        limits.not_built(&["statement_timeout"])?;
        if let Some(bytes) = limits.size("memory")? {
            if bytes == 0 {
                return Err(limits.error("memory", "must be more than 0"));
            }
            config.limits.memory = Some(bytes);
        }
        config.limits.queries = limits.count("queries")?.unwrap_or(config.limits.queries);
        limits.finish()?;
    }
    if let Some(mut cache) = root.section("cache")? {
        config.cache.metadata = cache.size("metadata")?.unwrap_or(config.cache.metadata);
        config.cache.deletes = cache.size("deletes")?.unwrap_or(config.cache.deletes);
        cache.finish()?;
    }
    if let Some(mut log) = root.section("log")? {
        if let Some(level) = log.string("level")? {
            if tracing_subscriber::EnvFilter::try_new(&level).is_err() {
                return Err(log.error(
                    "level",
                    "must be a level such as \"info\", or a filter such as \"info,sandur=debug\"",
                ));
            }
            config.log.level = level;
        }
        log.finish()?;
    }
    if let Some(mut pruning) = root.section("pruning")? {
        let switches = &mut config.pruning;
        for (key, switch) in [
            ("manifests", &mut switches.manifests),
            ("partitions", &mut switches.partitions),
            ("metrics", &mut switches.metrics),
            ("row_groups", &mut switches.row_groups),
            ("pages", &mut switches.pages),
            ("bloom", &mut switches.bloom),
            ("residuals", &mut switches.residuals),
        ] {
            *switch = pruning.boolean(key)?.unwrap_or(*switch);
        }
        pruning.finish()?;
    }
    if let Some(catalogs) = root.section("catalog")? {
        for (name, section) in catalogs.named_sections()? {
            read_catalog(&mut config, name, section)?;
        }
    }
    root.finish()?;
    Ok(config)
}

fn read_catalog(config: &mut Config, name: String, mut section: Section<'_>) -> Result<()> {
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(section.error("type", "belongs to a catalog without a usable name"));
    }
    if let Some(other) = config.catalogs.keys().find(|other| other.to_lowercase() == name.to_lowercase()) {
        return Err(section.error(
            "type",
            &format!("belongs to a catalog whose name differs from `{other}` by case alone"),
        ));
    }
    let catalog = match section.required_string("type")?.as_str() {
        "directory" => {
            let path = section.required_string("path")?;
            let path = absolute_location(&path).map_err(|e| section.error("path", &format!("is not usable: {e}")))?;
            CatalogConfig::Directory { path }
        }
        "tables" => CatalogConfig::Tables {
            tables: read_tables(&mut section)?,
        },
        "sql" => CatalogConfig::Sql(read_sql(&mut section)?),
        "rest" => {
            return Err(section.error("type", "= \"rest\" is not built yet: use \"sql\", \"directory\" or \"tables\""));
        }
        _ => return Err(section.error("type", "must be \"sql\", \"directory\" or \"tables\"")),
    };
    section.finish()?;
    config.catalogs.insert(name, catalog);
    Ok(())
}

fn read_sql(section: &mut Section<'_>) -> Result<SqlCatalogConfig> {
    let unusable = |section: &Section<'_>, key: &str, e: &Error| section.error(key, &format!("is not usable: {e}"));
    let uri = section.required_string("uri")?;
    let file = sqlite_file(&uri).map_err(|e| unusable(section, "uri", &e))?;
    let warehouse = section.required_string("warehouse")?;
    let warehouse = absolute_location(&warehouse).map_err(|e| unusable(section, "warehouse", &e))?;
    let mut allowed_locations = Vec::new();
    for folder in section.strings("allowed_locations")?.unwrap_or_default() {
        let folder = absolute_location(&folder).map_err(|e| unusable(section, "allowed_locations", &e))?;
        allowed_locations.push(folder);
    }
    let catalog_name = section.string("catalog_name")?;
    if catalog_name.as_ref().is_some_and(String::is_empty) {
        return Err(section.error("catalog_name", "is empty"));
    }
    Ok(SqlCatalogConfig {
        file,
        warehouse,
        allowed_locations,
        catalog_name,
    })
}

fn read_tables(section: &mut Section<'_>) -> Result<Vec<TableConfig>> {
    let mut tables: Vec<TableConfig> = Vec::new();
    for mut table in section.sections("table")? {
        let name = table.required_string("name")?;
        if name.chars().any(char::is_control) || !name.contains('.') || name.split('.').any(str::is_empty) {
            return Err(table.error("name", "must be `schema.table`"));
        }
        if tables.iter().any(|other| other.name == name) {
            return Err(table.error("name", &format!("= \"{name}\" is there twice")));
        }
        let format = match table.required_string("format")?.as_str() {
            "iceberg" => TableFormat::Iceberg,
            "delta" => TableFormat::Delta,
            _ => return Err(table.error("format", "must be \"iceberg\" or \"delta\"")),
        };
        let location = table.required_string("location")?;
        let location = absolute_location(&location).map_err(|e| table.error("location", &format!("is not usable: {e}")))?;
        let mut path_map = Vec::new();
        for mut rule in table.sections("path_map")? {
            let from = rule.required_string("from")?;
            let to = rule.required_string("to")?;
            let to = absolute_location(&to).map_err(|e| rule.error("to", &format!("is not usable: {e}")))?;
            rule.finish()?;
            path_map.push((from, to));
        }
        let read_only = table.boolean("read_only")?.unwrap_or(false);
        table.finish()?;
        tables.push(TableConfig {
            name,
            format,
            location,
            path_map,
            read_only,
        });
    }
    Ok(tables)
}

/// An address to listen on. `localhost` is 127.0.0.1.
pub fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::from(([127, 0, 0, 1], port.parse().ok()?))),
        None => text.parse().ok(),
    }
}
