//! The one integration-test binary: everything here uses the crate's public API alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod domain;
mod golden;
mod layering;
