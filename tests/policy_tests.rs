//! Tests `tollgate test`: the examples of the documentation pass and reach their policy, failures are shown side by side, and mistakes in
//! test files are found before anything runs.

use crate::support::{self, Ran, check_examples, check_mistakes, run, tollgate};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Runs `tollgate test` on one file with this text.
fn test(text: &str, arguments: &[&str]) -> Ran {
    support::test(&["test"], text, arguments)
}

/// Returns a file with one case of these events.
fn case(events: &str) -> String {
    format!("cases:\n  - name: one\n    why: because\n    events:\n{events}")
}

/// What the documentation shows is a file that is run.
#[test]
fn the_examples_pass_and_reach_everything() {
    let reached = check_examples(&["test"], "docs/examples", 10, ("docs/policy-tests.md", "loops_test.yaml"));
    assert_eq!(reached["policy"], "docs/examples/policy.yaml");
}

const FAILING: &str = r#"      - event: {type: tool_call, tool_call_id: c1, tool_name: bash, tool_input: {secret: "hunter2"}}
        expect: {action: block, code: nope, reasons: [{code: x}], allows_execution: true}
      - event: {type: turn_start}
        expect: {action: allow}
      - event: {type: tool_call, tool_call_id: c1, tool_name: bash, tool_input: {}}
        expect: none
      - event: {type: tool_call, tool_name: bash}
"#;

const SHOWN: &str = "\
FAILED  a_test.yaml: 1 of 1 case failed

one
  why: because
  event 1, a_test.yaml:5
    field    expected        got
    action   \"block\"         \"allow\"
    code     \"nope\"          \"allow\"
    reasons  [{\"code\":\"x\"}]  []
  event 2, a_test.yaml:7
    field   expected  got
    action  \"allow\"   no verdict
  event 3, a_test.yaml:9
    field   expected    got
    action  no verdict  \"allow\"
    code    no verdict  \"allow\"
  event 4, a_test.yaml:11
    it is no event: ";

#[test]
fn a_failure_is_shown_side_by_side() {
    let ran = test(&case(FAILING), &[]);
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with(SHOWN), "{}\n---\n{SHOWN}", ran.stdout);
    assert!(ran.stdout.ends_with("0 of 1 case passed\n") && !ran.stdout.contains("hunter2"), "{}", ran.stdout);
    let json: Value = test(&case(FAILING), &["--json"]).json_lines().remove(0);
    assert_eq!(json["failures"][0]["differences"][1], json!({"field": "code", "expected": "\"nope\"", "got": "\"allow\""}));
    assert_eq!((&json["failures"][0]["line"], &json["passed"], &json["why"]), (&json!(5), &json!(false), &json!("because")));
}

const SERVER: &str =
    "policy:\n  guardrails: {enabled: true, provider: {use: http, config: {name: opa, url: \"http://127.0.0.1:9/x\", dialect: opa}}}\n";
const CALL: &str = "      - event: {type: tool_call, tool_call_id: c1, tool_name: bash, tool_input: {}}\n";

#[test]
fn policy_servers_are_answered_by_the_file() {
    for (more, exit, says) in [
        ("        answers: [{allow: true}]\n        expect: {action: allow}\n", 0, ""),
        ("        answers: [{error: overloaded}]\n        expect: {action: block, code: oap.evaluator_error}\n", 0, ""),
        ("        expect: {action: block}\n", 1, "the policy server `opa` is asked and the event has no answer"),
        ("        answers: [{allow: true}, {allow: false}]\n        expect: {action: allow}\n", 1, "1 of its answers were not asked for"),
        ("        answers: [{server: other, allow: true}]\n        expect: {action: allow}\n", 1, "the next answer is that of `other`"),
    ] {
        let ran = test(&format!("{SERVER}{}", case(&format!("{CALL}{more}"))), &[]);
        assert_eq!(ran.exit, Some(exit), "{more}: {ran:?}");
        assert!(ran.stdout.contains(says), "{more}: {}", ran.stdout);
    }
}

#[test]
fn mistakes_are_found_with_their_places_before_anything_runs() {
    check_mistakes("policy", |file| test(file, &[]));
}

/// An inline policy may hold secrets, and its faults do not show them.
#[test]
fn faults_show_no_secret_of_a_policy() {
    let text = "policy:\n  guardrails:\n    enabled: true\n    provider: {use: http, config: {url: 3, headers: {authorization: hunter2}}}\ncases: []\n";
    let ran = test(text, &[]);
    assert!(ran.exit == Some(2) && ran.stderr.contains("a_test.yaml:4:") && !ran.stderr.contains("hunter2"), "{}", ran.stderr);
}

#[test]
fn nothing_to_run_is_no_success() {
    let text = case(&format!("{CALL}        expect: {{action: allow}}\n"));
    assert_eq!(test(&text, &["--filter", "on"]).exit, Some(0));
    let ran = test(&text, &["--filter", "two"]);
    assert!(ran.exit == Some(1) && ran.stderr.contains("found no case"), "{ran:?}");
    let empty = TempDir::new().unwrap();
    assert_eq!(run(tollgate().arg("test").arg(empty.path()), b"").exit, Some(1));
    assert_eq!(run(tollgate().arg("test").arg(empty.path().join("gone")), b"").exit, Some(2));
    assert_eq!(run(tollgate().arg("test"), b"").exit, Some(2));
}

#[test]
fn each_case_begins_afresh_and_what_was_not_reached_is_named() {
    let fail = "      - event: {type: tool_result, tool_call_id: c1, tool_name: bash, tool_input: {}, failed: true, result: no}\n        expect: {action: allow, count: 1}\n";
    let text = format!("{}  - name: two\n    events:\n{fail}", case(fail));
    let ran = test(&text, &["--coverage-min", "1%"]);
    assert_eq!(ran.exit, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("2 of 2 cases passed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("loop findings, repeated_exact_failure_block"), "{}", ran.stdout);
    assert!(ran.stderr.contains("0 % of the policies were reached, and --coverage-min asks for 1 %"), "{}", ran.stderr);
}

/// Keys of arguments keep their spelling, and bytes reach the decoder as they are.
#[test]
fn values_are_those_of_the_file() {
    let passport = json!({"type": "passport", "agent_id": "coder", "passport": {
        "spec_version": "oap/1.0", "status": "active", "capabilities": [{"id": "data.file.write"}],
        "limits": {"data.file.write": {"allowed_paths": ["/work"]}}}});
    let write = |path: &str, expect: &str| {
        format!(
            "      - event: {{type: tool_call, tool_call_id: \"{path}\", tool_name: Write, agent_id: coder, tool_input: {{filePath: \"{path}\", file_path: \"{path}\", content: x}}}}\n        expect: {expect}\n"
        )
    };
    let text = format!(
        "policy: {{guardrails: {{enabled: true, provider: {{use: oap_passport, config: {{tool_capabilities: {{Write: data.file.write}}}}}}}}}}\ncontrols: [{{key: passport/coder, value: {passport}}}]\n{}",
        case(&[write("/etc/passwd", "{action: block, decided_by: guardrail}"), write("/work/a", "{action: allow}")].concat())
    );
    let ran = test(&text, &["--coverage"]);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
    let bytes = "      - record: {key: t, value: {base64: \"AAAAAAF7InR5cGUiOiJ0dXJuX3N0YXJ0In0=\"}}\n        expect: none\n";
    let ran = test(&case(bytes), &[]);
    assert_eq!(ran.exit, Some(0), "{}{}", ran.stdout, ran.stderr);
}
