//! Simple predicates that a format can prune files with. A predicate only ever removes files
//! of which no row can match: whatever cannot be expressed here is left out, which is `true`.

/// A conjunction is a list; every term names a top-level or nested column by its field id.
/// Built from engine expressions in `scan`; extended when pruning is built.
#[derive(Debug, Clone, Default)]
pub struct Predicate {}
