//! A version of a table's log: what its protocol and metadata say, and which files it has.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::RecordBatch;
use delta_kernel::history_manager::{HistoryCommitType, first_version_after, latest_version_as_of};
use delta_kernel::scan::StatsOptions;
use delta_kernel::table_features::{Operation, TableFeature};
use delta_kernel::{KernelError, KernelResult, Snapshot, SnapshotRef};

use super::actions::{FileKey, of_commits, of_replay};
use super::engine::LogEngine;
use super::errors::{own, own_of};
use super::files::{LogAccess, LogFiles, folder_url};
use super::hint;
use crate::error::{Error, ErrorKind, Result, ResultExt};

/// Versions of the protocol that a table asks of those who read and write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::delta) struct Protocol {
    pub(in crate::delta) reader: i32,
    pub(in crate::delta) writer: i32,
    pub(in crate::delta) reader_features: Vec<String>,
    pub(in crate::delta) writer_features: Vec<String>,
}

impl Protocol {
    /// All features, each once, in order of name.
    pub(in crate::delta) fn features(&self) -> Vec<String> {
        let all: BTreeSet<&String> = self.reader_features.iter().chain(&self.writer_features).collect();
        all.into_iter().cloned().collect()
    }
}

/// What changed between two versions.
#[derive(Debug)]
pub(in crate::delta) struct FileChanges {
    /// Files that are added and stand.
    pub(in crate::delta) added: Vec<RecordBatch>,
    /// Files of the older version that are gone, or that are added anew.
    pub(in crate::delta) gone: HashSet<FileKey>,
}

/// One version of a log. All methods block; they are for [`super::Pool`].
#[derive(Debug, Clone)]
pub(in crate::delta) struct LogVersion {
    snapshot: SnapshotRef,
    pub(in crate::delta) protocol: Protocol,
    pub(in crate::delta) id: String,
    pub(in crate::delta) name: Option<String>,
    pub(in crate::delta) description: Option<String>,
    /// Milliseconds since the epoch.
    pub(in crate::delta) created: Option<i64>,
    /// The table's schema as JSON.
    pub(in crate::delta) schema: String,
    /// Logical names, in order.
    pub(in crate::delta) partition_columns: Vec<String>,
    pub(in crate::delta) properties: BTreeMap<String, String>,
}

impl LogVersion {
    /// The newest version, or the one asked for.
    ///
    /// Errors: `NotFound` without a log or for a version that cannot be made again; `Unsupported` for a reader version or
    /// feature that is not known, naming it; `Corrupt` for a log with gaps or broken files.
    pub(in crate::delta) fn open(access: &LogAccess, at: Option<u64>) -> Result<Self> {
        let url = folder_url(access.root())?;
        let mut engine = engine(access, false);
        let build = |engine: &LogEngine| {
            let mut builder = Snapshot::builder_for(url.as_str());
            if let Some(version) = at {
                builder = builder.at_version(version);
            }
            builder.build(engine)
        };
        let built = match build(&engine) {
            // The hint may name a checkpoint that is gone; the listing tells the truth.
            Err(e)
                if matches!(
                    e.without_backtrace(),
                    KernelError::InvalidCheckpoint(_) | KernelError::FileNotFound(_)
                ) =>
            {
                engine = self::engine(access, true);
                build(&engine).map_err(|_| e)
            }
            built => built,
        };
        let log = || format!("{}/_delta_log", access.root());
        let built = built.map_err(|e| match e.without_backtrace() {
            KernelError::EmptyLog => Error::not_found("there is no Delta log, or none of its commits and checkpoints is left"),
            _ => engine.seen.placed_with_metadata(own_of("protocol and metadata", &e)),
        });
        let of = |built| Self::of(&built).map_err(|e| engine.seen.placed_with_metadata(e));
        built.and_then(of).context("log", log)
    }

    /// The newest version now, reading what is newer than this one only.
    ///
    /// Errors: those of [`Self::open`].
    pub(in crate::delta) fn refreshed(&self, access: &LogAccess) -> Result<Self> {
        // Commits stay contiguous, so that the files can be told by what changed.
        let builder = Snapshot::builder_from(Arc::clone(&self.snapshot)).skip_new_checkpoints();
        let engine = engine(access, false);
        let placed = |e| engine.seen.placed_with_metadata(e);
        let newer = builder.build(&engine).map_err(|e| placed(own_of("protocol and metadata", &e)))?;
        match Arc::ptr_eq(&newer, &self.snapshot) {
            true => Ok(self.clone()),
            false => Self::of(&newer).map_err(placed),
        }
    }

    fn of(snapshot: &SnapshotRef) -> Result<Self> {
        let table = snapshot.table_configuration();
        table
            .ensure_operation_supported(Operation::Scan)
            .map_err(|e| own_of("protocol", &e))?;
        let (protocol, metadata) = (table.protocol(), table.metadata());
        if metadata.format_provider() != "parquet" {
            let provider = metadata.format_provider();
            return Err(Error::unsupported(format!(
                "data files of format \"{provider}\" are not known to Delta"
            )));
        }
        let name = |feature: &TableFeature| match feature {
            TableFeature::Unknown(name) => name.clone(),
            known => known.as_ref().to_owned(),
        };
        let names = |features: Option<&[TableFeature]>| features.unwrap_or_default().iter().map(name).collect();
        Ok(Self {
            protocol: Protocol {
                reader: protocol.min_reader_version(),
                writer: protocol.min_writer_version(),
                reader_features: names(protocol.reader_features()),
                writer_features: names(protocol.writer_features()),
            },
            id: metadata.id().to_owned(),
            name: metadata.name().map(str::to_owned),
            description: metadata.description().map(str::to_owned),
            created: metadata.created_time(),
            schema: metadata.schema_string().clone(),
            partition_columns: metadata.partition_columns().to_vec(),
            properties: metadata.configuration().iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            snapshot: Arc::clone(snapshot),
        })
    }

    /// The version's number.
    pub(in crate::delta) fn number(&self) -> u64 {
        self.snapshot.version()
    }

    /// Bytes that this holds, about.
    pub(in crate::delta) fn memory_size(&self) -> usize {
        let properties: usize = self.properties.iter().map(|(k, v)| k.len() + v.len() + 64).sum();
        self.snapshot.estimated_owned_heap_size_bytes() + 8 * self.schema.len() + properties + 2048
    }

    /// Every file of this version, by a replay of the log.
    ///
    /// Errors: `Corrupt` for files of the log that break their format, naming them, and for a checkpoint of other files
    /// than the hint to it says.
    pub(in crate::delta) fn files(&self, access: &LogAccess) -> Result<Vec<RecordBatch>> {
        self.though_cleaned(access, |version| version.replayed(access))
    }

    /// What is asked of this version; where the files that it was opened with were cleaned away since, of the version as
    /// it is opened now, by a checkpoint that has taken their place.
    fn though_cleaned<T>(&self, access: &LogAccess, ask: impl Fn(&Self) -> Result<T>) -> Result<T> {
        match ask(self) {
            Err(e) if e.kind() == ErrorKind::NotFound => match Self::open(access, Some(self.number())) {
                Ok(again) if again.id == self.id && again.schema == self.schema => ask(&again),
                _ => Err(e),
            },
            told => told,
        }
    }

    fn replayed(&self, access: &LogAccess) -> Result<Vec<RecordBatch>> {
        let engine = engine(access, false);
        let scan = Arc::clone(&self.snapshot)
            .scan_builder()
            .with_stats(StatsOptions::json_only())
            .without_row_transforms()
            .build();
        let found = scan.and_then(|scan| scan.scan_metadata(&engine)?.collect::<KernelResult<Vec<_>>>());
        let found = found.map_err(|e| engine.seen.placed(own(&e)))?;
        hint::check(&engine.seen, access)?;
        found.into_iter().map(|metadata| of_replay(metadata.scan_files)).collect()
    }

    /// What changed since an older version; `None` where the commits between are not at hand.
    ///
    /// Errors: those of [`Self::files`].
    pub(in crate::delta) fn changes_since(&self, older: u64, access: &LogAccess) -> Result<Option<FileChanges>> {
        if older >= self.number() {
            return Ok(None);
        }
        let engine = engine(access, false);
        let stream = Arc::clone(&self.snapshot).incremental_scan_builder(older).build(&engine);
        let placed = |e: KernelError| engine.seen.placed(own(&e));
        let Some(stream) = stream.map_err(placed)? else {
            return Ok(None);
        };
        let listing = stream.into_listing().map_err(placed)?;
        let keys = listing.summary.removes.iter().chain(&listing.summary.live_adds);
        let gone = keys.map(FileKey::from).collect();
        let added = listing.add_files.into_iter().map(of_commits).collect::<Result<Vec<_>>>()?;
        Ok(Some(FileChanges { added, gone }))
    }

    /// The version that was current at a time in milliseconds since the epoch, by in-commit timestamps or file times.
    ///
    /// Errors: `NotFound` before the oldest version that can be made again.
    pub(in crate::delta) fn version_at(&self, millis: i64, access: &LogAccess) -> Result<u64> {
        let engine = engine(access, false);
        self.though_cleaned(access, |version| {
            let found = latest_version_as_of(&version.snapshot, &engine, millis, HistoryCommitType::Recreatable);
            found.map(|commit| commit.version).map_err(|e| own_of("times", &e))
        })
    }

    /// The first version at or after a time in milliseconds since the epoch.
    ///
    /// Errors: `NotFound` after the newest one.
    pub(in crate::delta) fn version_after(&self, millis: i64, access: &LogAccess) -> Result<u64> {
        let engine = engine(access, false);
        self.though_cleaned(access, |version| {
            let found = first_version_after(&version.snapshot, &engine, millis, HistoryCommitType::Published);
            found.map(|commit| commit.version).map_err(|e| own_of("times", &e))
        })
    }
}

fn engine(access: &LogAccess, hides_hint: bool) -> LogEngine {
    LogEngine::new(LogFiles::new(access), hides_hint)
}
