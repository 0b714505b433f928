//! The wires of agent hosts. Most hosts read any failure as leave to go on, so a request that has a readable event is answered in the
//! host's own words whatever happens.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use tollgate_hosts::{Answer, LITELLM, OPA, Outcome, Question, Unanswered, Verdict, Wire, deny_unknown_host, wire, wires};

use super::{App, json_response, trace_of};
use crate::events::{Prepared, Reading};
use crate::publisher::Trace;
use crate::refusal::Refusal;
use crate::tokens::Caller;

/// Answers a hook of a host: `/v1/hooks/{host}`.
pub(super) async fn hook(State(app): State<Arc<App>>, Path(rest): Path<String>, request: Request) -> Response {
    let (name, path) = rest.split_once('/').unwrap_or((&rest, ""));
    match wire(name) {
        Some(wire) => answered(&app, wire, path, request).await,
        None => {
            let known: Vec<_> = wires().iter().map(|wire| wire.name()).collect();
            let message = format!("path: found a host that is not known; write one of {}", known.join(", "));
            response(deny_unknown_host(&message))
        }
    }
}

/// Answers a question to OPA's Data API: `/v1/data/{path}`.
pub(super) async fn opa(State(app): State<Arc<App>>, Path(path): Path<String>, request: Request) -> Response {
    answered(&app, OPA, &path, request).await
}

/// Answers LiteLLM's generic guardrail API.
pub(super) async fn litellm(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, LITELLM, "", request).await
}

async fn answered(app: &App, wire: &'static dyn Wire, path: &str, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let caller = app.caller(&parts);
    let body = match app.body(&parts.headers, body).await {
        Ok(body) => body,
        Err(refusal) => return response(in_words_of(wire.read(&wire_request(path, &[], b"")), &refusal)),
    };
    let read = wire.read(&wire_request(path, &texts(&parts.headers), &body));
    let trace = trace_of(&parts.headers);
    drop((parts, body));
    response(ruled(app, caller, &trace, read).await)
}

/// Asks the gate the question of a host, and returns the host's answer.
pub(super) async fn ruled<A>(app: &App, caller: Result<Arc<Caller>, Refusal>, trace: &Trace, read: Result<Question<A>, A>) -> A {
    let (caller, question) = match (caller, read) {
        (Ok(caller), Ok(question)) => (caller, question),
        (Ok(_), Err(answer)) => return answer,
        (Err(refusal), read) => return in_words_of(read, &refusal),
    };
    let outcome = match prepared(app, &caller, &question.events) {
        Ok(events) => verdicts(app, events, trace).await,
        Err(refusal) => Err(refusal),
    };
    match &outcome {
        Ok(verdicts) => (question.answer)(Outcome::Ok(verdicts)),
        Err(refusal) => (question.answer)(Outcome::Err(&unanswered(refusal))),
    }
}

fn wire_request<'a>(path: &'a str, headers: &'a [(String, String)], body: &'a [u8]) -> tollgate_hosts::Request<'a> {
    tollgate_hosts::Request { path, headers, body }
}

fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}

/// Returns a refusal in the host's words.
fn in_words_of<A>(read: Result<Question<A>, A>, refusal: &Refusal) -> A {
    match read {
        Ok(question) => (question.answer)(Outcome::Err(&unanswered(refusal))),
        Err(answer) => answer,
    }
}

fn unanswered(refusal: &Refusal) -> Unanswered {
    Unanswered { code: refusal.code, message: refusal.message.clone() }
}

fn prepared(app: &App, caller: &Caller, events: &[tollgate_hosts::Event]) -> Result<Vec<Prepared>, Refusal> {
    let reading = Reading { caller, idempotency_key: None, event_bytes_max: app.event_bytes_max };
    let text = |event| serde_json::to_string(event).map_err(|_| Refusal::body("value_not_json", "body: found an event that is no JSON"));
    events.iter().map(|event| reading.event(&text(event)?, None)).collect()
}

async fn verdicts(app: &App, events: Vec<Prepared>, trace: &Trace) -> Result<Vec<Verdict>, Refusal> {
    let wait = std::time::Duration::from_millis(app.settings.deadline_ms.into());
    let outcomes = app.gate.ask(events, trace, wait).await;
    let mut verdicts = Vec::new();
    for (_, outcome) in outcomes {
        if let Some(bytes) = outcome? {
            let verdict = serde_json::from_slice(&bytes);
            verdicts.push(
                verdict
                    .map_err(|_| Refusal::unavailable("verdict_unreadable", "the verdict is of a form that this server does not know"))?,
            );
        }
    }
    Ok(verdicts)
}

fn response(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_response(status, answer.body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
}
