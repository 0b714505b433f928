//! The routes, and what all of them share: who asks, the body within its bounds, the answer with its measures.

mod events;
mod ext_mcp;
mod hooks;
mod verdicts;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http_body_util::{BodyExt as _, Limited};
use tower_http::decompression::RequestDecompressionLayer;

use tollgate_config::settings::ServeSettings;

use crate::gate::Gate;
use crate::guard::Guard;
use crate::publisher::Trace;
use crate::refusal::Refusal;
use crate::tokens::{Caller, Peer};

/// The header of every answer, by which `tollgate hook` knows a server of Tollgate: another web server's `{}` would be leave to some hosts.
pub const PROOF: (&str, &str) = ("x-tollgate", "gate");
/// How long the body of a request may take to come.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest wait that a request may ask for, in milliseconds.
pub const WAIT_MS_MAX: u64 = 60_000;
/// The header with the id of a request, of the client's or ours.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that says how long a request waited.
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// What requests are answered with.
#[derive(Debug)]
pub struct App {
    /// The gate.
    pub gate: Gate,
    /// Who may ask.
    pub guard: Guard,
    /// The settings of the server.
    pub settings: ServeSettings,
    /// The most bytes of an event, as the workers read it.
    pub event_bytes_max: usize,
}

/// Returns the routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/events", post(events::ask))
        .route("/v1/verdicts/{verdict_id}", get(verdicts::again))
        .route("/v1/hooks/{*rest}", post(hooks::hook))
        .route("/v1/data/{*rest}", post(hooks::opa))
        .route("/agentgateway.dev.ext_mcp.ExtMcp/{method}", post(ext_mcp::check))
        .route("/beta/litellm_basic_guardrail_api", post(hooks::litellm))
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(RequestDecompressionLayer::new().pass_through_unaccepted(true))
        .layer(from_fn_with_state(Arc::clone(&app), measured))
        .with_state(app)
}

async fn unknown() -> Refusal {
    let message =
        "path: found a path that is none of the server's; ask POST /v1/events, GET /v1/verdicts/{verdict_id} or POST /v1/hooks/{host}";
    Refusal::new(StatusCode::NOT_FOUND, "path_unknown", message)
}

async fn wrong_method() -> Refusal {
    let message = "method: found another method than this path takes; use POST for events and hooks, and GET for verdicts";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// Counts an answer, and gives it the id of its request and its time.
async fn measured(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = route_name(request.uri().path());
    // Copies: the head shares the connection's buffer, which is free for as long as the request waits.
    let copied = |value: &HeaderValue| HeaderValue::from_bytes(value.as_bytes()).ok();
    let id = request.headers().get(&REQUEST_ID).filter(|id| id.len() <= 128).and_then(copied);
    let trace_parent = request.headers().get("traceparent").and_then(copied);
    // Whether such a request named a length too, which a proxy in front may have gone by, is not known here any more. So nothing that may
    // hide behind the request's end is read.
    let close = request.headers().contains_key(header::TRANSFER_ENCODING).then(|| HeaderValue::from_static("close"));
    let mut response = next.run(request).await;
    let passed = started.elapsed();
    let metrics = &app.gate.shared.metrics;
    metrics.serve_requests.with_label_values(&[route, response.status().as_str()]).inc();
    metrics.serve_wait.observe(passed.as_secs_f64());
    let id = id.or_else(|| HeaderValue::from_str(&format!("{:032x}", fastrand::u128(..))).ok());
    let timing = HeaderValue::from_str(&format!("wait;dur={:.1}", passed.as_secs_f64() * 1_000.0)).ok();
    let proof = (HeaderName::from_static(PROOF.0), Some(HeaderValue::from_static(PROOF.1)));
    let trace_parent = (HeaderName::from_static("traceparent"), trace_parent);
    let added = [(REQUEST_ID, id), (SERVER_TIMING, timing), trace_parent, proof, (header::CONNECTION, close)];
    for (name, value) in added {
        if let Some(value) = value {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Returns the name of a route in metrics.
fn route_name(path: &str) -> &'static str {
    let routes = [
        ("/v1/events", "events"),
        ("/v1/verdicts/", "verdicts"),
        ("/v1/hooks/", "hooks"),
        ("/v1/data/", "opa"),
        ("/beta/litellm", "litellm"),
        ("/agentgateway.dev.ext_mcp.", "ext_mcp"),
    ];
    routes.iter().find(|(prefix, _)| path.starts_with(prefix)).map_or("other", |(_, name)| name)
}

impl App {
    /// Returns who asks.
    fn caller(&self, parts: &Parts) -> Result<Arc<Caller>, Refusal> {
        self.guard.caller(&parts.uri, &parts.headers, parts.extensions.get::<Peer>())
    }

    /// Reads a body, unpacked, within its bounds of bytes and time.
    async fn body(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refusal> {
        // A body that was unpacked has lost the header.
        if headers.get_all(header::CONTENT_ENCODING).iter().any(|coding| coding != "identity") {
            let message = "content-encoding: found another coding than gzip; pack the body with gzip, or send it as it is";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding_unknown", message));
        }
        let bytes_max = usize::try_from(self.settings.body_bytes_max).unwrap_or(usize::MAX);
        match tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, bytes_max)).await {
            Ok(Ok(bytes)) => Ok(bytes.into()),
            // A client that breaks off reads no answer, so a body that is too large is what is left, or a body that was packed wrongly.
            Ok(Err(error)) if is_too_large(&error) => {
                let message = format!("body: found more than {bytes_max} bytes (serve.body_bytes_max); send less");
                Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message))
            }
            Ok(Err(_)) => {
                Err(Refusal::body("body_unreadable", "body: found a body that broke off, or that is not packed as it says; send it again"))
            }
            Err(_) => {
                let message = format!("body: found no end of the body within {} s; send it faster", BODY_TIME_MAX.as_secs());
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message))
            }
        }
    }

    /// Reads a body to its end within the same bounds, and keeps nothing. Some clients of HTTP/2 lose an answer that comes before they have
    /// sent everything.
    async fn discard(&self, body: Body) {
        let mut body = pin!(Limited::new(body, usize::try_from(self.settings.body_bytes_max).unwrap_or(usize::MAX)));
        let read = async { while let Some(Ok(_)) = body.frame().await {} };
        let _late = tokio::time::timeout(BODY_TIME_MAX, read).await;
    }

    /// Returns how long a request wants to wait: `Prefer: wait=MS`, or else the configured deadline.
    fn wait(&self, headers: &HeaderMap) -> Result<Duration, Refusal> {
        let preferences =
            headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split([',', ';']));
        // RFC 7240: names are the same in any case, and blanks may stand around the sign.
        let named = preferences.filter_map(|preference| preference.split_once('='));
        let asked = named.filter(|(name, _)| name.trim().eq_ignore_ascii_case("wait")).map(|(_, value)| value.trim()).next();
        asked.map_or(Ok(Duration::from_millis(self.settings.deadline_ms.into())), wait_of)
    }
}

/// Returns the wait that a text of milliseconds stands for.
fn wait_of(text: &str) -> Result<Duration, Refusal> {
    let milliseconds = text.parse::<u64>().ok().filter(|milliseconds| (1..=WAIT_MS_MAX).contains(milliseconds));
    milliseconds.map(Duration::from_millis).ok_or_else(|| {
        Refusal::body(
            "wait_invalid",
            format!("wait: found no number of milliseconds from 1 to {WAIT_MS_MAX}; write a number alone, as in `wait=500`"),
        )
    })
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Returns the trace context that events carry on.
fn trace_of(headers: &HeaderMap) -> Trace {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| value.len() <= 512).map(str::to_owned);
    Trace { parent: text("traceparent"), state: text("tracestate") }
}

/// Returns JSON as a response.
fn json_response(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}
