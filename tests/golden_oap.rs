//! Golden cases of the Open Agent Passport: what the reference evaluator and the published vectors answer, and where Tollgate differs.
//!
//! A case agrees in allow, code, policy and message, or it stands in `tests/golden/oap/differences.md` with what is answered here and why.
//! The reference quotes the call in some messages, and Tollgate never does: what it quotes is taken out before messages are compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::{Gate, jsonl, settings};
use tollgate::policy::Policy;

const DIFFERENCES: &str = "tests/golden/oap/differences.md";

/// Names that the reference takes for tools of these capabilities, and that a configuration can map.
const NAMES_OF_THE_REFERENCE: [(&str, &str); 8] = [
    ("exec.run", "system.command.execute"),
    ("system.command.execute", "system.command.execute"),
    ("read", "data.file.read"),
    ("write", "data.file.write"),
    ("mcp.tool.execute", "mcp.tool.execute"),
    ("mcp.github", "mcp.tool.execute"),
    ("mcp.github.create_issue", "mcp.tool.execute"),
    ("messaging.message.send", "messaging.send"),
];

/// What is answered to a case: code, policy and message of the primary reason.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    allow: bool,
    code: String,
    policy_id: Option<String>,
    message: String,
}

/// The passport of a case, as text; `None` if there is none.
fn passport(case: &Value) -> Option<Vec<u8>> {
    match (&case["passport_raw"], &case["passport"]) {
        (Value::String(text), _) => Some(text.clone().into_bytes()),
        (_, Value::Null) => None,
        (_, passport) => Some(passport.to_string().into_bytes()),
    }
}

fn answer(case: &Value) -> Answer {
    let capabilities: BTreeMap<_, _> = NAMES_OF_THE_REFERENCE.into_iter().collect();
    let text = passport(case);
    let path = text.is_some().then_some("passport.json");
    let config = json!({"passport_path": path, "tool_capabilities": capabilities});
    let mut settings =
        settings(&json!({"guardrails": {"enabled": true, "provider": {"use": "x.generic:OAPGuardrailProvider", "config": config}}}));
    settings.load_files(|_| Ok(text.clone().unwrap())).unwrap();
    let verdict = Gate::new(Policy::new(&settings.policy)).event(&json!({
        "type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "timestamp": "2026-01-01T00:00:00Z",
        "tool_name": case["tool"], "tool_input": case["context"],
    }));
    let reason = &verdict["reasons"][0];
    assert_eq!(reason["source"], "guardrail", "{verdict}");
    Answer {
        allow: verdict["allows_execution"].as_bool().unwrap(),
        code: reason["code"].as_str().unwrap().to_owned(),
        policy_id: reason["policy_id"].as_str().map(str::to_owned),
        message: reason["message"].as_str().unwrap().to_owned(),
    }
}

/// A message of the reference without what it quotes of the call.
fn without_quotes(message: &str, case: &Value) -> String {
    let call = format!("{} {}", case["context"], case["tool"]).to_lowercase();
    let mut plain = String::new();
    for (index, part) in message.split('\'').enumerate() {
        let is_quote = index % 2 == 1;
        let spelled = Value::from(part).to_string();
        if is_quote && call.contains(spelled.trim_matches('"').trim_start_matches("0x7f.1").to_lowercase().as_str()) {
            plain = plain.trim_end().to_owned();
        } else if is_quote {
            plain.push_str(&format!("'{part}'"));
        } else {
            plain.push_str(part);
        }
    }
    plain
}

/// What a case says that the answer does not: empty if they agree. The reference's policy `unknown` is none.
fn disagreement(case: &Value, answer: &Answer) -> Vec<String> {
    let expected = &case["expected"];
    let mut found = Vec::new();
    if expected["allow"] != answer.allow {
        found.push(format!("allow is {}", answer.allow));
    }
    if expected["code"].as_str().is_some_and(|code| code != answer.code) {
        found.push(format!("code is {}", answer.code));
    }
    let policy_id = expected["policy_id"].as_str().filter(|policy_id| *policy_id != "unknown");
    if policy_id.is_some() && policy_id != answer.policy_id.as_deref() {
        found.push(format!("policy_id is {:?}", answer.policy_id));
    }
    if let Some(message) = expected["message"].as_str().filter(|message| without_quotes(message, case) != answer.message) {
        found.push(format!("message is {:?}, not {message:?}", answer.message));
    }
    found
}

/// The rows of the document: case → the code that is answered here.
fn differences() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(DIFFERENCES).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let mut read = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let [case, _reference, here] = cells.as_slice() else { panic!("three cells: {row}") };
        assert!(read.insert((*case).to_owned(), (*here).to_owned()).is_none(), "{case} stands there twice");
    }
    read
}

#[test]
fn every_case_agrees_or_its_difference_is_documented() {
    let cases = jsonl("tests/golden/oap/cases.jsonl");
    assert_eq!(cases.len(), 199);
    let mut differences = differences();
    let mut offenders = Vec::new();
    for case in &cases {
        let (id, answer) = (case["id"].as_str().unwrap(), answer(case));
        let found = disagreement(case, &answer);
        match (differences.remove(id), found.is_empty()) {
            (None, true) => {}
            (Some(here), false) if here == answer.code => {}
            (Some(here), false) => offenders.push(format!("{id}: {} is answered, not {here}", answer.code)),
            (Some(_), true) => offenders.push(format!("{id}: it agrees and is listed")),
            (None, false) => offenders.push(format!("{id}: {} [{}] {}", found.join(", "), case["tool"], case["context"])),
        }
    }
    offenders.extend(differences.keys().map(|id| format!("{id}: there is no such case")));
    assert!(offenders.is_empty(), "{} cases:\n{}", offenders.len(), offenders.join("\n"));
}
