//! Commands of the `sandur` binary.
//!
//! Invariants: results go to stdout through [`output::Out`] alone, messages to stderr; the exit
//! code is 0 when all went well, 1 when the work failed and 2 for wrong usage; text from tables
//! never reaches a terminal with control characters in it.

mod args;
mod output;
mod run;
mod serve;
mod sql;
mod table;
mod wiring;

pub use run::main;
