//! Package `sandur.v1`, `proto/sandur/v1/ticket.proto`: tickets and prepared statement handles.

use bytes::Bytes;

/// The bytes that travel; the code is HMAC-SHA-256 over `handle`.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct SignedHandle {
    #[prost(bytes = "bytes", tag = "1")]
    pub handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub code: Bytes,
}

/// A ticket or a prepared statement.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Handle {
    #[prost(oneof = "handle::Kind", tags = "1, 2")]
    pub kind: Option<handle::Kind>,
}

/// Nested types of [`Handle`].
pub mod handle {
    /// Which one it is.
    #[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
    pub enum Kind {
        #[prost(message, tag = "1")]
        Statement(super::StatementTicket),
        #[prost(message, tag = "2")]
        Prepared(super::PreparedStatement),
    }
}

/// A planned statement, its tables pinned.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct StatementTicket {
    #[prost(string, tag = "1")]
    pub sql: String,
    #[prost(message, optional, tag = "2")]
    pub defaults: Option<Defaults>,
    #[prost(message, repeated, tag = "3")]
    pub pins: Vec<Pin>,
    /// The announced result schema, as an encapsulated Arrow IPC message.
    #[prost(bytes = "bytes", tag = "4")]
    pub schema: Bytes,
    #[prost(message, optional, tag = "5")]
    pub parameters: Option<Parameters>,
}

/// A statement that is planned anew at each execution.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct PreparedStatement {
    #[prost(bytes = "bytes", tag = "1")]
    pub id: Bytes,
    #[prost(string, tag = "2")]
    pub sql: String,
    #[prost(message, optional, tag = "3")]
    pub defaults: Option<Defaults>,
    /// SHA-256 of the announced result schema.
    #[prost(bytes = "bytes", tag = "4")]
    pub schema_digest: Bytes,
    #[prost(message, optional, tag = "5")]
    pub parameters: Option<Parameters>,
}

/// What unqualified names are resolved against.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Defaults {
    #[prost(string, optional, tag = "1")]
    pub catalog: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub schema: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub branch: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub as_of: Option<String>,
}

/// One version of a table.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Pin {
    #[prost(string, tag = "1")]
    pub catalog: String,
    #[prost(string, tag = "2")]
    pub schema: String,
    #[prost(string, tag = "3")]
    pub table: String,
    #[prost(string, tag = "4")]
    pub metadata_location: String,
    #[prost(int64, optional, tag = "5")]
    pub snapshot_id: Option<i64>,
    /// The version that was asked for; none is the newest.
    #[prost(oneof = "pin::AsOf", tags = "6, 7, 8, 11")]
    pub as_of: Option<pin::AsOf>,
    /// Metadata table that was asked for.
    #[prost(string, optional, tag = "9")]
    pub part: Option<String>,
    /// Positions among the distinct tables of the statement.
    #[prost(uint32, repeated, tag = "10")]
    pub mentions: Vec<u32>,
}

/// Nested types of [`Pin`].
pub mod pin {
    /// A version.
    #[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
    pub enum AsOf {
        #[prost(int64, tag = "6")]
        Version(i64),
        /// Branch or tag.
        #[prost(string, tag = "7")]
        Reference(String),
        /// Microseconds from the epoch.
        #[prost(int64, tag = "8")]
        Timestamp(i64),
        /// The changes in a range of versions.
        #[prost(string, tag = "11")]
        Changes(String),
    }
}

/// Bound values.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct Parameters {
    #[prost(oneof = "parameters::Source", tags = "1, 2")]
    pub source: Option<parameters::Source>,
}

/// Nested types of [`Parameters`].
pub mod parameters {
    use bytes::Bytes;

    /// Where the values are.
    #[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
    pub enum Source {
        /// A complete Arrow IPC stream.
        #[prost(bytes = "bytes", tag = "1")]
        Ipc(Bytes),
        /// Key of values that the server keeps.
        #[prost(bytes = "bytes", tag = "2")]
        Stash(Bytes),
    }
}
