//! Catalogs: which tables there are, and loading one.
//!
//! Invariants: listing never loads table metadata; a name that is listed can be loaded or
//! gives an error that says why; names keep their case and match without regard to it unless
//! two differ by case alone.

mod traits;

pub use traits::*;
