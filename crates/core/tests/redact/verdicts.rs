//! Over goldens, fixtures, the corpora of the fuzz targets and synthetic runs, every verdict is the same after redaction. Recorded runs are
//! checked where the other tests read them, in `replay.rs`.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::event::record::Header;
use tollgate_fixtures::cases::{Case, jsonl};
use tollgate_fixtures::controls::{controls, suspend};
use tollgate_fixtures::gate::{default_policy, hermes_settings, policy, settings};
use tollgate_fixtures::pair::Pair;
use tollgate_fixtures::traffic::{Mix, MixEvent, MixSettings};

#[test]
fn fixtures_of_events_and_of_records_that_are_refused() {
    let mut pair = Pair::new(default_policy);
    for path in ["tests/fixtures/accepted.jsonl", "tests/fixtures/rejections.jsonl"] {
        for case in jsonl(path).iter().map(Case::read) {
            pair.record(case.key.as_deref(), case.value.as_deref(), &case.headers())
                .unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
    }
    assert!(pair.verdicts > 100 && pair.rejected > 80, "{} verdicts, {} rejected", pair.verdicts, pair.rejected);
    assert!(pair.signals > 30, "{} hashes of signals", pair.signals);
}

#[test]
fn responses() {
    for case in jsonl("tests/fixtures/responses.jsonl") {
        let mut event = json!({"type": "model_response", "thread_id": "t", "event_id": "e"});
        for field in ["response", "message", "error", "provider"] {
            if let Some(body) = case.get(field) {
                event[field] = body.clone();
            }
        }
        let mut pair = Pair::new(default_policy);
        pair.event(&event);
        assert_eq!(pair.verdicts, 1);
    }
}

/// The traces have lone surrogates, results of every form, and words that tell of a failure in odd places.
#[test]
fn hermes_traces() {
    let (mut pair, mut refused) = (Pair::new(default_policy), 0);
    for (number, case) in jsonl("tests/golden/hermes/traces.jsonl").iter().enumerate() {
        let thread = format!("t{number}");
        pair.under(default_policy);
        for (index, op) in case["ops"].as_array().unwrap().iter().enumerate() {
            let kind = match op["op"].as_str().unwrap() {
                "new" => {
                    pair.under(|| Policy::new(&hermes_settings(&op["config"])));
                    continue;
                }
                "reset" => "turn_start",
                "before" => "tool_call",
                "after" => "tool_result",
                _ => continue,
            };
            let mut event = json!({"type": kind, "thread_id": thread, "event_id": format!("e{index}")});
            if kind != "turn_start" {
                for (field, value) in [("tool_name", &op["tool"]), ("arguments", &op["args_json"])] {
                    event[field] = value.clone();
                }
                event["tool_call_id"] = json!(format!("c{index}"));
            }
            if kind == "tool_result" {
                (event["result"], event["failed"]) = (op["result"].clone(), op["failed"].clone());
            }
            refused += usize::from(pair.record(None, Some(event.to_string().as_bytes()), &[]).is_err());
        }
    }
    assert!(pair.verdicts > 1_000 && pair.interventions > 200, "{} verdicts, {} interventions", pair.verdicts, pair.interventions);
    assert_eq!(refused, 0, "records of traces cannot be redacted");
}

/// Each result comes twice from a tool that only reads, so that its class and whether it repeats are seen.
#[test]
fn hermes_results() {
    let (mut pair, mut refused) = (Pair::new(default_policy), 0);
    for (family, result) in [("classify", "result"), ("result_hash", "result"), ("canonical", "args_json")] {
        for (number, case) in jsonl(format!("tests/golden/hermes/{family}.jsonl")).iter().enumerate() {
            let tool = case["in"]["tool"].as_str().unwrap_or("read_file");
            for round in 0..3 {
                let id = format!("{family}-{number}-{round}");
                let call = json!({"thread_id": format!("{family}-{number}"), "event_id": id, "tool_call_id": id, "tool_name": tool});
                let with = |kind: &str, more: Value| {
                    let mut event = call.clone();
                    event["type"] = json!(kind);
                    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                    event.to_string()
                };
                let input = &case["in"][result];
                let events = [with("tool_call", json!({"arguments": input})), with("tool_result", json!({"result": input}))];
                for event in events {
                    refused += usize::from(pair.record(None, Some(event.as_bytes()), &[]).is_err());
                }
            }
        }
    }
    assert!(pair.interventions > 300, "{}", pair.interventions);
    assert_eq!(refused, 0);
}

/// Returns the texts in a configuration: the reasons that it gives to detectors are among them.
fn texts(config: &Value) -> Vec<String> {
    match config {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn deerflow() {
    let (mut stopped, mut allowed) = (0, 0);
    for case in jsonl("tests/golden/deerflow/cases.jsonl") {
        let input = &case["in"];
        if input["op"] == "safety" {
            let config = input.get("config").map_or(json!({}), |config| json!({"safety_finish_reason": config}));
            let mut pair = Pair::with_reasons(|| policy(&config), &texts(&config));
            pair.event(&json!({"type": "model_response", "thread_id": "t", "event_id": "e", "message": input["message"]}));
            stopped += pair.interventions;
        } else {
            let config = json!({"allowed_tools": input["allowed_tools"], "denied_tools": input["denied_tools"]});
            let config = json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": config}}});
            let mut pair = Pair::new(|| policy(&config));
            let args = json!({"a": "b"});
            pair.event(&json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": input["tool_name"], "tool_input": args}));
            (stopped, allowed) = (stopped + pair.interventions, allowed + 1 - pair.interventions);
        }
    }
    assert!(stopped > 200 && allowed > 20, "{stopped} stopped, {allowed} allowed");
}

#[test]
fn corpora_of_the_fuzz_targets() {
    let mut pair = Pair::new(default_policy);
    let (mut inputs, mut refused) = (0, Vec::new());
    for folder in ["decode", "json", "passport"] {
        for entry in std::fs::read_dir(format!("../fuzz/corpus/{folder}")).unwrap() {
            let path = entry.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            inputs += 1;
            // As a record's value, as it is and behind the head of the target's inputs, and as arguments and results in texts.
            let body = input.windows(2).position(|pair| pair == b"\n\n").map_or(&input[..], |at| &input[at + 2..]);
            let headers = [("content-type", "application/json"), ("x-odd", "a b")];
            let headers = headers.map(|(name, value)| Header { name, value: Some(value.as_bytes()) });
            let text = String::from_utf8_lossy(body);
            let id = format!("c{inputs}");
            let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": id, "tool_name": "read_file", "arguments": text});
            let result = json!({"type": "tool_result", "thread_id": "t", "tool_call_id": id, "tool_name": "read_file", "result": text});
            for value in [&input[..], body, call.to_string().as_bytes(), result.to_string().as_bytes()] {
                let reason = pair.record(None, Some(value), &headers).err();
                refused.extend(reason.map(|reason| format!("{}: {reason}", path.display())));
            }
        }
    }
    assert!(inputs > 300, "{inputs} inputs");
    assert!(refused.is_empty(), "of {inputs} inputs: {refused:?}");
}

#[test]
fn synthetic_runs() {
    let settings = MixSettings { seed: 7, threads: 300, loops: 0.2, safety_stops: 0.05, ..MixSettings::default() };
    let (mut mix, mut event, mut pair) = (Mix::new(settings), MixEvent::blank(), Pair::new(default_policy));
    for _ in 0..8_000 {
        mix.next_into(&mut event);
        pair.record(Some(event.thread_id.as_bytes()), Some(&event.value), &[]).unwrap();
    }
    assert!(pair.verdicts > 7_000 && pair.interventions > 500, "{} {}", pair.verdicts, pair.interventions);
    assert!(pair.signals > 20_000, "{} hashes of signals", pair.signals);
}

#[test]
fn agents_tenants_and_threads_that_are_suspended() {
    for (kind, tenant, id) in [(SubjectKind::Agent, "acme", "coder"), (SubjectKind::Tenant, "", "acme"), (SubjectKind::Thread, "acme", "t")]
    {
        let controls = Arc::new(controls());
        suspend(&controls, kind, tenant, id, &json!({}));
        let mut pair = Pair::new(|| Policy::under(&settings(&json!({})), Arc::clone(&controls)));
        let call = |thread: &str, tenant: &str, agent: &str| json!({"type": "tool_call", "thread_id": thread, "event_id": "e", "tool_call_id": "c", "tool_name": "bash", "tool_input": {"x": 1}, "tenant_id": tenant, "agent_id": agent, "user_id": "42"});
        pair.event(&call("t", "acme", "coder"));
        assert_eq!(pair.interventions, 1, "{kind:?}");
        pair.event(&call("other", "else", "writer"));
        assert_eq!((pair.interventions, pair.verdicts), (1, 2), "{kind:?}");
    }
}
