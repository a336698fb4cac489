//! Manifest lists and manifests (spec "Manifest Lists", "Manifests").

mod build;
mod columns;
mod complete;
mod data_file;
mod entry;
mod list;
mod parsed;
mod partition;
mod plan;
#[cfg(test)]
mod tests;
mod write;

pub use data_file::DataFile;
pub use entry::{Counts, EntryRef, EntryStatus, FileContent, FileFormat};
pub use list::{FieldSummary, ManifestContent, ManifestFile, read_manifest_list, read_manifest_list_in_full};
pub use parsed::Manifest;
pub use write::{AvroLayout, ManifestListWriter, ManifestWriter, UNASSIGNED_SEQUENCE_NUMBER, WrittenList};
