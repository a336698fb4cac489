//! The integration tests, one binary; every module is a subject.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod format_bitmap;
mod format_puffin;
