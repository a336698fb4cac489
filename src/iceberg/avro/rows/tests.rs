//! Rows of Avro files against a second writer.
