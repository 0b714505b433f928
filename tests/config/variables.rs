//! Tests variables and arguments, which override the file.

use super::*;

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
            over(
                &[("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl")],
                &["-X", "security.protocol=plaintext", "-X", "client.rack=c=d"],
            ),
            json!({"kafka": {"properties": {"security.protocol": "plaintext", "client.rack": "c=d"}}}),
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
        (
            "an unknown variable",
            with(&[("TOLLGATE__KAFKA__BROKER", "x")], &[]),
            "kafka.broker (TOLLGATE__KAFKA__BROKER): found an unknown key; write `brokers`",
        ),
        (
            "a variable of the wrong type",
            with(&[("TOLLGATE__WORKER__MEMBERS", "many")], &[]),
            "worker.members (TOLLGATE__WORKER__MEMBERS): found a string; write a whole number",
        ),
        (
            "a secret file that is not there",
            with(&[("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", "/no/such/file")], &[]),
            "privacy.subject_key (TOLLGATE__PRIVACY__SUBJECT_KEY_FILE): found the name of a file that cannot be read",
        ),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(_, setup, expected)| check_refused(&check(setup), expected));
    let cases = vec![
        ("-X without a value", with(&[], &["-X", "security.protocol"]), "-X wants key=value"),
        ("-X of ours", with(&[], &["-X", "group.id=x"]), "-X group.id: Tollgate sets this property itself"),
        (
            "-X of ours by its other name",
            with(&[], &["-X", "max.in.flight.requests.per.connection=5"]),
            "-X max.in.flight.requests.per.connection: Tollgate sets this property itself",
        ),
        ("-X without a key", with(&[], &["-X", "=x"]), "-X wants key=value"),
        ("-X of ours in a file", with(&[], &["-X", "group.id_file=/run/group"]), "-X group.id_file: Tollgate sets this property itself"),
    ];
    check_each(cases, |(name, ..)| (*name).to_owned(), |(_, setup, expected)| check_usage(&check(setup), expected));
}

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
    let whole = with(&[(PROVIDERS.to_owned(), "- use: allowlist\n  config:\n    denied_tools: [x]\n"), (named("0__TOOLS"), "[t*]")]);
    assert_eq!(whole, json!([{"use": "allowlist", "tools": ["t*"], "config": {"allowed_tools": null, "denied_tools": ["x"]}}]));
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

/// An error names the variable, the shape and the fix, and never the value.
#[test]
fn mistakes_in_variables_name_them_and_not_their_values() {
    const SECRET: &str = "MARKER-7f3a";
    let missing = "/no/MARKER-free/file";
    let cases: Vec<(&str, &str, &str)> = vec![
        ("WORKER__MEMBERS", SECRET, "worker.members (TOLLGATE__WORKER__MEMBERS): found a string; write a whole number of 1 or more"),
        ("ADMIN__LISTEN", SECRET, "admin.listen (TOLLGATE__ADMIN__LISTEN): found a string that is no address with a port"),
        ("KAFKA", SECRET, "kafka (TOLLGATE__KAFKA): found a string; write a mapping"),
        ("KAFKA", "{brokers: [MARKER-7f3a]}", "kafka.brokers (TOLLGATE__KAFKA): found a list; write a string"),
        ("KAFKA__REPLY_TOPICS", SECRET, "kafka.reply_topics (TOLLGATE__KAFKA__REPLY_TOPICS): found a string; write a list of strings"),
        (
            "KAFKA__REPLY_TOPICS__1",
            SECRET,
            "TOLLGATE__KAFKA__REPLY_TOPICS__1: found the place of no element; the list has 0, write 0 to add one",
        ),
        ("KAFKA__BROKERS__X", SECRET, "kafka.brokers (TOLLGATE__KAFKA__BROKERS__X): found a mapping; write a string"),
        ("KAFKA__PROPERTIES__GROUP_ID", SECRET, "kafka.properties.group.id (TOLLGATE__KAFKA__PROPERTIES__GROUP_ID): found a property"),
        ("KAFKA__BROKER_FILE", missing, "kafka.broker (TOLLGATE__KAFKA__BROKER_FILE): found an unknown key; write `brokers`"),
        ("LIMITS_FILE", missing, "limits (TOLLGATE__LIMITS_FILE): found the name of a file that cannot be read"),
        (
            "SAFETY_FINISH_REASON__DETECTORS__0__USE",
            SECRET,
            "safety_finish_reason.detectors[0].use (TOLLGATE__SAFETY_FINISH_REASON__DETECTORS__0__USE): found an unknown detector; write `openai",
        ),
        (
            "KAFKA__PROPERTIES__SASL_PASSWORD_FILE",
            missing,
            "kafka.properties.sasl.password (TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD_FILE): found the name of a file that cannot be read",
        ),
    ];
    let setup = |(key, text, _): &(&str, &str, &str)| {
        let mut command = tollgate();
        command.args(["config", "check"]).env(format!("TOLLGATE__{key}"), text);
        run(&mut command, b"")
    };
    check_each(
        cases,
        |(key, ..)| (*key).to_owned(),
        |case| {
            let ran = setup(case);
            check_refused(&ran, case.2);
            assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
        },
    );
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
