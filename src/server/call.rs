//! One call: its query id, its log line, its panics.
//!
//! Invariants: a call ends in exactly one log line with outcome, duration and rows, also when the
//! client left; a panic becomes an internal error of this call.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures::FutureExt;
use tonic::{Response, Status};
use tracing::{Instrument, Span};

use super::status;
use crate::error::{Error, ErrorKind, Result};
use crate::telemetry::QueryId;

/// A running call.
#[derive(Debug)]
pub(super) struct Call {
    id: String,
    span: Span,
    started: Instant,
    rows: Option<u64>,
    ended: bool,
}

impl Call {
    /// Starts a call of a Flight method.
    pub(super) fn start(rpc: &'static str) -> Self {
        let id = QueryId::new().to_string();
        let span = tracing::info_span!("call", query_id = %id, rpc, command = tracing::field::Empty);
        Self {
            id,
            span,
            started: Instant::now(),
            rows: None,
            ended: false,
        }
    }

    /// Names the command of the call that is running now, for the log.
    pub(super) fn command(name: &str) {
        Span::current().record("command", name);
    }

    /// Counts rows that were sent.
    pub(super) fn add_rows(&mut self, rows: usize) {
        *self.rows.get_or_insert(0) += rows as u64;
    }

    /// Runs a call with one answer to its end.
    pub(super) async fn answer<T>(mut self, work: impl Future<Output = Result<Response<T>>> + Send) -> Result<Response<T>, Status> {
        let result = self.guard(work).await;
        match result {
            Ok(response) => {
                self.end_ok();
                Ok(self.mark(response))
            }
            Err(error) => Err(self.end_error(&error)),
        }
    }

    /// Runs the part of a streaming call that comes before the stream; `then` makes the stream,
    /// which ends the call.
    pub(super) async fn open<T, S>(
        mut self,
        work: impl Future<Output = Result<T>> + Send,
        then: impl FnOnce(Self, T) -> S,
    ) -> Result<Response<S>, Status> {
        match self.guard(work).await {
            Ok(value) => {
                let mut response = Response::new(());
                status::set_query_id(response.metadata_mut(), &self.id);
                Ok(response.map(|()| then(self, value)))
            }
            Err(error) => Err(self.end_error(&error)),
        }
    }

    /// Runs a piece of work in the call's span; a panic becomes an error.
    pub(super) async fn guard<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        match AssertUnwindSafe(work.instrument(self.span.clone())).catch_unwind().await {
            Ok(result) => result,
            Err(panic) => Err(from_panic(panic.as_ref())),
        }
    }

    /// The call is done.
    pub(super) fn end_ok(&mut self) {
        let _entered = self.span.enter();
        tracing::info!(ms = millis(self.started), rows = self.rows, "ok");
        self.ended = true;
    }

    /// The call failed; the answer is the status to send.
    pub(super) fn end_error(&mut self, error: &Error) -> Status {
        let _entered = self.span.enter();
        let ms = millis(self.started);
        let kind = error.kind().as_str();
        match error.kind() {
            ErrorKind::Internal | ErrorKind::Corrupt => tracing::error!(ms, rows = self.rows, kind, error = %error, "failed"),
            _ => tracing::warn!(ms, rows = self.rows, kind, error = %error, "failed"),
        }
        self.ended = true;
        status::to_status(error, &self.id)
    }

    /// Puts the query id into a response's headers.
    fn mark<T>(&self, mut response: Response<T>) -> Response<T> {
        status::set_query_id(response.metadata_mut(), &self.id);
        response
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            let _entered = self.span.enter();
            tracing::info!(ms = millis(self.started), rows = self.rows, "the client left before the end");
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn from_panic(panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Error::internal(format!("panic: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_with_the_query_id() {
        let call = Call::start("Test");
        let id = call.id.clone();
        let status = call.answer::<()>(async { panic!("boom {}", 1) }).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::Internal);
        assert_eq!(status.metadata().get(status::QUERY_ID_HEADER).unwrap(), id.as_str());
        assert!(!status.message().contains("boom"));
    }

    #[tokio::test]
    async fn an_answer_carries_the_query_id() {
        let call = Call::start("Test");
        let id = call.id.clone();
        let response = call.answer(async { Ok(Response::new(7)) }).await.unwrap();
        assert_eq!(response.metadata().get(status::QUERY_ID_HEADER).unwrap(), id.as_str());
    }
}
