//! Messages of Flight and Flight SQL that the `arrow-flight` crate lacks: session options
//! (`arrow.flight.protocol`) and the result of preparing a statement with `is_update`
//! (`arrow.flight.protocol.sql`).

use std::collections::HashMap;

use bytes::Bytes;

/// Result of the action `CreatePreparedStatement`, with field 4 that newer drivers read.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ActionCreatePreparedStatementResult {
    #[prost(bytes = "bytes", tag = "1")]
    pub prepared_statement_handle: Bytes,
    /// Encapsulated IPC message; empty for a statement that returns no rows.
    #[prost(bytes = "bytes", tag = "2")]
    pub dataset_schema: Bytes,
    /// Encapsulated IPC message; empty for a statement without placeholders.
    #[prost(bytes = "bytes", tag = "3")]
    pub parameter_schema: Bytes,
    #[prost(bool, optional, tag = "4")]
    pub is_update: Option<bool>,
}

impl ActionCreatePreparedStatementResult {
    /// Type URL of the message inside an `Any`.
    pub const TYPE_URL: &'static str = "type.googleapis.com/arrow.flight.protocol.sql.ActionCreatePreparedStatementResult";
}

/// The value of a session option; one without content unsets the option.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SessionOptionValue {
    #[prost(oneof = "session_option_value::OptionValue", tags = "1, 2, 3, 4, 5")]
    pub option_value: Option<session_option_value::OptionValue>,
}

/// Nested types of [`SessionOptionValue`].
pub mod session_option_value {
    /// A list of strings.
    #[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
    pub struct StringListValue {
        #[prost(string, repeated, tag = "1")]
        pub values: Vec<String>,
    }

    /// The types a value can have.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum OptionValue {
        #[prost(string, tag = "1")]
        String(String),
        #[prost(bool, tag = "2")]
        Bool(bool),
        #[prost(sfixed64, tag = "3")]
        Int64(i64),
        #[prost(double, tag = "4")]
        Double(f64),
        #[prost(message, tag = "5")]
        StringList(StringListValue),
    }
}

/// Body of the action `SetSessionOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SetSessionOptionsRequest {
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, SessionOptionValue>,
}

/// Result of the action `SetSessionOptions`: the options that were not set.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub errors: HashMap<String, SetSessionOptionsError>,
}

/// Why an option was not set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct SetSessionOptionsError {
    #[prost(enumeration = "SetSessionOptionsErrorValue", tag = "1")]
    pub value: i32,
}

/// The reasons of [`SetSessionOptionsError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum SetSessionOptionsErrorValue {
    Unspecified = 0,
    InvalidName = 1,
    InvalidValue = 2,
    Error = 3,
}

/// Result of the action `GetSessionOptions`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetSessionOptionsResult {
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, SessionOptionValue>,
}

/// Result of the action `CloseSession`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, prost::Message)]
pub struct CloseSessionResult {
    #[prost(enumeration = "CloseSessionStatus", tag = "1")]
    pub status: i32,
}

/// The states of [`CloseSessionResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CloseSessionStatus {
    Unspecified = 0,
    Closed = 1,
    Closing = 2,
    NotCloseable = 3,
}
