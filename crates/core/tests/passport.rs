//! Tests the passport provider: the answer to a call under a good or a bad passport, which repeats nothing of the call.

use std::sync::Arc;

use serde_json::{Value, json};
use tollgate_core::decide::guardrail::{GuardrailDecision, GuardrailProvider, GuardrailRequest, OapPassport, Step};
use tollgate_core::decide::ruling::Evidence;
use tollgate_core::event::decode::{Attribution, Body, decode};
use tollgate_core::event::record::{Offset, Partition, Record};
use tollgate_fixtures::cases::jsonl;
use tollgate_fixtures::checks::check_each;
use tollgate_fixtures::gate::record;
use tollgate_json::{DEPTH_MAX, Parser, Text};
use tollgate_passport::{Passport, PassportFault, SchemaFault, Terms, ToolInput, UnenforcedLimits, check_schema};

/// The first of January 2026.
pub const NOW: i64 = 1_767_225_600_000;

/// Returns the decision of the provider on a call at a time.
pub fn decide_with(
    passport: Option<Result<Arc<Passport>, PassportFault>>,
    terms: Terms,
    time_ms: Option<i64>,
    tool: &str,
    input: &ToolInput<'_>,
) -> GuardrailDecision {
    let provider = OapPassport::new(Arc::default(), passport, terms);
    let attribution = Attribution::default();
    let request = GuardrailRequest {
        tool_name: tool,
        tool_input: input,
        tool_call_id: "c",
        thread_id: "t",
        turn_id: None,
        time_ms: None,
        latest_ms: time_ms,
        attribution: &attribution,
        passport: None,
    };
    let Step::Decided(Ok(decision)) = provider.plan(&request) else { panic!("it decides") };
    assert!(!decision.reasons.is_empty());
    decision
}

fn read(text: &str) -> Option<Result<Arc<Passport>, PassportFault>> {
    Some(Passport::read(text.as_bytes()).map(Arc::new))
}

fn decide(passport: &str, tool: &str, input: &str) -> GuardrailDecision {
    decide_with(read(passport), Terms::default(), Some(NOW), tool, &ToolInput::Encoded(Text::plain(input.as_bytes())))
}

/// Returns the codes of all reasons, the decisive one first.
fn codes(decision: &GuardrailDecision) -> Vec<String> {
    assert_eq!(decision.allow, decision.reasons[0].code == "oap.allowed");
    decision.reasons.iter().map(|reason| reason.code.to_string()).collect()
}

fn first(passport: &str, tool: &str, input: &Value) -> String {
    codes(&decide(passport, tool, &input.to_string()))[0].clone()
}

/// Returns a passport that may do what the limits say.
fn passport(limits: &Value) -> Value {
    let ids = [
        "system.command.execute",
        "data.file.read",
        "data.file.write",
        "web.fetch",
        "web.browser",
        "mcp.tool.execute",
        "messaging.send",
        "agent.session.create",
    ];
    json!({
        "spec_version": "oap/1.0", "status": "active", "limits": limits,
        "capabilities": ids.map(|id| json!({"id": id})),
    })
}

fn with(mut passport: Value, field: &str, value: Value) -> String {
    passport[field] = value;
    passport.to_string()
}

const SEED: &str = r#"{
    "spec_version": "oap/1.0", "status": "active",
    "capabilities": [{"id": "system.command.execute"}, {"id": "data.file.read"}, {"id": "data.file.write"}, {"id": "web.fetch"}, {"id": "mcp.tool.execute"}],
    "limits": {"system.command.execute": {"allowed_commands": ["git", "npm", "node", "ls"], "blocked_patterns": ["rm -rf", "sudo", "chmod 777"]}}
}"#;

fn example(name: &str) -> String {
    std::fs::read_to_string(format!("../../examples/passports/{name}.json")).unwrap()
}

#[test]
fn try_it_gives_the_words_of_the_guide() {
    let permissive = example("permissive");
    assert!(decide(&permissive, "write_file", r#"{"path": "test.txt", "content": "hello"}"#).allow);
    let decision = decide(&permissive, "bash", r#"{"command": "rm -rf test.txt"}"#);
    let reason = &decision.reasons[0];
    assert_eq!(format!("{}: {}", reason.code, reason.message), "oap.blocked_pattern: Command contains blocked pattern: rm -rf");
    assert_eq!(reason.policy_id.as_deref(), Some("system.command.execute.v1"));
    let listed = decide(SEED, "bash", r#"{"command": "rm -rf test.txt"}"#);
    assert_eq!(codes(&listed), ["oap.command_not_allowed", "oap.blocked_pattern"]);
    assert!(decide(SEED, "write_file", r#"{"path": "test.txt"}"#).allow);
}

#[test]
fn an_allowing_decision_says_what_it_stands_on() {
    let decision = decide(SEED, "bash", r#"{"command": "git status"}"#);
    let digest = Passport::read(SEED.as_bytes()).unwrap().digest;
    assert_eq!(decision.reasons.len(), 1);
    assert_eq!(decision.reasons[0].evidence, Some(Evidence::Passport(digest)));
    let reordered = serde_json::from_str::<Value>(SEED).unwrap().to_string();
    assert_eq!(Passport::read(reordered.as_bytes()).unwrap().digest, digest);
    assert_ne!(Passport::read(example("permissive").as_bytes()).unwrap().digest, digest);
}

#[test]
fn passports_that_are_none_deny_everything() {
    let call = ToolInput::Absent { null: false };
    let none = decide_with(None, Terms::default(), Some(NOW), "todo", &call);
    assert_eq!(codes(&none), ["oap.passport_not_found"]);
    for text in [
        "",
        "not json",
        "null",
        "[]",
        "\"x\"",
        "{\"status\": \"suspended\", \"status\": \"active\"}",
        "{\"a\": \"\\ud800\"}",
        "{\"a\": Infinity}",
    ] {
        for tool in ["bash", "todo"] {
            let decision = decide(text, tool, r#"{"command": "ls"}"#);
            assert_eq!(codes(&decision), ["oap.passport_invalid"], "{text}");
            assert_eq!(decision.reasons[0].evidence, None);
        }
    }
    assert!(decide(&format!("\u{feff}{SEED}"), "bash", r#"{"command": "ls"}"#).allow);
}

/// A row is a field of a passport that may run `git`, and the code of a call under it. One with a message denies every call.
#[test]
fn fields_are_exact_and_those_of_another_type_deny() {
    let git = passport(&json!({"system.command.execute": {"allowed_commands": ["git"]}}));
    for row in jsonl("tests/data/passport_fields.jsonl") {
        let text = with(git.clone(), row["field"].as_str().unwrap(), row["value"].clone());
        let command = decide(&text, "bash", r#"{"command": "git status"}"#);
        assert_eq!(row["code"], codes(&command)[0], "{row}");
        let Some(message) = row["message"].as_str() else { continue };
        for decision in [command, decide(&text, "todo", "{}")] {
            let [reason] = &decision.reasons[..] else { panic!("{row}: {decision:?}") };
            assert_eq!((row["code"].as_str(), reason.message.as_ref(), &reason.policy_id), (Some(&*reason.code), message, &None), "{row}");
        }
    }
    let suspended = decide(&with(git, "status", json!("suspended")), "bash", r#"{"command": "rm x"}"#);
    assert_eq!(codes(&suspended), ["oap.passport_suspended", "oap.command_not_allowed"]);
    let typed = passport(&json!({"system.command.execute": {"allowed_commands": "git"}})).to_string();
    let expected = "Passport is not valid: limits[\"system.command.execute\"].allowed_commands is a string, expected an array of strings";
    assert_eq!(decide(&typed, "bash", r#"{"command": "ls"}"#).reasons[0].message, expected);
}

#[test]
fn expiry_is_judged_by_the_time_of_the_event() {
    let expiring = with(passport(&json!({})), "expires_at", json!("2026-01-01T00:00:00Z"));
    let input = ToolInput::Absent { null: false };
    let at = |text: &str, time_ms| codes(&decide_with(read(text), Terms::default(), time_ms, "todo", &input))[0].clone();
    assert_eq!(at(&expiring, Some(NOW - 1)), "oap.allowed");
    assert_eq!(at(&expiring, Some(NOW)), "oap.passport_expired");
    assert_eq!(at(&expiring, None), "oap.passport_expired");
    let forever = with(serde_json::from_str(&expiring).unwrap(), "never_expires", json!(true));
    assert_eq!(at(&forever, None), "oap.allowed");
    let meant = with(serde_json::from_str(&expiring).unwrap(), "never_expires", json!("true"));
    assert_eq!(at(&meant, Some(NOW)), "oap.passport_expired");
}

/// Whoever dates an event back does not make a passport last longer than the record's own time says.
#[test]
fn expiry_is_judged_by_the_later_of_the_times_of_event_and_record() {
    let expiring = with(passport(&json!({})), "expires_at", json!("2026-01-01T00:00:00Z"));
    let provider = OapPassport::new(Arc::default(), read(&expiring), Terms::default());
    let code = |timestamp: Option<&str>, record_ms| {
        let mut event = json!({"type": "tool_call", "thread_id": "t", "tool_call_id": "c", "tool_name": "todo", "tool_input": {}});
        timestamp.into_iter().for_each(|timestamp| event["timestamp"] = json!(timestamp));
        let (value, mut parser) = (event.to_string(), Parser::new());
        let record = Record { timestamp_ms: record_ms, ..record(Partition(0), Offset(0), value.as_bytes()) };
        let event = decode(&record, &mut parser, 10_000).unwrap();
        let Body::ToolCall(call) = &event.body else { panic!("it is a call") };
        let Step::Decided(Ok(decision)) = provider.plan(&GuardrailRequest::new(&event, call, None)) else { panic!("it decides") };
        codes(&decision)[0].clone()
    };
    let (before, after) = (Some("2025-12-31T23:59:59.999Z"), Some("2026-01-01T00:00:00Z"));
    for (timestamp, record_ms, expected) in [
        (before, None, "oap.allowed"),
        (before, Some(NOW - 1), "oap.allowed"),
        (before, Some(NOW), "oap.passport_expired"),
        (after, Some(NOW - 1), "oap.passport_expired"),
        (None, Some(NOW - 1), "oap.allowed"),
        (None, Some(NOW), "oap.passport_expired"),
        (None, None, "oap.passport_expired"),
    ] {
        assert_eq!(code(timestamp, record_ms), expected, "{timestamp:?} {record_ms:?}");
    }
}

#[test]
fn a_command_may_be_so_long_and_no_longer() {
    let text = passport(&json!({"system.command.execute": {"allowed_commands": ["*"]}})).to_string();
    for length in [1_000_000, 2_000_000] {
        let input = json!({"command": format!("echo {}", "x".repeat(length))});
        assert_eq!(first(&text, "bash", &input), "oap.context_too_large", "{length}");
    }
    let absent = decide_with(read(&text), Terms::default(), Some(NOW), "bash", &ToolInput::Absent { null: true });
    assert_eq!(codes(&absent), ["oap.missing_required_context"]);
}

/// Each piece of a path is compared with every pattern.
#[test]
fn no_more_pieces_of_paths_are_looked_at_than_a_call_needs() {
    let text = passport(&json!({"data.file.read": {"allowed_paths": ["/work/**"]}})).to_string();
    let paths = |count: usize, path: &str| json!({"paths": vec![path; count]}).to_string();
    let deep = format!("/work{}", "/a".repeat(200));
    for (input, expected) in [
        (paths(5_000, "/work/a"), "oap.allowed"),
        (paths(81, &deep), "oap.allowed"),
        (paths(6_000, "/work/a"), "oap.context_too_large"),
        (paths(82, &deep), "oap.context_too_large"),
    ] {
        assert_eq!(codes(&decide(&text, "read_file", &input))[0], expected, "{:.80}", input);
    }
}

/// Where many patterns share their rarest text, each path is compared with all of them.
#[test]
fn a_call_names_fewer_places_where_patterns_are_alike() {
    let blocked: Vec<String> = (0..2_000).map(|number| format!("/blocked{number}/*a*")).collect();
    let text = passport(&json!({"data.file.read": {"blocked_paths": blocked}})).to_string();
    let few = json!({"paths": vec!["/work/a"; 10]});
    let (many, long) = (json!({"paths": vec!["/work/a"; 1_000]}), json!({"path": format!("/work/{}", "a".repeat(4_000))}));
    for (input, expected) in [(few, "oap.allowed"), (many, "oap.too_costly"), (long, "oap.too_costly")] {
        assert_eq!(codes(&decide(&text, "read_file", &input.to_string()))[0], expected, "{:.80}", input.to_string());
    }
}

#[test]
fn names_of_tools_have_a_form() {
    let any = passport(&json!({})).to_string();
    for tool in ["", "a b", "bash\n", "bäsh", "a;b", &"a".repeat(129)] {
        assert_eq!(codes(&decide(&any, tool, "{}")), ["oap.invalid_tool_name", "oap.unknown_capability"], "{tool:?}");
    }
    assert_eq!(codes(&decide(&any, "delete_everything", "{}")), ["oap.unknown_capability"]);
}

/// A row has the call's input as JSON, or as the text in which it comes.
#[test]
fn every_rule_of_the_packs_denies_what_it_is_for() {
    let cases = jsonl("tests/data/passport_rules.jsonl");
    assert!(cases.len() > 80);
    let check = |case: &Value| {
        let input = case["text"].as_str().map_or_else(|| case["input"].to_string(), str::to_owned);
        let decision = decide(&passport(&case["limits"]).to_string(), case["tool"].as_str().unwrap(), &input);
        assert_eq!(case["code"], codes(&decision)[0]);
    };
    check_each(cases, Value::to_string, check);
}

/// Whatever the call holds, no reason repeats it.
#[test]
fn no_reason_repeats_the_call() {
    let limits = json!({
        "system.command.execute": {"allowed_commands": ["git"], "blocked_patterns": ["curl"]},
        "data.file.read": {"allowed_paths": ["/work"], "blocked_patterns": ["private"], "allowed_extensions": [".md"]},
        "web.fetch": {"allowed_domains": ["example.com"], "blocked_domains": ["evil.example"], "allowed_methods": ["GET"]},
        "messaging.send": {"allowed_recipients": ["alice"]},
        "mcp.tool.execute": {"allowed_servers": ["github"], "allowed_tools": ["get_*"]},
        "agent.session.create": {"allowed_session_types": ["writer"]},
    });
    let text = passport(&limits).to_string();
    for (tool, input) in [
        ("bash", json!({"command": "s3cret-program --s3cret; curl s3cret > /s3cret; X=s3cret"})),
        ("bash", json!({"command": "echo 's3cret", "timeout": "s3cret"})),
        ("bash", json!({"s3cret": "s3cret"})),
        ("read_file", json!({"path": "/private/s3cret.s3cret"})),
        ("read_file", json!({"path": "https://s3cret/x"})),
        ("web_fetch", json!({"url": "https://s3cret.evil.example/s3cret", "method": "S3CRET"})),
        ("web_fetch", json!({"url": "s3cret"})),
        ("send_message", json!({"recipient": "s3cret", "channel": "s3cret"})),
        ("mcp.tool.execute", json!({"server": "s3cret", "tool": "s3cret"})),
        ("task", json!({"subagent_type": "s3cret"})),
    ] {
        let decision = decide(&text, tool, &input.to_string());
        assert!(!decision.allow, "{tool} {input}");
        for reason in &decision.reasons {
            assert!(!reason.message.to_lowercase().contains("s3cret"), "{tool}: {}", reason.message);
        }
    }
}

#[test]
fn limits_that_cannot_be_kept_deny_unless_they_are_ignored() {
    let text = passport(&json!({"messaging.message.send": {"msgs_per_min": 5, "allowed_recipients": ["*"], "approval_required": false}}))
        .to_string();
    let document = json!({"recipient": "alice"}).to_string();
    let mut parser = Parser::new();
    let input = ToolInput::Value(parser.parse(document.as_bytes(), DEPTH_MAX).unwrap());
    let denied = decide_with(read(&text), Terms::default(), Some(NOW), "send_message", &input);
    assert_eq!(codes(&denied), ["oap.policy_error"]);
    assert_eq!(denied.reasons[0].message, "limits[\"messaging.message.send\"].msgs_per_min is a limit that cannot be kept here");
    let terms = Terms { unenforced_limits: UnenforcedLimits::Ignore, ..Terms::default() };
    assert!(decide_with(read(&text), terms, Some(NOW), "send_message", &input).allow);
}

/// A row is a call that is denied, with what the denial says.
#[test]
fn denials_tell_what_to_change() {
    let text = passport(&json!({
        "data.file.read": {"allowed_paths": ["/w"]}, "web.fetch": {"allowed_domains": ["example.com"]},
        "web.browser": {"allowed_domains": ["example.com"]}, "system.command.execute": {"allowed_commands": ["git", "cat"]},
    }));
    let check = |row: &Value| {
        let decision = decide(&text.to_string(), row["tool"].as_str().unwrap(), &row["input"].to_string());
        assert_eq!(row["message"].as_str(), Some(&*decision.reasons[0].message));
    };
    check_each(jsonl("tests/data/passport_denials.jsonl"), Value::to_string, check);
}

#[test]
fn sample_passports_keep_to_the_schema_and_do_what_they_say() {
    for name in ["restrictive", "permissive", "coding-agent"] {
        assert_eq!(check_schema(example(name).as_bytes()).unwrap(), [], "{name}");
    }
    let [passport, tool] = ["passport", "tool"].map(|name| move |row: &Value| row[name].as_str().unwrap().to_owned());
    let check = |row: &Value| assert_eq!(row["code"], first(&example(&passport(row)), &tool(row), &row["input"]));
    check_each(jsonl("tests/data/passport_samples.jsonl"), Value::to_string, check);
}

#[test]
fn the_strict_side_names_every_fault_and_what_evaluation_makes_of_it() {
    let faults = check_schema(SEED.as_bytes()).unwrap();
    let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        paths,
        ["passport_id", "kind", "owner_id", "owner_type", "assurance_level", "regions", "created_at", "updated_at", "version"]
    );
    assert!(faults.iter().all(|fault| fault.effect == "ignored by evaluation"));
    let case: Value = serde_json::from_str(include_str!("data/passport_faults.json")).unwrap();
    let faults = check_schema(case["passport"].to_string().as_bytes()).unwrap();
    let effect =
        |path: &str| faults.iter().find(|fault| fault.path == path).map_or("no fault", |fault: &SchemaFault| fault.effect.as_ref());
    for (path, expected) in case["effects"].as_object().unwrap() {
        assert_eq!(expected, effect(path), "{path} in {faults:#?}");
    }
    assert!(["capabilities[0]", "capabilities[2].params"].iter().all(|path| effect(path).starts_with("grants nothing")));
    assert!(check_schema(b"{").is_err());
}

/// A list of such entries reads closed and blocks nothing. A row is an entry of a list, and whether something can match it.
#[test]
fn an_entry_that_matches_nothing_is_a_fault() {
    let check = |row: &Value| {
        let [capability, list] = ["capability", "list"].map(|name| row[name].as_str().unwrap());
        let mut passport: Value = serde_json::from_str(SEED).unwrap();
        passport["limits"] = json!({ capability: { list: [row["entry"]] } });
        let faults = check_schema(passport.to_string().as_bytes()).unwrap();
        let is_fault = faults.iter().any(|fault| fault.path == format!("limits[\"{capability}\"].{list}[0]"));
        assert_eq!(row["matches"], !is_fault);
    };
    check_each(jsonl("tests/data/passport_entries.jsonl"), Value::to_string, check);
}
