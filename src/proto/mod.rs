//! Generated protobuf code.
