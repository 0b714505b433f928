//! Tests variables and arguments, which override the file.

use super::*;

/// A policy server can be set and overridden by variables alone.
#[test]
fn lists_mappings_and_their_elements() {
    let file = "
guardrails:
  enabled: true
  providers:
    - use: http
      config: {url: 'http://file/', headers: {X-Team: a, Authorization: b}}
    - {use: allowlist, config: {denied_tools: [a, b]}}
    - {use: oap_passport, config: {tool_capabilities: {read_file: none, mcp__git-hub__merge: none}}}
";
    let token = temporary("Bearer t\n");
    let token = token.path().to_str().unwrap();
    const PROVIDERS: &str = "TOLLGATE__GUARDRAILS__PROVIDERS";
    let named = |key: &str| format!("{PROVIDERS}__{key}");
    let with = |variables: &[(String, &str)]| {
        let file = temporary(file);
        let mut command = tollgate();
        command.args(["config", "check", "--config"]).arg(file.path()).envs(variables.iter().map(|(name, text)| (name, text)));
        let ran = run(&mut command, b"");
        assert_eq!(ran.exit, Some(0), "{variables:?}: {}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["guardrails"]["providers"].clone()
    };
    let config = |providers: &Value, name: &str| {
        let found = providers.as_array().unwrap().iter().find(|provider| provider["use"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["config"].clone()
    };
    let url = with(&[(named("0__CONFIG__URL"), "http://0123/"), (named("0__CONFIG__CA_FILE"), "/tls/ca.pem")]);
    assert_eq!([&config(&url, "http")["url"], &config(&url, "http")["ca_file"]], ["http://0123/", "/tls/ca.pem"]);
    let listed = with(&[(named("1__CONFIG__DENIED_TOOLS__1"), "0123"), (named("1__CONFIG__DENIED_TOOLS__2"), "true")]);
    assert_eq!(config(&listed, "allowlist")["denied_tools"], json!(["0123", "a", "true"]));
    let headers = with(&[
        (named("0__CONFIG__HEADERS__X_TEAM"), "b"),
        (named("0__CONFIG__HEADERS__X_NEW_ONE"), "7"),
        (named("0__CONFIG__HEADERS__AUTHORIZATION_FILE"), token),
    ]);
    let redacted = json!({"X-Team": "[redacted]", "Authorization": "[redacted]", "x-new-one": "[redacted]"});
    assert_eq!(config(&headers, "http")["headers"], redacted);
    let tools = with(&[
        (named("2__CONFIG__TOOL_CAPABILITIES__READ_FILE"), "data.file.read"),
        (named("2__CONFIG__TOOL_CAPABILITIES__MCP__GIT_HUB__MERGE"), "null"),
        (named("2__CONFIG__TOOL_CAPABILITIES__MCP__OTHER__TOOL"), "none"),
    ]);
    let expected = json!({"read_file": "data.file.read", "mcp__git-hub__merge": null, "mcp__other__tool": "none"});
    assert_eq!(config(&tools, "oap_passport")["tool_capabilities"], expected);
    let added =
        with(&[(named("3__USE"), "allowlist"), (named("3__CONFIG__DENIED_TOOLS"), "[z]"), (named("1__CONFIG"), "{allowed_tools: [y]}")]);
    assert_eq!([&added[0]["config"]["allowed_tools"], &added[2]["config"]["denied_tools"]], [&json!(["y"]), &json!(["z"])]);
    let whole = with(&[(PROVIDERS.to_owned(), "- use: allowlist\n  config:\n    denied_tools: [x]\n"), (named("0__TOOLS"), "[x*]")]);
    assert_eq!(whole, json!([{"use": "allowlist", "tools": ["x*"], "config": {"allowed_tools": null, "denied_tools": ["x"]}}]));
}

/// Such a name would have no effect. Names that a cluster sets for a service called tollgate are none of ours.
#[test]
fn a_key_with_one_underscore_too_few_is_refused() {
    for (name, fix) in [
        ("TOLLGATE_KAFKA__BROKERS", "write TOLLGATE__KAFKA__BROKERS"),
        ("TOLLGATE_KAFKA_BROKERS", "write TOLLGATE__KAFKA__BROKERS"),
        ("TOLLGATE_KAFKA_GROUP_ID", "write TOLLGATE__KAFKA__GROUP_ID"),
    ] {
        let ran = run(tollgate().args(["config", "check"]).env(name, "x"), b"");
        assert_eq!(ran.exit, Some(1), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(name) && ran.stderr.contains(fix), "{}", ran.stderr);
    }
    let ran = run(tollgate().args(["config", "check"]).env("TOLLGATE_SERVICE_PORT", "7878").env("TOLLGATE_PORT", "tcp://10.0.0.1"), b"");
    assert_eq!(ran.exit, Some(0), "{}", ran.stderr);
}

/// A passport that denies every call is read like a closed gate.
#[test]
fn a_passport_that_denies_every_call_is_named() {
    let passport = temporary(r#"{"foo": 1}"#);
    let path = passport.path().to_str().unwrap();
    let file =
        temporary(&format!("guardrails:\n  enabled: true\n  providers:\n    - {{use: oap_passport, config: {{passport_path: {path}}}}}\n"));
    let ran = run(tollgate().args(["config", "check", "--config"]).arg(file.path()), b"");
    assert!(ran.stderr.contains("passport_path") && ran.stderr.contains("denies every call"), "{}", ran.stderr);
}

/// An element of a default list is set where it stands; the others stay.
#[test]
fn elements_of_default_lists() {
    let over = |name: &'static str, text: &'static str| effective(&Setup { variables: vec![(name, text)], ..Setup::default() });
    let set = over("TOLLGATE__SAFETY_FINISH_REASON__DETECTORS__0__CONFIG__FINISH_REASONS", "[content_filter, sensitive]");
    let detectors = &set["safety_finish_reason"]["detectors"];
    assert_eq!(detectors[0]["config"], json!({"finish_reasons": ["content_filter", "sensitive"]}));
    assert_eq!((detectors.as_array().unwrap().len(), &detectors[1]["use"]), (4, &json!("anthropic_refusal")));
    let only = over("TOLLGATE__SAFETY_FINISH_REASON__DETECTORS", "[{use: gemini_safety}]");
    assert_eq!(only["safety_finish_reason"]["detectors"].as_array().unwrap().len(), 1);
    let added = over("TOLLGATE__KAFKA__REPLY_TOPICS__0", "0123");
    assert_eq!(added["kafka"]["reply_topics"], json!(["0123"]));
    let spelled = over("TOLLGATE__KAFKA__PROPERTIES", "{security.protocol: ssl, client.rack: 7}");
    assert_eq!(spelled["kafka"]["properties"], json!({"security.protocol": "ssl", "client.rack": "7"}));
}

/// Other programs' variables are ignored, whatever bytes they hold.
#[test]
fn a_variable_that_is_no_text_is_not_ours() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = tollgate();
    command.args(["config", "check"]).env("SOMETHING_ELSE", std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    let ran = run(&mut command, b"");
    assert_eq!(ran.exit, Some(0), "{ran:?}");
}
