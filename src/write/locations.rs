//! Names of new data files: where Iceberg Java would put them, unique by the write's id.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::iceberg::spec::{Literal, PrimitiveType, TableMetadata, bucket_hash};

const DATA_PATH: &str = "write.data.path";
const OLD_DATA_PATH: &str = "write.folder-storage.path";
const OBJECT_ENABLED: &str = "write.object-storage.enabled";
const OBJECT_PATH: &str = "write.object-storage.path";
const OBJECT_PARTITIONED: &str = "write.object-storage.partitioned-paths";
const PROVIDER: &str = "write.location-provider.impl";

/// Bytes of a folder's name that every file system takes.
const MAX_SEGMENT: usize = 200;

/// Gives names to the files of a write.
#[derive(Debug)]
pub(super) struct Locations {
    folder: String,
    hashing: Option<Hashing>,
    prefix: String,
    /// Behind a file's number.
    suffix: &'static str,
    next: AtomicU64,
}

/// Folders of a hash before the rest of the path, for stores that limit requests by prefix.
#[derive(Debug)]
struct Hashing {
    partitioned: bool,
    /// Names the table where its files lie outside of it.
    context: Option<String>,
}

impl Locations {
    /// `table` is the table's location; `write_id` is unique to the write, `task` within it.
    ///
    /// Errors: `Unsupported` for a location provider of the table's own, `InvalidInput` for an id that cannot
    /// be part of a file's name.
    pub(super) fn new(table: &str, properties: &BTreeMap<String, String>, write_id: &str, task: u32) -> Result<Self> {
        if let Some(provider) = properties.get(PROVIDER) {
            return Err(Error::unsupported(format!(
                "property {PROVIDER} is \"{provider}\": files are only written where the default provider puts them"
            )));
        }
        if write_id.is_empty() || !write_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(Error::invalid("the id of a write must be of letters, digits and hyphens"));
        }
        let table = without_slash(table);
        let is_on = |name: &str, default: bool| properties.get(name).map_or(default, |text| text.eq_ignore_ascii_case("true"));
        let enabled = is_on(OBJECT_ENABLED, false);
        let of_object = properties.get(OBJECT_PATH).filter(|_| enabled);
        let named = properties.get(DATA_PATH).or(of_object).or_else(|| properties.get(OLD_DATA_PATH));
        let folder = named.map_or_else(|| format!("{table}/data"), |named| without_slash(named).to_owned());
        let hashing = enabled.then(|| Hashing {
            partitioned: is_on(OBJECT_PARTITIONED, true),
            context: (!folder.starts_with(table)).then(|| context(table)),
        });
        Ok(Self {
            folder,
            hashing,
            prefix: format!("{task:05}-0-{write_id}"),
            suffix: ".parquet",
            next: AtomicU64::new(1),
        })
    }

    /// The same for delete files.
    pub(super) fn of_deletes(self) -> Self {
        Self {
            suffix: "-deletes.parquet",
            ..self
        }
    }

    /// The next file of a partition; `partition` is its path, empty where there is none.
    pub(super) fn next(&self, partition: &str) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let file = format!("{}-{number:05}{}", self.prefix, self.suffix);
        let partition: Vec<String> = partition.split('/').filter(|segment| !segment.is_empty()).map(short).collect();
        let is_shown = self.hashing.as_ref().is_none_or(|hashing| hashing.partitioned);
        let name = if is_shown && !partition.is_empty() {
            format!("{}/{file}", partition.join("/"))
        } else {
            file
        };
        match &self.hashing {
            None => format!("{}/{name}", self.folder),
            Some(hashing) => {
                let hash = hash_folders(&name);
                match &hashing.context {
                    Some(context) => format!("{}/{hash}/{context}/{name}", self.folder),
                    None if hashing.partitioned => format!("{}/{hash}/{name}", self.folder),
                    None => format!("{}/{hash}-{name}", self.folder),
                }
            }
        }
    }
}

/// The folder of a table's data files, where files that belong to several of them lie.
pub fn data_folder(metadata: &TableMetadata) -> String {
    let table = without_slash(&metadata.location);
    let named = metadata
        .properties
        .get(DATA_PATH)
        .or_else(|| metadata.properties.get(OLD_DATA_PATH));
    named.map_or_else(|| format!("{table}/data"), |named| without_slash(named).to_owned())
}

fn without_slash(location: &str) -> &str {
    location.trim_end_matches('/')
}

/// The last two folders of a table's location.
fn context(table: &str) -> String {
    let mut folders: Vec<&str> = table.rsplit('/').filter(|folder| !folder.is_empty()).take(2).collect();
    folders.reverse();
    folders.join("/")
}

/// A segment that no file system takes is cut; what it was cut from is told apart by a digest.
fn short(segment: &str) -> String {
    let Some(head) = segment.get(..MAX_SEGMENT).filter(|head| head.len() < segment.len()) else {
        return segment.to_owned();
    };
    let digest = Sha256::digest(segment.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    // Not in the middle of an escape.
    let kept = head.rfind('%').filter(|at| at + 3 > MAX_SEGMENT).unwrap_or(MAX_SEGMENT);
    format!("{}-{hex}", head.get(..kept).unwrap_or(head))
}

/// 20 bits of a name's hash as three folders of 4 and one of 8.
fn hash_folders(name: &str) -> String {
    let hash = bucket_hash(&PrimitiveType::String, &Literal::String(name.to_owned())).unwrap_or_default();
    let bits = format!("{:020b}", hash & 0xf_ffff);
    let part = |from: usize, to: usize| bits.get(from..to).unwrap_or_default().to_owned();
    [part(0, 4), part(4, 8), part(8, 12), part(12, 20)].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locations(pairs: &[(&str, &str)]) -> Locations {
        let properties = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Locations::new("s3://b/db/t/", &properties, "0af0-1", 2).unwrap()
    }

    #[test]
    fn files_lie_in_the_folder_of_their_partition() {
        let plain = locations(&[]);
        assert_eq!(plain.next(""), "s3://b/db/t/data/00002-0-0af0-1-00001.parquet");
        assert_eq!(
            plain.next("a=1/b=x%2Fy"),
            "s3://b/db/t/data/a=1/b=x%2Fy/00002-0-0af0-1-00002.parquet"
        );
        let elsewhere = locations(&[("write.data.path", "s3://c/d/")]);
        assert_eq!(elsewhere.next("a=1"), "s3://c/d/a=1/00002-0-0af0-1-00001.parquet");
        assert_eq!(
            elsewhere.of_deletes().next("a=1"),
            "s3://c/d/a=1/00002-0-0af0-1-00002-deletes.parquet"
        );
    }

    /// The names that Iceberg Java 1.12 gave to files of a table with object storage paths.
    #[test]
    fn hashes_are_those_of_iceberg_java() {
        for (name, folders) in [
            (
                "g=c%2Fd/00000-3-356f2579-49f7-43f6-991c-48cad834286b-0-00002.parquet",
                "0101/0111/1001/01111000",
            ),
            (
                "g=a+b/00000-3-356f2579-49f7-43f6-991c-48cad834286b-0-00001.parquet",
                "1110/0100/0100/00100101",
            ),
        ] {
            assert_eq!(hash_folders(name), folders, "{name}");
        }
    }

    #[test]
    fn object_storage_paths_start_with_a_hash() {
        let name = "a=1/00002-0-0af0-1-00001.parquet";
        let on = ("write.object-storage.enabled", "true");
        assert_eq!(
            locations(&[on]).next("a=1"),
            format!("s3://b/db/t/data/{}/{name}", hash_folders(name))
        );
        let elsewhere = [on, ("write.data.path", "s3://c/d")];
        assert_eq!(
            locations(&elsewhere).next("a=1"),
            format!("s3://c/d/{}/db/t/{name}", hash_folders(name))
        );
        let bare = "00002-0-0af0-1-00001.parquet";
        let unpartitioned = [on, ("write.object-storage.partitioned-paths", "false")];
        assert_eq!(
            locations(&unpartitioned).next("a=1"),
            format!("s3://b/db/t/data/{}-{bare}", hash_folders(bare))
        );
    }

    #[test]
    fn long_values_make_short_folders() {
        let long = format!("a={}", "%C3%BC".repeat(60));
        let short = short(&long);
        assert!(short.len() <= MAX_SEGMENT + 17 && short.starts_with("a=%C3%BC%C3"), "{short}");
        assert!(!short.contains("%-") && !short.contains("%C-"), "{short}");
        assert_ne!(short, super::short(&format!("{long}x")));
    }

    #[test]
    fn what_is_not_built_is_refused() {
        let provider = [("write.location-provider.impl".to_owned(), "org.example.P".to_owned())].into();
        assert!(Locations::new("/t", &provider, "a", 0).is_err());
        assert!(Locations::new("/t", &BTreeMap::new(), "../a", 0).is_err());
    }
}
