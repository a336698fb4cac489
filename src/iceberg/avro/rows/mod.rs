//! Rows of Avro data files as arrow arrays (spec "Appendix A: Avro").
//!
//! [`file_fields`] says which columns a file has, with their ids, in arrow types; which of them
//! are wanted is chosen by leaf number; [`RowDecoder`] decodes those and passes the others.

mod decoder;
mod fields;
#[cfg(test)]
mod tests;

pub use decoder::RowDecoder;
pub use fields::file_fields;
