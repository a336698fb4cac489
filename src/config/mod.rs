//! Typed configuration: a TOML file, environment variables over it, then command-line flags.
//!
//! Invariants: an unknown key is an error that names the whole key and where it stands; a key
//! whose feature is not built is refused, never ignored; a secret is held in [`Secret`] and
//! never printed; local paths are absolute once a [`Config`] is loaded.

mod load;
mod model;
mod paths;
mod render;
mod secret;
mod section;

#[cfg(test)]
mod tests;

pub use load::{ENV_PREFIX, parse_listen};
pub use model::*;
pub use paths::absolute_location;
pub use secret::Secret;
