//! The collection of tables and files that other engines wrote.
//!
//! It lies in the folder that `SANDUR_CASES` names, else in `../shared/cases` beside the project.
//! Without it the tests that need it say in one line how many cases were not read and pass; where
//! `CI` is set they fail, so that a missing collection never looks like a green run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::canonical::{Rows, sorted_lines};

/// Tables in `iceberg/`, for the message when they are not there.
const ICEBERG_CASES: usize = 143;
/// Files in `format/`, for the message when they are not there.
const FORMAT_FILES: usize = 503;

/// A table with what is expected of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// Folder name.
    pub name: String,
    /// Folder that holds `expected.json` and `table/`.
    pub dir: PathBuf,
    /// `expected.json`.
    pub json: Value,
}

impl Case {
    /// Reads the case in `dir`; `None` without `expected.json`.
    pub fn open(dir: &Path) -> Option<Self> {
        let text = std::fs::read(dir.join("expected.json")).ok()?;
        let json = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let name = dir.file_name()?.to_str()?.to_owned();
        Some(Self {
            name,
            dir: dir.to_owned(),
            json,
        })
    }

    /// The table's folder.
    pub fn table_dir(&self) -> PathBuf {
        self.dir.join("table")
    }

    /// The metadata file that is current; `None` where the case names none.
    pub fn metadata_file(&self) -> Option<PathBuf> {
        Some(self.table_dir().join(self.json["metadata_file"].as_str()?))
    }

    /// (recorded prefix, real prefix): what the table's files call their folder, and where it lies.
    pub fn path_map(&self) -> Vec<(String, String)> {
        let Some(prefixes) = self.json["path_prefixes"].as_object() else {
            return Vec::new();
        };
        let real = |target: &Value| {
            let target = target.as_str().expect("a path prefix maps to a path");
            let below = target
                .strip_prefix("table/")
                .unwrap_or_else(|| panic!("{}: prefix maps to {target}", self.name));
            let mut path = self.table_dir().join(below).to_str().expect("paths are UTF-8").to_owned();
            if !path.ends_with('/') {
                path.push('/');
            }
            path
        };
        prefixes.iter().map(|(from, to)| (from.clone(), real(to))).collect()
    }

    /// `rows`, `count`, `published_only`, `error` or `unknown`.
    pub fn status(&self) -> &str {
        self.json["expected"]["status"].as_str().unwrap_or("unknown")
    }

    /// Rows of the current snapshot, as far as known.
    pub fn row_count(&self) -> Option<u64> {
        self.json["expected"]["row_count"].as_u64()
    }

    /// Hash of the rows, as [`super::canonical::Rows::sha256`] computes it.
    pub fn sha256(&self) -> Option<&str> {
        self.json["expected"]["sha256"].as_str()
    }

    /// Column names in table order with all rows; given where there are at most 200 rows.
    pub fn rows(&self) -> Option<Rows> {
        let expected = &self.json["expected"];
        let columns = expected["columns"].as_array()?;
        let rows = expected["rows"].as_array()?;
        Some(Rows {
            columns: columns.iter().map(|c| c.as_str().expect("a column name").to_owned()).collect(),
            rows: rows.iter().map(|r| r.as_array().expect("a row").clone()).collect(),
        })
    }

    /// How rows differ from what is expected of the current snapshot: rows first, because their
    /// difference can be read, then count and hash; `None` when they are right.
    pub fn difference(&self, read: &Rows) -> Option<String> {
        // an origin's own test suite gives values as text
        let read = if self.status() == "published_only" { &read.as_text() } else { read };
        if let Some(expected) = self.rows() {
            if read.columns != expected.columns {
                return Some(format!("columns {:?} instead of {:?}", read.columns, expected.columns));
            }
            let (read, expected) = (sorted_lines(&read.rows), sorted_lines(&expected.rows));
            let missing: Vec<_> = expected.iter().filter(|row| !read.contains(row)).collect();
            let surplus: Vec<_> = read.iter().filter(|row| !expected.contains(row)).collect();
            if read != expected {
                return Some(format!("rows missing: {missing:#?}, rows too many: {surplus:#?}"));
            }
        }
        match self.row_count() {
            Some(count) if count != read.rows.len() as u64 => return Some(format!("{} rows instead of {count}", read.rows.len())),
            _ => {}
        }
        match self.sha256() {
            Some(hash) if hash != read.sha256() => Some("another hash of the rows".to_owned()),
            _ => None,
        }
    }

    /// Whether the case lists `feature`.
    pub fn has_feature(&self, feature: &str) -> bool {
        self.json["features"]
            .as_array()
            .is_some_and(|list| list.iter().any(|f| f == feature))
    }

    /// Whether the project made the case itself.
    pub fn is_own(&self) -> bool {
        self.json["origin"]["generator"] == "own"
    }
}

/// A single file for format readers, with what `format/expected.json` says of it.
#[derive(Debug, Clone)]
pub struct FormatFile {
    /// Path below `format/`, for example `puffin/iceberg-go-dv/single-blob-dv.puffin`.
    pub name: String,
    pub path: PathBuf,
    /// `Null` where nothing is said.
    pub json: Value,
}

/// The collection's folder, if it is there.
pub fn dir() -> Option<PathBuf> {
    let dir = wanted_dir();
    dir.is_dir().then_some(dir)
}

/// The same, with a message (in CI a failure) where it is not there.
pub fn dir_or_say() -> Option<PathBuf> {
    let dir = dir();
    if dir.is_none() {
        missing(ICEBERG_CASES, "Iceberg cases");
    }
    dir
}

/// Every Iceberg case in order of name; empty (with a message) without the collection.
pub fn iceberg() -> Vec<Case> {
    let Some(dir) = dir() else {
        missing(ICEBERG_CASES, "Iceberg cases");
        return Vec::new();
    };
    subfolders(&dir.join("iceberg")).iter().filter_map(|d| Case::open(d)).collect()
}

/// One Iceberg case by name; `None` (with a message) without the collection.
pub fn iceberg_case(name: &str) -> Option<Case> {
    let Some(dir) = dir() else {
        missing(1, "Iceberg case");
        return None;
    };
    let case = Case::open(&dir.join("iceberg").join(name));
    assert!(case.is_some(), "no case {name} in the collection");
    case
}

/// The single files below `format/<kind>` (`puffin`, `roaring`, `metadata-json`, `manifest`,
/// `parquet`, `delta-crc`), in order of name; empty (with a message) without the collection.
pub fn format(kind: &str) -> Vec<FormatFile> {
    let Some(dir) = dir() else {
        missing(FORMAT_FILES, "single files of all formats");
        return Vec::new();
    };
    let root = dir.join("format");
    let expected: Value = std::fs::read(root.join("expected.json"))
        .ok()
        .and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or(Value::Null);
    let mut found = Vec::new();
    walk(&root.join(kind), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| {
            let name = path
                .strip_prefix(&root)
                .expect("below root")
                .to_str()
                .expect("paths are UTF-8")
                .to_owned();
            let json = expected.get(&name).cloned().unwrap_or(Value::Null);
            FormatFile { name, path, json }
        })
        .collect()
}

fn wanted_dir() -> PathBuf {
    match std::env::var_os("SANDUR_CASES") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases"),
    }
}

fn missing(count: usize, what: &str) {
    let line = format!(
        "{count} {what} were not read: the collection would have to be at {} (or where SANDUR_CASES points)",
        wanted_dir().display()
    );
    assert!(std::env::var_os("CI").is_none(), "{line}");
    eprintln!("{line}");
}

fn subfolders(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut list: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.is_dir()).collect();
    list.sort();
    list
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}
