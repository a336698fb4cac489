//! The container reader against files of the `apache-avro` library and against damaged ones.
