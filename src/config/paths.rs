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
