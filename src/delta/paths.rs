//! Places of files as a log spells them.
//!
//! Paths of data files are URIs: relative to the table's folder or absolute, percent-encoded once (PROTOCOL.md, "Add
//! File and Remove File"). Where a file really lies is for [`TableIo`] to allow.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::io::TableIo;

/// The location of a data file, or of a file that the log names in the same way.
///
/// Errors: `Corrupt` for what is no URI; those of [`TableIo::resolve`].
pub(super) fn locate(io: &TableIo, root: &str, recorded: &str) -> Result<String> {
    let decoded = decode(recorded)?;
    let is_absolute = decoded.starts_with('/') || has_scheme(recorded);
    match is_absolute {
        true => io.resolve(&decoded),
        false => io.resolve(&format!("{root}/{decoded}")),
    }
}

/// The path without escapes, by which two spellings of one are the same; as it is where it is no URI.
pub(super) fn spelled_out(recorded: &str) -> Cow<'_, str> {
    match recorded.contains('%') {
        true => decode(recorded).map_or(Cow::Borrowed(recorded), Cow::Owned),
        false => Cow::Borrowed(recorded),
    }
}

/// `scheme:` at the start. A colon further back belongs to a name.
fn has_scheme(path: &str) -> bool {
    let Some((scheme, _)) = path.split_once(':') else { return false };
    scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Percent-decoding, once.
fn decode(recorded: &str) -> Result<String> {
    let broken = || Error::corrupt("a path of the log is no URI").with("path", recorded.escape_debug());
    let mut bytes = Vec::with_capacity(recorded.len());
    let mut rest = recorded.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(broken());
        };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| broken())?);
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::{PathMap, Storage};

    fn io() -> TableIo {
        TableIo::new(Arc::new(Storage::default()), PathMap::default(), ["/t/table".to_owned()]).unwrap()
    }

    /// B077
    #[test]
    fn a_path_is_decoded_once() {
        for (recorded, expected) in [
            ("a.parquet", "/t/table/a.parquet"),
            ("p=a%2520b/x.parquet", "/t/table/p=a%20b/x.parquet"),
            ("p=2023-11-05%2000%253A00/x", "/t/table/p=2023-11-05 00%3A00/x"),
            ("p=%C3%A9/x", "/t/table/p=é/x"),
            ("p=a+b&c~/x", "/t/table/p=a+b&c~/x"),
            ("file:///t/table/x%20y", "/t/table/x y"),
            ("file:/t/table/x", "/t/table/x"),
            ("/t/table/x", "/t/table/x"),
            ("ts=10:00/x", "/t/table/ts=10:00/x"),
        ] {
            assert_eq!(locate(&io(), "/t/table", recorded).unwrap(), expected, "{recorded}");
        }
    }

    #[test]
    fn places_outside_are_refused() {
        for recorded in [
            "../x",
            "%2e%2e/x",
            "/etc/passwd",
            "file:///etc/passwd",
            "a%",
            "a%zz",
            "a%ff",
            "s3://b/x",
        ] {
            assert!(locate(&io(), "/t/table", recorded).is_err(), "{recorded}");
        }
    }
}
