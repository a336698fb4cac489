//! The merge-on-read scan.
