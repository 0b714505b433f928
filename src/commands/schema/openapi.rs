//! The OpenAPI 3.1 document of the HTTP server: what `tollgate serve` takes and answers.

use serde_json::{Map, Value, json};

use tollgate_server::events::EVENTS_MAX;
use tollgate_server::refusal::Refusal;
use tollgate_server::routes::{PROOF, WAIT_MS_MAX};

/// What a status without a verdict means. Each has the shape of a verdict that blocks.
const REFUSALS: [(&str, &str); 12] = [
    ("400", "The request cannot be read; the message names the field, the shape of the value and the fix."),
    ("401", "No token and no client certificate that the server knows, or both."),
    ("403", "The caller may not speak for this tenant or agent, or may not ask from there."),
    ("404", "No verdict of this id is remembered here."),
    ("405", "The path takes another method."),
    ("408", "The body took too long to come."),
    ("409", "The id is that of another event of the thread."),
    ("413", "The body or the event is too large."),
    ("415", "The body is of another type than JSON, or packed with another coding than gzip."),
    ("429", "The caller sends more requests than it may; try again under the same event id."),
    ("503", "The server cannot answer now; try again under the same event id."),
    ("504", "No worker answered in time; get the verdict later at `verdict_path`, or ask again under the same event id."),
];

/// Returns the document. The schemas of events and verdicts are those that `tollgate schema` prints, which stand beside it.
pub(super) fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The gate over HTTP. A call may run if, and only if, the answer is a verdict whose `allows_execution` is true. An \
                answer without a verdict has the shape of a verdict that blocks, so that a client which looks at the body alone fails closed.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "http://127.0.0.1:7878", "description": "Where `tollgate serve` and `tollgate dev` listen by default."}],
        "security": [{}, {"token": []}, {"certificate": []}],
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of `serve.tokens`."},
                "certificate": {"type": "mutualTLS", "description": "A client certificate that an entry of `serve.tokens` names."},
            },
            "schemas": {"Refusal": Refusal::schema(), "Accepted": accepted()},
            "parameters": parameters(),
            "headers": headers(),
            "responses": REFUSALS.iter().map(|(status, what)| ((*status).to_owned(), refusal(status, what))).collect::<Map<_, _>>(),
        },
    })
}

fn paths() -> Value {
    let hosts: Vec<_> = tollgate_hosts::wires().iter().map(|wire| wire.name()).collect();
    let host = parameter("host", "path", true, &json!({"enum": hosts}), "The host, whose own words the request and the answer are in.");
    let event = parameter("event", "path", true, &json!({"type": "string"}), "The event, where the host does not name it in the body.");
    let data = parameter(
        "path",
        "path",
        true,
        &json!({"type": "string"}),
        "One or more segments. The last segment chooses the shape of the result: `decision`, `allow`, or a denial.",
    );
    json!({
        "/v1/events": {"post": ask()},
        "/v1/verdicts/{verdict_id}": {"get": again()},
        "/v1/hooks/{host}": {"post": in_words_of_host("hook", "Asks with a hook of a coding agent.", &[host])},
        "/v1/hooks/copilot/{event}": {"post": in_words_of_host("copilotHook", "Asks with a hook of Copilot in camelCase.", &[event])},
        "/v1/data/{path}": {"post": in_words_of_host("opa", "Asks as OPA's Data API is asked.", &[data])},
        "/beta/litellm_basic_guardrail_api": {"post": in_words_of_host("litellm", "Asks as LiteLLM's generic guardrail API is asked.", &[])},
    })
}

fn ask() -> Value {
    let references =
        |names: &[&str]| names.iter().map(|name| json!({"$ref": format!("#/components/parameters/{name}")})).collect::<Vec<_>>();
    let event = json!({"oneOf": [{"$ref": "event.json"}, list(&json!({"$ref": "event.json"}))]});
    let verdict = json!({"$ref": "verdict.json"});
    let outcome = json!({"anyOf": [verdict, schema("Accepted")]});
    let answers = [
        (
            "200",
            "The verdict: the bytes that the worker published. To a list, a list in the same order.",
            json!({"anyOf": [verdict, list(&outcome)]}),
        ),
        ("202", "The events are in the log and get no verdict.", json!({"anyOf": [schema("Accepted"), list(&schema("Accepted"))]})),
    ];
    json!({
        "operationId": "ask",
        "summary": "Asks for the verdict on an event, or on the events of a thread in their order.",
        "description": "Events of a list are of one thread. The status of a list is that of its first event without a verdict.",
        "parameters": references(&["Prefer", "IdempotencyKey", "ContentEncoding", "Traceparent", "Tracestate", "RequestId"]),
        "requestBody": {"required": true, "content": {"application/json": {"schema": event}, "application/cloudevents+json": {"schema": event}}},
        "responses": responses(&answers, &["400", "401", "403", "408", "409", "413", "415", "429", "503", "504"]),
    })
}

fn again() -> Value {
    let id = parameter("verdict_id", "path", true, &json!({"type": "string", "pattern": "^[0-9a-f]{32}$"}), "The verdict's id.");
    let wait = parameter("wait", "query", false, &milliseconds(), "How long to wait, in milliseconds, in place of `Prefer`.");
    let answers = [("200", "The verdict: the bytes that the worker published.", json!({"$ref": "verdict.json"}))];
    json!({
        "operationId": "verdict",
        "summary": "Returns the verdict of an event that was asked about before, for as long as it is remembered.",
        "parameters": [id, wait, {"$ref": "#/components/parameters/Prefer"}, {"$ref": "#/components/parameters/RequestId"}],
        "responses": responses(&answers, &["400", "401", "403", "404", "413", "429", "503", "504"]),
    })
}

/// Returns an operation whose request and answer are in a host's own words. Its status is always 200, since hosts read any other as leave.
fn in_words_of_host(id: &str, summary: &str, parameters: &[Value]) -> Value {
    let object = json!({"type": "object"});
    json!({
        "operationId": id,
        "summary": summary,
        "description": "docs/hosts.md has the words of each host. Whatever is wrong, the answer is a denial with status 200.",
        "parameters": parameters,
        "requestBody": {"required": true, "content": {"application/json": {"schema": object}}},
        "responses": responses(&[("200", "The answer in the host's words.", object.clone())], &[]),
    })
}

/// Returns the responses of an operation: those with a schema of their own, and refusals by their status.
fn responses(own: &[(&str, &str, Value)], refusals: &[&str]) -> Value {
    let own = own.iter().map(|(status, what, schema)| {
        let content = json!({"application/json": {"schema": schema}});
        ((*status).to_owned(), json!({"description": what, "headers": header_references(&[]), "content": content}))
    });
    let refusals = refusals.iter().map(|status| ((*status).to_owned(), json!({"$ref": format!("#/components/responses/{status}")})));
    own.chain(refusals).collect::<Map<_, _>>().into()
}

fn refusal(status: &str, what: &str) -> Value {
    // The answer to a list is a list, in which events with a verdict stand too.
    let item = json!({"anyOf": [{"$ref": "verdict.json"}, schema("Accepted"), schema("Refusal")]});
    let content = json!({"application/json": {"schema": {"anyOf": [schema("Refusal"), list(&item)]}}});
    let more: &[&str] = match status {
        "401" => &["WWW-Authenticate"],
        "429" | "503" => &["Retry-After"],
        _ => &[],
    };
    json!({"description": what, "headers": header_references(more), "content": content})
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn list(item: &Value) -> Value {
    json!({"type": "array", "minItems": 1, "maxItems": EVENTS_MAX, "items": item})
}

fn accepted() -> Value {
    json!({
        "type": "object",
        "description": "An event that gets no verdict and is in the log.",
        "required": ["event_id", "accepted"],
        "additionalProperties": false,
        "properties": {"event_id": {"type": "string"}, "accepted": {"const": true}},
    })
}

fn milliseconds() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": WAIT_MS_MAX})
}

fn parameter(name: &str, place: &str, required: bool, schema: &Value, what: &str) -> Value {
    json!({"name": name, "in": place, "required": required, "schema": schema, "description": what})
}

fn parameters() -> Value {
    let text = json!({"type": "string"});
    let header = |name: &str, schema: &Value, what: &str| parameter(name, "header", false, schema, what);
    json!({
        "Prefer": header("Prefer", &text, "`wait=MS`: how long to wait, in milliseconds (RFC 7240 has seconds), in place of `serve.deadline_ms`."),
        "IdempotencyKey": header(
            "Idempotency-Key",
            &json!({"type": "string", "minLength": 1, "maxLength": 122}),
            "The id of an event that has no `event_id`; of a list, the beginning of the ids.",
        ),
        "ContentEncoding": header("Content-Encoding", &json!({"enum": ["gzip"]}), "How the body is packed."),
        "Traceparent": header("traceparent", &text, "The W3C trace context, which goes on to the verdict."),
        "Tracestate": header("tracestate", &text, "The vendors' part of the trace context."),
        "RequestId": header("x-request-id", &json!({"type": "string", "maxLength": 128}), "A name for the request, which the answer repeats."),
    })
}

fn headers() -> Value {
    let header = |schema: Value, what: &str| json!({"schema": schema, "description": what});
    json!({
        "X-Request-Id": header(json!({"type": "string"}), "The name of the request, the client's or the server's."),
        "Server-Timing": header(json!({"type": "string"}), "`wait;dur=MS`: how long the request took."),
        "X-Tollgate": header(json!({"const": PROOF.1}), "Says that the answer is of Tollgate's server."),
        "Retry-After": header(json!({"type": "integer"}), "After how many seconds to try again."),
        "WWW-Authenticate": header(json!({"const": "Bearer"}), "How to show a token."),
    })
}

fn header_references(more: &[&str]) -> Value {
    let names = ["X-Request-Id", "Server-Timing", "X-Tollgate"].into_iter().chain(more.iter().copied());
    names.map(|name| (name.to_owned(), json!({"$ref": format!("#/components/headers/{name}")}))).collect::<Map<_, _>>().into()
}
