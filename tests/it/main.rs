//! Integration tests: one binary, a module per subject.

mod cli;
mod config;
