//! Checks golden cases of the Open Agent Passport: what the reference evaluator and the published vectors answer, and where Tollgate
//! differs.
//!
//! A case agrees in allow, code, policy and message, or it stands in `tests/golden/oap/differences.md` with the answer here and the reason.
//! The reference quotes the call in some messages, and Tollgate never does: the quotes are taken out before messages are compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tollgate_fixtures::cases::jsonl;
use tollgate_json::{DEPTH_MAX, Parser};
use tollgate_passport::{CapabilityMap, Passport, Terms, ToolInput};

use super::passport::{NOW, decide_with};

const DIFFERENCES: &str = "tests/golden/oap/differences.md";

/// The names that the reference takes for tools of these capabilities, and that a configuration can map.
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

/// The answer to a case: code, policy and message of the primary reason.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    allow: bool,
    code: String,
    policy_id: Option<String>,
    message: String,
}

/// Returns the passport of a case, as text; `None` if there is none.
fn passport(case: &Value) -> Option<Vec<u8>> {
    match (&case["passport_raw"], &case["passport"]) {
        (Value::String(text), _) => Some(text.clone().into_bytes()),
        (_, Value::Null) => None,
        (_, passport) => Some(passport.to_string().into_bytes()),
    }
}

fn answer(case: &Value) -> Answer {
    let capabilities = NAMES_OF_THE_REFERENCE.map(|(tool, capability)| (tool.to_owned(), Some(capability.to_owned())));
    let terms = Terms { capabilities: CapabilityMap::new(Some(&[]), &capabilities.into()), ..Terms::default() };
    let read = passport(case).map(|text| Passport::read(&text).map(Arc::new));
    let (context, mut parser) = (case["context"].to_string(), Parser::new());
    let input = ToolInput::Value(parser.parse(context.as_bytes(), DEPTH_MAX).unwrap());
    let decision = decide_with(read, terms, Some(NOW), case["tool"].as_str().unwrap(), &input);
    let reason = &decision.reasons[0];
    Answer {
        allow: decision.allow,
        code: reason.code.to_string(),
        policy_id: reason.policy_id.as_ref().map(ToString::to_string),
        message: reason.message.to_string(),
    }
}

/// Returns a message of the reference without what it quotes of the call.
fn without_quotes(message: &str, case: &Value) -> String {
    let call = case["context"].to_string();
    let mut plain = String::new();
    for (index, part) in message.split('\'').enumerate() {
        let is_quote = index % 2 == 1;
        let spelled = Value::from(part).to_string();
        if is_quote && call.contains(spelled.trim_matches('"')) {
            plain = plain.trim_end().to_owned();
        } else if is_quote {
            plain.push_str(&format!("'{part}'"));
        } else {
            plain.push_str(part);
        }
    }
    plain
}

/// Returns what a case says that the answer does not: empty if they agree. The reference's policy `unknown` is none.
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
    // An answer may tell more behind the words of the reference.
    if let Some(message) = expected["message"].as_str().filter(|message| !answer.message.starts_with(&without_quotes(message, case))) {
        found.push(format!("message is {:?}, not {message:?}", answer.message));
    }
    found
}

/// Returns the rows of the document: case → the code that is answered here.
fn differences() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(DIFFERENCES).unwrap();
    let (cases, _) = text.split_once("\n# Where the standard is silent").unwrap();
    let rows = cases.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
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
