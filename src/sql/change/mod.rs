//! Statements that change something: CREATE, DROP, ALTER, INSERT, DELETE, TRUNCATE (interface.md 4).
//!
//! Invariants: a statement is carried out once for each time it is run, and planning it does nothing; what it
//! says it did, it did (rows counted as they were written, a commit known to be made).

mod create;
mod decimals;
mod delete;
mod delete_positions;
mod delete_scope;
mod exactly;
mod execute;
mod insert;
mod literals;
mod names;
mod parse;
mod parse_delete;
mod places;
mod rewrite;
mod types;

pub(super) use execute::{Changes, count_schema, read};
pub use execute::{Done, With, Writing};
pub(super) use insert::Target;
