//! `GET /v1/verdicts/{verdict_id}`: the verdict of an event that was asked about before, for as long as it is remembered.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tollgate_json::digest::Fingerprint;

use super::{App, json_response, wait_of};
use crate::refusal::Refusal;

/// Answers a request with a verdict that was asked for before.
pub(super) async fn again(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    answered(&app, &id, request).await.unwrap_or_else(axum::response::IntoResponse::into_response)
}

async fn answered(app: &App, id: &str, request: Request) -> Result<Response, Refusal> {
    let (parts, _body) = request.into_parts();
    let caller = app.caller(&parts)?;
    let id = Fingerprint::parse(&id.to_ascii_lowercase()).ok_or_else(|| {
        Refusal::body("verdict_id_invalid", "verdict_id: found a text that is no verdict's id; write the 32 hex digits of `verdict_id`")
    })?;
    let asked = parts.uri.query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("wait="));
    let wait = asked.map_or_else(|| app.wait(&parts.headers), wait_of)?;
    let unknown = || {
        let message = "verdict_id: found no verdict of this id that is remembered here; publish the event again under the same event_id";
        Refusal::new(StatusCode::NOT_FOUND, "verdict_unknown", message)
    };
    let verdict = app.gate.again(id, wait).await.ok_or_else(unknown)??.ok_or_else(unknown)?;
    // A verdict of another tenant is as good as unknown.
    let of: Attribution = serde_json::from_slice(&verdict).map_err(|_| unknown())?;
    caller.check(of.tenant_id.as_deref(), of.agent_id.as_deref()).map_err(|_| unknown())?;
    Ok(json_response(StatusCode::OK, verdict.to_vec()).into_response())
}

/// Whom a verdict is about.
#[derive(Debug, serde::Deserialize)]
struct Attribution {
    tenant_id: Option<String>,
    agent_id: Option<String>,
}
