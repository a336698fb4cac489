//! Names, places and versions of tables.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// `catalog.schema.table`; a nested namespace is joined with dots in `schema`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableIdent {
    pub catalog: String,
    pub schema: String,
    pub table: String,
}

impl TableIdent {
    /// From its three parts.
    pub fn new(catalog: impl Into<String>, schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self {
            catalog: catalog.into(),
            schema: schema.into(),
            table: table.into(),
        }
    }
}

impl fmt::Display for TableIdent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.schema, self.table)
    }
}

/// Where a table lies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableLocation {
    /// The table's folder, absolute, without trailing slash.
    pub root: String,
    /// The metadata file to read (Iceberg); `None` asks for the newest below the root.
    pub metadata_file: Option<String>,
    /// (recorded prefix, real prefix)
    pub path_map: Vec<(String, String)>,
    /// Folders of the catalog that names the table, absolute. A location that the metadata records is taken at its
    /// word where it lies below one of them; elsewhere the table counts as moved to `root`. Empty: always moved.
    pub catalog_roots: Vec<String>,
}

/// Which version of a table is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AsOf {
    /// The newest committed snapshot.
    Latest,
    /// Snapshot id (Iceberg) or version (Delta).
    Version(i64),
    /// Branch or tag.
    Ref(String),
    /// The snapshot that was current at this time, microseconds since the epoch.
    Timestamp(i64),
    /// No version, but the rows that changed in a range of them.
    Changes(ChangeRange),
}

/// An end of a range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Snapshot id (Iceberg) or version (Delta).
    Version(i64),
    /// Microseconds since the epoch.
    Timestamp(i64),
}

/// A range of versions with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChangeRange {
    pub since: Moment,
    /// `None`: the newest.
    pub until: Option<Moment>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(number) => write!(f, "v{number}"),
            Self::Timestamp(micros) => write!(f, "t{micros}"),
        }
    }
}

impl fmt::Display for ChangeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..", self.since)?;
        self.until.map_or(Ok(()), |until| write!(f, "{until}"))
    }
}

impl FromStr for Moment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = |rest: &str| {
            rest.parse()
                .map_err(|_| Error::invalid(format!("\"{text}\" is no end of a range of versions")))
        };
        match text.split_at_checked(1) {
            Some(("v", rest)) => number(rest).map(Self::Version),
            Some(("t", rest)) => number(rest).map(Self::Timestamp),
            _ => number("").map(Self::Version),
        }
    }
}

impl FromStr for ChangeRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (since, until) = text
            .split_once("..")
            .ok_or_else(|| Error::invalid(format!("\"{text}\" is no range of versions")))?;
        Ok(Self {
            since: since.parse()?,
            until: (!until.is_empty()).then(|| until.parse()).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_and_read() {
        for (since, until) in [
            (Moment::Version(3), None),
            (Moment::Version(-3), Some(Moment::Version(7))),
            (Moment::Timestamp(5), Some(Moment::Version(i64::MAX))),
        ] {
            let range = ChangeRange { since, until };
            assert_eq!(range.to_string().parse::<ChangeRange>().unwrap(), range);
        }
        for bad in ["", "..", "3..", "v3", "v..", "x1..", "v1..v"] {
            assert!(bad.parse::<ChangeRange>().is_err(), "{bad}");
        }
    }
}
