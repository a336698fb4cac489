//! Writing: data files from rows, and commits.

pub mod commit;
