//! `sandur serve`.

mod command;
mod greeting;
mod sample;
mod setup;
mod warm_up;

pub(super) use command::serve;
pub(super) use setup::default_catalogs;
