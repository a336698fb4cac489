//! The listener: transport limits, and clients that speak TLS to a plaintext port.
//!
//! Invariants: a connection that cannot be accepted never ends the server; after shutdown no call
//! is taken, and running ones have [`DRAIN`] to finish.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::{Stream, stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::service::FlightSqlServer;
use crate::error::{Error, Result};
use crate::sql::Engine;

/// Bytes of the largest message that is taken.
const MAX_RECEIVED: usize = 64 << 20;
/// Bytes of a call's headers: drivers send every connection property as one.
const MAX_HEADERS: u32 = 64 << 10;
/// Bytes that a client may upload ahead of the reader.
const WINDOW: u32 = 8 << 20;
/// Bytes of a frame.
const FRAME: u32 = 1 << 20;
/// Calls at once on one connection.
const MAX_STREAMS: u32 = 100;
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for running calls after shutdown was asked for.
const DRAIN: Duration = Duration::from_secs(30);
/// Pause after a connection could not be accepted, for example for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves Flight SQL on `listener` until `shutdown` is done and running calls have ended, or half
/// a minute later.
///
/// Errors: `Internal` when the transport fails as a whole.
pub async fn serve(listener: TcpListener, engine: Arc<Engine>, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    let service = FlightServiceServer::new(FlightSqlServer::new(engine)?).max_decoding_message_size(MAX_RECEIVED);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let server = Server::builder()
        .http2_max_header_list_size(MAX_HEADERS)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .http2_max_pending_accept_reset_streams(Some(20))
        .http2_max_local_error_reset_streams(Some(64))
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(MAX_STREAMS)
        .add_service(service)
        .serve_with_incoming_shutdown(connections(listener), stopped.cancelled_owned());
    let mut server = pin!(server);
    let failed = |e: tonic::transport::Error| Error::internal("the gRPC server failed").with_source(e);
    tokio::select! {
        result = &mut server => return result.map_err(failed),
        () = shutdown => stop.cancel(),
    }
    match tokio::time::timeout(DRAIN, server).await {
        Ok(result) => result.map_err(failed),
        Err(_) => {
            tracing::warn!(seconds = DRAIN.as_secs(), "calls were still running at the end of the grace period");
            Ok(())
        }
    }
}

/// Accepted connections, without end.
fn connections(listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold(listener, |listener| async move {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
                    }
                    let connection = Connection { stream, peer, first: true };
                    return Some((Ok(connection), listener));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// A connection that looks at its first byte: a TLS client gets no HTTP/2 error that it cannot
/// read, and the log says what to do.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    first: bool,
}

/// First byte of a TLS handshake record; HTTP/2 starts with `P`.
const TLS_HANDSHAKE: u8 = 0x16;

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        if !this.first {
            return Poll::Ready(Ok(()));
        }
        let Some(byte) = buf.filled().get(before) else {
            return Poll::Ready(Ok(()));
        };
        this.first = false;
        if *byte == TLS_HANDSHAKE {
            tracing::warn!(
                peer = %this.peer,
                "a client speaks TLS, this port does not; turn TLS off in the client (JDBC: useEncryption=false, ADBC: grpc+tcp://, ODBC: UseEncryption=false)"
            );
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "TLS on a plaintext port")));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}
