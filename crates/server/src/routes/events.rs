//! `POST /v1/events`: an event or the calls of a response in, verdicts out.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::{App, json_response, trace_of};
use crate::events::Reading;
use crate::gate::Outcome;
use crate::not_read::not_read;
use crate::refusal::Refusal;
use crate::tokens::Caller;

/// Answers a request with the verdicts of its events.
pub(super) async fn ask(State(app): State<Arc<App>>, request: Request) -> Response {
    answered(&app, request).await.unwrap_or_else(axum::response::IntoResponse::into_response)
}

async fn answered(app: &App, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let (caller, wait, key) = match asks(app, &parts) {
        Ok(asks) => asks,
        Err(refusal) => {
            app.discard(body).await;
            return Err(refusal);
        }
    };
    let read = {
        let body = app.body(&parts.headers, body).await?;
        let reading = Reading { caller: &caller, idempotency_key: key.as_deref(), event_bytes_max: app.event_bytes_max };
        reading.body(&body).map_err(|refusal| (not_read(&body, &refusal), refusal))
    };
    let trace = trace_of(&parts.headers);
    // The head shares the connection's buffer, which is free for as long as the request waits.
    drop(parts);
    let (events, is_list) = match read {
        Ok(read) => read,
        Err((records, refusal)) => {
            for (_, outcome) in app.gate.ask(records, &trace, wait).await {
                outcome.map_err(|failure| Refusal { event_id: refusal.event_id.clone(), ..failure })?;
            }
            return Err(refusal);
        }
    };
    let outcomes = app.gate.ask(events, &trace, wait).await;
    Ok(if is_list { list(outcomes) } else { single(outcomes) })
}

/// Reads the head of a request: who asks, how long to wait, and the id of the event.
fn asks(app: &App, parts: &Parts) -> Result<(Arc<Caller>, Duration, Option<String>), Refusal> {
    let caller = app.caller(parts)?;
    check_content_type(&parts.headers)?;
    Ok((caller, app.wait(&parts.headers)?, idempotency_key(&parts.headers)?))
}

/// Returns the answer to an event.
fn single(outcomes: Vec<(String, Outcome)>) -> Response {
    match outcomes.into_iter().next() {
        Some((_, Ok(Some(verdict)))) => json_response(StatusCode::OK, verdict.to_vec()),
        Some((event_id, Ok(None))) => json_response(StatusCode::ACCEPTED, accepted(&event_id)),
        Some((_, Err(refusal))) => refusal.into_response(),
        None => Refusal::body("events_out_of_bounds", "body: found no event").into_response(),
    }
}

/// Returns the answer to a list of events: a list in the same order. Its status is that of the first event without a verdict.
fn list(outcomes: Vec<(String, Outcome)>) -> Response {
    let all_accepted = outcomes.iter().all(|(_, outcome)| matches!(outcome, Ok(None)));
    let failed = outcomes.iter().find_map(|(_, outcome)| outcome.as_ref().err()).cloned();
    let mut body = vec![b'['];
    for (index, (id, outcome)) in outcomes.into_iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        match outcome {
            Ok(Some(verdict)) => body.extend_from_slice(&verdict),
            Ok(None) => body.extend(accepted(&id)),
            Err(refusal) => body.extend(refusal.body_json().to_string().into_bytes()),
        }
    }
    body.push(b']');
    let Some(refusal) = failed else {
        return json_response(if all_accepted { StatusCode::ACCEPTED } else { StatusCode::OK }, body);
    };
    // The headers are the refusal's, such as Retry-After.
    let mut response = refusal.into_response();
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body.into();
    response
}

/// Returns the body of the answer to an event that gets no verdict.
fn accepted(event_id: &str) -> Vec<u8> {
    serde_json::json!({"event_id": event_id, "accepted": true}).to_string().into_bytes()
}

/// Events are JSON. Without the header, curl's default would be a form.
fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let media = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if matches!(media.as_str(), "application/json" | "application/cloudevents+json") {
        return Ok(());
    }
    let message =
        "content-type: found another type than JSON; send `Content-Type: application/json` (curl: -H 'content-type: application/json')";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type_unknown", message))
}

/// Returns the id that the header `Idempotency-Key` gives to the event.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    // The header's standard puts the key into quotes.
    let text = value.to_str().ok().map(|text| text.trim().trim_matches('"')).filter(|text| !text.is_empty() && text.len() <= 120);
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        Refusal::body("idempotency_key_invalid", "idempotency-key: found no text of 1 to 120 characters; write an id of the event")
    })
}
