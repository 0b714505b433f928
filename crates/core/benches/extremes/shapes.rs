//! How events of the largest size are made: a beginning, as many pieces as there is room for, and an end.

use std::sync::Arc;

use serde_json::json;
use tollgate_core::decide::guardrail::{Dialect, Http};
use tollgate_core::decide::policy::Policy;
use tollgate_fixtures::events::rows::passport;
use tollgate_fixtures::events::{policy, policy_with};

/// The length of every event, nearly: the default of `limits.event_bytes_max`.
pub const BYTES: usize = 8 * 1024 * 1024;

/// The most bytes of arguments that a passport looks at, less what stands around them.
const EXAMINED_BYTES: usize = 1024 * 1024 - 64;

/// One event of the largest size, and the policy that decides on it.
pub struct Extreme {
    pub name: &'static str,
    pub policy: fn() -> Arc<Policy>,
    pub event: String,
}

/// A function that makes an event; they are large, so one is made at a time.
pub type Make = fn() -> Extreme;

/// Returns a row under the policy of the defaults.
pub fn plain(name: &'static str, event: String) -> Extreme {
    Extreme { name, policy, event }
}

/// Returns a row whose call a passport is asked about.
pub fn under_passport(name: &'static str, event: String) -> Extreme {
    let policy = || {
        let limits = json!({"data.file.read": {"allowed_paths": ["/work/**", "src/*.rs"], "blocked_patterns": ["secret", "**/*.pem"]}});
        policy_with(passport(&json!({
            "passport_id": "550e8400-e29b-41d4-a716-446655440001", "spec_version": "oap/1.0", "kind": "template", "status": "active",
            "capabilities": [{"id": "data.file.read"}], "limits": limits,
        })))
    };
    Extreme { name, policy, event }
}

/// Returns a row whose call a policy server is asked about. Only the question is written.
pub fn under_server(name: &'static str, event: String) -> Extreme {
    Extreme { name, policy: || policy_with(Http::new("policy".to_owned(), Dialect::Opa)), event }
}

pub fn fill(head: &str, piece: &str, tail: &str) -> String {
    let count = (BYTES - head.len() - tail.len()) / piece.len();
    format!("{head}{}{tail}", piece.repeat(count))
}

/// Like [`fill`], with pieces that differ.
pub fn fill_with(head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    for piece in (0..).map(piece) {
        if text.len() + piece.len() + tail.len() > BYTES {
            break;
        }
        text.push_str(&piece);
    }
    text + tail
}

/// Like [`fill`] for the list at the end of arguments, of which there are as many as a passport looks at. The rest is a field of the event
/// that nobody knows.
pub fn fill_examined(head: &str, piece: &str, last: &str) -> String {
    padded(format!("{head}{}{last}", piece.repeat(EXAMINED_BYTES / piece.len())))
}

/// Returns a call with this many of a path.
pub fn fill_paths(path: &str, count: usize) -> String {
    padded(format!("{PATHS}{}", vec![path; count].join(",")))
}

fn padded(paths: String) -> String {
    let text = format!("{paths}]}},\"note\":\"");
    let rest = "x".repeat(BYTES - text.len() - 2);
    format!("{text}{rest}\"}}")
}

/// Spreads numbers, so that neighbours are out of order.
pub fn scrambled(n: usize) -> usize {
    n * 7_919 % 999_983
}

pub fn call(head: &str, piece: &str, tail: &str) -> String {
    fill(&format!("{CALL}{head}"), piece, &format!("{tail}}}"))
}

pub fn call_with(piece: impl Fn(usize) -> String) -> String {
    fill_with(&format!("{CALL}{{"), piece, r#""last":0}}"#)
}

pub fn encoded(head: &str, piece: &str, tail: &str) -> String {
    fill(&format!("{ENCODED}{head}"), piece, &format!("{tail}\"}}"))
}

pub fn encoded_with(piece: impl Fn(usize) -> String) -> String {
    fill_with(&format!("{ENCODED}{{"), piece, r#"\"last\":0}"}"#)
}

pub fn result(tool: &str, head: &str, piece: &str, tail: &str) -> String {
    let begin = format!(
        r#"{{"type":"tool_result","thread_id":"t","tool_call_id":"c","tool_name":"{tool}","tool_input":{{"path":"a"}},"result":"{head}"#
    );
    fill(&begin, piece, &format!("{tail}\"}}"))
}

pub fn response(head: &str, piece: &str, tail: &str) -> String {
    fill(&format!("{RESPONSE}{head}"), piece, &format!("{tail}}}}}"))
}

/// Returns a response that was cut off, with this in its choices.
pub fn cut_off_with(head: &str, piece: impl Fn(usize) -> String, tail: &str) -> String {
    fill_with(&format!(r#"{RESPONSE}"choices":[{{"finish_reason":"content_filter"}},{head}"#), piece, &format!("{tail}]}}}}"))
}

pub fn calls_cut_off(piece: impl Fn(usize) -> String) -> String {
    cut_off_with(r#"{"message":{"tool_calls":["#, piece, "{}]}}")
}

/// Returns a response with as many calls as it flags, and flags no call that it has.
pub fn flags_other_calls() -> String {
    let of_all = |piece: fn(usize) -> String| (0..(BYTES - 256) / (piece(0).len() * 2)).map(piece).collect::<String>();
    let flagged = of_all(|n| format!(r#""{n:063}":{{"outcome":"flagged"}},"#));
    let calls = of_all(|n| format!(r#"{{"type":"tool_use","id":"f{n:059}"}},"#));
    format!(r#"{RESPONSE}"safeguard_results":[{{"status":{{"tool_uses":{{{flagged}"":0}}}}}}],"content":[{calls}0]}}}}"#)
}

const CALL: &str = r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"write_file","tool_input":"#;
const ENCODED: &str = r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"write_file","arguments":""#;
pub const FIELDS: &str = r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"x","#;
pub const PATHS: &str = r#"{"type":"tool_call","thread_id":"t","tool_call_id":"c","tool_name":"read_file","tool_input":{"paths":["#;
const RESPONSE: &str = r#"{"type":"model_response","thread_id":"t","response":{"#;
pub const MESSAGE: &str = r#"{"type":"model_response","thread_id":"t","message":{"response_metadata":{"finish_reason":"content_filter"},"#;
