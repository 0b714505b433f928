//! Posting to one URL over the connections and with the TLS of policy servers, for other parts that speak HTTP.

use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};
use tokio::time::timeout;

use tollgate_core::decide::guardrail::HttpSettings;

use super::EndpointError;
use super::connection::Connection;
use super::fault::Fault;
use super::pool::Pool;

/// A URL to post to. It has no queue and no breaker: whoever posts waits.
#[derive(Debug)]
pub struct Poster {
    pool: Pool,
    timeout: Duration,
    answer_bytes_max: usize,
    proof: HeaderMap,
}

/// An answer whose body comes in pieces. The connection is closed with it.
#[derive(Debug)]
pub struct Stream {
    /// The answer: its status, its headers, and its body, which is still to be read.
    pub answer: Response<Incoming>,
    _connection: Connection,
}

/// Why a post was not answered with status 200. It holds nothing of what was posted or answered.
#[derive(Debug)]
pub struct PostFault {
    /// What went wrong, for the log.
    pub cause: String,
    /// Whether the same post may be taken later.
    pub may_pass: bool,
}

impl Poster {
    /// Returns a poster to the URL of these settings, with their headers and TLS. No connection is made yet.
    pub fn new(settings: &HttpSettings) -> Result<Self, EndpointError> {
        let answer_bytes_max = usize::try_from(settings.answer_bytes_max).unwrap_or(usize::MAX);
        let timeout = Duration::from_millis(settings.timeout_ms.into());
        Ok(Self { pool: Pool::new(settings)?, timeout, answer_bytes_max, proof: HeaderMap::new() })
    }

    /// Takes only answers that have this header: it proves that the server is the one that is meant.
    #[must_use]
    pub fn proven_by(mut self, (name, value): (&'static str, &'static str)) -> Self {
        self.proof.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Posts a body once, and returns the answer's. A connection that the server had closed meanwhile is replaced at once.
    pub async fn post(&self, body: Vec<u8>) -> Result<Vec<u8>, PostFault> {
        let body = hyper::body::Bytes::from(body);
        let posted = timeout(self.timeout, async {
            loop {
                match self.pool.ask(body.clone(), self.answer_bytes_max, &self.proof).await {
                    // Every other idle connection is most likely closed too. A new one has no such fault, so this ends.
                    Err(fault) if fault.is_of_pooled_connection() => self.pool.clear(),
                    answer => return answer,
                }
            }
        });
        posted.await.unwrap_or(Err(Fault::TimedOut { had_time: true })).map_err(|fault| PostFault::of(&fault))
    }

    /// Sends a request with more headers over a connection of its own, and returns the answer whatever its status is. The timeout holds for the
    /// connection alone: an answer may begin and go on at any time.
    pub async fn open(&self, method: Method, headers: HeaderMap, body: Vec<u8>) -> Result<Stream, PostFault> {
        let mut request = self.pool.target().request(body.into());
        *request.method_mut() = method;
        request.headers_mut().extend(headers);
        let opened = async {
            let mut connection = self.pool.connect().await?;
            let answer = connection.begin(request).await?;
            Ok(Stream { answer, _connection: connection })
        };
        opened.await.map_err(|fault| PostFault::of(&fault))
    }
}

impl PostFault {
    fn of(fault: &Fault) -> Self {
        let cause = match fault {
            Fault::Status(status) => format!("the answer's status is {status}"),
            fault => fault.cause().to_owned(),
        };
        let may_pass = !matches!(fault, Fault::NotHttp | Fault::Unproven | Fault::TooLarge) && !is_final(fault);
        Self { cause, may_pass }
    }
}

/// Returns whether a status says that the same request will never be taken. OTLP names those that may pass: 429, 502, 503 and 504.
fn is_final(fault: &Fault) -> bool {
    matches!(fault, Fault::Status(status) if !matches!(status, 429 | 502..=504))
}
