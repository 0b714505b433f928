//! agentgateway's ExtMCP: messages that the protocol buffers library for Python wrote, the events of each, and answers byte by byte as this library
//! writes them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_hosts::{Question, ext_mcp};

use crate::support::outcome_of;

/// A message of the gateway, and what becomes of it. Bytes are hexadecimal digits.
#[derive(Debug, Deserialize, Serialize)]
struct Recorded {
    name: String,
    rpc: String,
    message: String,
    /// The answer to each kind of outcome.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    answers: Map<String, Value>,
    /// A part of the reason why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/ext_mcp.jsonl")
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(recorded: &Recorded) -> Result<Question<Vec<u8>>, Vec<u8>> {
    let message = bytes(&recorded.message);
    match recorded.rpc.as_str() {
        "CheckRequest" => ext_mcp::check_request(&message, "c1".to_owned()),
        "CheckResponse" => ext_mcp::check_response(&message),
        other => panic!("{other} is no call of the service"),
    }
}

#[test]
fn recorded_messages_are_answered_byte_by_byte() {
    let text = std::fs::read_to_string(file()).unwrap();
    let mut lines: Vec<Recorded> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 40, "{} messages", lines.len());
    for recorded in &mut lines {
        let name = recorded.name.clone();
        match (read(recorded), &recorded.refused) {
            (Ok(question), None) => {
                let event = Value::Array(question.events.into_iter().map(Value::Object).collect());
                if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
                    recorded.event = Some(event);
                } else {
                    assert_eq!(recorded.event, Some(event), "{name}");
                }
                assert!(recorded.answers.len() >= 5, "{name}: every kind of outcome has its answer");
                for (outcome, wanted) in &recorded.answers {
                    let question = read(recorded).unwrap();
                    let answer = outcome_of(&question.events, outcome, |outcome| (question.answer)(outcome));
                    assert_eq!(Value::from(hex(&answer)), *wanted, "{name}: {outcome}: {}", String::from_utf8_lossy(&answer));
                }
            }
            (Err(answer), Some(reason)) => {
                // An error, code INVALID: its length varies with the reason.
                let text = String::from_utf8_lossy(&answer);
                assert_eq!((answer[0], text.contains("\u{8}\u{3}")), (0x1a, true), "{name}: {text}");
                assert!(text.contains(reason.as_str()), "{name}: {text}");
            }
            (read, refused) => panic!("{name}: {refused:?}, and it is {read:?}"),
        }
    }
    if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        std::fs::write(file(), text).unwrap();
    }
}
