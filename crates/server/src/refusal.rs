//! Answers without a verdict. Each has the shape of a verdict that blocks, so that a client which only looks at the body fails closed.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tollgate_json::digest::Fingerprint;

/// Why a request has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// The code, as `deadline_exceeded`.
    pub code: &'static str,
    /// A sentence for people. It repeats nothing of the request.
    pub message: String,
    /// The event that has no verdict, where the event is known.
    pub event_id: Option<String>,
    /// The verdict that may still come, where there is such a verdict.
    pub awaited: Option<Fingerprint>,
}

impl Refusal {
    /// Returns a refusal of the whole request.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), event_id: None, awaited: None }
    }

    /// Returns a refusal of a body that cannot be read.
    pub fn body(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Returns a refusal because the server cannot do its work now. A client may try again.
    pub fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
    }

    /// Names the event.
    #[must_use]
    pub fn of_event(mut self, event_id: &str) -> Self {
        self.event_id = Some(event_id.to_owned());
        self
    }

    /// Returns the verdict-shaped body.
    #[must_use]
    pub fn body_json(&self) -> serde_json::Value {
        let mut body = json!({
            "action": "block",
            "allows_execution": false,
            "should_halt": false,
            "code": self.code,
            "message": self.message,
            "decided_by": "envelope",
            "reasons": [{"source": "envelope", "code": self.code, "message": self.message, "policy_id": null}],
            "synthetic_result": format!("Error: {}", self.message),
        });
        // Clients know a verdict by its `verdict_id`, so a refusal has a path in that member's place.
        let path = self.awaited.map(|verdict| format!("/v1/verdicts/{verdict}"));
        for (name, text) in [("event_id", self.event_id.as_ref()), ("verdict_path", path.as_ref())] {
            if let (Some(text), Some(body)) = (text, body.as_object_mut()) {
                body.insert(name.to_owned(), json!(text));
            }
        }
        body
    }

    /// Returns the JSON Schema of the body.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        let reason = json!({
            "type": "object",
            "required": ["source", "code", "message", "policy_id"],
            "additionalProperties": false,
            "properties": {"source": {"const": "envelope"}, "code": {"type": "string"}, "message": {"type": "string"}, "policy_id": {"type": "null"}},
        });
        json!({
            "type": "object",
            "description": "An answer without a verdict, in the shape of a verdict that blocks.",
            "required": ["action", "allows_execution", "should_halt", "code", "message", "decided_by", "reasons", "synthetic_result"],
            "additionalProperties": false,
            "properties": {
                "action": {"const": "block"},
                "allows_execution": {"const": false},
                "should_halt": {"const": false},
                "code": {"type": "string", "pattern": "^[a-z0-9_]+$"},
                "message": {"type": "string", "description": "Names the field, the shape of the value and the fix. It repeats nothing of the request."},
                "decided_by": {"const": "envelope"},
                "reasons": {"type": "array", "minItems": 1, "maxItems": 1, "items": reason},
                "synthetic_result": {"type": "string", "description": "Stands for the result of the call that does not run."},
                "event_id": {"type": "string", "description": "The event that has no verdict, where the event is known."},
                "verdict_path": {
                    "type": "string",
                    "pattern": "^/v1/verdicts/[0-9a-f]{32}$",
                    "description": "Where the verdict can be had once it has come.",
                },
            },
        })
    }
}

/// How long a client should wait before it tries again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let content_type = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (self.status, content_type, self.body_json().to_string() + "\n").into_response();
        let headers = response.headers_mut();
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_looks_at_the_body_alone_runs_nothing() {
        let refusal = Refusal::new(StatusCode::GATEWAY_TIMEOUT, "deadline_exceeded", "no verdict came in time").of_event("e1");
        let body = refusal.body_json();
        assert_eq!((&body["action"], &body["allows_execution"]), (&json!("block"), &json!(false)));
        assert_eq!((&body["event_id"], &body["code"]), (&json!("e1"), &json!("deadline_exceeded")));
    }

    #[test]
    fn who_may_try_again_is_told_when() {
        let header = |refusal: Refusal, name| refusal.into_response().headers().get(name).cloned();
        assert!(header(Refusal::unavailable("too_many_waits", "x"), header::RETRY_AFTER).is_some());
        assert!(header(Refusal::body("value_not_json", "x"), header::RETRY_AFTER).is_none());
        let refused = Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "x");
        assert_eq!(header(refused, header::WWW_AUTHENTICATE).unwrap(), "Bearer");
    }
}
