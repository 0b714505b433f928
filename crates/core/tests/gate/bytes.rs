//! Tests verdicts to the byte, and what never stands in them.

use serde_json::{Value, json};
use tollgate_core::decide::policy::Policy;
use tollgate_core::event::record::Header;
use tollgate_fixtures::checks::check_each;
use tollgate_fixtures::gate::{Gate, default_policy, policy, verdict_id};

use super::stories::*;

/// Field order, absent fields and spelling are the contract's, to the byte.
#[test]
fn verdicts_to_the_byte() {
    let hash = args_hash(r#"{"x":1}"#);
    let bytes = |policy: Policy, events: &[Value]| {
        let version = policy.version().to_owned();
        let mut gate = Gate::new(policy);
        let last = events.iter().enumerate().map(|(n, value)| gate.bytes(&as_event(value.clone(), &format!("e{n}")))).last().unwrap();
        String::from_utf8(last).unwrap().replace(&version, "VERSION")
    };
    let two: Vec<_> = two_failures().into_iter().map(|(event, _)| event).collect();
    let three: Vec<_> = two.iter().cloned().chain([third_failure_is_blocked().0]).collect();
    let stopped =
        "the same tool call failed 2 times with identical arguments. Stop retrying it unchanged; change strategy or explain the blocker.";
    let cases = vec![
        (
            "an allowed call",
            bytes(default_policy(), &[in_turn(call("c1", "bash", json!({"x": 1})), "u1")]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"tool_call","thread_id":"t","turn_id":"u1","tool_call_id":"c1","tool_name":"bash","action":"allow","allows_execution":true,"should_halt":false,"code":"allow","message":"","decided_by":"none","reasons":[],"count":0,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a warned result",
            bytes(default_policy(), &two),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e3","type":"tool_result","thread_id":"t","tool_call_id":"f2","tool_name":"bash","action":"warn","allows_execution":true,"should_halt":false,"code":"repeated_exact_failure_warning","message":"{warning}","decided_by":"loop","reasons":[{{"source":"loop","code":"repeated_exact_failure_warning","message":"{warning}","policy_id":null}}],"count":2,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"guidance":"\n\n[Tool guardrail: repeated_exact_failure_warning; count=2; {warning}]","policy_version":"VERSION"}}"#,
                verdict_id("t", "e3"),
                warning = "Tool guardrail: bash has failed 2 times with identical arguments. Do not retry it unchanged; inspect the error and change strategy."
            ),
        ),
        (
            "a blocked call",
            bytes(default_policy(), &three),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e4","type":"tool_call","thread_id":"t","tool_call_id":"f3","tool_name":"bash","action":"block","allows_execution":false,"should_halt":true,"code":"repeated_exact_failure_block","message":"Blocked bash: {stopped}","decided_by":"loop","reasons":[{{"source":"loop","code":"repeated_exact_failure_block","message":"Blocked bash: {stopped}","policy_id":null}}],"count":2,"signature":{{"tool_name":"bash","args_hash":"{hash}"}},"synthetic_result":"{{\"error\": \"Blocked bash: {stopped}\", \"guardrail\": {{\"action\": \"block\", \"code\": \"repeated_exact_failure_block\", \"message\": \"Blocked bash: {stopped}\", \"tool_name\": \"bash\", \"count\": 2, \"signature\": {{\"tool_name\": \"bash\", \"args_hash\": \"{hash}\"}}}}}}","policy_version":"VERSION"}}"#,
                verdict_id("t", "e4")
            ),
        ),
        (
            "a denied call",
            bytes(closed(), &[call("deny-1", "bash", json!({"x": 1}))]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"tool_call","thread_id":"t","tool_call_id":"deny-1","tool_name":"bash","action":"block","allows_execution":false,"should_halt":false,"code":"acme.budget_spent","message":"the budget of today is spent","decided_by":"guardrail","reasons":[{{"source":"guardrail","code":"acme.budget_spent","message":"the budget of today is spent","policy_id":"pol-7"}}],"synthetic_result":"Guardrail denied: tool 'bash' was blocked (acme.budget_spent). Reason: the budget of today is spent. Choose an alternative approach.","policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a suppressed response",
            bytes(default_policy(), &[cut_off(&[("c1", "bash")])]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"model_response","thread_id":"t","action":"suppress","allows_execution":false,"should_halt":false,"code":"safety_terminated","message":"{summary}.","decided_by":"safety","reasons":[{{"source":"safety","code":"safety_terminated","message":"{summary}.","policy_id":null}}],"safety":{{"detector":"openai_compatible_content_filter","category":"safety","reason_field":"finish_reason","reason_value":"content_filter","suppressed_tool_call_count":1,"suppressed_tool_call_names":["bash"],"suppressed_tool_call_ids":["c1"],"user_message":"{summary}. Any tool calls produced in this turn were suppressed because their arguments may be truncated and unsafe to execute. Please rephrase the request or ask for a narrower output.","extras":{{}},"stage":"output"}},"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0"),
                summary = "The model provider stopped this response with a safety-related signal (finish_reason='content_filter', detector='openai_compatible_content_filter')"
            ),
        ),
        (
            "an allowed response",
            bytes(default_policy(), &[clean_response()]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e0","type":"model_response","thread_id":"t","action":"allow","allows_execution":true,"should_halt":false,"code":"allow","message":"","decided_by":"none","reasons":[],"policy_version":"VERSION"}}"#,
                verdict_id("t", "e0")
            ),
        ),
        (
            "a result that was not executed",
            bytes(closed(), &[call("deny-1", "bash", json!({})), result("deny-1", "bash", true)]),
            format!(
                r#"{{"verdict_id":"{}","event_id":"e1","type":"tool_result","thread_id":"t","tool_call_id":"deny-1","tool_name":"bash","action":"allow","allows_execution":true,"should_halt":false,"code":"not_executed","message":"The call was not allowed to run, so its result changes nothing.","decided_by":"none","reasons":[],"policy_version":"VERSION"}}"#,
                verdict_id("t", "e1")
            ),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, actual, expected)| assert_eq!(actual, expected, "{name}"));
}

/// A verdict ends with whose event it answers and when that happened, if that is known. A rejected event has what could be read of it.
#[test]
fn verdicts_end_with_agent_tenant_and_time() {
    const WRITTEN: i64 = 1_767_225_600_123;
    let call = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c1", "tool_name": "bash", "tool_input": {}});
    let who = json!({"agent_id": "coder", "tenant_id": "acme"});
    let at = |time: &str| json!({"timestamp": time});
    let broken = event(event(event(call.clone(), who.clone()), at("2026-01-01T01:00:00+01:00")), json!({"tool_input": null, "user_id": 7}));
    let of_digits = format!("2026-01-01T00:00:00.{}Z", "5".repeat(60));
    let own = |time: &str| format!(r#"","agent_id":"coder","tenant_id":"acme","timestamp":"{time}"}}"#);
    let cases = [
        ("nothing is known", None, call.clone(), r#""}"#.to_owned()),
        (
            "the record's time is not told: a copy has another",
            Some(WRITTEN),
            event(call.clone(), who.clone()),
            r#"","agent_id":"coder","tenant_id":"acme"}"#.to_owned(),
        ),
        (
            "its own time, as it says it",
            Some(WRITTEN),
            event(event(call.clone(), who.clone()), at("2026-01-01T01:00:00+01:00")),
            own("2026-01-01T01:00:00+01:00"),
        ),
        (
            "a time of many digits",
            None,
            event(event(call.clone(), who.clone()), at(&of_digits)),
            r#"","agent_id":"coder","tenant_id":"acme"}"#.to_owned(),
        ),
        ("a rejected event", Some(WRITTEN), broken, own("2026-01-01T01:00:00+01:00")),
        (
            "a time that cannot be read",
            Some(WRITTEN),
            event(event(call.clone(), who.clone()), at("soon")),
            r#"","agent_id":"coder","tenant_id":"acme"}"#.to_owned(),
        ),
        (
            "a long id",
            None,
            event(call, json!({"agent_id": "a".repeat(257), "tenant_id": "a".repeat(256)})),
            format!(r#"","tenant_id":"{}"}}"#, "a".repeat(256)),
        ),
    ];
    check_each(
        cases,
        |(name, ..)| (*name).to_owned(),
        |(name, record_ms, value, expected)| {
            let policy = default_policy();
            let version = policy.version().to_owned();
            let mut gate = Gate::new(policy);
            gate.timestamp_ms = *record_ms;
            let text = String::from_utf8(gate.bytes(value)).unwrap();
            assert_eq!(text.split_once(&version).unwrap().1, expected, "{name}");
        },
    );
}

/// Whatever the envelope is, a record that is no event is answered with its time.
#[test]
fn a_rejected_record_is_answered_with_its_time() {
    let time_of = |headers: &[(&str, &str)], value: &str| {
        let headers: Vec<_> = headers.iter().map(|(name, value)| Header { name, value: Some(value.as_bytes()) }).collect();
        let mut gate = Gate::new(default_policy());
        gate.timestamp_ms = Some(1_767_225_600_123);
        let verdict: Value = serde_json::from_slice(&gate.record(Some(b"t"), Some(value.as_bytes()), &headers).1).unwrap();
        assert_eq!(verdict["code"], "invalid_event");
        verdict["timestamp"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(time_of(&[], "{"), "");
    let binary = [("ce_specversion", "1.0"), ("ce_id", "e"), ("ce_type", "tool_call"), ("ce_time", "2026-01-01T09:00:00Z")];
    assert_eq!(time_of(&binary, "{"), "2026-01-01T09:00:00Z");
    let structured = r#"{"specversion":"2.0","source":"s","id":"e","type":"tool_call","time":"2026-01-01T09:00:00Z","data":{}}"#;
    assert_eq!(time_of(&[], structured), "2026-01-01T09:00:00Z");
    assert_eq!(time_of(&[], &structured.replace("2026", "soon")), "");
}

/// No argument, result or user id ever comes out.
#[test]
fn nothing_raw_leaves() {
    const MARKER: &str = "MARKER-7f3a";
    let mut gate =
        Gate::new(policy(&json!({"guardrails": {"enabled": true, "provider": {"use": "allowlist", "config": {"denied_tools": ["rm"]}}}})));
    let who = json!({"user_id": MARKER, "tenant_id": "acme", "user_role": MARKER, "run_id": MARKER, "agent_id": "coder"});
    let raw = json!({"tool_input": {MARKER: MARKER}, "result": format!("Error: {MARKER}")});
    let events = (0..8).flat_map(|n| {
        let tool = ["bash", "read_file", "rm", "terminal"][n % 4];
        let with = |value: Value| event(event(value, who.clone()), raw.clone());
        [with(call(&format!("c{n}"), tool, json!({}))), with(result(&format!("c{n}"), tool, n % 2 == 0))]
    });
    let body = json!({"choices": [{"finish_reason": "content_filter", "message": {"content": MARKER, "tool_calls": [{"id": "z", "function": {"name": "bash", "arguments": MARKER}}]}}]});
    let mut checked = 0;
    for event_value in events.chain([event(response(body), who.clone())]) {
        let verdict = String::from_utf8(gate.bytes(&event_value)).unwrap();
        assert!(!verdict.is_empty() && !verdict.contains(MARKER), "{verdict}");
        checked += 1;
    }
    assert_eq!(checked, 17);
}
