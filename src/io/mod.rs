//! Object stores: the only module that names `object_store`, and the only one that opens a table's files.
//!
//! Invariants: a path leaves this module only resolved (path map applied, scheme normalised,
//! never URL-decoded); a path outside of the table's allowed roots is refused; a length that a
//! file declares is never trusted for an allocation before it was compared with the file's size.

mod append_log;
mod confine;
mod counters;
mod path_map;
mod table_io;
mod write;
mod writer;

#[cfg(test)]
mod write_tests;

pub use append_log::AppendLog;
pub use confine::{lies_below, real_place};
pub use counters::{FileKind, IoCounters};
pub use path_map::{PathMap, normalise};
pub use table_io::{FileStat, Storage, TableIo};
pub use write::{Created, WriteFaults, WriteStep};
pub use writer::FileWriter;
