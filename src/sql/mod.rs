//! Planning and running SQL.
