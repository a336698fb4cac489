//! Sandur serves Apache Iceberg and Delta Lake tables over Arrow Flight SQL and
//! reads (later: writes) their row-level deletes merge-on-read.
//!
//! The modules form layers; a module uses only those of the layers before it.
//! `tests/it/layering.rs` enforces the table of `ARCHITECTURE.md`.

#![forbid(unsafe_code)]

pub mod bitmap;
pub mod cache;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod crash;
pub mod delta;
pub mod error;
pub mod iceberg;
pub mod io;
pub mod proto;
pub mod runtime;
pub mod scan;
pub mod server;
pub mod sql;
pub mod table;
pub mod telemetry;
pub mod write;
