//! Checks golden cases: behaviour observed by running the systems that Tollgate's rules come from, one `check` per family.

use serde_json::{Value, json};
use tollgate_core::decide::loops::{
    CallContext, Failure, LoopController, LoopDecision, Observation, Repetition, RepetitionMemory, Signature, arguments_digest, classify,
    result_digest,
};
use tollgate_core::decide::policy::Policy;
use tollgate_core::decide::ruling::LoopCode;
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::gate::{Gate, default_policy, hermes_settings, policy};
use tollgate_json::{DEPTH_MAX, Parser, Text, canonical};
use tollgate_passport::ToolInput;

/// Reads a result's or arguments' text of a case; `serde_json` cannot hold a lone surrogate, so the cases spell them as escapes inside.
fn text(value: &Value) -> Option<Text<'_>> {
    value.as_str().map(|text| Text::plain(text.as_bytes()))
}

#[test]
fn hermes_canonical() {
    jsonl("tests/golden/hermes/canonical.jsonl").iter().for_each(check_canonical);
}

fn check_canonical(case: &Value) {
    let source = case["in"]["args_json"].as_str().unwrap();
    let mut parser = Parser::new();
    let object = parser.parse(source.as_bytes(), DEPTH_MAX).ok().filter(|value| value.is_object());
    // The original took arguments that are no object, or no JSON, for an empty object.
    let mut bytes = Vec::new();
    match object {
        Some(object) => canonical::write(object, &mut bytes),
        None => bytes.extend_from_slice(b"{}"),
    }
    let digest = arguments_digest(&ToolInput::Encoded(Text::plain(source.as_bytes())), &mut Vec::new()).to_string();
    match case["out"].get("exception").and_then(Value::as_str) {
        // The original crashes on a lone surrogate; here it hashes by surrogatepass, so the bytes are no UTF-8.
        Some("UnicodeEncodeError") => assert!(std::str::from_utf8(&bytes).is_err(), "{source}"),
        // Not JSON: among others an integer too long for Python's int.
        Some("ValueError" | "JSONDecodeError") => assert!(object.is_none(), "{source}"),
        Some(other) => panic!("unknown exception {other}"),
        None => {
            assert_eq!(String::from_utf8(bytes).unwrap(), case["out"]["canonical"].as_str().unwrap(), "{source}");
            assert_eq!(digest, case["out"]["sha256"].as_str().unwrap(), "{source}");
        }
    }
}

#[test]
fn hermes_classify() {
    jsonl("tests/golden/hermes/classify.jsonl").iter().for_each(check_classify);
}

/// Compares a case. The display suffix quotes the exit code, which is raw output and never leaves Tollgate: its kind is compared instead.
fn check_classify(case: &Value) {
    let tool = case["in"]["tool"].as_str().unwrap();
    let failure = classify(tool, text(&case["in"]["result"]).as_ref());
    let suffix = case["out"]["suffix"].as_str().unwrap();
    let expected = match suffix {
        "" => None,
        " [error]" => Some(Failure::Error),
        " [full]" => Some(Failure::MemoryFull),
        _ if suffix.starts_with(" [exit ") => Some(Failure::ExitCode),
        _ => panic!("unknown suffix {suffix}"),
    };
    assert_eq!(failure.is_some(), case["out"]["failed"].as_bool().unwrap(), "{case}");
    assert_eq!(failure, expected, "{case}");
}

#[test]
fn hermes_result_hash() {
    jsonl("tests/golden/hermes/result_hash.jsonl").iter().for_each(check_result_hash);
}

fn check_result_hash(case: &Value) {
    let digest = result_digest(text(&case["in"]["result"]).as_ref()).to_string();
    match case["out"].get("sha256") {
        Some(expected) => assert_eq!(digest, expected.as_str().unwrap(), "{case}"),
        None => assert!(case["out"]["exception"].is_string() && digest.len() == 64, "{case}"),
    }
}

/// The traces run through the controller alone, operation by operation.
#[test]
fn hermes_traces() {
    jsonl("tests/golden/hermes/traces.jsonl").iter().for_each(check_trace);
}

fn repetition(config: &Value) -> Repetition {
    let settings = hermes_settings(config).tool_loop_guardrails;
    Repetition::new(settings.repetition.expect("it is always in force"))
}

fn describe(decision: LoopDecision, call: &Signature<'_>) -> Value {
    let action = decision.finding.map_or("allow", |code| match code.intervention() {
        tollgate_core::decide::ruling::Intervention::Warn => "warn",
        tollgate_core::decide::ruling::Intervention::Deny | tollgate_core::decide::ruling::Intervention::Block => "block",
        tollgate_core::decide::ruling::Intervention::Halt => "halt",
    });
    json!({
        "action": action,
        "code": decision.finding.map_or("allow", LoopCode::as_str),
        "message": decision.finding.map_or_else(String::new, |code| code.message(call.tool_name, decision.count)),
        "tool_name": call.tool_name,
        "count": decision.count,
        "signature": {"tool_name": call.tool_name, "args_hash": call.args.to_string()},
        "allows_execution": matches!(action, "allow" | "warn"),
        "should_halt": matches!(action, "block" | "halt"),
    })
}

/// Returns a result with guidance appended; without guidance it stays as it is, null included.
fn appended(result: &Value, guidance: Option<&str>) -> Value {
    match guidance {
        Some(guidance) => Value::from(format!("{}{guidance}", result.as_str().unwrap_or_default())),
        None => result.clone(),
    }
}

fn check_trace(case: &Value) {
    let mut controller = repetition(&json!({}));
    let mut memory = RepetitionMemory::default();
    let (mut last, mut halt) = (None, Value::Null);
    let (ops, outs) = (case["ops"].as_array().unwrap(), case["outs"].as_array().unwrap());
    assert_eq!(ops.len(), outs.len());
    for (op, out) in ops.iter().zip(outs) {
        let tool = op["tool"].as_str().unwrap_or_default();
        let args = match &op["args_json"] {
            Value::String(text) => ToolInput::Encoded(Text::plain(text.as_bytes())),
            _ => ToolInput::Absent { null: true },
        };
        let call = Signature::new(tool, arguments_digest(&args, &mut Vec::new()));
        let result = text(&op["result"]);
        let answer = match op["op"].as_str().unwrap() {
            "new" => {
                controller = repetition(&op["config"]);
                memory = RepetitionMemory::default();
                (last, halt) = (None, Value::Null);
                json!({"ok": true})
            }
            "reset" => {
                memory = RepetitionMemory::default();
                halt = Value::Null;
                json!({"ok": true})
            }
            "before" | "after" if out.get("exception").is_some() => continue,
            kind @ ("before" | "after") => {
                let decision = if kind == "before" {
                    controller.before_call(&mut memory, &call, &CallContext::default())
                } else {
                    let observation = Observation::new(tool, op["failed"].as_bool(), result.as_ref());
                    controller.after_call(&mut memory, &call, &CallContext::default(), &observation)
                };
                let described = describe(decision, &call);
                if described["should_halt"] == true {
                    halt = described.clone();
                }
                last = Some((decision, tool.to_owned()));
                described
            }
            "halt" => {
                let mut kept = halt.clone();
                if let (Some(kept), Some(expected)) = (kept.as_object_mut(), out["halt_decision"].as_object()) {
                    kept.retain(|key, _| expected.contains_key(key));
                }
                json!({"halt_decision": kept})
            }
            "append" => {
                let guidance = last.as_ref().and_then(|(decision, tool)| decision.finding?.guidance(tool, decision.count));
                json!({"text": appended(&op["result"], guidance.as_deref())})
            }
            // These are checked through the whole gate below, where synthetic results are written.
            "synthetic" => continue,
            other => panic!("unknown op {other}"),
        };
        assert_eq!(&answer, out, "{op}");
    }
}

/// The traces run as events through the whole gate: verdicts, synthetic results and guidance.
#[test]
fn hermes_traces_as_events() {
    let checked: usize = jsonl("tests/golden/hermes/traces.jsonl").iter().map(check_trace_as_events).sum();
    assert!(checked >= 6, "only {checked} synthetic results were compared");
}

fn check_trace_as_events(case: &Value) -> usize {
    let mut gate = Gate::new(default_policy());
    let (mut last, mut compared) = (Value::Null, 0);
    for (index, (op, out)) in case["ops"].as_array().unwrap().iter().zip(case["outs"].as_array().unwrap()).enumerate() {
        // A lone surrogate where the original crashed changes nothing there and is counted here: such a trace ends here.
        if out.get("exception").is_some() {
            break;
        }
        let event = |kind: &str| json!({"type": kind, "thread_id": "t", "event_id": format!("e{index}"), "tool_call_id": format!("c{index}"), "tool_name": op["tool"], "arguments": op["args_json"]});
        match op["op"].as_str().unwrap() {
            "new" => gate = Gate::new(Policy::new(&hermes_settings(&op["config"]))),
            "reset" => drop(gate.event(&json!({"type": "turn_start", "thread_id": "t", "event_id": format!("e{index}")}))),
            kind @ ("before" | "after") => {
                let mut event = event(if kind == "before" { "tool_call" } else { "tool_result" });
                if kind == "after" {
                    event["result"] = op["result"].clone();
                    event["failed"] = op["failed"].clone();
                }
                last = gate.event(&event);
                for field in ["action", "code", "message", "count", "signature", "allows_execution", "should_halt"] {
                    assert_eq!(last[field], out[field], "{field} of {event}");
                }
            }
            "append" => assert_eq!(appended(&op["result"], last["guidance"].as_str()), out["text"]),
            // The original words any decision; only a call that may not run gets its words here.
            "synthetic" if last["synthetic_result"].is_string() => {
                assert_eq!(last["synthetic_result"], out["text"]);
                compared += 1;
            }
            _ => {}
        }
    }
    compared
}

#[test]
fn deerflow() {
    for case in jsonl("tests/golden/deerflow/cases.jsonl") {
        match case["in"]["op"].as_str().unwrap() {
            "safety" => check_safety(&case),
            "allowlist" => check_allowlist(&case),
            other => panic!("unknown op {other}"),
        }
    }
}

fn check_safety(case: &Value) {
    let mut block = case["in"].get("config").cloned().unwrap_or(json!({}));
    // DeerFlow has these three alone, each with its own values.
    let built_in = ["openai_compatible_content_filter", "anthropic_refusal", "gemini_safety"].map(|name| json!({"use": name}));
    if block["detectors"].is_null() {
        block["detectors"] = json!(built_in);
    }
    let config = json!({"safety_finish_reason": block});
    let message = &case["in"]["message"];
    let verdict =
        Gate::new(policy(&config)).event(&json!({"type": "model_response", "thread_id": "t-1", "event_id": "e", "message": message}));
    let has_calls = !message["tool_calls"].as_array().unwrap().is_empty();
    if case["out"]["intervened"] != true {
        // The original leaves a stopped response alone if it has text and no calls; here that is said, and allowed.
        assert_eq!(verdict["action"], "allow", "{case}");
        assert!(verdict["safety"].get("user_message").is_none(), "{case}");
        return;
    }
    assert_eq!(verdict["action"], if has_calls { "suppress" } else { "allow" }, "{case}");
    assert_eq!(verdict["code"], "safety_terminated");
    let audit = &case["out"]["audit"][0]["content"]["changes"];
    for field in [
        "detector",
        "reason_field",
        "reason_value",
        "suppressed_tool_call_count",
        "suppressed_tool_call_names",
        "suppressed_tool_call_ids",
        "extras",
    ] {
        assert_eq!(verdict["safety"][field], audit[field], "{field} of {case}");
    }
    let user_message = verdict["safety"]["user_message"].as_str().unwrap();
    let rewritten = &case["out"]["message"]["content"];
    let shown = rewritten.as_str().or_else(|| rewritten.as_array()?.last()?["text"].as_str()).unwrap();
    assert!(shown.ends_with(user_message), "{case}");
    let before = shown.strip_suffix(user_message).unwrap();
    assert!(before.is_empty() || before.ends_with("\n\n"), "{case}");
}

fn check_allowlist(case: &Value) {
    let (input, out) = (&case["in"], &case["out"]);
    let config = json!({"allowed_tools": input["allowed_tools"], "denied_tools": input["denied_tools"]});
    let guardrails =
        json!({"guardrails": {"enabled": true, "provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": config}}});
    let call = json!({"type": "tool_call", "thread_id": "t", "event_id": "e", "tool_call_id": "c", "tool_name": input["tool_name"], "tool_input": {}});
    let verdict = Gate::new(policy(&guardrails)).event(&call);
    assert_eq!(verdict["allows_execution"], out["allow"], "{case}");
    if out["allow"] == false {
        let reason = &out["reasons"][0];
        assert_eq!((&verdict["code"], &verdict["message"]), (&reason["code"], &reason["message"]), "{case}");
        assert_eq!(verdict["decided_by"], "guardrail");
        assert_eq!(verdict["should_halt"], false);
        let (name, code, message) =
            (input["tool_name"].as_str().unwrap(), reason["code"].as_str().unwrap(), reason["message"].as_str().unwrap());
        let sentence = format!("Guardrail denied: tool '{name}' was blocked ({code}). Reason: {message}. Choose an alternative approach.");
        assert_eq!(verdict["synthetic_result"], sentence);
    }
}
