//! Which kinds of pruning are on.
//!
//! Invariant: switching one off never changes the rows of an answer, only what is read for it.

use super::{Facts, Predicate};

/// A kind of pruning, by what tells that rows cannot match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PruningKind {
    /// Partition summaries of a manifest list.
    Manifests,
    /// Partition values of a file.
    Partitions,
    /// Counts and bounds of a file in its manifest.
    Metrics,
    /// Statistics of a row group.
    RowGroups,
    /// Statistics of a data page.
    Pages,
    /// Bloom filter of a column chunk.
    Bloom,
    /// What is known of all files that are left: a filter that every row passes is not asked again.
    Residuals,
}

/// The switches; all are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Pruning {
    pub manifests: bool,
    pub partitions: bool,
    pub metrics: bool,
    pub row_groups: bool,
    pub pages: bool,
    pub bloom: bool,
    pub residuals: bool,
    /// A kind that judges wrongly by one, on purpose: shows that a test would notice.
    #[cfg(feature = "testing")]
    pub planted: Option<PruningKind>,
}

impl Default for Pruning {
    fn default() -> Self {
        Self {
            manifests: true,
            partitions: true,
            metrics: true,
            row_groups: true,
            pages: true,
            bloom: true,
            residuals: true,
            #[cfg(feature = "testing")]
            planted: None,
        }
    }
}

impl Pruning {
    /// Nothing is pruned.
    pub fn off() -> Self {
        Self {
            manifests: false,
            partitions: false,
            metrics: false,
            row_groups: false,
            pages: false,
            bloom: false,
            residuals: false,
            #[cfg(feature = "testing")]
            planted: None,
        }
    }

    /// Whether a kind is on.
    pub fn is_on(&self, kind: PruningKind) -> bool {
        match kind {
            PruningKind::Manifests => self.manifests,
            PruningKind::Partitions => self.partitions,
            PruningKind::Metrics => self.metrics,
            PruningKind::RowGroups => self.row_groups,
            PruningKind::Pages => self.pages,
            PruningKind::Bloom => self.bloom,
            PruningKind::Residuals => self.residuals,
        }
    }

    /// [`Predicate::may_match`] with facts of this kind; true where the kind is off.
    pub fn may_match(&self, kind: PruningKind, predicate: &Predicate, facts: &dyn Facts) -> bool {
        if !self.is_on(kind) {
            return true;
        }
        #[cfg(feature = "testing")]
        if self.planted == Some(kind) {
            return predicate.may_match(&planted::OffByOne(facts));
        }
        predicate.may_match(facts)
    }
}

#[cfg(feature = "testing")]
mod planted {
    use crate::table::{ColumnStats, Datum, Facts};

    /// Facts with bounds that are too narrow by one, and values that are looked up one too high.
    pub(super) struct OffByOne<'a>(pub(super) &'a dyn Facts);

    impl Facts for OffByOne<'_> {
        fn column(&self, field_id: i32) -> ColumnStats {
            let mut stats = self.0.column(field_id);
            if let Some(Datum::Number(lower)) = &mut stats.lower {
                *lower += 1;
            }
            if let Some(Datum::Number(upper)) = &mut stats.upper {
                *upper -= 1;
            }
            stats
        }

        fn may_contain(&self, field_id: i32, value: &Datum) -> bool {
            let next = match value {
                Datum::Number(v) => Datum::Number(v + 1),
                Datum::Bytes(v) => Datum::Bytes(v.iter().copied().chain([b'!']).collect()),
                other => other.clone(),
            };
            self.0.may_contain(field_id, &next)
        }
    }
}
