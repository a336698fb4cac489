//! Leaving out manifests and data files of which no row can match (spec "Scan Planning",
//! "Partition Transforms", appendix D).
//!
//! A predicate stays as it is; what a partition or a file tells is brought to the source columns
//! instead: a partition value becomes the range of source values that it can stand for. One
//! evaluator then serves partitions, metrics and, in the scan, row groups and pages. Because a
//! range holds at least all values of its partition, the same range proves both that no row
//! matches and that every row does.
//!
//! Invariants: each file is judged by the spec that it was written under; unknown and void
//! transforms, missing counts and bounds that cannot be read tell nothing.

mod metrics;
mod partition;
mod preimage;
mod pruner;
mod source;
#[cfg(test)]
mod tests;

pub use metrics::MetricsFacts;
pub use partition::{PartitionFacts, PartitionProjection};
pub(super) use pruner::Pruner;
pub use source::SourceTypes;
