//! The listener: transport limits, shutdown, and clients that speak TLS to a plaintext port.
//!
//! Invariants: a connection that cannot be accepted never ends the server; after shutdown no call
//! is taken, and running ones have [`DRAIN`] to finish; a connection that the server ends is read
//! until the client ends it too, or else the last rows on their way would be lost.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::{Stream, stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
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
/// Silence after which a client is given up that does not end a connection the server has ended.
const LINGER: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted, for example for want of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves Flight SQL on `listener` until `shutdown` is done and running calls have ended, or half
/// a minute later.
///
/// Errors: `Internal` when the transport fails as a whole.
pub async fn serve(listener: TcpListener, engine: Arc<Engine>, shutdown: impl Future<Output = ()> + Send) -> Result<()> {
    let service = FlightServiceServer::new(FlightSqlServer::new(engine)?).max_decoding_message_size(MAX_RECEIVED);
    // Never sends; closed when the last connection is.
    let (open, mut closed) = mpsc::channel(1);
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
        .serve_with_incoming_shutdown(connections(listener, open), stopped.cancelled_owned());
    let mut server = pin!(server);
    let failed = |e: tonic::transport::Error| Error::internal("the gRPC server failed").with_source(e);
    tokio::select! {
        result = &mut server => return result.map_err(failed),
        () = shutdown => stop.cancel(),
    }
    let drained = tokio::time::timeout(DRAIN, async {
        server.await.map_err(failed)?;
        // Nobody waits for a client that keeps its side open longer than `LINGER`.
        let _: Option<()> = closed.recv().await;
        Ok(())
    });
    match drained.await {
        Ok(result) => result,
        Err(_) => {
            tracing::warn!(seconds = DRAIN.as_secs(), "calls were still running at the end of the grace period");
            Ok(())
        }
    }
}

/// Accepted connections, without end.
fn connections(listener: TcpListener, open: mpsc::Sender<()>) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold((listener, open), |(listener, open)| async move {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
                    }
                    let connection = Connection {
                        stream: Some(stream),
                        peer,
                        first: true,
                        ended: false,
                        open: open.clone(),
                    };
                    return Some((Ok(connection), (listener, open)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// A connection that looks at its first byte, so that the log can tell a TLS client what to do, and
/// that lingers when it is dropped: closing a socket with unread bytes (flow control of a client
/// that still reads) makes the kernel throw away what the client has not read yet.
#[derive(Debug)]
struct Connection {
    /// `None` only while it is dropped.
    stream: Option<TcpStream>,
    peer: SocketAddr,
    first: bool,
    /// This side has sent its last byte.
    ended: bool,
    open: mpsc::Sender<()>,
}

impl Connection {
    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        match &mut self.stream {
            Some(stream) => Ok(Pin::new(stream)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let (Some(stream), true, Ok(runtime)) = (self.stream.take(), self.ended, Handle::try_current()) {
            let open = self.open.clone();
            runtime.spawn(async move {
                let _ = tokio::time::timeout(DRAIN, linger(stream)).await;
                drop(open);
            });
        }
    }
}

/// Reads until the client ends the connection, or is silent.
async fn linger(mut stream: TcpStream) {
    let mut ignored = [0; 4096];
    while let Ok(Ok(1..)) = tokio::time::timeout(LINGER, stream.read(&mut ignored)).await {}
}

/// First byte of a TLS handshake record; HTTP/2 starts with `P`.
const TLS_HANDSHAKE: u8 = 0x16;

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(this.stream()?.poll_read(cx, buf))?;
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
        self.get_mut().stream()?.poll_write(cx, buf)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.get_mut().stream()?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(TcpStream::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().stream()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.ended = true;
        this.stream()?.poll_shutdown(cx)
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        match &self.stream {
            Some(stream) => stream.connect_info(),
            None => TcpConnectInfo {
                local_addr: None,
                remote_addr: Some(self.peer),
            },
        }
    }
}
