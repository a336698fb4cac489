//! Locations as people write them: relative paths, table folders, metadata files.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::config::TableFormat;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{PathMap, Storage, TableIo, normalise};
use crate::table::TableLocation;

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderKind {
    Iceberg,
    Delta,
    /// No table.
    Plain,
}

impl FolderKind {
    /// The format of the table that it is.
    pub(super) fn format(self) -> Option<TableFormat> {
        match self {
            Self::Iceberg => Some(TableFormat::Iceberg),
            Self::Delta => Some(TableFormat::Delta),
            Self::Plain => None,
        }
    }
}

/// An absolute spelling: a relative path is taken from the working directory, `.` and `..` of a
/// local path are worked out by name. Locations with a scheme other than `file` stay as they are.
///
/// Errors: `InvalidInput` for what is no path.
pub(super) fn absolute(location: &str) -> Result<String> {
    let local = match location.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => normalise(location)?,
        Some((scheme, rest)) if rest.starts_with("//") && !scheme.contains('/') => return normalise(location),
        _ => location.to_owned(),
    };
    if local.is_empty() {
        return Err(Error::invalid("a location is empty"));
    }
    let path = std::path::absolute(&local).map_err(|e| Error::invalid("not a usable path").with("path", &local).with_source(e))?;
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::Normal(name) => clean.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    let clean = clean
        .to_str()
        .ok_or_else(|| Error::unsupported("path is not UTF-8").with("path", &local))?;
    normalise(clean)
}

/// The table that a configured location means: a table's folder, or one of its metadata files.
pub(super) fn table_location(location: &str, path_map: &[(String, String)]) -> Result<TableLocation> {
    let location = absolute(location)?;
    let location = location.trim_end_matches('/').to_owned();
    let mapped = path_map
        .iter()
        .map(|(from, to)| Ok((from.clone(), absolute(to)?)))
        .collect::<Result<Vec<_>>>()?;
    if !is_metadata_file(&location) {
        return Ok(TableLocation {
            root: location,
            metadata_file: None,
            path_map: mapped,
            catalog_roots: Vec::new(),
        });
    }
    let folder = parent(&location);
    let root = if name(folder) == "metadata" { parent(folder) } else { folder };
    Ok(TableLocation {
        root: root.to_owned(),
        metadata_file: Some(location.clone()),
        path_map: mapped,
        catalog_roots: Vec::new(),
    })
}

/// True for names of Iceberg metadata files, plain or compressed.
pub(super) fn is_metadata_file(path: &str) -> bool {
    [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"]
        .iter()
        .any(|suffix| path.ends_with(suffix))
}

/// Last segment of a path.
pub(super) fn name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

/// A folder that is looked through for tables.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    io: TableIo,
    path: String,
}

impl Folder {
    /// `path` is absolute.
    pub(super) fn new(storage: &Arc<Storage>, path: &str) -> Result<Self> {
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self {
            io: TableIo::new(Arc::clone(storage), PathMap::default(), [path.clone()])?,
            path,
        })
    }

    /// The folder's path, without trailing slash.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of something below.
    pub(super) fn join(&self, below: &str) -> String {
        format!("{}/{below}", self.path)
    }

    /// Names of the folders directly below `below`, sorted; hidden ones and links out of the
    /// folder are left out, a folder that is not there has none.
    pub(super) async fn folders(&self, below: Option<&str>) -> Result<Vec<String>> {
        let path = below.map_or_else(|| self.path.clone(), |b| self.join(b));
        let mut names = match self.io.list_folders(&path).await {
            Ok(names) => names,
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(e),
        };
        names.retain(|n| !n.starts_with(['.', '_']));
        let mut kept = Vec::with_capacity(names.len());
        for entry in names {
            let inside = below.map_or_else(|| entry.clone(), |b| format!("{b}/{entry}"));
            if self.confine(&inside).await.is_ok() {
                kept.push(entry);
            }
        }
        Ok(kept)
    }

    /// What the folder `below` is.
    pub(super) async fn kind(&self, below: Option<&str>) -> Result<FolderKind> {
        let path = below.map_or_else(|| self.path.clone(), |b| self.join(b));
        let folders = match self.io.list_folders(&path).await {
            Ok(folders) => folders,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(FolderKind::Plain),
            Err(e) => return Err(e),
        };
        if folders.iter().any(|f| f == "_delta_log") {
            return Ok(FolderKind::Delta);
        }
        if folders.iter().any(|f| f == "metadata") {
            let files = self.io.list_files(&format!("{path}/metadata")).await?;
            if files.iter().any(|f| is_metadata_file(f)) {
                return Ok(FolderKind::Iceberg);
            }
        }
        Ok(FolderKind::Plain)
    }

    /// Checks that a folder below is really there and not a link to a place outside.
    ///
    /// Errors: `NotFound`, `PermissionDenied`.
    pub(super) async fn confine(&self, below: &str) -> Result<()> {
        if below.split('/').any(|part| matches!(part, "" | "." | "..")) || below.contains('\0') {
            return Err(Error::not_found("no such folder").with("folder", below.escape_debug()));
        }
        let (root, path) = (PathBuf::from(&self.path), PathBuf::from(self.join(below)));
        let real =
            tokio::task::spawn_blocking(move || Ok::<_, std::io::Error>((std::fs::canonicalize(root)?, std::fs::canonicalize(path)?)));
        let (root, path) = real
            .await
            .map_err(|e| Error::internal("a blocking task failed").with_source(e))?
            .map_err(|e| Error::not_found("folder does not exist").with("folder", below).with_source(e))?;
        if !is_below(&path, &root) {
            return Err(Error::permission_denied("a folder is a symbolic link out of the catalog's folder").with("folder", below));
        }
        Ok(())
    }
}

fn is_below(path: &Path, root: &Path) -> bool {
    path.starts_with(root) && path != root
}
