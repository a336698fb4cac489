//! A secret of the configuration: a string, `{ env = "NAME" }` or `{ file = "PATH" }`.

use std::fmt;

use crate::error::{Error, Result};

/// What stands for a secret wherever one would be printed.
const REDACTED: &str = "[redacted]";

/// A secret value. It has no way to be printed: [`fmt::Debug`] and [`fmt::Display`] give a placeholder.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From its value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value of a key: a string, or a table with exactly one of `env` and `file`. A file's
    /// trailing line break is not part of the secret. `key` is named in errors, the value never.
    ///
    /// Errors: `InvalidInput` for another shape, an unset variable, an unreadable or empty source.
    pub fn from_toml(key: &str, value: &toml::Value) -> Result<Self> {
        let wrong_shape = || Error::invalid(format!("`{key}` must be a string, {{ env = \"NAME\" }} or {{ file = \"PATH\" }}"));
        let secret = match value {
            toml::Value::String(text) => text.clone(),
            toml::Value::Table(table) if table.len() == 1 => match table.iter().next() {
                Some((source, toml::Value::String(name))) if source == "env" => {
                    std::env::var(name).map_err(|_| Error::invalid(format!("`{key}`: environment variable `{name}` is not set")))?
                }
                Some((source, toml::Value::String(path))) if source == "file" => std::fs::read_to_string(path)
                    .map_err(|e| Error::invalid(format!("`{key}`: cannot read file `{path}`")).with_source(e))?
                    .trim_end_matches(['\r', '\n'])
                    .to_owned(),
                _ => return Err(wrong_shape()),
            },
            _ => return Err(wrong_shape()),
        };
        if secret.is_empty() {
            return Err(Error::invalid(format!("`{key}` is empty")));
        }
        Ok(Self(secret))
    }

    /// The value itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
