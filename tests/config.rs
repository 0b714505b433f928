//! Configuration as users write it: files, environment, secrets and `-X`, through the real binary's `config check`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod support;

use serde_json::{Value, json};
use support::{Ran, assert_has, check_each, run, temporary, tollgate};

/// What `config check` makes of a file, arguments and variables.
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

/// The effective configuration of a valid setup.
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
            "kafka: {properties: {security.protocol: SASL_SSL, socket.timeout.ms: 5000, enable.ssl.certificate.verification: false}}",
            json!({"kafka": {"properties": {"security.protocol": "SASL_SSL", "socket.timeout.ms": "5000", "enable.ssl.certificate.verification": "false"}}}),
        ),
        (
            "tools keep their case",
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: [Bash, MCP__X]}}}",
            json!({"guardrails": {"providers": [{"use": "allowlist", "config": {"allowed_tools": null, "denied_tools": ["Bash", "MCP__X"]}}]}}),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, text, expected)| assert_has(name, &effective(&yaml(text)), expected));
}

#[test]
fn mistakes_name_the_key_what_was_found_and_what_to_write() {
    let cases = vec![
        ("an unknown section", "kafak: {}", "kafak: found an unknown key; write `kafka`, or remove it"),
        ("an unknown key", "kafka: {broker: x}", "kafka.broker: found an unknown key; write `brokers`, or remove it"),
        ("an unknown topic", "kafka: {topics: {event: x}}", "kafka.topics.event: found an unknown key; write `events`, or remove it"),
        (
            "an unknown threshold",
            "tool_loop_guardrails: {exact_failure_warn_afer: 2}",
            "tool_loop_guardrails.exact_failure_warn_afer: found an unknown key; write `exact_failure_warn_after`",
        ),
        (
            "an unknown nested threshold",
            "tool_loop_guardrails: {warn_after: {exact_failures: 2}}",
            "tool_loop_guardrails.warn_after.exact_failures: found an unknown key; write `exact_failure`",
        ),
        (
            "an unknown key of a detector",
            "safety_finish_reason: {detectors: [{use: anthropic_refusal, config: {finish_reasons: [x]}}]}",
            "safety_finish_reason.detectors[0].config.finish_reasons: found an unknown key; write `stop_reasons`",
        ),
        (
            "an unknown key of a provider",
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied: [x]}}}",
            "guardrails.provider.config.denied: found an unknown key; write `denied_tools`",
        ),
        ("a number instead of a boolean", "guardrails: {enabled: 1}", "guardrails.enabled: found a number; write true or false"),
        (
            "text instead of a number",
            "limits: {event_bytes_max: lots}",
            "limits.event_bytes_max: found a string; write a whole number of 1 or more",
        ),
        (
            "zero",
            "limits: {thread_idle_seconds_max: 0}",
            "limits.thread_idle_seconds_max: found a number; write a whole number of 1 or more",
        ),
        (
            "a negative number",
            "tool_loop_guardrails: {no_progress_warn_after: -1}",
            "tool_loop_guardrails.no_progress_warn_after: found a negative number; write a whole number of 0 or more",
        ),
        ("a fraction", "worker: {members: 1.5}", "worker.members: found a fraction; write a whole number of 1 or more"),
        ("too little memory", "limits: {thread_bytes_max: 100}", "limits.thread_bytes_max: found a smaller number; write 4096 or more"),
        ("a list instead of a mapping", "kafka: [a]", "kafka: found a list; write a mapping"),
        ("a mapping instead of a string", "kafka: {brokers: {a: 1}}", "kafka.brokers: found a mapping; write a string"),
        ("an empty string", "kafka: {group_id: \"\"}", "kafka.group_id: found an empty string"),
        ("a list instead of the whole", "[a, b]", "map"),
        (
            "a bare string instead of a list of detectors",
            "safety_finish_reason: {detectors: anthropic_refusal}",
            "safety_finish_reason.detectors: found a string; write a list",
        ),
        (
            "a bare string instead of a list of values",
            "safety_finish_reason: {detectors: [{use: anthropic_refusal, config: {stop_reasons: refusal}}]}",
            "safety_finish_reason.detectors[0].config.stop_reasons: found a string; write a list of strings",
        ),
        (
            "a bare string instead of a list of tools",
            "guardrails: {enabled: true, provider: {use: allowlist, config: {denied_tools: bash}}}",
            "guardrails.provider.config.denied_tools: found a string; write a list of strings",
        ),
        (
            "a number in a list of tools",
            "tool_loop_guardrails: {idempotent_tools: [a, 1]}",
            "tool_loop_guardrails.idempotent_tools: found a list; write a list of strings",
        ),
        (
            "no detectors",
            "safety_finish_reason: {detectors: []}",
            "safety_finish_reason.detectors: found an empty list; omit it for the built-ins, or set `enabled: false`",
        ),
        (
            "no values",
            "safety_finish_reason: {detectors: [{use: gemini_safety, config: {finish_reasons: []}}]}",
            "safety_finish_reason.detectors[0].config.finish_reasons: found an empty list; omit it for the built-in values",
        ),
        (
            "an unknown detector",
            "safety_finish_reason: {detectors: [{use: acme:MyDetector}]}",
            "safety_finish_reason.detectors[0].use: found an unknown detector; write `openai_compatible_content_filter`, `anthropic_refusal` or `gemini_safety`",
        ),
        (
            "a detector that is a word",
            "safety_finish_reason: {detectors: [gemini_safety]}",
            "safety_finish_reason.detectors[0]: found a string; write a mapping with `use`",
        ),
        (
            "enabled without a provider",
            "guardrails: {enabled: true}",
            "guardrails.provider: found nothing although `enabled` is true; write `provider: {use: allowlist, config: {denied_tools: [\"bash\"]}}`, or set `enabled: false`",
        ),
        (
            "enabled with no providers",
            "guardrails: {enabled: true, providers: []}",
            "guardrails.provider: found nothing although `enabled` is true",
        ),
        (
            "a provider and providers",
            "guardrails: {enabled: true, provider: {use: allowlist}, providers: [{use: allowlist}]}",
            "guardrails.provider: found both `provider` and `providers`; write one of them",
        ),
        (
            "an unknown provider",
            "guardrails: {enabled: true, provider: {use: \"acme:Provider\"}}",
            "guardrails.provider.use: found an unknown provider; write `allowlist`",
        ),
        (
            "a policy server without an address",
            "guardrails: {enabled: true, provider: {use: http, config: {}}}",
            "guardrails.provider.config.url: found nothing; write a string",
        ),
        (
            "a policy server with credentials in its address",
            "guardrails: {enabled: true, provider: {use: http, config: {url: 'http://u:p@x/'}}}",
            "guardrails.provider.config.url: found a string that is no http or https URL without credentials; write an absolute URL",
        ),
        (
            "a dialect that nobody speaks",
            "guardrails: {enabled: true, provider: {use: http, config: {url: 'http://x/', dialect: cedar}}}",
            "guardrails.provider.config.dialect: found another word; write tollgate or opa",
        ),
        (
            "a provider with a say in nothing",
            "guardrails: {enabled: true, provider: {use: allowlist, tools: []}}",
            "guardrails.provider.tools: found an empty list; name tools",
        ),
        (
            "a passport that cannot be read",
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {passport_path: /nowhere/passport.json}}}",
            "guardrails.provider.config.passport_path: found /nowhere/passport.json, which cannot be read (",
        ),
        (
            "a pattern of tools",
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {tool_capabilities: {my_*: web.fetch}}}}",
            "guardrails.provider.config.tool_capabilities.my_*: found a pattern; write the tool's exact name; only browser_* and mcp__* are families",
        ),
        (
            "a capability of another type",
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {tool_capabilities: {x: [web.fetch]}}}}",
            "guardrails.provider.config.tool_capabilities.x: found a list; write a capability, `none` if the tool needs none, or null to forget the tool",
        ),
        (
            "another word for limits that cannot be kept",
            "guardrails: {enabled: true, provider: {use: oap_passport, config: {unenforced_limits: warn}}}",
            "guardrails.provider.config.unenforced_limits: found another word; write deny or ignore",
        ),
        (
            "both forms of thresholds",
            "tool_loop_guardrails: {exact_failure_warn_after: 2, hard_stop_after: {exact_failure: 5}}",
            "tool_loop_guardrails.exact_failure_warn_after: found both this and `hard_stop_after`; write the flat thresholds or the nested form, not both",
        ),
        (
            "a property of ours",
            "kafka: {properties: {enable.auto.commit: true}}",
            "kafka.properties.enable.auto.commit: found a property that Tollgate sets itself; remove it",
        ),
        (
            "the partitioner",
            "kafka: {properties: {partitioner: consistent}}",
            "kafka.properties.partitioner: found a property that Tollgate sets itself",
        ),
        ("the group", "kafka: {properties: {group.id: x}}", "kafka.properties.group.id: found a property that Tollgate sets itself"),
        (
            "a property that is a list",
            "kafka: {properties: {a.b: [1]}}",
            "kafka.properties.a.b: found a list; write a string, a number or a boolean",
        ),
        ("an address without a port", "admin: {listen: localhost}", "admin.listen: found a string that is no address with a port"),
        ("a format that is not", "log: {format: xml}", "log.format: found another word; write text or json"),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(_, text, expected)| check_refused(&check(&yaml(text)), expected));
}

/// It ends with 1, prints no configuration and says what is wrong.
fn check_refused(ran: &Ran, expected: &str) {
    assert!(ran.exit == Some(1) && ran.stdout.is_empty(), "it was accepted, or ended with {:?}: {}", ran.exit, ran.stderr);
    assert!(ran.stderr.starts_with("tollgate: ") && ran.stderr.contains(expected), "{} instead of {expected}", ran.stderr);
}

#[test]
fn all_mistakes_are_told_at_once_and_no_value_is_quoted() {
    let ran = check(&yaml(
        "kafka: {brokers: [MARKER-7f3a], group: MARKER-7f3a}\nprivacy: {subject_key: {x: MARKER-7f3a}}\nlimits: {thread_bytes_max: MARKER-7f3a}\n",
    ));
    assert_eq!(ran.exit, Some(1));
    for key in ["kafka.brokers", "kafka.group", "privacy.subject_key", "limits.thread_bytes_max"] {
        assert!(ran.stderr.contains(&format!("{key}: found ")), "{key}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("MARKER"), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("tollgate: FILE:\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 5, "{}", ran.stderr);
}

#[test]
fn text_that_is_no_yaml() {
    for text in ["kafka: {brokers", "kafka:\n\t- x", "a: b: c", "kafka: {}\n---\nkafka: {}\n"] {
        let ran = check(&yaml(text));
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(1), ""), "{text}: {ran:?}");
        assert!(ran.stderr.contains("FILE is not valid YAML"), "{text}: {}", ran.stderr);
    }
}

#[test]
fn variables_and_arguments_win_over_the_file() {
    let file = "kafka: {brokers: \"file:1\", properties: {security.protocol: plaintext}}\nworker: {members: 7}\n";
    let over = |variables: &[(&'static str, &'static str)], arguments: &[&'static str]| Setup {
        yaml: file,
        variables: variables.to_vec(),
        arguments: arguments.to_vec(),
    };
    let cases = vec![
        (
            "a string",
            over(&[("TOLLGATE__KAFKA__BROKERS", "b:9092,c:9092")], &[]),
            json!({"kafka": {"brokers": "b:9092,c:9092"}, "worker": {"members": 7}}),
        ),
        ("a number", over(&[("TOLLGATE__WORKER__MEMBERS", "2")], &[]), json!({"worker": {"members": 2}})),
        ("null", over(&[("TOLLGATE__WORKER__MEMBERS", "null")], &[]), json!({"worker": {"members": null}})),
        (
            "a boolean",
            over(&[("TOLLGATE__SAFETY_FINISH_REASON__ENABLED", "false")], &[]),
            json!({"safety_finish_reason": {"enabled": false}}),
        ),
        (
            "a list",
            over(&[("TOLLGATE__KAFKA__REPLY_TOPICS", "[replies.*, other]")], &[]),
            json!({"kafka": {"reply_topics": ["replies.*", "other"]}}),
        ),
        (
            "a nested key",
            over(&[("TOLLGATE__KAFKA__TOPICS__EVENTS", "acme.events")], &[]),
            json!({"kafka": {"topics": {"events": "acme.events", "dlq": "agent.events.dlq"}}}),
        ),
        (
            "a property",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")], &[]),
            json!({"kafka": {"properties": {"security.protocol": "ssl"}}}),
        ),
        ("a section", over(&[("TOLLGATE__ADMIN", "null")], &[]), json!({"admin": null})),
        (
            "-X over all",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")], &["-X", "security.protocol=sasl_ssl", "-X", "a.b=c=d"]),
            json!({"kafka": {"properties": {"security.protocol": "sasl_ssl", "a.b": "c=d"}}}),
        ),
        ("a name that is a number", over(&[("TOLLGATE__KAFKA__GROUP_ID", "42")], &[]), json!({"kafka": {"group_id": "42"}})),
        (
            "a secret that looks like a number",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "007")], &[]),
            json!({"kafka": {"properties": {"client.rack": "007"}}}),
        ),
        (
            "a value that looks like a comment",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "a #b")], &[]),
            json!({"kafka": {"properties": {"client.rack": "a #b"}}}),
        ),
        (
            "a value that looks like a mapping",
            over(&[("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK", "{a: b}")], &[]),
            json!({"kafka": {"properties": {"client.rack": "{a: b}"}}}),
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(name, setup, expected)| assert_has(name, &effective(setup), expected));
}

#[test]
fn wrong_variables_and_arguments() {
    let with = |variables: &[(&'static str, &'static str)], arguments: &[&'static str]| Setup {
        yaml: "",
        variables: variables.to_vec(),
        arguments: arguments.to_vec(),
    };
    let cases = vec![
        ("an unknown variable", with(&[("TOLLGATE__KAFKA__BROKER", "x")], &[]), "kafka.broker: found an unknown key; write `brokers`"),
        ("a variable of the wrong type", with(&[("TOLLGATE__WORKER__MEMBERS", "many")], &[]), "worker.members: found a string"),
        (
            "a secret file that is not there",
            with(&[("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", "/no/such/file")], &[]),
            "the file that TOLLGATE__PRIVACY__SUBJECT_KEY_FILE names",
        ),
        ("-X without a value", with(&[], &["-X", "security.protocol"]), "-X wants key=value"),
        ("-X of ours", with(&[], &["-X", "group.id=x"]), "-X group.id: Tollgate sets this property itself"),
        (
            "-X of ours by its other name",
            with(&[], &["-X", "request.required.acks=1"]),
            "-X request.required.acks: Tollgate sets this property itself",
        ),
        ("-X without a key", with(&[], &["-X", "=x"]), "-X wants key=value"),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(_, setup, expected)| check_refused(&check(setup), expected));
}

/// Other programs' variables are none of our business, whatever bytes they hold.
#[test]
fn a_variable_that_is_no_text_is_not_ours() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = tollgate();
    command.args(["config", "check"]).env("SOMETHING_ELSE", std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let ran = run(&mut command, b"");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    const SECRET: &str = "s3cret-7f3a";
    let file = temporary(&format!("{SECRET}\n"));
    let path = file.path().to_str().unwrap();
    let file_with_hash = temporary("a #b 007\r\n");
    let text = format!(
        "privacy: {{subject_key: {SECRET}}}\nkafka:\n  properties:\n    sasl.password: {SECRET}\n    ssl.key.password: {SECRET}\n    ssl.keystore.password: {SECRET}\n    ssl.key.pem: {SECRET}\n    sasl.oauthbearer.client.secret: {SECRET}\n    sasl.oauthbearer.config: {SECRET}\n    sasl.oauthbearer.assertion.private.key.pem: {SECRET}\n    sasl.oauthbearer.assertion.private.key.passphrase: {SECRET}\n    sasl.username: alice\n    ssl.key.location: /etc/key.pem\n"
    );
    let shown = effective(&yaml(&text));
    assert_eq!(shown["privacy"]["subject_key"], "[redacted]");
    assert_has(
        "shown",
        &shown["kafka"]["properties"],
        &json!({"sasl.password": "[redacted]", "sasl.username": "alice", "ssl.key.location": "/etc/key.pem"}),
    );
    let properties = shown["kafka"]["properties"].as_object().unwrap();
    let leaks: Vec<_> = properties.iter().filter(|(_, value)| value.to_string().contains(SECRET)).map(|(property, _)| property).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
    let variables = vec![("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", path), ("TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD_FILE", path)];
    let ran = check(&Setup { variables, arguments: vec!["-X", "ssl.key.password=s3cret-7f3a"], ..Setup::default() });
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    assert_eq!(ran.stdout.matches("[redacted]").count(), 3, "{}", ran.stdout);
    // What the file says is taken as it is, without the line's end.
    let variables = vec![("TOLLGATE__KAFKA__PROPERTIES__CLIENT_RACK_FILE", file_with_hash.path().to_str().unwrap())];
    let shown = effective(&Setup { variables, ..Setup::default() });
    assert_eq!(shown["kafka"]["properties"]["client.rack"], "a #b 007");
}

/// The effective configuration of a policy server; everything else is the default.
fn http(name: &str, url: &str, dialect: &str, timeout_ms: u32) -> Value {
    json!({
        "name": name, "url": url, "dialect": dialect, "timeout_ms": timeout_ms, "idempotent": dialect == "opa",
        "headers": {}, "header_files": {}, "concurrency_max": 64, "queue_max": 1_024, "answer_bytes_max": 65_536,
        "breaker_failures": 10, "breaker_open_ms": 1_000,
        "ca_file": null, "client_certificate_file": null, "client_key_file": null,
    })
}

#[test]
fn a_policy_servers_headers_are_never_shown_and_no_part_of_the_version() {
    let text = |secret: &str| {
        format!(
            "guardrails: {{enabled: true, provider: {{use: http, config: {{url: 'http://p/', headers: {{authorization: 'Bearer {secret}'}}}}}}}}"
        )
    };
    let [first, second] = ["s3cret-1", "s3cret-2"].map(|secret| check(&yaml(&text(secret))));
    assert!(!format!("{first:?}").contains("s3cret"), "{first:?}");
    assert_eq!((first.exit, &first.stdout), (second.exit, &second.stdout), "a rotated token changes no decision");
}

/// What is printed can be saved and used: it means the same, and decides the same.
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
            assert_eq!(first.exit, Some(0), "{first:?}");
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
        "kafka: {brokers: \"x:1\", group_id: g, topics: {events: a, decisions: b}, reply_topics: [r], properties: {a.b: c}}",
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
