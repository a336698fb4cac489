//! Where a path really is: links followed, also for what does not exist yet (SE-20, SE-21).

use std::io;
use std::path::{Path, PathBuf};

use super::normalise;
use super::path_map::strip_segments;

/// The path with the symbolic links of everything that exists followed; what does not exist yet
/// is taken by name. Errors: those of the file system, and for a link that leads nowhere.
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut rest: Vec<&std::ffi::OsStr> = Vec::new();
    let mut existing = path;
    loop {
        match std::fs::symlink_metadata(existing) {
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
                    return Err(e);
                };
                rest.push(name);
                existing = parent;
            }
            Err(e) => return Err(e),
        }
    }
    let mut real = std::fs::canonicalize(existing)?;
    real.extend(rest.into_iter().rev());
    Ok(real)
}

/// Where a path really is, whether it exists or not; `None` where that cannot be told. Blocks for a moment.
pub fn real_place(path: &str) -> Option<String> {
    real_path(Path::new(path)).ok()?.to_str().map(str::to_owned)
}

/// True where `path`, by its name and by the links it goes through, lies below one of `folders` or is
/// one of them. Neither needs to exist. Blocks for a moment.
pub fn lies_below(path: &str, folders: &[String]) -> bool {
    let Ok(path) = normalise(path) else { return false };
    let path = path.trim_end_matches('/');
    let below = |path: &str, folder: &str| strip_segments(path, folder).is_some();
    if path.contains("://") {
        return folders.iter().any(|folder| below(path, folder));
    }
    let Some(real) = real_place(path) else {
        return false;
    };
    folders.iter().any(|folder| {
        let real_folder = real_place(folder.trim_end_matches('/'));
        let by_name = below(path, folder) || real_folder.as_ref().is_some_and(|f| below(path, f));
        by_name && real_folder.is_some_and(|f| below(&real, &f))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_and_names_outside_are_not_below() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let text = |p: PathBuf| p.to_str().unwrap().to_owned();
        let root = text(dir.path().join("wh"));
        std::fs::create_dir_all(&root).unwrap();
        let roots = [root.clone()];
        assert!(lies_below(&format!("file://{root}/a/b/x.json"), &roots), "nothing of it exists");
        assert!(lies_below(&root, &roots));
        for bad in [
            format!("{root}2/x"),
            format!("{root}/../x"),
            "/".to_owned(),
            "s3://b/x".to_owned(),
            "relative".to_owned(),
        ] {
            assert!(!lies_below(&bad, &roots), "{bad}");
        }
        std::os::unix::fs::symlink(outside.path(), dir.path().join("wh/out")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("nowhere"), dir.path().join("wh/dangling")).unwrap();
        std::os::unix::fs::symlink(&root, dir.path().join("alias")).unwrap();
        assert!(!lies_below(&format!("{root}/out/x"), &roots));
        assert!(!lies_below(&format!("{root}/dangling/x"), &roots));
        let alias = text(dir.path().join("alias"));
        assert!(lies_below(&format!("{alias}/x"), std::slice::from_ref(&alias)));
        assert!(lies_below(&format!("{root}/x"), &[alias]), "the folder's own place counts as well");
    }
}
