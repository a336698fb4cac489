//! Locations as users write them, made absolute.

use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};

/// A location as the layers below take it: a URI as it is, a local path absolute and without
/// `.` and `..` segments. Relative paths are relative to the working directory.
///
/// Errors: `InvalidInput` for an empty path, one that is not UTF-8, or a working directory that is gone.
pub fn absolute_location(location: &str) -> Result<String> {
    if location.is_empty() {
        return Err(Error::invalid("a path is empty"));
    }
    if location.contains("://") || location.starts_with("file:") {
        return Ok(location.to_owned());
    }
    let given = Path::new(location);
    let mut out = if given.is_absolute() {
        PathBuf::new()
    } else {
        std::env::current_dir().map_err(|e| Error::invalid("the working directory cannot be read").with_source(e))?
    };
    for part in given.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                // `..` of a symbolic link is the parent of its target
                if let Ok(real) = std::fs::canonicalize(&out) {
                    out = real;
                }
                out.pop();
            }
            other => out.push(other),
        }
    }
    let keep_slash = location.ends_with('/') && out.as_os_str() != "/";
    let text = out
        .to_str()
        .ok_or_else(|| Error::invalid("path is not UTF-8").with("path", location))?;
    Ok(if keep_slash { format!("{text}/") } else { text.to_owned() })
}

/// The file that the URI of a SQL catalog names: `sqlite:PATH`, or as pyiceberg writes it, where a relative path
/// follows three slashes and an absolute one four (`sqlite:///warehouse/catalog.db`, `sqlite:////data/catalog.db`).
///
/// Errors: `Unsupported` for another database, `InvalidInput` for a URI without a file.
pub(super) fn sqlite_file(uri: &str) -> Result<String> {
    let Some(rest) = uri.strip_prefix("sqlite:") else {
        // The URI may hold a password, so it is not shown.
        let scheme = uri.split(':').next().unwrap_or_default();
        let known = scheme.starts_with("postgres") || scheme == "jdbc";
        let message = if known {
            "only SQLite files are built yet, as `sqlite:PATH`"
        } else {
            "it must be `sqlite:PATH`"
        };
        return Err(Error::unsupported(message));
    };
    let path = match rest.strip_prefix("//") {
        Some(after) => after
            .strip_prefix('/')
            .ok_or_else(|| Error::invalid("a file follows `sqlite:`, or `sqlite:///`"))?,
        None => rest,
    };
    if path.is_empty() || path == ":memory:" || path.ends_with('/') {
        return Err(Error::invalid("it names no file"));
    }
    if path.contains(['?', '\0']) || path.starts_with("file:") || path.contains("://") {
        return Err(Error::invalid("it must be a plain path, without parameters"));
    }
    absolute_location(path)
}
