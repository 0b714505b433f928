//! Tests the JSON Schemas that `tollgate schema` prints: what decodes is valid under them, what they can refuse is refused, and the copies in
//! `docs/schemas` are what is printed. `TOLLGATE_UPDATE_FIXTURES=1` writes those anew.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{check_each, run, tollgate};
use jsonschema::Validator;
use serde_json::{Value, json};
use tollgate_config::settings::Settings;
use tollgate_core::settings::{defaults, parse};
use tollgate_fixtures::cases::jsonl;

const NAMES: [&str; 6] = ["event", "verdict", "control", "configuration", "asyncapi", "openapi"];

fn printed(name: &str) -> String {
    let ran = run(tollgate().args(["schema", name]), b"");
    assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{name}");
    ran.stdout
}

fn validator(name: &str) -> Validator {
    let schema: Value = serde_json::from_str(&printed(name)).unwrap();
    jsonschema::meta::validate(&schema).expect("it is a schema itself");
    jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema")
}

fn assert_valid(validator: &Validator, value: &Value, what: &str) {
    let errors: Vec<_> = validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}\n{value}");
}

/// Reads a fixture of the gate.
fn fixture(name: &str) -> Vec<Value> {
    jsonl(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/tests/fixtures").join(name))
}

/// Returns a fixture's value, if it is JSON.
fn value_of(case: &Value) -> Option<Value> {
    match (case.get("value"), case.get("raw")) {
        (Some(value), _) => Some(value.clone()),
        (_, Some(raw)) => serde_json::from_str(raw.as_str()?).ok(),
        _ => None,
    }
}

#[test]
fn the_published_schemas_are_what_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let mut files = BTreeSet::new();
    for name in NAMES {
        let (path, printed) = (folder.join(format!("{name}.json")), printed(name));
        if std::env::var_os("TOLLGATE_UPDATE_FIXTURES").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &printed).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap_or_default(),
            printed,
            "`TOLLGATE_UPDATE_FIXTURES=1 cargo test --test integration -- schemas` writes it anew"
        );
        files.insert(format!("{name}.json"));
    }
    let found: BTreeSet<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, files);
    assert_eq!(run(tollgate().args(["schema", "nothing"]), b"").exit, Some(2));
}

/// Returns every reference of a document.
fn references<'d>(value: &'d Value, found: &mut Vec<&'d str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Checks that a document refers to parts of its own and to schemas beside it, and returns how often it does.
fn check_references(document: &Value) -> usize {
    let mut found = Vec::new();
    references(document, &mut found);
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    for reference in &found {
        let is_there = match reference.strip_prefix('#') {
            Some(pointer) => document.pointer(pointer).is_some(),
            None => schemas.join(reference).is_file(),
        };
        assert!(is_there, "{reference}");
    }
    found.len()
}

#[test]
fn the_document_of_http_refers_to_what_is_there() {
    let document: Value = serde_json::from_str(&printed("openapi")).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(check_references(&document) > 40);
}

#[test]
fn the_document_of_topics_refers_to_what_is_there() {
    let document: Value = serde_json::from_str(&printed("asyncapi")).unwrap();
    assert_eq!(document["asyncapi"], "3.0.0");
    assert!(check_references(&document) > 15);
    let channels = document["channels"].as_object().unwrap();
    let addresses: BTreeSet<_> = channels.values().map(|channel| channel["address"].as_str().unwrap()).collect();
    assert!(addresses.is_superset(&BTreeSet::from(["agent.events", "agent.decisions", "agent.controls"])), "{addresses:?}");
    assert!(!addresses.contains("tollgate.state"), "what is internal is nobody's interface");
    assert_eq!(document["operations"]["receive_events"]["action"], "receive");
    assert_eq!(document["operations"]["send_decisions"]["channel"]["$ref"], "#/channels/decisions");
}

/// The chart refuses a configuration that is not valid under its copy of the schema.
#[test]
fn the_chart_knows_the_configuration_that_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/tollgate/values.schema.json");
    let chart: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut copy = chart["properties"]["config"].clone();
    let mut printed: Value = serde_json::from_str(&printed("configuration")).unwrap();
    for key in ["$schema", "title", "description"] {
        for schema in [&mut copy, &mut printed] {
            schema.as_object_mut().unwrap().remove(key);
        }
    }
    assert!(copy == printed, "TOLLGATE_UPDATE_FIXTURES=1 tests/helm/run writes it anew");
}

/// Headers say how a value is read. The schema is of values that are read without them.
fn is_read_by_its_value(case: &Value) -> bool {
    let headers = case["headers"]
        .as_object()
        .is_some_and(|headers| headers.keys().any(|name| name.starts_with("ce_") || name.starts_with("content-type")));
    let is_marked = value_of(case).is_some_and(|value| value.get("specversion").is_some() && value.get("source").is_some());
    !headers || (is_marked && case["headers"].get("ce_id").is_none())
}

#[test]
fn events_that_are_accepted_are_valid() {
    let validator = validator("event");
    let (mut checked, mut types) = (0, BTreeSet::new());
    for case in fixture("accepted.jsonl").iter().filter(|case| is_read_by_its_value(case)) {
        let Some(value) = value_of(case) else { continue };
        assert_valid(&validator, &value, case["name"].as_str().unwrap());
        types.insert(value["type"].to_string());
        checked += 1;
    }
    assert!(checked > 35 && types.len() > 5, "{checked} {types:?}");
}

/// A schema sees a value alone: neither the record around it, nor members that stand twice, nor bytes.
#[test]
fn events_that_are_rejected_for_their_shape_are_not_valid() {
    let validator = validator("event");
    let beyond = ["field_repeated", "thread_id_missing", "thread_id_mismatch", "key_invalid", "tool_input_missing", "value_null"];
    let (mut refused, mut codes) = (0, BTreeSet::new());
    let cases = fixture("rejections.jsonl");
    let cases: Vec<_> = cases.iter().filter(|case| is_read_by_its_value(case) && value_of(case).is_some()).collect();
    for case in cases {
        let (name, code) = (case["name"].as_str().unwrap(), case["expect"]["code"].as_str().unwrap());
        // An empty key stands for the thread.
        if beyond.contains(&code) || case["key"] == "" {
            continue;
        }
        let value = value_of(case).unwrap();
        assert!(!validator.is_valid(&value), "{name} ({code}) is valid: {value}");
        codes.insert(code.to_owned());
        refused += 1;
    }
    assert!(refused > 50 && codes.len() > 30, "{refused} {codes:?}");
}

/// Every event of the goldens is valid, and so is every verdict on it, under several configurations.
#[test]
fn events_and_verdicts_of_the_goldens_are_valid() {
    let (events, verdicts) = (validator("event"), validator("verdict"));
    let mut input = String::new();
    let mut count = 0;
    for line in std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/envelope.jsonl")).unwrap().lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        if let Some(event) =
            record["value"].as_str().filter(|_| record["headers"] == json!([])).and_then(|text| serde_json::from_str::<Value>(text).ok())
            && event["tool_name"].is_string()
        {
            assert_valid(&events, &event, "a captured event");
            count += 1;
        }
        input += line;
        input.push('\n');
    }
    for case in fixture("accepted.jsonl").iter().chain(&fixture("rejections.jsonl")) {
        if let Some(value) = value_of(case) {
            input += &format!("{value}\n");
        }
    }
    for case in fixture("responses.jsonl") {
        for (index, form) in ["response", "message"].into_iter().enumerate() {
            if let Some(body) = case.get(form).filter(|body| body.is_object()) {
                let event = json!({"type": "model_response", "thread_id": format!("r{count}-{index}"), form: body});
                assert_valid(&events, &event, "a response");
                input += &format!("{event}\n");
                count += 1;
            }
        }
    }
    assert!(count > 60, "{count}");
    let (mut checked, mut codes) = (0, BTreeSet::new());
    let denied = r#"{enabled: true, provider: {use: allowlist, config: {denied_tools: [bash]}}}"#;
    let passports = r#"{enabled: true, provider: {use: oap_passport}}"#;
    for guardrails in [r#"{enabled: false}"#, denied, passports] {
        let ran = run(tollgate().args(["eval"]).env("TOLLGATE__GUARDRAILS", guardrails), input.as_bytes());
        assert_eq!(ran.exit, Some(3), "{}", ran.stderr);
        for verdict in ran.json_lines() {
            assert_valid(&verdicts, &verdict, "a verdict");
            codes.insert(verdict["code"].as_str().unwrap().to_owned());
            checked += 1;
        }
    }
    assert!(checked > 400 && codes.len() > 6, "{checked} {codes:?}");
    let whole = json!({"verdict_id": "x", "action": "allow"});
    assert!(!verdicts.is_valid(&whole));
}

#[test]
fn controls_are_valid_if_they_are_accepted() {
    let validator = validator("control");
    let beyond = [
        "key_missing",
        "key_not_utf8",
        "key_unknown",
        "key_invalid",
        "field_repeated",
        "field_unknown",
        "agent_id_mismatch",
        "hash_mismatch",
        "kind_mismatch",
        "type_mismatch",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for case in fixture("controls.jsonl") {
        let (name, code) = (case["name"].as_str().unwrap(), case["expect"]["code"].as_str());
        let Some(value) = value_of(&case) else { continue };
        match code {
            None => {
                assert_valid(&validator, &value, name);
                accepted += 1;
            }
            Some(code) if beyond.contains(&code) => {}
            // What a passport holds has a schema of its own, and names of other kinds are longer than their bytes.
            // A null of JSON in the bytes of a value is no tombstone.
            Some("value_not_an_object") if value.is_null() => {}
            Some("passport_invalid") if value["passport"].is_object() => {}
            // Without its rule it could be an operator's: the key alone tells them apart.
            Some("rule_invalid") if value["rule"].is_null() => {}
            Some(code) => {
                assert!(!validator.is_valid(&value), "{name} ({code}) is valid: {value}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10, "{accepted} accepted, {refused} refused");
    assert_valid(&validator, &Value::Null, "a tombstone");
}

fn configuration(text: &str) -> Value {
    parse(text).unwrap()
}

#[test]
fn configurations_are_valid() {
    let validator = validator("configuration");
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    for path in ["config/tollgate.yaml", "config/example.yaml"] {
        assert_valid(&validator, &configuration(&read(path)), path);
    }
    assert!(read("config/example.yaml").starts_with("# yaml-language-server: $schema=../docs/schemas/configuration.json\n"));
    // An entry may name any of the known things.
    let policies = fixture("policy_versions.jsonl");
    for case in &policies {
        let text = case["config"].as_str().expect("a configuration as YAML");
        assert_valid(&validator, &configuration(text), text);
    }
}

/// What the settings refuse for its shape, the schema refuses: an editor marks it.
#[test]
fn configurations_that_are_wrong_are_not_valid() {
    let validator = validator("configuration");
    let cases = include_str!("config/not_valid.txt").lines();
    let is_refused = |text: &&str| {
        let value = configuration(text);
        assert!(Settings::read(&value, &defaults().unwrap()).is_err(), "the settings take {text}");
        assert!(!validator.is_valid(&value), "{text} is valid");
    };
    check_each(cases, |text| (*text).to_owned(), is_refused);
}

/// Every key of the schema says what it is, has the default of the built-in configuration, and can be set to it.
#[test]
fn every_key_is_described_and_every_default_is_named() {
    let schema: Value = serde_json::from_str(&printed("configuration")).unwrap();
    let mut keys = 0;
    walk(&schema, "", &mut |path, key| {
        keys += 1;
        assert!(
            key["description"].as_str().is_some_and(|text| text.len() > 5),
            "{path} is not described: a comment in config/example.yaml"
        );
    });
    assert!(keys > 90, "{keys} keys");
    let mut defaulted = 0;
    each_default(&defaults().unwrap(), "", &mut |pointer, default| {
        let key = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not in the schema"));
        if !default.is_object() {
            assert_eq!(&key["default"], default, "{pointer}");
            defaulted += 1;
        }
    });
    assert!(defaulted > 35, "{defaulted} defaults");
}

/// Visits every key of a schema of objects.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        visit(&path, key);
        walk(key, &path, visit);
        walk(&key["items"], &format!("{path}[]"), visit);
    }
    for rule in schema["allOf"].as_array().into_iter().flatten() {
        walk(&rule["then"]["properties"]["config"], &format!("{path}.config"), visit);
    }
}

fn each_default(defaults: &Value, pointer: &str, visit: &mut impl FnMut(&str, &Value)) {
    for (name, default) in defaults.as_object().into_iter().flatten() {
        let pointer = format!("{pointer}/properties/{name}");
        visit(&pointer, default);
        each_default(default, &pointer, visit);
    }
}
