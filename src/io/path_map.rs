//! From a path as a table's files record it to the location that is opened.
//!
//! Recorded paths are never URL-decoded: `%2F`, `+`, `#` and blanks are part of the name
//! (iceberg.md 6.4.3). `file:/x`, `file:///x` and `/x` are one location.

use crate::error::{Error, Result};

/// Prefix substitutions, longest prefix first, applied before any comparison.
///
/// A prefix that is no absolute path (tables exist whose paths are relative, or whose `file://`
/// URIs put the first folder where the host belongs) is matched as it is spelled.
#[derive(Debug, Clone, Default, Hash)]
pub struct PathMap {
    /// (normalised prefix, place)
    rules: Vec<(String, String)>,
    /// (prefix as spelled, place)
    literal: Vec<(String, String)>,
}

impl PathMap {
    /// From (recorded prefix, real prefix) pairs.
    ///
    /// Errors: `InvalidInput` where a prefix is empty, where the real side is no absolute path, or where two
    /// rules map the same prefix to different places.
    pub fn new(rules: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut map = Self::default();
        for (from, to) in rules {
            let to = normalise(&to)?;
            let (list, from) = match normalise(&from) {
                Ok(from) => (&mut map.rules, from),
                Err(_) if !from.is_empty() => (&mut map.literal, from),
                Err(e) => return Err(e),
            };
            if list.iter().any(|(f, t)| *f == from && *t != to) {
                return Err(Error::invalid("path_map maps one prefix to two places").with("from", from));
            }
            list.push((from, to));
        }
        for list in [&mut map.rules, &mut map.literal] {
            list.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        }
        Ok(map)
    }

    /// The places that the rules map to.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().chain(&self.literal).map(|(_, to)| to.as_str())
    }

    /// Normalises `recorded` and replaces the longest matching prefix. Whole segments are compared:
    /// a rule for `/a/b` does not touch `/a/bc`.
    pub fn apply(&self, recorded: &str) -> Result<String> {
        if let Some(mapped) = replace_prefix(&self.literal, recorded) {
            return normalise(&mapped);
        }
        let path = normalise(recorded)?;
        Ok(replace_prefix(&self.rules, &path).unwrap_or(path))
    }
}

fn replace_prefix(rules: &[(String, String)], path: &str) -> Option<String> {
    let (to, rest) = rules
        .iter()
        .find_map(|(from, to)| strip_segments(path, from).map(|rest| (to, rest)))?;
    Some(match rest {
        "" => to.clone(),
        rest => format!("{}/{rest}", to.trim_end_matches('/')),
    })
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

    #[test]
    fn a_prefix_that_is_no_absolute_path_is_matched_as_spelled() {
        let map = PathMap::new([
            ("lineitem/".to_owned(), "/data/l".to_owned()),
            ("file://wh/t/".to_owned(), "/data/t".to_owned()),
        ])
        .unwrap();
        assert_eq!(map.apply("lineitem/data/x.parquet").unwrap(), "/data/l/data/x.parquet");
        assert_eq!(map.apply("file://wh/t/x").unwrap(), "/data/t/x");
        assert!(map.apply("lineitem/../x").is_err());
        assert!(map.apply("lineitems/x").is_err());
    }
}
