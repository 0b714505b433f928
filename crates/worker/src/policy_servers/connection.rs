//! One HTTP connection to a policy server: how it is opened and asked over, and what its faults mean.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::HeaderMap;
use hyper::rt::{Read, Write};
use hyper::{Request, StatusCode};
use tokio::task::JoinHandle;

use super::fault::Fault;

/// The most that is read ahead of a connection, in bytes. It also bounds the head of an answer.
const READ_BYTES_MAX: usize = 64 * 1024;
/// How long to wait for the body of an answer that is an error anyway, so that its connection can be used again.
const DRAIN_MAX: Duration = Duration::from_millis(5);
/// How long a connection may take to be ready for another question after its answer was read. It is usually ready in microseconds.
const READY_MAX: Duration = Duration::from_millis(5);

/// An open HTTP/1.1 connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: JoinHandle<()>,
    /// Whether the connection has answered before.
    is_pooled: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Starts HTTP/1.1 on a stream.
    pub(super) async fn open<S: Read + Write + Unpin + Send + 'static>(stream: S) -> Result<Self, Fault> {
        let handshake = Builder::new().max_buf_size(READ_BYTES_MAX).handshake(stream).await;
        let (sender, connection) = handshake.map_err(|error| Fault::NotConnected(error.to_string()))?;
        let driver = tokio::spawn(async move {
            // Its faults reach whoever waits for an answer.
            let _fault = connection.await;
        });
        Ok(Self { sender, driver, is_pooled: false })
    }

    /// Returns whether the connection can be asked again. One that the server has closed cannot.
    pub(super) async fn is_usable(&mut self) -> bool {
        let is_ready = self.sender.is_ready() || matches!(tokio::time::timeout(READY_MAX, self.sender.ready()).await, Ok(Ok(())));
        is_ready && !self.sender.is_closed()
    }

    /// Sends a request and returns the body of the answer, with the connection if it can be used again. An answer has to have the headers of
    /// `proof`.
    pub(super) async fn ask(
        mut self,
        request: Request<Full<Bytes>>,
        bytes_max: usize,
        proof: &HeaderMap,
    ) -> (Result<Vec<u8>, Fault>, Option<Self>) {
        let response = match self.begin(request).await {
            Ok(response) => response,
            Err(fault) => return (Err(fault), None),
        };
        self.is_pooled = true;
        if response.status() == StatusCode::OK {
            if proof.iter().any(|(name, value)| response.headers().get(name) != Some(value)) {
                return (Err(Fault::Unproven), None);
            }
            let body = read(response, bytes_max).await;
            let again = body.is_ok().then_some(self);
            return (body, again);
        }
        let fault = Fault::Status(response.status().as_u16());
        let is_drained = matches!(tokio::time::timeout(DRAIN_MAX, read(response, bytes_max)).await, Ok(Ok(_)));
        (Err(fault), is_drained.then_some(self))
    }

    /// Sends a request and returns the answer, whose body is still to be read over this connection.
    pub(super) async fn begin(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Fault> {
        let sent = self.sender.try_send_request(request).await;
        sent.map_err(|mut error| {
            let was_written = error.take_message().is_none();
            self.fault_of_head(error.error(), was_written)
        })
    }

    /// Returns the fault when no head of an answer came.
    fn fault_of_head(&self, error: &hyper::Error, was_written: bool) -> Fault {
        if !was_written {
            let closed = || Fault::NotConnected("the server closed the connection before the question was written".to_owned());
            return if self.is_pooled { Fault::NotTaken } else { closed() };
        }
        if error.is_parse_too_large() {
            Fault::TooLarge
        } else if error.is_parse() {
            Fault::NotHttp
        } else if self.is_pooled {
            Fault::Stale
        } else {
            Fault::Broken
        }
    }
}

/// Reads a body, and stops as soon as it is known to be larger than allowed.
async fn read(response: Response<Incoming>, bytes_max: usize) -> Result<Vec<u8>, Fault> {
    let mut body = response.into_body();
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > bytes_max {
        return Err(Fault::TooLarge);
    }
    let mut read = Vec::with_capacity(announced);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Fault::Broken)?;
        // Trailers are not used.
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > bytes_max - read.len() {
            return Err(Fault::TooLarge);
        }
        read.extend_from_slice(&data);
    }
    Ok(read)
}
