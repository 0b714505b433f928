//! Connections of callers: HTTP/1.1 and HTTP/2, kept alive, bounded in number, heads bounded in size and time, drained at the stop.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long the head of a request may take to come. A connection without a request may be idle for as long.
const HEAD_TIME_MAX: Duration = Duration::from_secs(75);
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

/// Answers connections until `stop` is ready, and then those requests that have begun.
pub async fn serve(listener: TcpListener, router: Router, connections_max: usize, stop: impl Future<Output = ()>) {
    let (places, graceful) = (Arc::new(Semaphore::new(connections_max)), GracefulShutdown::new());
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
                let connection = graceful.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    // A client that breaks off is no error of ours.
                    let _ended = connection.await;
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
    drop(listener);
    let _late = tokio::time::timeout(DRAIN_MAX, graceful.shutdown()).await;
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> auto::Connection<'static, TokioIo<TcpStream>, TowerToHyperService<Router>, TokioExecutor> {
    // Verdicts are small, and somebody waits for each.
    let _unknown = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_headers(HEADERS_MAX).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(HEAD_TIME_MAX);
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).into_owned()
}
