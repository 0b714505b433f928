//! Requests as hosts send them, written from their documentation: the events of each, and the answer to each kind of verdict.
//! `TOLLGATE_UPDATE_FIXTURES=1` writes the expected parts anew; read them before you commit them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tollgate_core::Gate;
use tollgate_core::decide::policy::{Policy, PolicySettings};
use tollgate_hosts::Wire;
use tollgate_passport::{AgentHost, CapabilityMap};

use crate::support::{OUTCOMES, Recorded, all, answer, expected, file, read, recorded};

#[test]
fn requests_have_their_events_and_verdicts_their_answers() {
    let updates = std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some();
    for wire in all() {
        let wanted = recorded(wire);
        let found: Vec<Recorded> = wanted.iter().map(|request| outcome(wire, request)).collect();
        let line = |recorded: &Recorded| serde_json::to_string(recorded).unwrap();
        if updates {
            let text: String = found.iter().map(|found| line(found) + "\n").collect();
            std::fs::write(file(wire), text).unwrap();
            continue;
        }
        for (wanted, found) in wanted.iter().zip(&found) {
            assert_eq!(line(wanted), line(found), "{}: {}", wire.name(), wanted.name);
        }
    }
}

/// Returns a recorded request with what becomes of it.
fn outcome(wire: &dyn Wire, request: &Recorded) -> Recorded {
    let (name, path, body) = (request.name.clone(), request.path.clone(), request.body.clone());
    let bytes = request.bytes();
    let mut found = Recorded { name, path, body, events: None, answers: None, refused: None };
    match read(wire, &request.path, &bytes) {
        Err(refused) => found.refused = Some(refused),
        Ok(question) => {
            let has_verdicts = expected(&question) > 0;
            found.events = Some(question.events.iter().cloned().map(Value::Object).collect());
            let outcomes = OUTCOMES.into_iter().filter(|outcome| has_verdicts || matches!(*outcome, "unanswered" | "missing"));
            let answers = outcomes.map(|outcome| (outcome.to_owned(), answer(read(wire, &request.path, &bytes).unwrap(), outcome)));
            found.answers = Some(Value::Object(answers.collect::<Map<_, _>>()));
        }
    }
    found
}

/// Passports know the tools of a host whose name the configuration names.
#[test]
fn every_tool_of_a_host_is_in_its_table() {
    let unknown = ["Read", "editFiles", "run", "x", "list_orders"];
    for (wire, host) in all().into_iter().filter_map(|wire| Some((wire, AgentHost::of(wire.name())?))) {
        let needs = CapabilityMap::new(Some(&[host]), &BTreeMap::new());
        let events = recorded(wire).into_iter().filter_map(|request| request.events).flat_map(|events| events.as_array().cloned().unwrap());
        let tools: BTreeSet<String> = events.filter_map(|event| Some(event["tool_name"].as_str()?.to_owned())).collect();
        for tool in tools.iter().filter(|tool| !unknown.contains(&tool.as_str()) && !tool.starts_with("MCP:")) {
            assert!(needs.need(tool).is_some(), "{}: {tool}", wire.name());
        }
    }
}

#[test]
fn every_event_is_one_that_the_gate_takes() {
    for wire in all() {
        for request in recorded(wire) {
            let Ok(question) = read(wire, &request.path, &request.bytes()) else { continue };
            for event in &question.events {
                let bytes = serde_json::to_vec(event).unwrap();
                let settings = PolicySettings::from_value(&json!({})).unwrap();
                let mut gate = Gate::new(Policy::new(&settings));
                let verdict = gate.decide_keyed(None, &bytes);
                let text = String::from_utf8_lossy(verdict);
                assert!(!text.contains("invalid_event"), "{}: {}: {text}", wire.name(), request.name);
            }
        }
    }
}

/// Errors name a member and a fix, and repeat nothing of the request.
#[test]
fn refusals_say_what_is_wrong_and_nothing_of_the_request() {
    let mut refusals = 0;
    for wire in all() {
        for request in recorded(wire) {
            let Err(refused) = read(wire, &request.path, &request.bytes()) else { continue };
            refusals += 1;
            let text = refused.to_string();
            let place = format!("{}: {}: {text}", wire.name(), request.name);
            if text != r#"{"result":false}"# {
                assert!(text.contains("Tollgate refused a request that it cannot read: ") && text.contains("; "), "{place}");
            }
            for raw in ["npm test", "PreEverything", "cargo", "ada@example.com", "/etc/shadow", "sendEmail", "6f0c1b1e"] {
                assert!(!text.contains(raw), "{place}");
            }
        }
    }
    assert!(refusals > 50, "{refusals} refusals");
}
