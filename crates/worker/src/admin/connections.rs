//! The connections of the admin endpoint: how many there are at once, and how long each may last.
//!
//! Kafka's connections need file descriptors of the same process. So there are never more than a few connections here, each answers one
//! request, and each ends soon, whatever its client does. Where one more comes than there may be, the oldest ends: a probe is answered in
//! a moment, so it is seldom the oldest, and slow clients cannot keep probes out.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// The bounds on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at once.
    pub connections_max: usize,
    /// How long a request's head may take to come.
    pub head_timeout: Duration,
    /// How long a connection may last, from its beginning to the last byte of the answer.
    pub lifetime: Duration,
}

impl Default for ConnectionLimits {
    /// A process has at least 256 file descriptors everywhere, and a few clients ask: a scraper, and whoever probes.
    fn default() -> Self {
        Self { connections_max: 32, head_timeout: Duration::from_secs(5), lifetime: Duration::from_secs(15) }
    }
}

/// How long to wait after a connection could not be accepted. The process may have run out of file descriptors, and asking again at once
/// would take a whole core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(250);

/// Serves the connections that `accept` returns until `stop` is ready, and then waits for the end of those that there are.
pub(super) async fn serve<F: Future<Output = io::Result<TcpStream>>>(
    mut accept: impl FnMut() -> F,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let mut connections = Connections::default();
    loop {
        let accepted = tokio::select! {
            accepted = accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok(stream) => {
                connections.make_room(limits.connections_max).await;
                connections.spawn(answer(stream, router.clone(), limits));
            }
            Err(error) => {
                tracing::debug!(%error, "the admin endpoint cannot accept a connection; trying again");
                tokio::select! {
                    () = sleep(ACCEPT_PAUSE) => {}
                    () = &mut stop => break,
                }
            }
        }
    }
    connections.tasks.join_all().await;
}

/// The connections that there are.
#[derive(Debug, Default)]
struct Connections {
    tasks: JoinSet<()>,
    /// The connections that may still last, the oldest first.
    in_order: VecDeque<AbortHandle>,
}

impl Connections {
    /// Ends the oldest connections until there is room for one more.
    async fn make_room(&mut self, connections_max: usize) {
        while self.tasks.try_join_next().is_some() {}
        self.in_order.retain(|connection| !connection.is_finished());
        while self.tasks.len() >= connections_max.max(1) {
            if let Some(oldest) = self.in_order.pop_front() {
                oldest.abort();
            }
            // The descriptor is free once the task has ended.
            if self.tasks.join_next().await.is_none() {
                return;
            }
        }
    }

    fn spawn(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        self.in_order.push_back(self.tasks.spawn(connection));
    }
}

/// Answers one request on a connection. A client that breaks off, or takes too long, is no error of ours.
async fn answer(stream: TcpStream, router: Router, limits: ConnectionLimits) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let _ended = timeout(limits.lifetime, connection).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;

    const LIMITS: ConnectionLimits =
        ConnectionLimits { connections_max: 4, head_timeout: Duration::from_millis(100), lifetime: Duration::from_millis(400) };
    /// Under these no connection ends by itself while a test runs.
    const PATIENT: ConnectionLimits =
        ConnectionLimits { connections_max: 4, head_timeout: Duration::from_secs(600), lifetime: Duration::from_secs(600) };
    /// Larger than what the kernel holds for a client that does not read.
    const LARGE: usize = 64 * 1024 * 1024;
    const REQUEST: &[u8] = b"GET /small HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Serves on a free port, and fails to accept as often as given before that. Returns the port and the sign to stop.
    async fn serving(limits: ConnectionLimits, failures: usize) -> (u16, oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let listener = Arc::new(TcpListener::bind(("127.0.0.1", 0)).await.unwrap());
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/small", get(|| async { "ok" })).route("/large", get(|| async { "x".repeat(LARGE) }));
        let (stop, stopped) = oneshot::channel();
        let failed = Arc::new(AtomicUsize::new(0));
        let accept = move || {
            let (listener, failed) = (Arc::clone(&listener), Arc::clone(&failed));
            async move {
                if failed.fetch_add(1, Ordering::Relaxed) < failures {
                    // "Too many open files", as the kernel says it.
                    return Err(io::Error::from_raw_os_error(24));
                }
                listener.accept().await.map(|(stream, _)| stream)
            }
        };
        let served = tokio::spawn(serve(accept, router, limits, async { _ = stopped.await }));
        (port, stop, served)
    }

    async fn connect(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).await.unwrap()
    }

    /// Returns all that comes on a connection until the server ends it, be it by a reset.
    async fn rest(stream: &mut TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _reset = stream.read_to_end(&mut bytes).await;
        bytes
    }

    async fn ask(port: u16) -> String {
        let mut stream = connect(port).await;
        stream.write_all(REQUEST).await.unwrap();
        String::from_utf8(rest(&mut stream).await).unwrap()
    }

    #[tokio::test]
    async fn a_connection_answers_one_request() {
        let (port, _stop, _served) = serving(PATIENT, 0).await;
        let mut stream = connect(port).await;
        stream.write_all(&REQUEST.repeat(2)).await.unwrap();
        let answer = String::from_utf8(rest(&mut stream).await).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("ok"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }

    #[tokio::test]
    async fn a_client_that_sends_slowly_is_cut_off() {
        let (port, _stop, _served) = serving(LIMITS, 0).await;
        let mut stream = connect(port).await;
        stream.write_all(b"GET /small HT").await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_is_cut_off() {
        let (port, _stop, _served) = serving(LIMITS, 0).await;
        let mut stream = connect(port).await;
        stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        // The server has begun to answer, so its time is over before this one is.
        stream.read_exact(&mut [0; 15]).await.unwrap();
        sleep(3 * LIMITS.lifetime).await;
        let answer = rest(&mut stream).await;
        assert!(answer.len() < LARGE, "{} bytes came, and the client had read none of them in time", answer.len());
    }

    #[tokio::test]
    async fn of_many_connections_the_oldest_end_and_a_new_one_is_answered() {
        let (port, _stop, _served) = serving(PATIENT, 0).await;
        let mut idle = Vec::new();
        for _ in 0..100 {
            idle.push(connect(port).await);
        }
        assert!(ask(port).await.ends_with("ok"));
        let (old, new) = idle.split_at_mut(100 - LIMITS.connections_max);
        for stream in old {
            assert!(rest(stream).await.is_empty(), "the server has ended it");
        }
        let mut byte = [0];
        let last = new.last_mut().unwrap();
        assert!(timeout(Duration::from_millis(50), last.read(&mut byte)).await.is_err(), "it may last while there is room");
    }

    #[tokio::test]
    async fn errors_of_accepting_end_nothing() {
        let (port, _stop, _served) = serving(PATIENT, 3).await;
        assert!(ask(port).await.ends_with("ok"));
    }

    #[tokio::test]
    async fn what_is_being_answered_at_the_stop_is_answered() {
        let (port, stop, served) = serving(PATIENT, 0).await;
        let mut stream = connect(port).await;
        stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).await.unwrap();
        stop.send(()).unwrap();
        let bytes = rest(&mut stream).await.len();
        served.await.unwrap();
        assert!(bytes > LARGE, "{bytes} bytes");
    }
}
