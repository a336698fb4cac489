//! `sandur table`: what a table's metadata says, without a server.

mod command;
mod report;

#[cfg(test)]
mod tests;

pub(super) use command::{fsck, table};
