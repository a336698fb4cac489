//! Planning and running SQL over the catalogs.
//!
//! Invariants: only SELECT, EXPLAIN, SHOW and DESCRIBE run, and none of them reaches a file
//! outside the catalogs; every table a statement names is resolved and pinned once, so a
//! [`Statement`] run again reads the same snapshots.

mod engine;

pub use engine::*;
