//! Connections of callers: TLS or plain, HTTP/1.1 and HTTP/2, kept alive, bounded in number, handshakes and heads bounded in time, drained at
//! the stop.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse as _;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use tollgate_worker::metrics::Metrics;

use crate::refusal::Refusal;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::tokens::Peer;
#[cfg(feature = "tls")]
use crate::watched::Current;

/// How long a TLS handshake may take.
#[cfg(feature = "tls")]
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a connection with a client's certificate lives, so that authorities that are no longer trusted lose their clients.
#[cfg(feature = "tls")]
const CERTIFIED_TIME_MAX: Duration = Duration::from_secs(3_600);
/// How long a connection may keep the server waiting.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimits {
    /// How long the head of a request may take to come. A connection without a request may be idle for as long, and a client of HTTP/2 may be
    /// silent for as long.
    pub head: Duration,
    /// How long a client may take none of the bytes that wait for it.
    pub write: Duration,
}

/// The limits of a server.
pub const TIME_LIMITS: TimeLimits = TimeLimits { head: Duration::from_secs(75), write: Duration::from_secs(30) };
/// How many headers a request may have.
const HEADERS_MAX: usize = 64;
/// The largest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How many requests of an HTTP/2 connection may be answered at once.
const STREAMS_MAX: u32 = 256;
/// How long to wait after a connection could not be accepted: file descriptors may be used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);
/// How long the requests that are being answered at the stop may take.
const DRAIN_MAX: Duration = Duration::from_secs(65);
/// How long a connection that ends stays open behind its last answer, which the client has yet to read.
const LAST_WRITE_MAX: Duration = Duration::from_secs(1);
/// How often to look for the rest of a beginning that came in two pieces.
const PIECE_POLL: Duration = Duration::from_millis(5);
/// How often at most: no client holds the loop up.
const PIECE_POLLS: u32 = 100;
/// How many handles of the value that requests hold are a connection's own.
const OWN_HANDLES: usize = 2;

/// What is spoken below HTTP.
#[derive(Debug, Clone)]
pub enum Transport {
    /// TCP alone.
    Plain,
    /// TLS, with what is in force when a connection comes.
    #[cfg(feature = "tls")]
    Tls(Current<Tls>),
}

/// What answers connections.
#[derive(Debug, Clone)]
pub struct Answering {
    /// What is spoken below HTTP.
    pub transport: Transport,
    /// The routes.
    pub router: Router,
    /// The metrics of the process.
    pub metrics: Metrics,
    /// How long a connection may keep the server waiting.
    pub limits: TimeLimits,
}

/// Answers connections until `stop` is ready, and then those requests that have received.
pub async fn serve(listener: TcpListener, answering: Answering, connections_max: u32, stop: impl Future<Output = ()>) {
    let count = usize::try_from(connections_max).unwrap_or(Semaphore::MAX_PERMITS);
    let (places, (closing, close)) = (Arc::new(Semaphore::new(count)), watch::channel(()));
    let mut stop = pin!(stop);
    loop {
        // A connection that has no place waits in the kernel's queue.
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = &mut stop => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (answering, close) = (answering.clone(), close.clone());
                tokio::spawn(async move {
                    answering.connection(stream, close).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted; trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // No new connection is accepted while the others are answered.
    drop((listener, closing));
    let _late = tokio::time::timeout(DRAIN_MAX, places.acquire_many(connections_max)).await;
}

impl Answering {
    /// Answers the requests of a connection until it ends. `close` ends when the server stops.
    async fn connection(self, stream: TcpStream, close: watch::Receiver<()>) {
        // Verdicts are small, and somebody waits for each.
        let _unknown = stream.set_nodelay(true);
        match &self.transport {
            Transport::Plain => {
                let mut stopping = close.clone();
                let begins = tokio::select! {
                    begins = tokio::time::timeout(self.limits.head, begins_http2(&stream)) => begins,
                    _ = stopping.changed() => return,
                };
                if let Ok(Ok(is_http2)) = begins {
                    requests(stream, is_http2, (self.router, self.limits), (None, None), close).await;
                }
            }
            #[cfg(feature = "tls")]
            Transport::Tls(tls) => {
                let tls = tls.get();
                let mut stopping = close.clone();
                let accepted = tokio::select! {
                    accepted = tokio::time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => accepted,
                    _ = stopping.changed() => return,
                };
                match accepted.unwrap_or_else(|_| Err("the handshake took too long".to_owned())) {
                    Ok(accepted) => {
                        let is_http2 = accepted.is_http2();
                        let (peer, left) = accepted.peer.unzip();
                        let left = left.map(|left| left.min(CERTIFIED_TIME_MAX));
                        requests(accepted.stream, is_http2, (self.router, self.limits), (peer, left), close).await;
                    }
                    Err(reason) => {
                        self.metrics.serve_handshakes_failed.inc();
                        tracing::debug!(reason, "a TLS handshake failed");
                    }
                }
            }
        }
    }
}

/// Answers the requests of a connection until it ends. At the stop, and where the connection has lived as long as it may, the request that has
/// received is the last.
async fn requests<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    is_http2: bool,
    (router, limits): (Router, TimeLimits),
    (peer, time_max): (Option<Peer>, Option<Duration>),
    mut close: watch::Receiver<()>,
) {
    let service = TowerToHyperService::new(router);
    // Whether the connection ends. Each request that has received holds it.
    let ends = Arc::new(AtomicBool::new(false));
    let each = Arc::clone(&ends);
    let with_peer = service_fn(move |mut request: hyper::Request<Incoming>| {
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        let ends = Arc::clone(&each);
        // A client of HTTP/2 may go on with requests behind the sign that the connection ends.
        let asked = (!ends.load(Ordering::Relaxed)).then(|| service.call(request));
        async move {
            let answer = match asked {
                Some(answer) => answer.await,
                None => Ok(Refusal::unavailable("connection_ends", "the connection ends; ask again on another connection").into_response()),
            };
            drop(ends);
            answer
        }
    });
    let mut timed = TimeoutStream::new(stream);
    // HTTP/2 has no bound of its own for a silent client. The bound is longer than a client may wait for a verdict.
    timed.set_read_timeout(is_http2.then_some(limits.head));
    timed.set_write_timeout(Some(limits.write));
    let builder = builder(is_http2, limits.head);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Box::pin(timed)), with_peer));
    let expiry = async {
        match time_max {
            Some(time) => tokio::time::sleep(time).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // A client that breaks off is no error of ours.
        _ended = connection.as_mut() => return,
        () = expiry => {}
        _ = close.changed() => {}
    }
    ends.store(true, Ordering::Relaxed);
    connection.as_mut().graceful_shutdown();
    // hyper waits for clients that have nothing more to say, and do not read either.
    let silence = async {
        while Arc::strong_count(&ends) > OWN_HANDLES {
            tokio::time::sleep(LAST_WRITE_MAX).await;
        }
        tokio::time::sleep(LAST_WRITE_MAX).await;
    };
    tokio::select! {
        _ended = connection => {}
        () = silence => {}
    }
}

/// Returns whether a connection begins as HTTP/2 does. Its bytes stay unread: hyper could find out too, and would keep twice the buffer for
/// as long as the connection lives.
async fn begins_http2(stream: &TcpStream) -> std::io::Result<bool> {
    const BEGINNING: &[u8] = b"PRI";
    let mut beginning = [0; BEGINNING.len()];
    for _ in 0..PIECE_POLLS {
        let count = stream.peek(&mut beginning).await?;
        let received = beginning.get(..count).unwrap_or_default();
        if count == 0 || !BEGINNING.starts_with(received) || received == BEGINNING {
            return Ok(received == BEGINNING);
        }
        // The beginning came in two pieces, and the first piece stays to be read.
        tokio::time::sleep(PIECE_POLL).await;
    }
    Ok(false)
}

fn builder(is_http2: bool, head_time_max: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_time_max).max_headers(HEADERS_MAX).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX));
    if is_http2 { builder.http2_only() } else { builder.http1_only() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// Starts a server of one connection at a time, and returns its address.
    async fn start(limits: TimeLimits) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = Answering { transport: Transport::Plain, router: Router::new(), metrics: Metrics::new().unwrap(), limits };
        tokio::spawn(serve(listener, answering, 1, std::future::pending()));
        address
    }

    async fn is_answered(address: std::net::SocketAddr) {
        let mut asks = TcpStream::connect(address).await.unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        asks.read_exact(&mut status).await.unwrap();
        assert_eq!(status, *b"HTTP/1.1 404");
    }

    #[tokio::test]
    async fn connections_on_which_nobody_waits_do_not_hold_up_the_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering =
            Answering { transport: Transport::Plain, router: Router::new(), metrics: Metrics::new().unwrap(), limits: TIME_LIMITS };
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, answering, 2, async { _ = stopped.await }));
        let mut silent = Vec::new();
        // A client of HTTP/2 that answers no ping, and half a head.
        for said in ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "GET / HTTP/1.1\r\nhost: localhost\r\n"] {
            let mut connection = TcpStream::connect(address).await.unwrap();
            connection.write_all(said.as_bytes()).await.unwrap();
            silent.push(connection);
        }
        // The server of HTTP/2 has received when it says its settings.
        silent[0].read_exact(&mut [0; 9]).await.unwrap();
        let began = std::time::Instant::now();
        stop.send(()).unwrap();
        served.await.unwrap();
        assert!(began.elapsed() < DRAIN_MAX, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_beginning_in_two_pieces_is_the_same_beginning() {
        let address = start(TIME_LIMITS).await;
        let mut asks = TcpStream::connect(address).await.unwrap();
        asks.set_nodelay(true).unwrap();
        for piece in ["P", "RI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"] {
            asks.write_all(piece.as_bytes()).await.unwrap();
            tokio::time::sleep(PIECE_POLL * 2).await;
        }
        let mut settings = [0; 9];
        asks.read_exact(&mut settings).await.unwrap();
        assert_eq!(settings[3], 4, "the server's own settings come first");
    }

    #[tokio::test]
    async fn a_connection_that_says_nothing_frees_its_place() {
        let opened = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        for said in ["", "PRI * HTTP/2.0", "GET / HT", opened] {
            let address = start(TimeLimits { head: Duration::from_millis(50), ..TIME_LIMITS }).await;
            let mut silent = TcpStream::connect(address).await.unwrap();
            silent.write_all(said.as_bytes()).await.unwrap();
            is_answered(address).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_no_answer_frees_its_place() {
        let address = start(TimeLimits { write: Duration::from_millis(50), ..TIME_LIMITS }).await;
        let mut asks = TcpStream::connect(address).await.unwrap();
        // Their answers are more than the buffers of both ends hold.
        let broken_off = asks.write_all("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000_000).as_bytes()).await;
        assert!(broken_off.is_err(), "the server takes no more");
        is_answered(address).await;
    }
}
