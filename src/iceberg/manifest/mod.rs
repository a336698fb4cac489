//! Manifest lists and manifests (spec "Manifest Lists", "Manifests").

mod build;
mod columns;
mod entry;
mod list;
mod parsed;
mod partition;
mod plan;
#[cfg(test)]
mod tests;

pub use entry::{Counts, EntryRef, EntryStatus, FileContent, FileFormat};
pub use list::{FieldSummary, ManifestContent, ManifestFile, read_manifest_list};
pub use parsed::Manifest;
