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

/// A file, arguments and variables for `config check`.
#[derive(Default)]
struct Setup<'s> {
    yaml: &'s str,
    arguments: Vec<&'s str>,
    variables: Vec<(&'s str, &'s str)>,
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

/// Checks that the command was used wrongly, as [`check_refused`] does of a configuration.
fn check_usage(ran: &Ran, expected: &str) {
    check_ended(ran, 2, expected);
}

fn check_ended(ran: &Ran, exit: i32, expected: &str) {
    assert!(ran.exit == Some(exit) && ran.stdout.is_empty(), "it was accepted, or ended with {:?}: {}", ran.exit, ran.stderr);
    assert!(ran.stderr.starts_with("tollgate: ") && ran.stderr.contains(expected), "{} instead of {expected}", ran.stderr);
}

/// Returns the effective configuration of a policy server; everything else is the default.
fn http(name: &str, url: &str, dialect: &str, timeout_ms: u32) -> Value {
    json!({
        "name": name, "url": url, "dialect": dialect, "timeout_ms": timeout_ms, "idempotent": dialect == "opa",
        "headers": {}, "header_files": {}, "concurrency_max": 64, "queue_max": 1_024, "answer_bytes_max": 65_536,
        "breaker_failures": 10, "breaker_open_ms": 1_000,
        "ca_file": null, "client_certificate_file": null, "client_key_file": null,
    })
}

#[test]
fn blocks_of_other_systems_work_unchanged() {
    let deerflow_detectors = "
safety_finish_reason:
  enabled: true
  detectors:
    - use: deerflow.agents.middlewares.safety_termination_detectors:OpenAICompatibleContentFilterDetector
      config:
        finish_reasons: [\"content_filter\", \"sensitive\"]
    - use: deerflow.agents.middlewares.safety_termination_detectors:AnthropicRefusalDetector
    - use: deerflow.agents.middlewares.safety_termination_detectors:GeminiSafetyDetector
";
    let deerflow_guardrails = "
guardrails:
  enabled: true
  fail_closed: true
  passport: null
  provider:
    use: deerflow.guardrails.builtin:AllowlistProvider
    config:
      denied_tools: [\"bash\", \"write_file\"]
";
    let hermes_nested = "
tool_loop_guardrails:
  warnings_enabled: true
  hard_stop_enabled: true
  warn_after: {exact_failure: 2, same_tool_failure: 3, idempotent_no_progress: 2}
  hard_stop_after: {exact_failure: 5, same_tool_failure: 8, idempotent_no_progress: 5}
";
    let gemini =
        ["SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "RECITATION", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"];
    let defaults = json!([
        {"use": "openai_compatible_content_filter", "config": {"finish_reasons": ["content_filter"]}},
        {"use": "anthropic_refusal", "config": {"stop_reasons": ["refusal"]}},
        {"use": "gemini_safety", "config": {"finish_reasons": gemini}},
    ]);
    let mut with_glm = defaults.clone();
    let mut defaults = defaults;
    defaults.as_array_mut().unwrap().push(json!({"use": "native", "config": {"without": []}}));
    with_glm[0]["config"]["finish_reasons"] = json!(["content_filter", "sensitive"]);
    let thresholds = |values: [u32; 6], warnings: bool, stops: bool| {
        let [exact_warn, exact_block, same_warn, same_halt, progress_warn, progress_block] = values;
        json!({"tool_loop_guardrails": {
            "exact_failure_warn_after": exact_warn, "exact_failure_block_after": exact_block,
            "same_tool_failure_warn_after": same_warn, "same_tool_failure_halt_after": same_halt,
            "no_progress_warn_after": progress_warn, "no_progress_block_after": progress_block,
            "warnings_enabled": warnings, "hard_stop_enabled": stops,
        }})
    };
    let cases = vec![
        ("no file content at all", "", thresholds([2, 2, 3, 5, 2, 2], true, true)),
        ("comments alone", "# nothing\n\n# here\n", json!({"guardrails": {"enabled": false}})),
        (
            "DeerFlow: enabled and nothing else",
            "safety_finish_reason:\n  enabled: true\n",
            json!({"safety_finish_reason": {"enabled": true, "detectors": defaults.clone()}}),
        ),
        (
            "DeerFlow: detectors of null are the built-in ones",
            "safety_finish_reason:\n  enabled: true\n  detectors:\n",
            json!({"safety_finish_reason": {"detectors": defaults}}),
        ),
        ("DeerFlow: GLM's value", deerflow_detectors, json!({"safety_finish_reason": {"enabled": true, "detectors": with_glm}})),
        (
            "DeerFlow: allowlist by class path",
            deerflow_guardrails,
            json!({"guardrails": {"enabled": true, "fail_closed": true, "passport": null, "providers": [{"use": "allowlist", "config": {"allowed_tools": null, "denied_tools": ["bash", "write_file"]}}]}}),
        ),
        ("DeerFlow: switched off", "guardrails:\n  enabled: false\n  provider: null\n", json!({"guardrails": {"enabled": false}})),
        ("Hermes: flat", "tool_loop_guardrails:\n  exact_failure_block_after: 4\n", thresholds([2, 4, 3, 5, 2, 2], true, true)),
        ("Hermes: nested", hermes_nested, thresholds([2, 5, 3, 8, 2, 5], true, true)),
        (
            "Hermes: nested, hard stops are off unless switched on",
            "tool_loop_guardrails:\n  warn_after: {exact_failure: 7}\n",
            thresholds([7, 5, 3, 8, 2, 5], true, false),
        ),
        ("Hermes: a switch alone", "tool_loop_guardrails:\n  hard_stop_enabled: true\n", thresholds([2, 5, 3, 8, 2, 5], true, true)),
        ("Hermes: warnings off", "tool_loop_guardrails:\n  warnings_enabled: false\n", thresholds([2, 5, 3, 8, 2, 5], false, false)),
        (
            "a list of providers",
            "guardrails: {enabled: true, providers: [{use: allowlist}, {use: allowlist, config: {allowed_tools: []}}]}",
            json!({"guardrails": {"providers": [
                {"use": "allowlist", "config": {"allowed_tools": null, "denied_tools": []}},
                {"use": "allowlist", "config": {"allowed_tools": [], "denied_tools": []}},
            ]}}),
        ),
        (
            "an Open Agent Passport by class path",
            "guardrails: {enabled: true, passport: docs-writer, provider: {use: aport_guardrails.providers.generic:OAPGuardrailProvider}}",
            json!({"guardrails": {"passport": "docs-writer", "providers": [{"use": "oap_passport", "config": {
                "passport_path": null, "tool_capabilities": {}, "unenforced_limits": "deny",
            }}]}}),
        ),
        (
            "tools keep their names",
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {unenforced_limits: ignore, tool_capabilities: {Bash: system.command.execute, exec.run: none, mcp__*: null}}}}",
            json!({"guardrails": {"providers": [{"use": "oap_passport", "config": {
                "passport_path": null, "unenforced_limits": "ignore",
                "tool_capabilities": {"Bash": "system.command.execute", "exec.run": "none", "mcp__*": null},
            }}]}}),
        ),
        (
            "servers come last, and are told apart",
            "guardrails: {enabled: true, providers: [{use: http, config: {url: 'http://a/'}}, {use: allowlist}, {use: http, tools: ['mcp__*'], config: {url: 'https://b/x', dialect: opa, timeout_ms: 9}}]}",
            json!({"guardrails": {"providers": [
                {"use": "allowlist", "config": {"allowed_tools": null, "denied_tools": []}},
                {"use": "http", "config": http("http", "http://a/", "tollgate", 250)},
                {"use": "http", "tools": ["mcp__*"], "config": http("http-2", "https://b/x", "opa", 9)},
            ]}}),
        ),
        ("JSON is YAML", r#"{"kafka": {"brokers": "a:1,b:2"}}"#, json!({"kafka": {"brokers": "a:1,b:2"}})),
        ("admin switched off", "admin: null", json!({"admin": null})),
        (
            "librdkafka's properties keep their dots and case",
            "kafka: {properties: {security.protocol: SSL, socket.timeout.ms: 5000, enable.ssl.certificate.verification: false}}",
            json!({"kafka": {"properties": {"security.protocol": "SSL", "socket.timeout.ms": "5000", "enable.ssl.certificate.verification": "false"}}}),
        ),
        (
            "tools keep their case",
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [Bash, MCP__X]}}}",
            json!({"guardrails": {"providers": [{"use": "allowlist", "config": {"allowed_tools": null, "denied_tools": ["Bash", "MCP__X"]}}]}}),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, text, expected)| assert_has(name, &effective(&yaml(text)), expected));
}

/// The printed configuration can be saved and used: it means the same, and decides the same.
#[test]
fn what_is_printed_can_be_loaded() {
    let cases = vec![
        "",
        "safety_finish_reason: {enabled: false}",
        "safety_finish_reason: {detectors: [{use: gemini_safety, config: {finish_reasons: [SAFETY]}}]}",
        "guardrails: {enabled: true, passport: p, fail_closed: false, providers: [{use: allowlist, config: {allowed_tools: [a]}}, {use: allowlist, config: {denied_tools: [b]}}]}",
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
