//! The Flight SQL connection of `sandur sql`.
//!
//! The only file of `cli` that names tonic.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightInfo;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::CommandGetTables;
use arrow_flight::sql::client::FlightSqlServiceClient;
use futures::TryStreamExt;
use prost::Message;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::error::{Error, ErrorKind, Result};
use crate::proto::change::ChangeResult;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest message taken from a server; one holds a batch of rows at most.
const MAX_MESSAGE_BYTES: usize = 256 << 20;

/// A connection.
#[derive(Debug)]
pub(super) struct Client {
    inner: FlightSqlServiceClient<Channel>,
}

/// The address that a URL of one of the client libraries' forms stands for.
///
/// Errors: `InvalidInput` for another form, `Unsupported` for TLS and for credentials.
pub(super) fn endpoint_of(url: &str) -> Result<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(Error::invalid("the URL must look like grpc://127.0.0.1:31337"));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "grpc" | "grpc+tcp" | "http" => {}
        "grpc+tls" | "grpcs" | "https" => {
            return Err(Error::unsupported("TLS is not built yet: use grpc://"));
        }
        _ => return Err(Error::invalid("the URL must start with grpc://")),
    }
    let address = rest.trim_end_matches('/');
    if address.contains('@') {
        return Err(Error::unsupported("credentials in the URL are not built yet"));
    }
    if address.is_empty() || address.contains(['/', '?', '#']) || !address.contains(':') {
        return Err(Error::invalid("the URL must be a host and a port, as in grpc://127.0.0.1:31337"));
    }
    Ok(format!("http://{address}"))
}

impl Client {
    /// Connects to an address of [`endpoint_of`].
    ///
    /// Errors: `InvalidInput` for an address that is none, `Unavailable`.
    pub(super) async fn connect(address: &str) -> Result<Self> {
        let endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|e| Error::invalid("the URL is not usable").with_source(e))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(|e| {
            let url = address.replacen("http://", "grpc://", 1);
            let mut cause: &dyn std::error::Error = &e;
            while let Some(next) = cause.source() {
                cause = next;
            }
            Error::unavailable("cannot reach a server")
                .with("url", url)
                .with_source(cause.to_string())
        })?;
        let inner = FlightServiceClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self {
            inner: FlightSqlServiceClient::new_from_inner(inner),
        })
    }

    /// Runs a statement.
    pub(super) async fn query(&mut self, sql: &str) -> Result<Rows> {
        let info = self.inner.execute(sql.to_owned(), None).await.map_err(own)?;
        Ok(Rows::new(info))
    }

    /// Lists all tables and views.
    pub(super) async fn tables(&mut self) -> Result<Rows> {
        let request = CommandGetTables {
            catalog: None,
            db_schema_filter_pattern: None,
            table_name_filter_pattern: None,
            table_types: Vec::new(),
            include_schema: false,
        };
        let info = self.inner.get_tables(request).await.map_err(own)?;
        Ok(Rows::new(info))
    }
}

/// The rows of a result: the streams of its endpoints, one after the other.
#[derive(Debug)]
pub(super) struct Rows {
    info: FlightInfo,
    next_endpoint: usize,
    stream: Option<FlightRecordBatchStream>,
    schema: Option<SchemaRef>,
}

impl Rows {
    fn new(info: FlightInfo) -> Self {
        Self {
            info,
            next_endpoint: 0,
            stream: None,
            schema: None,
        }
    }

    /// What the statement did, of one that changes something.
    pub(super) fn change(&self) -> Option<ChangeResult> {
        if !self.info.endpoint.is_empty() || self.info.app_metadata.is_empty() {
            return None;
        }
        ChangeResult::decode(self.info.app_metadata.clone()).ok()
    }

    /// The next batch; `None` at the end.
    pub(super) async fn next(&mut self, client: &mut Client) -> Result<Option<RecordBatch>> {
        loop {
            let Some(stream) = &mut self.stream else {
                let Some(endpoint) = self.info.endpoint.get(self.next_endpoint) else {
                    return Ok(None);
                };
                self.next_endpoint += 1;
                if let Some(ticket) = endpoint.ticket.clone() {
                    self.stream = Some(client.inner.do_get(ticket).await.map_err(own)?);
                }
                continue;
            };
            let batch = stream.try_next().await.map_err(own)?;
            if let Some(schema) = stream.schema() {
                self.schema.get_or_insert_with(|| SchemaRef::clone(schema));
            }
            match batch {
                Some(batch) => return Ok(Some(batch)),
                None => self.stream = None,
            }
        }
    }

    /// Schema of the rows, known at the latest when the first batch or the end was seen.
    pub(super) fn schema(&self) -> Option<SchemaRef> {
        self.schema
            .clone()
            .or_else(|| self.info.clone().try_decode_schema().ok().map(SchemaRef::new))
    }
}

/// What the server says, in its own words.
fn own(e: FlightError) -> Error {
    match e {
        FlightError::Tonic(status) => {
            let kind = match status.code() {
                Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => ErrorKind::InvalidInput,
                Code::NotFound => ErrorKind::NotFound,
                Code::AlreadyExists => ErrorKind::AlreadyExists,
                Code::Unimplemented => ErrorKind::Unsupported,
                Code::DataLoss => ErrorKind::Corrupt,
                Code::PermissionDenied | Code::Unauthenticated => ErrorKind::PermissionDenied,
                Code::ResourceExhausted => ErrorKind::ResourceExhausted,
                Code::Cancelled => ErrorKind::Cancelled,
                Code::DeadlineExceeded => ErrorKind::DeadlineExceeded,
                Code::Unavailable => ErrorKind::Unavailable,
                _ => ErrorKind::Internal,
            };
            let message = match status.message() {
                "" => format!("the server answered with status {:?}", status.code()),
                text => text.to_owned(),
            };
            Error::new(kind, message)
        }
        other => Error::internal("cannot read the server's answer").with_source(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_client_libraries_are_understood() {
        for url in [
            "grpc://127.0.0.1:1",
            "grpc+tcp://127.0.0.1:1",
            "http://127.0.0.1:1",
            "GRPC://127.0.0.1:1/",
        ] {
            assert_eq!(endpoint_of(url).unwrap(), "http://127.0.0.1:1");
        }
        assert_eq!(endpoint_of("grpc://[::1]:7").unwrap(), "http://[::1]:7");
        for url in [
            "127.0.0.1:1",
            "grpc://",
            "grpc://host",
            "grpc://h:1/db",
            "ftp://h:1",
            "grpc+tls://h:1",
            "https://h:1",
        ] {
            assert!(endpoint_of(url).is_err(), "{url}");
        }
        assert!(!endpoint_of("grpc://u:canary@h:1").unwrap_err().to_string().contains("canary"));
    }
}
