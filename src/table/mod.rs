//! Format-neutral model of a table as the engine sees it.
//!
//! Invariants: a [`Snapshot`] never changes; everything planned from it belongs to that one
//! snapshot. Row positions are physical: position `n` is the `n`-th row of the data file,
//! counted before any filter. Locations are resolved (path map applied) before they are
//! compared or used as keys.

mod column;
mod create_statement;
mod datum_array;
mod facts;
mod hidden;
mod ident;
mod metadata;
mod predicate;
mod pruning;
#[cfg(test)]
pub(crate) mod reference;
mod residuals;
mod snapshot;
mod task;

pub use column::*;
pub use create_statement::*;
pub use facts::*;
pub use hidden::*;
pub use ident::*;
pub use metadata::*;
pub use predicate::*;
pub use pruning::*;
pub use residuals::*;
pub use snapshot::*;
pub use task::*;
