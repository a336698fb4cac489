//! Variants: their binary form and their shredded form in Parquet, given as JSON text
//! (Parquet's `VariantEncoding.md` and `VariantShredding.md`; docs/adr/0009).
//!
//! Invariants: nothing is built in between, a value goes from the file's bytes to text; bytes
//! that break the encoding are an error, however they are broken; nesting is bounded, and no
//! byte of a value is given twice, so text grows with the file and not beyond it.

mod binary;
mod json;
mod shredded;
#[cfg(test)]
mod tests;

pub(super) use shredded::{is_variant_group, to_json};
