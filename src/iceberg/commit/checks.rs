//! The checks of a commit by name. Tests switch one off to show that others notice (IT-2).

/// A check that stands between a change and the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Check {
    /// IC-32: a commit id is applied once.
    CommitId,
    /// IC-3: the snapshot that was read is in the branch's history.
    Start,
    /// IC-6: what is removed by name is there.
    MissingPaths,
    /// No new rows that match the filter.
    NewData,
    /// No new deletes on data files that are replaced.
    NewDeletes,
    /// No new delete files where the filter or the replaced partitions are.
    NewDeletesInScope,
    /// No data files removed where the filter or the replaced partitions are.
    RemovedInScope,
    /// Data files that delete files are about are there.
    Referenced,
    /// No other vector for a file that gets one.
    Vectors,
    /// No other deletes of rows where deleted rows are counted.
    Counted,
    /// Added files lie inside of the filter.
    Inside,
    /// Files are removed as a whole only where every row matches.
    Partly,
    /// IC-31: an answer that is missing is no refusal.
    Unknown,
    /// AT-20: a swap is noted before it is sent.
    Journal,
}

impl Check {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::CommitId,
        Self::Start,
        Self::MissingPaths,
        Self::NewData,
        Self::NewDeletes,
        Self::NewDeletesInScope,
        Self::RemovedInScope,
        Self::Referenced,
        Self::Vectors,
        Self::Counted,
        Self::Inside,
        Self::Partly,
        Self::Unknown,
        Self::Journal,
    ];
}

/// Which checks are made: all, except in tests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Checks {
    #[cfg(feature = "testing")]
    skipped: Option<Check>,
}

impl Checks {
    #[cfg(feature = "testing")]
    pub(super) fn without(check: Check) -> Self {
        Self { skipped: Some(check) }
    }

    #[cfg(feature = "testing")]
    pub(super) fn makes(self, check: Check) -> bool {
        self.skipped != Some(check)
    }

    #[cfg(not(feature = "testing"))]
    #[allow(clippy::unused_self)]
    pub(super) fn makes(self, _check: Check) -> bool {
        true
    }

    /// Whether the finished snapshot is judged by the rules: not where a check was left out on purpose.
    #[cfg(feature = "testing")]
    pub(super) fn judges(self) -> bool {
        self.skipped.is_none()
    }

    #[cfg(not(feature = "testing"))]
    #[allow(clippy::unused_self)]
    pub(super) fn judges(self) -> bool {
        true
    }
}
