//! Partition and sort transforms (spec "Partition Transforms").
//!
//! An unknown transform reads fine and never prunes.

/// A transform of a source value to a partition value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    Identity,
    /// murmur3 of the value, modulo the number.
    Bucket(u32),
    /// Width.
    Truncate(u32),
    Year,
    Month,
    Day,
    Hour,
    /// Always null.
    Void,
    /// Kept as written.
    Unknown(String),
}
