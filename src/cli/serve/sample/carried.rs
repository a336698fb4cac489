//! The sample tables that other programs wrote: carried inside the binary and laid into the warehouse as they are; Iceberg
//! tables are named in its catalog.
//!
//! A table is laid as a whole when its folder is not there; a folder that is there is never touched, whatever is
//! in it. `sample/README.md` says what it holds and where it comes from.

use std::path::Path;

use super::SCHEMA;
use crate::catalog::WritableCatalog;
use crate::error::{Error, Result};
use crate::table::TableIdent;

/// A sample table: files by their path in the table's folder.
#[derive(Debug)]
pub(in super::super) struct SampleTable {
    pub(in super::super) name: &'static str,
    files: &'static [(&'static str, &'static [u8])],
}

macro_rules! sample_table {
    ($name:literal: $($file:literal,)*) => {
        SampleTable {
            name: $name,
            files: &[$(($file, include_bytes!(concat!("../../../../sample/", $name, "/", $file)))),*],
        }
    };
}

/// Iceberg tables.
pub(in super::super) const CARRIED: &[SampleTable] = &[sample_table! { "customers":
    "data/00000-1-1c31fc7b-bddb-4981-bd04-134f4f842b88-00001.parquet",
    "data/00000-4-a9877e09-6cfa-4097-8bbe-4c661a5c853a-0-00001.parquet",
    "data/00000-6-eaff9e1c-5f0a-4238-a0ea-5579d048576a-00001-deletes.parquet",
    "data/00000-6-eaff9e1c-5f0a-4238-a0ea-5579d048576a-00001.parquet",
    "metadata/68aa1e27-e17a-4288-8137-bf7f9c42e253-m0.avro",
    "metadata/68aa1e27-e17a-4288-8137-bf7f9c42e253-m1.avro",
    "metadata/b0298864-e8a5-404b-9e44-f514a2dbb654-m0.avro",
    "metadata/dc9726af-c52b-4141-bdfe-467401af5bb3-m0.avro",
    "metadata/snap-1405236939729834003-1-dc9726af-c52b-4141-bdfe-467401af5bb3.avro",
    "metadata/snap-1629552197835463530-1-b0298864-e8a5-404b-9e44-f514a2dbb654.avro",
    "metadata/snap-7449918388816725001-1-68aa1e27-e17a-4288-8137-bf7f9c42e253.avro",
    "metadata/v3.metadata.json",
    "metadata/v4.metadata.json",
    "metadata/version-hint.text",
}];

/// Delta tables.
pub(in super::super) const CARRIED_DELTA: &[SampleTable] = &[sample_table! { "inventory":
    "_delta_log/00000000000000000000.crc",
    "_delta_log/00000000000000000000.json",
    "_delta_log/00000000000000000001.crc",
    "_delta_log/00000000000000000001.json",
    "_delta_log/00000000000000000002.crc",
    "_delta_log/00000000000000000002.json",
    "_delta_log/00000000000000000003.crc",
    "_delta_log/00000000000000000003.json",
    "_delta_log/00000000000000000004.crc",
    "_delta_log/00000000000000000004.json",
    "deletion_vector_ef36d1ba-6ea7-405a-93ae-fabfaa95db41.bin",
    "deletion_vector_f16e27f4-1499-4a7c-9262-e42afeb38710.bin",
    "part-00000-4d83f41b-748f-4722-98a6-f8af6ddffaf0-c000.snappy.parquet",
    "part-00000-6448df6c-00ee-4cc8-a9cd-122ac3d6e791-c000.snappy.parquet",
    "part-00000-6af6073d-2911-47b2-a40d-0208a15fd98f-c000.snappy.parquet",
}];

/// What became of a sample table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Laid {
    /// Its folder was not there and is now.
    Fresh,
    /// It is there as it was laid.
    Kept,
    /// Its folder has other contents, which are left alone.
    Changed,
}

/// Lays `table` into the folder `schema`, which is created when absent.
///
/// Errors: `Unavailable` when the folder cannot be written.
pub(in super::super) fn lay(table: &SampleTable, schema: &Path) -> Result<Laid> {
    let folder = schema.join(table.name);
    let failed = |e: std::io::Error| {
        Error::unavailable("cannot lay a sample table")
            .with("folder", folder.display())
            .with_source(e)
    };
    if folder.exists() {
        let same = |(path, bytes): &(&str, &[u8])| std::fs::read(folder.join(path)).is_ok_and(|found| found == *bytes);
        return Ok(if table.files.iter().all(same) { Laid::Kept } else { Laid::Changed });
    }
    // written beside its place and renamed, so that a table is there as a whole or not at all
    let draft = schema.join(format!(".{}-{}", table.name, uuid::Uuid::new_v4().simple()));
    let written = write_files(table, &draft).and_then(|()| std::fs::rename(&draft, &folder));
    match written {
        Ok(()) => Ok(Laid::Fresh),
        Err(e) => {
            // the draft is ours alone, and what is left of it harms nobody
            let _ = std::fs::remove_dir_all(&draft);
            Err(failed(e))
        }
    }
}

fn write_files(table: &SampleTable, folder: &Path) -> std::io::Result<()> {
    for (path, bytes) in table.files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// Gives the laid tables their names in the catalog `name` of the warehouse `root`. A name that is taken is left as it is.
///
/// Errors: those of the catalog; none when a table is listed already, by whichever server.
pub(super) async fn register(catalog: &dyn WritableCatalog, name: &str, root: &Path) -> Result<()> {
    for table in CARRIED {
        let ident = TableIdent::new(name, SCHEMA, table.name);
        if catalog.pointer(&ident).await?.is_some() {
            continue;
        }
        let metadata = newest_metadata(&root.join(SCHEMA).join(table.name))?;
        catalog.create_table(&ident, &metadata).await.into_result()?;
        tracing::info!(table = %ident, "sample table registered");
    }
    Ok(())
}

/// The metadata file of the highest version in a sample table's folder.
fn newest_metadata(folder: &Path) -> Result<String> {
    let failed = || Error::not_found("the sample table has no metadata").with("folder", folder.display());
    let metadata = folder.join("metadata");
    let entries = std::fs::read_dir(&metadata).map_err(|e| failed().with_source(e))?;
    let newest = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let version = name.strip_prefix('v')?.strip_suffix(".metadata.json")?.parse::<u64>().ok()?;
            Some((version, name))
        })
        .max();
    let (_, name) = newest.ok_or_else(failed)?;
    let path = metadata.join(name);
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::unsupported("path is not UTF-8").with("folder", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut out = BTreeMap::new();
        let mut todo = vec![folder.to_owned()];
        while let Some(next) = todo.pop() {
            for entry in std::fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    out.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
                }
            }
        }
        out
    }

    #[test]
    fn every_file_of_the_sample_folder_is_carried() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
        let warehouse = tempfile::tempdir().unwrap();
        for table in CARRIED.iter().chain(CARRIED_DELTA) {
            assert_eq!(lay(table, warehouse.path()).unwrap(), Laid::Fresh);
            assert_eq!(
                files(&warehouse.path().join(table.name)),
                files(&source.join(table.name)),
                "{}",
                table.name
            );
        }
        let mut laid: Vec<_> = std::fs::read_dir(warehouse.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        laid.sort();
        assert_eq!(laid, ["customers", "inventory"]);
    }

    #[test]
    fn laying_again_changes_nothing() {
        let warehouse = tempfile::tempdir().unwrap();
        let schema = warehouse.path().join("iceberg/sample");
        for table in CARRIED {
            lay(table, &schema).unwrap();
        }
        let before = files(warehouse.path());
        for table in CARRIED {
            assert_eq!(lay(table, &schema).unwrap(), Laid::Kept);
        }
        assert_eq!(files(warehouse.path()), before);
    }

    #[test]
    fn foreign_and_changed_files_stay() {
        let warehouse = tempfile::tempdir().unwrap();
        let table = &CARRIED[0];
        lay(table, warehouse.path()).unwrap();
        let folder = warehouse.path().join(table.name);
        std::fs::write(folder.join("data/mine.txt"), "x").unwrap();
        assert_eq!(lay(table, warehouse.path()).unwrap(), Laid::Kept);
        std::fs::write(folder.join("metadata/version-hint.text"), "9").unwrap();
        std::fs::write(warehouse.path().join("other.txt"), "y").unwrap();
        let before = files(warehouse.path());
        assert_eq!(lay(table, warehouse.path()).unwrap(), Laid::Changed);
        assert_eq!(files(warehouse.path()), before);
    }
}
