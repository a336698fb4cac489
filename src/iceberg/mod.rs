//! Apache Iceberg, v1 to v3: metadata, manifests, Puffin files, delete scope rules and scan planning.
//!
//! `spec` is pure (no I/O, no arrow). Everything that reads files gets bytes from `io`.

pub mod avro;
pub mod manifest;
pub mod puffin;
pub mod spec;
