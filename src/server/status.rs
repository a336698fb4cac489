//! From errors to gRPC statuses: the one table of kind, code and SQLSTATE.
//!
//! Invariants: message and details stay so small that a client with 8 KiB of header space still
//! reads them; what an internal error says goes to the log only; every status carries the query
//! id as trailer and, with kind, SQLSTATE and context, as `google.rpc.ErrorInfo`.

use std::collections::HashMap;

use arrow_flight::sql::Any;
use bytes::Bytes;
use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::error::{Error, ErrorKind};
use crate::proto::rpc;

/// Response header and trailer with the id of the call.
pub(super) const QUERY_ID_HEADER: &str = "x-sandur-query-id";

/// Bytes of message that are sent: it travels twice, percent-encoded and inside the details.
const MAX_MESSAGE: usize = 1536;
/// Bytes of all context values that are sent.
const MAX_CONTEXT: usize = 1024;

/// gRPC code and SQLSTATE of a kind.
fn code(kind: ErrorKind) -> (Code, &'static str) {
    match kind {
        ErrorKind::InvalidInput => (Code::InvalidArgument, "42000"),
        ErrorKind::NotFound => (Code::NotFound, "42704"),
        ErrorKind::AlreadyExists => (Code::AlreadyExists, "42710"),
        ErrorKind::Unsupported => (Code::Unimplemented, "0A000"),
        ErrorKind::Corrupt => (Code::DataLoss, "XX001"),
        ErrorKind::PermissionDenied => (Code::PermissionDenied, "42501"),
        ErrorKind::ResourceExhausted => (Code::ResourceExhausted, "53000"),
        ErrorKind::CommitConflict => (Code::Aborted, "40001"),
        ErrorKind::CommitStateUnknown => (Code::Unknown, "08007"),
        ErrorKind::Cancelled => (Code::Cancelled, "57014"),
        ErrorKind::DeadlineExceeded => (Code::DeadlineExceeded, "57014"),
        ErrorKind::Unavailable => (Code::Unavailable, "58030"),
        ErrorKind::Internal => (Code::Internal, "XX000"),
    }
}

/// The status that a client gets for an error.
pub(super) fn to_status(error: &Error, query_id: &str) -> Status {
    let (code, sqlstate) = code(error.kind());
    let internal = error.kind() == ErrorKind::Internal;
    let message = if internal {
        format!("internal error; the server's log has the details under query id {query_id}")
    } else {
        shorten(&error.to_string(), MAX_MESSAGE)
    };

    let mut metadata = HashMap::new();
    let mut budget = MAX_CONTEXT;
    if !internal {
        for (key, value) in error.context() {
            let value = shorten(value, budget.min(MAX_CONTEXT / 2));
            budget = budget.saturating_sub(value.len());
            if !value.is_empty() {
                metadata.insert((*key).to_owned(), value);
            }
        }
    }
    metadata.insert("query_id".to_owned(), query_id.to_owned());
    metadata.insert("sqlstate".to_owned(), sqlstate.to_owned());

    let info = rpc::ErrorInfo {
        reason: error.kind().as_str().to_owned(),
        domain: "sandur".to_owned(),
        metadata,
    };
    let details = rpc::Status {
        code: code as i32,
        message: message.clone(),
        details: vec![Any {
            type_url: rpc::ErrorInfo::TYPE_URL.to_owned(),
            value: info.encode_to_vec().into(),
        }],
    };
    let mut trailers = MetadataMap::new();
    set_query_id(&mut trailers, query_id);
    Status::with_details_and_metadata(code, message, Bytes::from(details.encode_to_vec()), trailers)
}

/// Puts the query id into headers or trailers.
pub(super) fn set_query_id(metadata: &mut MetadataMap, query_id: &str) {
    if let Ok(value) = MetadataValue::try_from(query_id) {
        metadata.insert(QUERY_ID_HEADER, value);
    }
}

/// The start of a text whose percent-encoded form has at most `limit` bytes, cut at a character.
fn shorten(text: &str, limit: usize) -> String {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += if c.is_ascii_graphic() && c != '%' || c == ' ' {
            1
        } else {
            3 * c.len_utf8()
        };
        if used > limit {
            return match text.get(..at) {
                Some(start) if !start.is_empty() => format!("{start} ..."),
                _ => String::new(),
            };
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(status: &Status) -> (rpc::Status, rpc::ErrorInfo) {
        let outer = rpc::Status::decode(status.details()).unwrap();
        let info = rpc::ErrorInfo::decode(outer.details[0].value.as_ref()).unwrap();
        (outer, info)
    }

    #[test]
    fn an_error_keeps_message_and_context() {
        let error = Error::not_found("no such table").with("table", "a.b.c");
        let status = to_status(&error, "q-1");
        assert_eq!(status.code(), Code::NotFound);
        assert_eq!(status.message(), "no such table (table: a.b.c)");
        assert_eq!(status.metadata().get(QUERY_ID_HEADER).unwrap(), "q-1");
        let (outer, info) = details(&status);
        assert_eq!(outer.code, 5);
        assert_eq!(outer.message, status.message());
        assert_eq!(info.reason, "NOT_FOUND");
        assert_eq!(info.domain, "sandur");
        assert_eq!(info.metadata["table"], "a.b.c");
        assert_eq!(info.metadata["query_id"], "q-1");
        assert_eq!(info.metadata["sqlstate"], "42704");
    }

    #[test]
    fn internals_stay_in_the_log() {
        let error = Error::internal("index 7 of column secret").with("file", "/data/x");
        let status = to_status(&error, "q-2");
        assert_eq!(status.code(), Code::Internal);
        assert!(!status.message().contains("secret"));
        assert!(status.message().contains("q-2"));
        assert!(!details(&status).1.metadata.contains_key("file"));
    }

    #[test]
    fn a_huge_error_fits_into_small_headers() {
        let error = Error::invalid("ü".repeat(100_000)).with("file", "x".repeat(100_000));
        let status = to_status(&error, "q-3");
        let encoded = status.message().len() * 3 + status.details().len() * 4 / 3;
        assert!(encoded < 7000, "{encoded}");
    }
}
