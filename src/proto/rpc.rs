//! Package `google.rpc` (googleapis `google/rpc/status.proto`, `error_details.proto`): the
//! content of the `grpc-status-details-bin` trailer.

use std::collections::HashMap;

use arrow_flight::sql::Any;

/// A status with details.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// Why a call failed, for programs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ErrorInfo {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(string, tag = "2")]
    pub domain: String,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

impl ErrorInfo {
    /// Type URL of the message inside an `Any`.
    pub const TYPE_URL: &'static str = "type.googleapis.com/google.rpc.ErrorInfo";
}
