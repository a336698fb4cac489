//! The integration tests, one binary; every module is a subject.

mod format_bitmap;
mod format_puffin;
