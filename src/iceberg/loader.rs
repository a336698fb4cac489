//! Loading a table from where it lies: finding its newest metadata file and parsing it.

use std::sync::Arc;

use super::spec::TableMetadata;
use super::table::IcebergTable;
use crate::cache::{CacheKey, CacheKind, Caches};
use crate::error::{Error, ErrorKind, Result, ResultExt};
use crate::io::{FileKind, PathMap, Storage, TableIo, lies_below, normalise};
use crate::runtime::DecodePool;
use crate::table::{TableIdent, TableLocation};

/// Largest metadata file that is read, compressed or not.
const METADATA_LIMIT: u64 = 512 << 20;

/// Properties that name folders of a table's files besides its location.
pub const PATH_PROPERTIES: [&str; 4] = [
    "write.data.path",
    "write.metadata.path",
    "write.folder-storage.path",
    "write.object-storage.path",
];

/// What a table's reads go through.
#[derive(Debug, Clone)]
pub(super) struct TableFiles {
    pub(super) io: TableIo,
    pub(super) caches: Arc<Caches>,
    pub(super) pool: Arc<DecodePool>,
}

/// Loads tables; one per process.
#[derive(Debug, Clone)]
pub struct TableLoader {
    storage: Arc<Storage>,
    caches: Arc<Caches>,
    pool: Arc<DecodePool>,
}

impl TableLoader {
    /// A loader over the process's stores, caches and pool.
    pub fn new(storage: Arc<Storage>, caches: Arc<Caches>, pool: Arc<DecodePool>) -> Self {
        Self { storage, caches, pool }
    }

    /// The table with its newest metadata.
    ///
    /// Errors: `NotFound` when there is no metadata, `Unsupported` for an unknown format version,
    /// `Corrupt` for metadata that breaks the specification.
    pub async fn newest(&self, ident: &TableIdent, location: &TableLocation) -> Result<IcebergTable> {
        let io = self.io(location, None)?;
        let file = match &location.metadata_file {
            Some(file) => file.clone(),
            None => self.newest_metadata(&io, &location.root).await.context("table", || ident)?,
        };
        self.at(ident, location, &file).await
    }

    /// The table as exactly this metadata file describes it.
    pub async fn at(&self, ident: &TableIdent, location: &TableLocation, metadata_file: &str) -> Result<IcebergTable> {
        let io = self.io(location, None)?;
        let metadata = self.metadata(&io, metadata_file).await.context("table", || ident)?;
        let identity = metadata.table_uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        let io = self.io(location, Some(&metadata))?.for_table(&identity);
        let files = TableFiles {
            io,
            caches: Arc::clone(&self.caches),
            pool: Arc::clone(&self.pool),
        };
        Ok(IcebergTable {
            ident: ident.clone(),
            files: Arc::new(files),
            metadata,
            metadata_location: metadata_file.to_owned(),
        })
    }

    /// Access below the table's folder. A table that lies elsewhere than its metadata says was moved
    /// or copied: unless a rule says otherwise, its recorded location means the folder it was found in.
    /// Where a catalog has folders of its own, recorded places below them are taken at their word.
    fn io(&self, location: &TableLocation, metadata: Option<&TableMetadata>) -> Result<TableIo> {
        let mut rules = location.path_map.clone();
        let mut roots = vec![location.root.clone()];
        // A table whose place is the whole warehouse would reach into every other.
        let inside = |place: &str| {
            let whole = |root: &String| normalise(place).is_ok_and(|p| p.trim_end_matches('/') == root);
            lies_below(place, &location.catalog_roots) && !location.catalog_roots.iter().any(whole)
        };
        let recorded = metadata.and_then(|m| normalise(&m.location).ok());
        if let Some(recorded) = recorded {
            let recorded = recorded.trim_end_matches('/');
            let elsewhere = recorded != location.root && PathMap::new(rules.clone())?.apply(recorded)? == recorded;
            if elsewhere && inside(recorded) {
                roots.push(recorded.to_owned());
            } else if elsewhere && !recorded.is_empty() {
                // A table that claims the root of the file system gets no rule.
                rules.push((recorded.to_owned(), location.root.clone()));
            }
        }
        let named = metadata
            .into_iter()
            .flat_map(|m| PATH_PROPERTIES.map(|name| m.properties.get(name)));
        roots.extend(named.flatten().filter(|path| inside(path)).cloned());
        TableIo::new(Arc::clone(&self.storage), PathMap::new(rules)?, roots)
    }

    async fn metadata(&self, io: &TableIo, file: &str) -> Result<Arc<TableMetadata>> {
        // A table that is dropped and made again in the same folder starts with the same file name.
        let stamp = io.stamp(file, FileKind::Metadata).await.context("file", || file)?;
        let key = CacheKey::new(CacheKind::TableMetadata, file, stamp);
        self.caches
            .metadata
            .get_or_load(key, async {
                let bytes = io.read(file, FileKind::Metadata, METADATA_LIMIT).await?;
                let name = file.to_owned();
                let metadata = self.pool.spawn(move |_| TableMetadata::from_bytes(&bytes, &name)).await?;
                let weight = metadata.memory_size();
                Ok((metadata, weight))
            })
            .await
            .context("file", || file)
    }

    /// The newest metadata file of a table's folder: the highest version, and of several with the
    /// same number the one updated last. A version hint of a Hadoop-style table is a lower bound only.
    async fn newest_metadata(&self, io: &TableIo, root: &str) -> Result<String> {
        let folder = format!("{}/metadata", root.trim_end_matches('/'));
        let missing = || Error::not_found("no table metadata: the folder has no metadata/*.metadata.json").with("folder", &folder);
        let names = match io.list_files(&folder).await {
            Ok(names) => names,
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(missing()),
            Err(e) => return Err(e),
        };
        let versions: Vec<(u64, &String)> = names.iter().filter_map(|n| metadata_version(n).map(|v| (v, n))).collect();
        let newest = versions.iter().map(|(v, _)| *v).max().ok_or_else(missing)?;
        let mut best: Option<(i64, String)> = None;
        let candidates: Vec<String> = versions
            .iter()
            .filter(|(v, _)| *v == newest)
            .map(|(_, n)| format!("{folder}/{n}"))
            .collect();
        if let [only] = candidates.as_slice() {
            return Ok(only.clone());
        }
        for file in candidates {
            let updated = self.metadata(io, &file).await?.last_updated_ms;
            if best.as_ref().is_none_or(|(known, _)| updated > *known) {
                best = Some((updated, file));
            }
        }
        best.map(|(_, file)| file).ok_or_else(missing)
    }
}

/// `v3.metadata.json`, `00003-uuid.metadata.json`, and both with `.gz` before or behind.
fn is_metadata_name(name: &str) -> bool {
    name.ends_with(".metadata.json") || name.ends_with(".metadata.json.gz")
}

pub(super) fn metadata_version(name: &str) -> Option<u64> {
    if !is_metadata_name(name) {
        return None;
    }
    let stem = name.strip_prefix('v').unwrap_or(name);
    let digits = stem.len() - stem.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    stem[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_files_are_ordered_by_their_number() {
        assert_eq!(metadata_version("v12.metadata.json"), Some(12));
        assert_eq!(metadata_version("v3.gz.metadata.json"), Some(3));
        assert_eq!(metadata_version("00007-abc.metadata.json.gz"), Some(7));
        assert_eq!(metadata_version("version-hint.text"), None);
        assert_eq!(metadata_version("snap-1.avro"), None);
    }
}
