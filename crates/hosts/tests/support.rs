//! What the modules share: recorded requests, verdicts of every kind, and how a host reads an answer.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tollgate_hosts::{Event, LITELLM, OPA, Outcome, Question, Request, Unanswered, Verdict, Wire, wires};

/// A request as a host sends it, and what becomes of it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Recorded {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// A JSON value, or a string that is the body itself.
    pub body: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Value>,
}

impl Recorded {
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::from_str::<String>(self.body.get()).map_or_else(|_| self.body.get().as_bytes().to_vec(), String::into_bytes)
    }
}

/// Returns all wires.
pub fn all() -> Vec<&'static dyn Wire> {
    wires().iter().copied().chain([OPA, LITELLM]).collect()
}

pub fn file(wire: &dyn Wire) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{}.jsonl", wire.name()))
}

pub fn recorded(wire: &dyn Wire) -> Vec<Recorded> {
    let text = std::fs::read_to_string(file(wire)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", wire.name()))).collect()
}

/// Reads a body; a refusal is the body of its answer.
pub fn read(wire: &dyn Wire, path: &str, body: &[u8]) -> Result<Question, Value> {
    wire.read(&Request { path, headers: &[], body }).map_err(|answer| {
        assert_eq!(answer.status, 200, "a host reads any other status as leave to go on");
        answer.body.unwrap()
    })
}

/// The kinds of outcome, by name.
pub const OUTCOMES: [&str; 6] = ["allow", "warn", "block", "halt", "unanswered", "missing"];

/// Returns how many verdicts a question gets.
pub fn expected(question: &Question) -> usize {
    decided(&question.events)
}

fn decided(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event["type"].as_str(), Some("tool_call" | "tool_result"))).count()
}

/// Answers a question with an outcome of this kind for each of its events.
pub fn answer(question: Question, outcome: &str) -> Value {
    let Question { events, answer } = question;
    let answer = outcome_of(&events, outcome, answer);
    assert_eq!(answer.status, 200);
    answer.body.unwrap()
}

/// Hands over an outcome of this kind for events.
pub fn outcome_of<A>(events: &[Event], outcome: &str, answer: impl FnOnce(Outcome<'_>) -> A) -> A {
    let is_result = events.iter().any(|event| event["type"] == "tool_result");
    let verdicts = vec![verdict(outcome, is_result); decided(events)];
    let unanswered = Unanswered { code: "deadline_exceeded", message: "no worker has answered within 2000 ms".to_owned() };
    match outcome {
        "unanswered" => answer(Err(&unanswered)),
        "missing" => answer(Ok(&[])),
        _ => answer(Ok(&verdicts)),
    }
}

fn verdict(outcome: &str, is_result: bool) -> Verdict {
    let action = if outcome == "halt" && !is_result { "block" } else { outcome };
    let said = match outcome {
        "allow" => json!({"code": "allow", "message": ""}),
        "warn" => json!({"code": "same_result_warning", "message": "The same call gave the same result 2 times."}),
        "halt" => json!({"code": "same_tool_failure_halt", "message": "The tool failed 5 times."}),
        _ => json!({"code": "oap.tool_not_allowed", "message": "tool 'x' is denied"}),
    };
    let mut verdict = json!({"action": action, "allows_execution": matches!(outcome, "allow" | "warn"), "should_halt": outcome == "halt"});
    let members = verdict.as_object_mut().unwrap();
    members.extend(said.as_object().unwrap().clone());
    if is_result && matches!(outcome, "warn" | "halt") {
        members.insert("guidance".to_owned(), "\n\n[Tool guardrail: count=2]".into());
    }
    serde_json::from_value(verdict).unwrap()
}

/// What a host does with a call after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The call runs after the host's own prompt and rules.
    Runs,
    /// The call runs without the host's own prompt.
    RunsUnasked,
    Blocked,
    /// The host takes the answer for broken.
    Broken,
}

/// Returns how a host reads the answer about a call, by its own documentation.
pub fn reading(host: &str, event: &str, answer: &Value) -> Reading {
    let own = &answer["hookSpecificOutput"];
    let blocked = |is_blocked: bool| if is_blocked { Reading::Blocked } else { Reading::Runs };
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    match host {
        "claude-code" | "vscode" => {
            if own.is_object() && own["hookEventName"] != event {
                return Reading::Broken;
            }
            match own["permissionDecision"].as_str() {
                Some("deny") => Reading::Blocked,
                Some("allow") => Reading::RunsUnasked,
                _ => blocked(answer["continue"] == false),
            }
        }
        "codex" => codex_reading(event, answer),
        "gemini-cli" => blocked(matches!(answer["decision"].as_str(), Some("deny" | "block")) || answer["continue"] == false),
        "copilot" => match answer["permissionDecision"].as_str() {
            Some("deny") => {
                if has_text(&answer["permissionDecisionReason"]) {
                    Reading::Blocked
                } else {
                    Reading::Broken
                }
            }
            Some("allow") => Reading::RunsUnasked,
            _ => Reading::Runs,
        },
        "cursor" => match answer["permission"].as_str() {
            Some("deny") => Reading::Blocked,
            Some("allow") => Reading::Runs,
            _ => Reading::Broken,
        },
        "opa" if event.trim_end_matches('/').ends_with("allow") => blocked(answer["result"] != true),
        "opa" => match (answer["result"]["decision"].as_str(), answer["result"]["allow"].as_bool()) {
            (Some("allow"), Some(true)) => Reading::Runs,
            (Some("deny"), Some(false)) => Reading::Blocked,
            _ => Reading::Broken,
        },
        "litellm" => blocked(answer["action"] == "BLOCKED" && has_text(&answer["blocked_reason"])),
        _ => panic!("{host} has no reading"),
    }
}

/// Codex fails a hook for a member that it does not know, and for some that it knows but does not take before a call.
fn codex_reading(event: &str, answer: &Value) -> Reading {
    let own = &answer["hookSpecificOutput"];
    let knows =
        |value: &Value, known: &[&str]| value.as_object().is_none_or(|members| members.keys().all(|key| known.contains(&key.as_str())));
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let is_known = knows(answer, &["decision", "reason", "hookSpecificOutput", "systemMessage"])
        && knows(own, &["hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"])
        && (own.is_null() || own["hookEventName"] == event);
    if !is_known {
        return Reading::Broken;
    }
    match (own["permissionDecision"].as_str(), answer["decision"].as_str()) {
        (Some("deny"), _) if has_text(&own["permissionDecisionReason"]) => Reading::Blocked,
        (None, Some("block")) if has_text(&answer["reason"]) => Reading::Blocked,
        (None, None) => Reading::Runs,
        _ => Reading::Broken,
    }
}
