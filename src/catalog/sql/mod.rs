//! Iceberg's SQL (JDBC) catalog on one SQLite file, shared with pyiceberg and Spark (`type = "sql"`).
//!
//! Tables `iceberg_tables` and `iceberg_namespace_properties` as Iceberg Java and pyiceberg create them, with
//! and without the column `iceberg_type` (layouts V1 and V0). Invariants: a change is one transaction begun
//! with `BEGIN IMMEDIATE`, and it is reported as done only after COMMIT said so or the change was read back;
//! SQLite is never called on an async thread; a table outside of the warehouse is refused; of several Sandur
//! processes on one file, one writes (reliability-security.md AT-10 to AT-12, interface.md 2).

mod catalog;
mod change;
mod database;
mod lock;
mod places;
mod rows;

#[cfg(test)]
mod tests;

pub(super) use catalog::SqlCatalog;
