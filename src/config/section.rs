//! Typed reading of one TOML table: every key is either taken, refused as not built, or unknown.
//!
//! Error messages name the key and its origin. They show the value only where the key is no secret.

use std::collections::BTreeMap;

use super::Secret;
use crate::error::{Error, Result};

/// Where values come from: the file, and the keys that an environment variable has set.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// The configuration file's name, if there is one.
    pub(super) file: Option<String>,
    /// Variable by key path.
    pub(super) env: BTreeMap<String, String>,
}

impl Origins {
    /// An error about the key `path`, with its origin as context.
    pub(super) fn error(&self, path: &str, message: String) -> Error {
        let error = Error::invalid(message);
        // a variable may set the key itself, a table around it, or a key in it
        let below = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let variable = self.env.iter().find(|(key, _)| below(path, key) || below(key, path));
        match (variable, &self.file) {
            (Some((_, variable)), _) => error.with("environment variable", variable),
            (None, Some(file)) => error.with("file", file),
            (None, None) => error,
        }
    }

    fn is_env(&self, path: &str) -> bool {
        self.env.contains_key(path)
    }
}

/// A table of the configuration with its full key path. Keys are removed as they are read;
/// [`Section::finish`] refuses what is left.
#[derive(Debug)]
pub(super) struct Section<'a> {
    path: String,
    table: toml::Table,
    origins: &'a Origins,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    pub(super) fn new(path: String, table: toml::Table, origins: &'a Origins) -> Self {
        Self {
            path,
            table,
            origins,
            known: Vec::new(),
        }
    }

    /// The full path of a key of this section.
    pub(super) fn key(&self, key: &str) -> String {
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = if bare { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() {
            key
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(super) fn error(&self, key: &str, what: &str) -> Error {
        let path = self.key(key);
        self.origins.error(&path, format!("`{path}` {what}"))
    }

    fn take(&mut self, key: &'static str) -> Option<toml::Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Refuses keys that are planned but have no effect yet.
    pub(super) fn not_built(&mut self, keys: &[&'static str]) -> Result<()> {
        match keys.iter().find(|key| self.table.contains_key(**key)) {
            Some(key) => Err(self.error(key, "is not built yet: remove the key")),
            None => Ok(()),
        }
    }

    /// Refuses whatever was not read.
    pub(super) fn finish(self) -> Result<()> {
        let Some((key, _)) = self.table.iter().next() else {
            return Ok(());
        };
        let path = self.key(key);
        let known = self.known.join(", ");
        Err(self.origins.error(&path, format!("unknown key `{path}`: known here are {known}")))
    }

    pub(super) fn string(&mut self, key: &'static str) -> Result<Option<String>> {
        match self.take(key) {
            None => Ok(None),
            Some(toml::Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.error(key, "must be a string")),
        }
    }

    pub(super) fn required_string(&mut self, key: &'static str) -> Result<String> {
        match self.string(key)? {
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => Err(self.error(key, "is empty")),
            None => Err(self.error(key, "is missing")),
        }
    }

    /// A list of strings, none of them empty.
    pub(super) fn strings(&mut self, key: &'static str) -> Result<Option<Vec<String>>> {
        let items = match self.take(key) {
            None => return Ok(None),
            Some(toml::Value::Array(items)) => items,
            Some(_) => return Err(self.error(key, "must be an array of strings")),
        };
        let texts = items.into_iter().map(|item| match item {
            toml::Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.error(key, "must be an array of strings, none of them empty")),
        });
        texts.collect::<Result<_>>().map(Some)
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Result<Option<bool>> {
        let from_env = self.origins.is_env(&self.key(key));
        match self.take(key) {
            None => Ok(None),
            Some(toml::Value::Boolean(value)) => Ok(Some(value)),
            Some(toml::Value::String(text)) if from_env && text == "true" => Ok(Some(true)),
            Some(toml::Value::String(text)) if from_env && text == "false" => Ok(Some(false)),
            Some(_) => Err(self.error(key, "must be true or false")),
        }
    }

    /// A whole number of at least 1.
    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<usize>> {
        let from_env = self.origins.is_env(&self.key(key));
        let value = match self.take(key) {
            None => return Ok(None),
            Some(toml::Value::Integer(value)) => usize::try_from(value).ok(),
            Some(toml::Value::String(text)) if from_env => text.parse().ok(),
            Some(_) => None,
        };
        match value {
            Some(value) if value >= 1 => Ok(Some(value)),
            _ => Err(self.error(key, "must be a whole number of at least 1")),
        }
    }

    /// A number of bytes: an integer, or text such as `512MiB`.
    pub(super) fn size(&mut self, key: &'static str) -> Result<Option<u64>> {
        let value = match self.take(key) {
            None => return Ok(None),
            Some(toml::Value::Integer(value)) => u64::try_from(value).ok(),
            Some(toml::Value::String(text)) => parse_size(&text),
            Some(_) => None,
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(self.error(key, "must be a size such as \"512MiB\" or \"12GiB\"")),
        }
    }

    /// A secret, read from where it is kept.
    #[cfg_attr(not(test), expect(dead_code, reason = "no key with a secret is built yet"))]
    pub(super) fn secret(&mut self, key: &'static str) -> Result<Option<Secret>> {
        let path = self.key(key);
        match self.take(key) {
            None => Ok(None),
            Some(value) => Secret::from_toml(&path, &value)
                .map(Some)
                .map_err(|e| self.origins.error(&path, e.message().to_owned())),
        }
    }

    /// A table below this one.
    pub(super) fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>> {
        match self.take(key) {
            None => Ok(None),
            Some(toml::Value::Table(table)) => Ok(Some(Section::new(self.key(key), table, self.origins))),
            Some(_) => Err(self.error(key, "must be a table")),
        }
    }

    /// Tables below this one whose names are free, in order of name.
    pub(super) fn named_sections(self) -> Result<Vec<(String, Section<'a>)>> {
        let mut out = Vec::with_capacity(self.table.len());
        for (name, value) in &self.table {
            let toml::Value::Table(table) = value else {
                return Err(self.error(name, "must be a table"));
            };
            out.push((name.clone(), Section::new(self.key(name), table.clone(), self.origins)));
        }
        Ok(out)
    }

    /// An array of tables.
    pub(super) fn sections(&mut self, key: &'static str) -> Result<Vec<Section<'a>>> {
        let items = match self.take(key) {
            None => return Ok(Vec::new()),
            Some(toml::Value::Array(items)) => items,
            Some(_) => return Err(self.error(key, "must be an array of tables")),
        };
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let path = format!("{}[{i}]", self.key(key));
            match item {
                toml::Value::Table(table) => out.push(Section::new(path, table, self.origins)),
                _ => return Err(self.origins.error(&path, format!("`{path}` must be a table"))),
            }
        }
        Ok(out)
    }
}

/// Bytes of `512MiB`, `12GiB`, `64KiB`, `1TiB`, `10MB` (decimal) or a bare number.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}
