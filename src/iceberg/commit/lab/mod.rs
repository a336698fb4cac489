//! A table in memory for tests: its files' rows are known, so that what a commit made of it can be
//! read and compared with a plain model of rows.
//!
//! Reading here follows the specification on its own; it shares no code with the scan.

mod model;
mod operations;
mod read;
mod store;

pub(super) use model::{Model, Region};
pub(super) use operations::Planned;
pub(super) use read::View;
pub(super) use store::{Lab, part_of};
