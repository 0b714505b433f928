//! The pool of connections to one server: idle ones are reused, and new ones are made.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper_util::client::legacy::connect::HttpConnector;
use tower_service::Service;

use tollgate_core::decide::guardrail::HttpSettings;

use super::EndpointError;
use super::connection::Connection;
use super::fault::Fault;
use super::target::Target;

/// How long a connection may be idle and still be used. Common servers close idle connections after five seconds or more. A client that
/// asks over a connection that is just being closed learns that it broke, but not whether the question was processed.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// The share of the deadline for which only a host's IPv6 address is tried, before IPv4 is tried too: one part in this many.
const HAPPY_EYEBALLS_SHARE: u32 = 4;

/// The connections to one server.
#[derive(Debug)]
pub(super) struct Pool {
    target: Target,
    connector: HttpConnector,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Tls>,
    /// Idle connections, the longest idle first.
    idle: Mutex<VecDeque<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, EndpointError> {
        let target = Target::new(settings)?;
        let timeout = Duration::from_millis(settings.timeout_ms.into());
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        // The time is shared among the host's addresses, so that one that never answers leaves time for the others.
        connector.set_connect_timeout(Some(timeout));
        connector.set_happy_eyeballs_timeout(Some(timeout / HAPPY_EYEBALLS_SHARE));
        #[cfg(feature = "tls")]
        let tls = target.is_tls.then(|| super::tls::Tls::new(settings, &target.uri)).transpose()?;
        #[cfg(not(feature = "tls"))]
        if target.is_tls {
            return Err(EndpointError::new(
                settings,
                "url",
                "this tollgate was built without TLS; use http, or build it with openssl-vendored",
            ));
        }
        Ok(Self {
            target,
            connector,
            #[cfg(feature = "tls")]
            tls,
            idle: Mutex::new(VecDeque::new()),
        })
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Asks a question once, and returns the body of the answer. The answer has to have the headers of `proof`.
    pub(super) async fn ask(&self, question: Bytes, bytes_max: usize, proof: &HeaderMap) -> Result<Vec<u8>, Fault> {
        let connection = self.get().await?;
        let (answer, connection) = connection.ask(self.target.request(question), bytes_max, proof).await;
        if let Some(connection) = connection {
            self.idle().push_back(Idle { connection, since: Instant::now() });
        }
        answer
    }

    /// Returns a connection: of the idle ones the one used last, or else a new one.
    async fn get(&self) -> Result<Connection, Fault> {
        while let Some(mut connection) = self.take() {
            if connection.is_usable().await {
                return Ok(connection);
            }
        }
        self.connect().await
    }

    /// Closes all idle connections.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }

    fn take(&self) -> Option<Connection> {
        let now = Instant::now();
        let mut idle = self.idle();
        while idle.front().is_some_and(|oldest| now.duration_since(oldest.since) > IDLE_MAX) {
            idle.pop_front();
        }
        idle.pop_back().map(|idle| idle.connection)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a new connection.
    pub(super) async fn connect(&self) -> Result<Connection, Fault> {
        let stream = self.connector.clone().call(self.target.uri.clone()).await;
        let stream = stream.map_err(|error| Fault::NotConnected(causes(&error)))?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let stream = tls.connect(stream.into_inner()).await.map_err(Fault::NotConnected)?;
            return Connection::open(hyper_util::rt::TokioIo::new(stream)).await;
        }
        Connection::open(stream).await
    }
}

/// Returns the text of an error with its causes. Connection errors name addresses at most.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
