//! Protobuf messages that no dependency brings along.
//!
//! Invariants: plain data, no behaviour; field numbers are those of the `.proto` files and never
//! change. The code is checked in, so that building needs no protoc. `ticket` and `change` are what
//! `prost-build` makes of the files in `proto/sandur/v1`; after a change there run
//! `prost_build::Config::new().bytes(["."]).compile_protos(&["proto/sandur/v1/ticket.proto"], &["proto"])`
//! in a scratch crate and carry the result over. `flight` and `rpc` follow the definitions of
//! Apache Arrow (`format/Flight.proto`, `format/FlightSql.proto`) and of googleapis.

pub mod change;
pub mod flight;
pub mod rpc;
pub mod ticket;
