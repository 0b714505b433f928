//! Tests configuration as users write it: files, environment, secrets and `-X`, through the real binary's `config check`.

mod every_key;
mod lines;
mod mistakes;
mod refused;
mod secrets;
mod variables;
mod versions;

use crate::support::{Ran, assert_has, check_each, run, temporary, tollgate};
use serde_json::{Value, json};
use tollgate_fixtures::cases::jsonl;

/// A file, arguments and variables for `config check`.
#[derive(Default)]
struct Setup<'s> {
    yaml: &'s str,
    arguments: Vec<&'s str>,
    variables: Vec<(&'s str, &'s str)>,
}

impl<'s> Setup<'s> {
    /// Reads the members `config`, `arguments` and `variables` of a case.
    fn of(case: &'s Value) -> Self {
        let text = |value: &'s Value| value.as_str().expect("a text");
        Self {
            yaml: case.get("config").map_or("", text),
            arguments: case["arguments"].as_array().into_iter().flatten().map(text).collect(),
            variables: case["variables"].as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), text(value))).collect(),
        }
    }
}

fn check(setup: &Setup<'_>) -> Ran {
    let file = temporary(setup.yaml);
    let mut command = tollgate();
    command.args(["config", "check", "--config"]).arg(file.path()).args(&setup.arguments).envs(setup.variables.iter().copied());
    let mut ran = run(&mut command, b"");
    ran.stderr = ran.stderr.replace(&file.path().display().to_string(), "FILE");
    ran
}

fn yaml(yaml: &str) -> Setup<'_> {
    Setup { yaml, ..Setup::default() }
}

/// Returns the effective configuration of a valid setup.
fn effective(setup: &Setup<'_>) -> Value {
    let ran = check(setup);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn version(setup: &Setup<'_>) -> String {
    let ran = check(setup);
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
    ran.stderr.split("policy_version ").nth(1).unwrap().trim().to_owned()
}

/// Checks that the command ends with 1, prints no configuration and says what is wrong.
fn check_refused(ran: &Ran, expected: &str) {
    check_ended(ran, 1, expected);
}

fn check_ended(ran: &Ran, exit: i64, expected: &str) {
    assert!(
        ran.exit.map(i64::from) == Some(exit) && ran.stdout.is_empty(),
        "it was accepted, or ended with {:?}: {}",
        ran.exit,
        ran.stderr
    );
    assert!(ran.stderr.starts_with("tollgate: ") && ran.stderr.contains(expected), "{} instead of {expected}", ran.stderr);
}

/// Blocks of other systems work unchanged, and variables and arguments win over the file. A case has the settings that come of it.
#[test]
fn what_is_written_is_in_force() {
    let check_case = |case: &Value| assert_has("the settings", &effective(&Setup::of(case)), &case["effective"]);
    check_each(jsonl("tests/config/accepted.jsonl"), Value::to_string, check_case);
}

/// People copy from the annotated configuration.
#[test]
fn the_annotated_configuration_is_accepted() {
    assert_eq!(effective(&yaml(include_str!("../../config/example.yaml")))["tool_loop_guardrails"]["preset"], "tollgate");
}

/// The printed configuration can be saved and used: it means the same, and decides the same.
#[test]
fn what_is_printed_can_be_loaded() {
    let cases = vec![
        "",
        "safety_finish_reason: {enabled: false}",
        "safety_finish_reason: {detectors: [{use: gemini_safety, config: {finish_reasons: [SAFETY]}}]}",
        "guardrails: {enabled: true, fail_closed: false, providers: [{use: allowlist, config: {allowed_tools: [a]}}, {use: allowlist, config: {denied_tools: [b]}}]}",
        "guardrails: {enabled: true, providers: [{use: http, tools: [a, b*], config: {url: 'http://p/', dialect: opa, idempotent: false, header_files: {x-key: /k}}}, {use: http, config: {url: 'http://q/'}}]}",
        "guardrails: {enabled: true, provider: {use: oap_passport, config: {unenforced_limits: ignore, tool_capabilities: {a: none, b: null}}}}",
        "tool_loop_guardrails: {warn_after: {exact_failure: 9}, warnings_enabled: false}",
        "admin: null",
        "worker: {members: 3, instance_id: pod-7}",
        "kafka: {properties: {security.protocol: ssl, sasl.password: x}, reply_topics: [\"r.*\"]}",
    ];
    check_each(
        cases,
        |case| (*case).to_owned(),
        |case| {
            let first = check(&yaml(case));
            assert!(first.stdout.starts_with('{'), "{first:?}");
            let second = check(&yaml(&first.stdout));
            assert!(second == first, "{}", second.stderr);
        },
    );
}

#[test]
fn the_policy_version_changes_exactly_when_decisions_can() {
    let plain = version(&yaml(""));
    assert!(
        plain.strip_prefix("sha256:").is_some_and(|digest| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())),
        "{plain}"
    );
    let same = [
        "kafka: {brokers: \"x:1\", group_id: g, topics: {events: a, decisions: b}, reply_topics: [r], properties: {client.rack: c}}",
        "worker: {members: 3, checkpoint_interval_ms: 5, in_flight_max: 1, instance_id: x, drain_timeout_ms: 1}",
        "admin: null",
        "log: {filter: debug, format: json}",
        "safety_finish_reason: {enabled: true}",
        "guardrails: {enabled: false, fail_closed: false, passport: p, provider: {use: allowlist, config: {denied_tools: [a]}}}",
        "tool_loop_guardrails: {exact_failure_warn_after: 2, warnings_enabled: true, hard_stop_enabled: true}",
    ];
    check_each(same, |case| (*case).to_owned(), |case| assert_eq!(version(&yaml(case)), plain));
    let other = [
        "safety_finish_reason: {enabled: false}",
        "safety_finish_reason: {detectors: [{use: anthropic_refusal}]}",
        "safety_finish_reason: {detectors: [{use: openai_compatible_content_filter, config: {finish_reasons: [sensitive]}}]}",
        "guardrails: {enabled: true, provider: {use: allowlist}}",
        "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}",
        "guardrails: {enabled: true, provider: {use: allowlist, config: {allowed_tools: []}}}",
        "tool_loop_guardrails: {exact_failure_block_after: 3}",
        "tool_loop_guardrails: {warnings_enabled: false, exact_failure_warn_after: 2}",
        "tool_loop_guardrails: {hard_stop_enabled: true}",
        "tool_loop_guardrails: {idempotent_tools: [read_file]}",
        "tool_loop_guardrails: {mutating_tools: []}",
        "limits: {thread_idle_seconds_max: 60}",
        "limits: {event_bytes_max: 1000}",
        "limits: {thread_bytes_max: 4096}",
        "limits: {threads_per_partition_max: 10}",
        "limits: {verdict_bytes_max: 20000}",
    ];
    let mut versions: Vec<String> = other.iter().map(|case| version(&yaml(case))).collect();
    versions.push(plain);
    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), other.len() + 1, "two policies share a version");
    let ordered = |tools: &str| version(&yaml(&format!("tool_loop_guardrails: {{idempotent_tools: [{tools}]}}")));
    assert_eq!(ordered("a, b"), ordered("b, a, b"), "a list of tools is a set");
}

/// The version that verdicts carry is the one that `config check` prints.
#[test]
fn verdicts_carry_the_version_that_is_printed() {
    let file = temporary("tool_loop_guardrails: {exact_failure_block_after: 9}");
    let ran = run(tollgate().args(["eval", "--config"]).arg(file.path()), br#"{"type":"model_response","thread_id":"t","response":{}}"#);
    assert_eq!(ran.json_lines()[0]["policy_version"], version(&yaml("tool_loop_guardrails: {exact_failure_block_after: 9}")).as_str());
}

/// The file in the repository is the embedded default, complete and valid as it stands.
#[test]
fn the_default_file_says_what_holds_without_a_file() {
    let text = std::fs::read_to_string("config/tollgate.yaml").unwrap();
    assert_eq!(check(&yaml(&text)), check(&yaml("")));
}
