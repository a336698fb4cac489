//! From a path as a table's files record it to the location that is opened.
//!
//! Recorded paths are never URL-decoded: `%2F`, `+`, `#` and blanks are part of the name
//! (iceberg.md 6.4.3). `file:/x`, `file:///x` and `/x` are one location.

use crate::error::{Error, Result};

/// Prefix substitutions, longest prefix first, applied before any comparison.
#[derive(Debug, Clone, Default)]
pub struct PathMap {
    rules: Vec<(String, String)>,
}

impl PathMap {
    /// From (recorded prefix, real prefix) pairs. Both sides are normalised.
    ///
    /// Errors: `InvalidInput` where a side is no path or where two rules map the same prefix
    /// to different places.
    pub fn new(rules: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (from, to) in rules {
            let (from, to) = (normalise(&from)?, normalise(&to)?);
            if all.iter().any(|(f, t)| *f == from && *t != to) {
                return Err(Error::invalid("path_map maps one prefix to two places").with("from", from));
            }
            all.push((from, to));
        }
        all.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Ok(Self { rules: all })
    }

    /// The places that the rules map to.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|(_, to)| to.as_str())
    }

    /// Normalises `recorded` and replaces the longest matching prefix. Whole segments are compared:
    /// a rule for `/a/b` does not touch `/a/bc`.
    pub fn apply(&self, recorded: &str) -> Result<String> {
        let path = normalise(recorded)?;
        for (from, to) in &self.rules {
            if let Some(rest) = strip_segments(&path, from) {
                let mapped = match (to.ends_with('/'), rest.is_empty()) {
                    (_, true) => to.clone(),
                    (true, false) => format!("{to}{rest}"),
                    (false, false) => format!("{to}/{rest}"),
                };
                return Ok(mapped);
            }
        }
        Ok(path)
    }
}

/// What of `path` lies below the folder `prefix`, without leading slash; empty for the folder itself.
pub(super) fn strip_segments<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let prefix = prefix.trim_end_matches('/');
    let rest = path.strip_prefix(prefix)?;
    match rest.as_bytes().first() {
        None => Some(rest),
        Some(b'/') => Some(rest.trim_start_matches('/')),
        _ => None,
    }
}

/// One spelling for one place: `file:` forms become absolute paths, `s3a`/`s3n` become `s3`,
/// repeated slashes after the scheme are one, a trailing slash is kept.
///
/// Errors: `InvalidInput` for an empty path, a relative path, NUL bytes, or `.` and `..` segments.
pub fn normalise(path: &str) -> Result<String> {
    let refuse = |why: &str| Err(Error::invalid(format!("bad path: {why}")).with("path", path.escape_debug()));
    if path.is_empty() {
        return refuse("it is empty");
    }
    if path.contains('\0') {
        return refuse("it contains a NUL byte");
    }
    let (scheme, rest) = match split_scheme(path) {
        Some((scheme, rest)) => {
            let scheme = scheme.to_ascii_lowercase();
            match scheme.as_str() {
                "file" => {
                    let rest = match rest.strip_prefix("//") {
                        // an authority: empty or localhost
                        Some(after) if after.starts_with('/') => after,
                        Some(after) if after.starts_with("localhost/") => &after["localhost".len()..],
                        Some(_) => return refuse("a file URI may not name a host"),
                        None => rest,
                    };
                    (String::new(), rest)
                }
                "s3a" | "s3n" => ("s3".to_owned(), rest),
                _ => (scheme, rest),
            }
        }
        None => (String::new(), path),
    };
    let mut out = String::with_capacity(path.len());
    let body = if scheme.is_empty() {
        if !rest.starts_with('/') {
            return refuse("it is not absolute");
        }
        rest
    } else {
        out.push_str(&scheme);
        out.push_str("://");
        rest.trim_start_matches('/')
    };
    if scheme.is_empty() {
        out.push('/');
    }
    let mut first = true;
    for segment in body.split('/').filter(|s| !s.is_empty()) {
        if segment == "." || segment == ".." {
            return refuse("it has a `.` or `..` segment");
        }
        if !first {
            out.push('/');
        }
        first = false;
        out.push_str(segment);
    }
    if body.ends_with('/') && !first {
        out.push('/');
    }
    Ok(out)
}

fn split_scheme(path: &str) -> Option<(&str, &str)> {
    let colon = path.find(':')?;
    let scheme = &path[..colon];
    let valid = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    valid.then(|| (scheme, &path[colon + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_one_spelling() {
        for form in [
            "/tmp/wh/t/a b%2F+#.parquet",
            "file:/tmp/wh/t/a b%2F+#.parquet",
            "file:///tmp/wh//t/a b%2F+#.parquet",
            "FILE://localhost/tmp/wh/t/a b%2F+#.parquet",
        ] {
            assert_eq!(normalise(form).unwrap(), "/tmp/wh/t/a b%2F+#.parquet");
        }
        assert_eq!(normalise("s3a://b/k//x/").unwrap(), "s3://b/k/x/");
    }

    #[test]
    fn hostile_paths_are_refused() {
        for bad in ["", "relative/x", "/a/../b", "/a/./b", "file://host/x", "/a\0b", "s3://b/../c", "C"] {
            assert!(normalise(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn longest_prefix_wins_and_segments_are_whole() {
        let map = PathMap::new([
            ("s3://old/orders/".to_owned(), "/data/orders".to_owned()),
            ("s3://old/orders/extra".to_owned(), "/data/extra/".to_owned()),
        ])
        .unwrap();
        assert_eq!(map.apply("s3a://old/orders/x.parquet").unwrap(), "/data/orders/x.parquet");
        assert_eq!(map.apply("s3://old/orders/extra/y").unwrap(), "/data/extra/y");
        assert_eq!(map.apply("s3://old/orders2/y").unwrap(), "s3://old/orders2/y");
        assert_eq!(map.apply("s3://old/orders").unwrap(), "/data/orders");
    }
}
