//! Typed configuration: a TOML file, environment variables over it, then command-line flags.
//!
//! Invariants: an unknown key is an error; a secret is held in [`Secret`] and never printed.

mod model;

pub use model::*;
