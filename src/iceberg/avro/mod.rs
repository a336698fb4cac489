//! Avro object container files, read columnar by field id.
