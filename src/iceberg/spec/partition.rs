//! Partition specs and partition values (spec "Partitioning").
//!
//! Values are positional: value `i` belongs to field `i` of the spec with the entry's spec id,
//! also where the source column has been dropped since.

use std::sync::Arc;

use super::{Literal, Transform};

/// A partition field: transform of one source column (several in v3 multi-argument transforms).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The first or only source column.
    pub source_id: i32,
    /// All source columns; one, except for multi-argument transforms, which are refused for pruning and kept for reading.
    pub source_ids: Vec<i32>,
    pub field_id: i32,
    pub name: String,
    pub transform: Transform,
}

/// A partition spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSpec {
    pub spec_id: i32,
    pub fields: Vec<PartitionField>,
}

/// A partition's values in the order of the spec's fields; shared by all entries of the partition.
pub type PartitionValues = Arc<[Option<Literal>]>;
