//! `sandur sql`: a client of any Flight SQL server.

mod client;
mod command;
mod print;
mod split;

pub(super) use command::sql;
