//! What all integration tests share: the case collection, the canonical form of rows, a builder
//! of Iceberg tables, and one seam between tests and the engine.
//!
//! - [`cases`] finds the collection of tables written by other engines.
//! - [`canonical`] gives rows the form in which `expected.json` states them.
//! - [`builder`] makes tables that no writer at hand makes, with a plain model of their rows.
//! - [`read`] runs SQL on a table and gives rows in canonical form.

#![allow(dead_code, unused_imports)]

pub mod builder;
pub mod canonical;
pub mod cases;
pub mod read;
