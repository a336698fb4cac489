//! The one integration-test binary: everything here uses the crate's public API alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, unreachable_pub)]

#[path = "../support/mod.rs"]
mod support;

mod cli;
mod collection;
mod collection_types;
mod config;
mod damaged_rows;
mod delta_loading;
mod differential;
mod domain;
mod flight_metadata;
mod flight_statements;
mod flight_support;
mod flight_transport;
mod format_bitmap;
mod format_manifest;
mod format_metadata;
mod format_puffin;
mod format_write;
mod golden;
mod known_faults_writes;
mod layering;
mod proto_files;
mod pruning;
mod scan_counters;
mod scan_steps;
mod sql_changes;
mod sql_deletes;
mod sql_forms;
mod sql_gate;
mod sql_joins;
mod sql_keys;
mod sql_limits;
mod sql_listing;
mod sql_names;
mod sql_parameters;
mod sql_properties;
mod sql_run;
mod sql_support;
mod sql_tables;
mod sql_three_valued;
mod sql_values;
mod sql_written;
mod time_travel;
mod unreliable_catalog;
mod write;
