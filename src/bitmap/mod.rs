//! Sets of physical row positions, their serialised forms, and the masks made of them.
//!
//! [`RowSet`] is what every kind of row-level delete becomes before a scan applies it:
//! position deletes, Iceberg deletion vectors and (later) Delta ones. [`portable`] is the
//! Roaring format, [`deletion_vector`] the frame around it that Iceberg stores.

pub mod deletion_vector;
mod mask;
pub mod portable;
mod row_set;

pub use row_set::RowSet;

#[cfg(test)]
mod tests;
