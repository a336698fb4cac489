//! What was read of a log during one call into the crate: where the error lies that it does not place, and how many
//! files a checkpoint lists.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, AsArray, RecordBatch};

use crate::error::{Error, Result};

/// Shared by the handlers of one engine.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    /// The file that was read last.
    last: Option<String>,
    /// The newest file with a protocol, and the one with metadata: the log is read from its end.
    protocol: Option<String>,
    metadata: Option<String>,
    /// Files that each file of a checkpoint adds.
    adds: BTreeMap<String, u64>,
}

impl Seen {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file is read from its start.
    pub(super) fn opened(&self, file: &str) {
        let mut places = self.places();
        places.last = Some(file.to_owned());
        places.adds.remove(file);
    }

    /// A batch of the file's actions was read.
    pub(super) fn batch(&self, file: &str, batch: &RecordBatch) {
        let count = |name: &str| batch.column_by_name(name).map_or(0, |c| c.len() - c.null_count());
        let mut places = self.places();
        if places.protocol.is_none() && count("protocol") > 0 {
            places.protocol = Some(file.to_owned());
        }
        if places.metadata.is_none() && count("metaData") > 0 {
            places.metadata = Some(file.to_owned());
        }
        if checkpoint_version(file).is_some() || file.contains(SIDECARS) {
            let added = batch
                .column_by_name("add")
                .and_then(|c| c.as_struct_opt()?.column_by_name("path").cloned());
            let added = added.map_or(0, |paths| paths.len() - paths.logical_null_count());
            *places.adds.entry(file.to_owned()).or_default() += added as u64;
        }
    }

    /// An error about actions, with the file whose actions were read when it came.
    pub(super) fn placed(&self, error: Error) -> Error {
        match self.places().last.as_ref().filter(|_| !names_file(&error)) {
            Some(file) => error.with("file", file),
            None => error,
        }
    }

    /// An error about protocol and metadata, with the files that have them; where one has none of the two, with the file
    /// that the search for it ended with.
    pub(super) fn placed_with_metadata(&self, error: Error) -> Error {
        if names_file(&error) {
            return error;
        }
        let places = self.places();
        match (&places.protocol, &places.metadata) {
            (Some(protocol), Some(metadata)) if protocol == metadata => error.with("file", protocol),
            (Some(protocol), Some(metadata)) => error.with("protocol", protocol).with("metadata", metadata),
            _ => match &places.last {
                Some(last) => error.with("file", last),
                None => error,
            },
        }
    }

    /// Version of the checkpoint that was read, and the files that it adds; `None` where none was.
    ///
    /// Errors: `Internal` where files of several checkpoints were.
    pub(super) fn checkpoint(&self) -> Result<Option<(u64, u64)>> {
        let places = self.places();
        let mut versions = places.adds.keys().filter_map(|file| checkpoint_version(file));
        let Some(version) = versions.next() else { return Ok(None) };
        if versions.any(|other| other != version) {
            return Err(Error::internal("several checkpoints were read for one version"));
        }
        Ok(Some((version, places.adds.values().sum())))
    }
}

const SIDECARS: &str = "/_delta_log/_sidecars/";

fn names_file(error: &Error) -> bool {
    error.context().iter().any(|(key, _)| *key == "file")
}

/// The version of a checkpoint by the name of one of its files, which is not a sidecar.
fn checkpoint_version(file: &str) -> Option<u64> {
    let (version, kind) = file.rsplit('/').next()?.split_once('.')?;
    kind.starts_with("checkpoint.").then(|| version.parse().ok())?
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field};

    use super::*;

    fn adds(paths: Vec<Option<&str>>) -> RecordBatch {
        let paths: ArrayRef = Arc::new(StringArray::from(paths));
        let field = Arc::new(Field::new("path", DataType::Utf8, true));
        let add: ArrayRef = Arc::new(StructArray::from(vec![(field, paths)]));
        RecordBatch::try_from_iter([("add", add)]).unwrap()
    }

    #[test]
    fn files_of_a_checkpoint_are_counted_once() {
        let seen = Seen::default();
        assert_eq!(seen.checkpoint().unwrap(), None);
        let manifest = "/t/_delta_log/00000000000000000007.checkpoint.6374b053-df23-479b-b2cf-c9c550132b49.json";
        for _ in 0..2 {
            seen.opened(manifest);
            seen.batch(manifest, &adds(vec![Some("a"), None]));
        }
        let sidecar = "/t/_delta_log/_sidecars/x.parquet";
        seen.opened(sidecar);
        seen.batch(sidecar, &adds(vec![Some("b"), Some("c")]));
        seen.batch(sidecar, &adds(vec![None, Some("d")]));
        let commit = "/t/_delta_log/00000000000000000008.json";
        seen.opened(commit);
        seen.batch(commit, &adds(vec![Some("e")]));
        assert_eq!(seen.checkpoint().unwrap(), Some((7, 4)));
    }

    #[test]
    fn errors_name_the_files_of_protocol_and_metadata() {
        let one = |name: &str| RecordBatch::try_from_iter([(name, Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
        let seen = Seen::default();
        let text = |seen: &Seen| seen.placed_with_metadata(Error::corrupt("x")).to_string();
        assert_eq!(text(&seen), "x");
        for (file, name) in [("/2.json", "protocol"), ("/1.json", "other")] {
            seen.opened(file);
            seen.batch(file, &one(name));
        }
        assert_eq!(text(&seen), "x (file: /1.json)");
        seen.opened("/0.json");
        seen.batch("/0.json", &one("metaData"));
        seen.batch("/0.json", &one("protocol"));
        assert_eq!(text(&seen), "x (protocol: /2.json, metadata: /0.json)");
        let placed = Error::corrupt("x").with("file", "/y");
        assert_eq!(seen.placed(placed).to_string(), "x (file: /y)");
    }
}
