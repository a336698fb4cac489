//! The Flight SQL service: gRPC in front of the engine and the catalogs.
//!
//! Invariants: one function decides the schema that a client sees ([`wire`]), and FlightInfo,
//! GetSchema, prepared statements and result streams all use it; a stream starts with its schema
//! and ends cleanly only when all rows were sent; nothing is kept per statement, tickets and
//! handles carry it, signed; every call has a query id that is in the log, in the response
//! headers and in error trailers; a panic ends its call, not the server.

mod bind;
mod call;
mod changes;
mod encode;
mod filter;
mod listen;
mod metadata;
mod prepared;
mod reference;
mod service;
mod session;
mod sql_info;
mod statements;
mod status;
mod ticket;
pub mod wire;
mod xdbc;

pub use listen::serve;
pub use service::FlightSqlServer;
