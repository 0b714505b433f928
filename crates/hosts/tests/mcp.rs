//! Frames of MCP, one conversation a line: what is done with each frame, the event that is asked about, and what its sender or receiver gets.

use serde_json::{Value, json};
use tollgate_hosts::mcp::{Session, Step};
use tollgate_hosts::{Unanswered, Verdict};

const CASES: &str = include_str!("mcp.jsonl");

/// Returns the verdict that a case names.
fn verdict(name: &str) -> Result<Verdict, Unanswered> {
    let (action, allows, halts, code, message, synthetic, guidance) = match name {
        "allow" => ("allow", true, false, "allow", "", None, None),
        "allow that does not allow" => ("allow", false, false, "allow", "said", None, None),
        "warn" => ("warn", true, false, "careful", "Careful.", None, None),
        "guidance" => ("warn", true, false, "careful", "Careful.", None, Some("\n\nTry \"another\" way.")),
        "block" => ("block", false, false, "refused", "Refused it.", Some("Refused."), None),
        "block and stop" => ("block", false, true, "stuck", "Stuck.", Some("Refused."), None),
        "halt" => ("halt", false, true, "stuck", "Stuck.", Some("Halted."), None),
        "halt of a result" => ("halt", false, true, "stuck", "Stuck.", None, Some("Stop now.")),
        "none" => return Err(Unanswered { code: "gate_unreachable", message: "the gate is down".to_owned() }),
        other => panic!("there is no verdict {other}"),
    };
    let verdict = json!({"action": action, "allows_execution": allows, "should_halt": halts, "code": code, "message": message,
        "synthetic_result": synthetic, "guidance": guidance});
    Ok(serde_json::from_value(verdict).unwrap())
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Takes a step, and returns the kind of step and what somebody gets of it.
fn take(session: &mut Session, wanted: &Value, at: &str) -> (&'static str, Option<String>) {
    let of = |side: &str| wanted[side].as_str().map(|line| line.as_bytes().to_vec());
    let hex = |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect::<Vec<u8>>();
    let is_server = wanted["server"].is_string();
    let line = of("client").or_else(|| of("server")).unwrap_or_else(|| hex(wanted["client_hex"].as_str().unwrap()));
    match if is_server { session.of_server(&line) } else { session.of_client(&line) } {
        Step::Pass => ("pass", None),
        Step::Answer(answer) => (if wanted["is"] == "refused" { "refused" } else { "answer" }, Some(text(answer))),
        Step::Drop(why) => ("drop", Some(why)),
        Step::End(why) => ("end", Some(why)),
        Step::Ask(asked) => {
            for (name, value) in wanted["event"].as_object().into_iter().flatten() {
                assert_eq!(&asked.event[name], value, "{at}: {name}");
            }
            let verdict = verdict(wanted["verdict"].as_str().unwrap_or("allow"));
            let outcome = verdict.as_ref().map(std::slice::from_ref);
            let gets = if is_server { Some(session.report(&asked, &line, outcome)) } else { session.decide(asked, outcome) };
            ("ask", gets.map(text))
        }
    }
}

#[test]
fn every_frame_is_handled_as_its_case_says() {
    for case in CASES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let mut session = Session::new("files", "t", "n").unwrap();
        for (index, wanted) in case["steps"].as_array().unwrap().iter().enumerate() {
            let at = format!("{}, step {index}", case["name"]);
            if let Some(lost) = wanted["lost"].as_array() {
                let found: Vec<Value> = session.lost().into_iter().map(|frame| json!(text(frame))).collect();
                assert_eq!(&found, lost, "{at}");
                continue;
            }
            let (is, gets) = take(&mut session, wanted, &at);
            assert_eq!(is, wanted["is"], "{at}: {gets:?}");
            if let Some(says) = wanted["says"].as_str() {
                let said = gets.unwrap();
                assert!(said.contains(says) && !said.contains("/etc"), "{at}: {said}");
                if is == "refused" {
                    let error: Value = serde_json::from_str(&said).unwrap();
                    assert_eq!((&error["id"], &error["error"]["code"]), (&wanted["id"], &json!(-32_600)), "{at}");
                }
            } else {
                assert_eq!(gets.as_deref(), wanted["gets"].as_str(), "{at}");
            }
        }
    }
}

#[test]
fn names_that_read_in_two_ways_are_refused() {
    for (server, thread) in
        [("", "t"), ("a__b", "t"), ("_a", "t"), ("a_", "t"), ("a/b", "t"), ("a", ""), ("a", "t\n"), ("a", &"t".repeat(300))]
    {
        assert!(Session::new(server, thread, "n").is_err(), "{server} {thread}");
    }
    assert!(Session::new("git-hub.v2_x", "any thread", "n").is_ok());
}

/// The session stops counting requests before they fill the memory, and a long result reaches the gate as its beginning and its digest.
#[test]
fn what_a_session_keeps_is_bounded() {
    let mut session = Session::new("files", "t", "n").unwrap();
    let ping = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string().into_bytes();
    assert!((0..1_024).all(|id| matches!(session.of_client(&ping(id)), Step::Pass)));
    assert!(matches!(session.of_client(&ping(1_024)), Step::Answer(_)));

    let mut session = Session::new("files", "t", "n").unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read"}}).to_string();
    let Step::Ask(asked) = session.of_client(call.as_bytes()) else { panic!("a call is asked about") };
    let allow = verdict("allow").unwrap();
    assert!(session.decide(asked, Ok(std::slice::from_ref(&allow))).is_none());
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x".repeat(300_000)}]}}).to_string();
    let Step::Ask(asked) = session.of_server(result.as_bytes()) else { panic!("a result is reported") };
    let sent = asked.event["result"].as_str().unwrap();
    assert!(sent.len() < 70_000 && sent.contains("bytes, sha256:"), "{}", sent.len());
    assert_eq!(session.report(&asked, result.as_bytes(), Ok(std::slice::from_ref(&allow))), result.into_bytes());
}
