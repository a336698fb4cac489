//! Where the tables of a SQL catalog may lie, and where new ones go (SE-20, SE-24).

use std::path::Path;

use super::super::location::{absolute, table_location};
use crate::error::{Error, Result, ResultExt};
use crate::io::{lies_below, normalise, real_place};
use crate::table::{TableIdent, TableLocation};

/// The warehouse and the other folders that tables may lie below, absolute.
#[derive(Debug, Clone)]
pub(super) struct Places {
    warehouse: String,
    roots: Vec<String>,
}

impl Places {
    /// Errors: `InvalidInput` for what is no path, `Unsupported` for a place that is not local.
    pub(super) fn new(warehouse: &str, allowed: &[String]) -> Result<Self> {
        let mut roots = Vec::new();
        for folder in std::iter::once(warehouse).chain(allowed.iter().map(String::as_str)) {
            let folder = absolute(folder)?;
            if let Some((scheme, _)) = folder.split_once("://") {
                return Err(Error::unsupported(format!("warehouses at {scheme}:// are not built yet")).with("folder", &folder));
            }
            let folder = folder.trim_end_matches('/');
            if folder.is_empty() {
                return Err(Error::invalid("the root of the file system cannot be a warehouse"));
            }
            roots.push(folder.to_owned());
        }
        Ok(Self {
            warehouse: roots.first().cloned().unwrap_or_default(),
            roots,
        })
    }

    /// The table that a metadata file means. Blocks for a moment.
    ///
    /// Errors: `PermissionDenied` naming the table, not the place, when the file lies outside; `Corrupt` for
    /// what is no absolute path.
    pub(super) fn table(&self, ident: &TableIdent, metadata_location: &str) -> Result<TableLocation> {
        let normal = normalise(metadata_location).map_err(|e| Error::corrupt(e.message().to_owned()));
        let normal = normal.context("table", || ident.to_string())?;
        if let Some((scheme, _)) = normal.split_once("://") {
            return Err(Error::unsupported(format!("tables at {scheme}:// cannot be read yet")).with("table", ident));
        }
        let mut location = table_location(&normal, &[])?;
        if location.metadata_file.is_none() {
            return Err(Error::corrupt("the catalog names something that is no metadata file").with("table", ident));
        }
        if !lies_below(&normal, &self.roots) || !lies_below(&location.root, &self.roots) {
            return Err(Error::permission_denied(
                "the table's metadata lies outside of the catalog's warehouse: move the table, or add its folder to allowed_locations",
            )
            .with("table", ident));
        }
        location.catalog_roots.clone_from(&self.roots);
        Ok(location)
    }

    /// Refuses a folder that the files of a new table may not lie in. `others` are the tables that there are, with
    /// their metadata files. Blocks for a moment.
    ///
    /// Errors: `InvalidInput` for what is no place for one table alone, `PermissionDenied` outside of the roots,
    /// `Unsupported` for a place that is not local.
    pub(super) fn check_new(&self, folder: &str, others: &[(String, String)]) -> Result<()> {
        let normal = normalise(folder).context("location", || folder)?;
        if let Some((scheme, _)) = normal.split_once("://") {
            return Err(Error::unsupported(format!("tables at {scheme}:// are not built yet")).with("location", folder));
        }
        let normal = normal.trim_end_matches('/');
        let own = [normal.to_owned()];
        if normal.is_empty() || self.roots.iter().any(|root| lies_below(root, &own)) {
            let message = "a table's folder cannot be the catalog's warehouse or one of its allowed_locations, nor hold one of them";
            return Err(Error::invalid(message).with("location", folder));
        }
        if !lies_below(normal, &self.roots) {
            let message = "a new table lies in the catalog's warehouse, or below one of its allowed_locations";
            return Err(Error::permission_denied(message).with("location", folder));
        }
        let real = real_place(normal);
        let names = [Some(normal), real.as_deref()];
        for (other, metadata) in others {
            let Ok(of_other) = normalise(metadata).and_then(|metadata| table_location(&metadata, &[])) else {
                continue;
            };
            let file = of_other.metadata_file.as_deref().unwrap_or(&of_other.root);
            // Metadata in the warehouse itself does not make all of it one table's.
            let is_own = !self.roots.iter().any(|root| is_within(root, &of_other.root));
            let meets =
                |name: &str| is_within(file, name) || (is_own && (is_within(name, &of_other.root) || is_within(&of_other.root, name)));
            if names.into_iter().flatten().any(meets) {
                let message = "a table's folder cannot lie in that of another table, nor hold it: name a location of its own";
                return Err(Error::invalid(message).with("location", folder).with("other_table", other));
            }
        }
        Ok(())
    }

    /// A folder for a new table whose name leads into the folder of another table, as that of table `x` in schema
    /// `a.b` beside a table `a.b`.
    pub(super) fn apart(&self, ident: &TableIdent) -> String {
        let id = &uuid::Uuid::new_v4().simple().to_string()[..8];
        let schema = folder_name(&ident.schema);
        spelled(&format!("{}/{schema}-{id}/{}", self.warehouse, folder_name(&ident.table)))
    }

    /// A folder for a new table that holds nothing: below `schema_location`, where the schema has one in the
    /// warehouse, else below the warehouse. Blocks for a moment.
    pub(super) fn new_table(&self, ident: &TableIdent, schema_location: Option<&str>) -> String {
        let own = schema_location
            .and_then(|location| normalise(location).ok())
            .filter(|location| lies_below(location, &self.roots));
        let folder = own.unwrap_or_else(|| {
            let levels: Vec<String> = ident.schema.split('.').map(folder_name).collect();
            format!("{}/{}", self.warehouse, levels.join("/"))
        });
        let mut place = format!("{}/{}", folder.trim_end_matches('/'), folder_name(&ident.table));
        // A table that was renamed or dropped may still have its files under its first name.
        if Path::new(&place).symlink_metadata().is_ok() {
            place = format!("{place}-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        }
        spelled(&place)
    }
}

/// A local path as it is written into metadata and catalog: a URI, as the specification asks for, unless the path
/// has characters that readers of URIs take differently.
pub(super) fn spelled(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    if path.chars().all(plain) {
        format!("file://{path}")
    } else {
        path.to_owned()
    }
}

/// Whether a path is a folder or lies in it, by name.
fn is_within(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A name as one segment of a path.
fn folder_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' })
        .collect();
    if safe.is_empty() { "_".to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn tables_lie_in_the_warehouse() {
        let dir = tempfile::tempdir().unwrap();
        let (wh, more) = (dir.path().join("wh"), dir.path().join("more"));
        std::fs::create_dir_all(wh.join("s/t/metadata")).unwrap();
        std::os::unix::fs::symlink("/etc", wh.join("out")).unwrap();
        let (wh, more) = (wh.to_str().unwrap(), more.to_str().unwrap());
        let places = Places::new(wh, &[more.to_owned()]).unwrap();
        let ident = TableIdent::new("c", "s", "t");
        let found = places.table(&ident, &format!("file://{wh}/s/t/metadata/v1.metadata.json")).unwrap();
        assert_eq!(found.root, format!("{wh}/s/t"));
        assert_eq!(found.metadata_file, Some(format!("{wh}/s/t/metadata/v1.metadata.json")));
        assert!(places.table(&ident, &format!("{more}/t/metadata/v1.gz.metadata.json")).is_ok());
        for (place, kind) in [
            ("/etc/t/metadata/v1.metadata.json".to_owned(), ErrorKind::PermissionDenied),
            (format!("{wh}2/t/metadata/v1.metadata.json"), ErrorKind::PermissionDenied),
            (format!("file://{wh}/out/t/metadata/v1.metadata.json"), ErrorKind::PermissionDenied),
            (format!("{wh}/../more2/t/metadata/v1.metadata.json"), ErrorKind::Corrupt),
            ("file://other/t/metadata/v1.metadata.json".to_owned(), ErrorKind::Corrupt),
            ("wh/t/metadata/v1.metadata.json".to_owned(), ErrorKind::Corrupt),
            (format!("{wh}/s/t/data/x.parquet"), ErrorKind::Corrupt),
            ("http://169.254.169.254/x.metadata.json".to_owned(), ErrorKind::Unsupported),
            ("s3://bucket/t/metadata/v1.metadata.json".to_owned(), ErrorKind::Unsupported),
        ] {
            let e = places.table(&ident, &place).unwrap_err();
            assert_eq!(e.kind(), kind, "{place}: {e}");
            assert!(e.to_string().contains("c.s.t"), "{e}");
            assert!(kind != ErrorKind::PermissionDenied || !e.to_string().contains(&place), "{e}");
        }
        assert_eq!(Places::new("/", &[]).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(Places::new("s3://b/wh", &[]).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_new_table_lies_neither_in_another_nor_around_one() {
        let dir = tempfile::tempdir().unwrap();
        let wh = dir.path().join("wh");
        std::fs::create_dir_all(wh.join("s/t/metadata")).unwrap();
        std::os::unix::fs::symlink(wh.join("s/t"), wh.join("link")).unwrap();
        let wh = wh.to_str().unwrap();
        let more = dir.path().join("wh-more/inner");
        let places = Places::new(wh, &[more.to_str().unwrap().to_owned()]).unwrap();
        let others = [
            ("s.t".to_owned(), format!("file://{wh}/s/t/metadata/v1.metadata.json")),
            ("s.u".to_owned(), format!("{wh}/plain/v3.gz.metadata.json")),
            ("s.broken".to_owned(), "nowhere".to_owned()),
            ("s.whole".to_owned(), format!("{wh}/metadata/v1.metadata.json")),
        ];
        for free in ["s/t2", "s/x/y", "t", "plain2/deeper"] {
            places.check_new(&format!("file:{wh}/{free}/"), &others).unwrap();
        }
        for (place, part) in [
            (format!("{wh}/s/t"), "other_table: s.t"),
            (format!("file://{wh}/s/t/data/x"), "other_table: s.t"),
            (format!("{wh}/s/"), "other_table: s.t"),
            (format!("{wh}/link/x"), "other_table: s.t"),
            (format!("{wh}/plain/x"), "other_table: s.u"),
            (format!("{wh}/metadata"), "other_table: s.whole"),
            (wh.to_owned(), "warehouse"),
            (dir.path().to_str().unwrap().to_owned(), "warehouse"),
            (more.parent().unwrap().to_str().unwrap().to_owned(), "allowed_locations"),
            ("/".to_owned(), "warehouse"),
            ("relative/path".to_owned(), "path"),
            (format!("{wh}/s/../../x"), "path"),
            (String::new(), "path"),
        ] {
            let e = places.check_new(&place, &others).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput, "{place}: {e}");
            assert!(e.to_string().contains(part), "{place}: {e}");
        }
        assert_eq!(places.check_new("/tmp/x", &others).unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!(places.check_new("s3://b/x", &others).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn new_tables_get_a_folder_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let wh = dir.path().to_str().unwrap();
        let places = Places::new(wh, &[]).unwrap();
        let new = |schema: &str, table: &str, location: Option<&str>| places.new_table(&TableIdent::new("c", schema, table), location);
        assert_eq!(new("a.b", "T", None), format!("file://{wh}/a/b/T"));
        assert_eq!(new("a", "t", Some(&format!("file:{wh}/own/"))), format!("file://{wh}/own/t"));
        assert_eq!(
            new("a", "t", Some("/etc")),
            format!("file://{wh}/a/t"),
            "a place outside is not taken"
        );
        assert_eq!(new("..", "../x y", None), format!("file://{wh}/_/_/_/___x_y"));
        assert_eq!(new("a", "größe", None), format!("{wh}/a/größe"), "no URI where it could be misread");
        std::fs::create_dir_all(dir.path().join("a/t")).unwrap();
        let other = new("a", "t", None);
        assert!(
            other.starts_with(&format!("file://{wh}/a/t-")) && other.len() == wh.len() + 7 + 4 + 9,
            "{other}"
        );
    }
}
