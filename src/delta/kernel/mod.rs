//! The Delta protocol as `delta_kernel` knows it: the only room that names that crate.
//!
//! What comes out is neutral: versions, texts of the log, arrow batches of file actions.
//!
//! Invariants:
//! - Every call into the crate runs on a pool of its own ([`Pool`]), which is bounded. It blocks on input and
//!   output, so it may run neither on the server's workers nor on the decode pool nor on tokio's blocking threads,
//!   which the file system behind it needs itself (docs/adr/0017-delta-kernel.md).
//! - Files are read through [`TableIo`](crate::io::TableIo), so its roots, counters and limits hold for the log too.
//! - An error of our own keeps its kind and context on its way through the crate.

mod actions;
mod engine;
mod errors;
mod files;
mod hint;
mod json;
mod log;
mod parquet;
mod pool;
mod seen;
mod storage;

pub(super) use actions::FileKey;
pub(super) use files::LogAccess;
pub(super) use log::{FileChanges, LogVersion};
pub(super) use pool::Pool;
