//! `sandur serve`.

mod command;
mod greeting;
mod sample;
mod setup;

pub(super) use command::serve;
pub(super) use setup::default_catalogs;
