//! Columns and stripes of ORC files.
