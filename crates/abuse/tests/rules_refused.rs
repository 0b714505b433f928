//! Tests what is refused of rules against abuse: each mistake is named with its key and the fix, and no value is quoted. A case is a line in
//! `fixtures/rules_refused.yaml`; those that are too long for a line are built here.

use serde_json::{Value, json};
use tollgate_abuse::AbuseSettings;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Collector, Section, defaults, parse};
use tollgate_fixtures::checks::check_each;

/// 2026-11-24T00:00:00Z.
const NOW_MS: i64 = 1_795_478_400_000;

fn fixture() -> Value {
    parse(include_str!("fixtures/rules_refused.yaml")).unwrap()
}

/// Returns what is wrong with a section `abuse`.
fn faults(section: &Value) -> String {
    let (user, defaults, faults) = (json!({"abuse": section}), defaults().unwrap(), Collector::default());
    let settings = AbuseSettings::read(&Section::root(&user, &defaults, &faults).section("abuse"), &SubjectHasher::new(None), NOW_MS);
    faults.into_result(settings).err().map_or_else(String::new, |faults| faults.to_string())
}

/// Puts members over a value. Null takes a member away.
fn put_over(value: &mut Value, over: &Value) {
    match (value.as_object_mut(), over) {
        (Some(members), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    members.remove(key);
                } else {
                    put_over(members.entry(key.clone()).or_insert_with(|| json!({})), value);
                }
            }
        }
        _ => *value = over.clone(),
    }
}

fn faults_of(base: &str, over: &Value) -> String {
    let mut rule = fixture()["bases"][base].clone();
    put_over(&mut rule, over);
    faults(&json!({"rules": [rule]}))
}

fn check(case: &Value) {
    let found = faults_of(case["base"].as_str().unwrap_or("event_count"), &case["over"]);
    match case["says"].as_str() {
        Some(says) => assert!(found.contains(says), "{case}\n  found {found}"),
        None => assert_eq!(found, "", "{case}"),
    }
}

#[test]
fn each_mistake_is_named_with_its_fix() {
    check_each(fixture()["cases"].as_array().unwrap(), |case| case.to_string(), |case| check(case));
    let (long, many) = (|length: usize| "x".repeat(length), (0..257).map(|number| format!("v{number}")).collect::<Vec<_>>());
    for (over, says) in [
        (json!({"detection": {"tool": long(129)}}), "rules[0].detection.tool: found a longer string; write 128 bytes at most"),
        (json!({"detection": {"tool": many}}), "rules[0].detection.tool: found too many values; write 256 at most"),
        (json!({"exceptions": [{"tenant": "id:a", "reason": long(513)}]}), "exceptions[0].reason: found a longer string"),
    ] {
        check(&json!({"over": over, "says": says}));
    }
}

#[test]
fn mistakes_of_the_section_are_named() {
    let rule = |id: &str| {
        let mut rule = fixture()["bases"]["event_count"].clone();
        rule["id"] = json!(id);
        rule
    };
    let twice = json!({"rules": [rule("r"), rule("r")]});
    assert_eq!(faults(&twice), "abuse.rules[1].id: found the id of another rule; give each rule an id of its own");
    let rules: Vec<_> = (0..257).map(|number| rule(&format!("r{number}"))).collect();
    assert_eq!(faults(&json!({"rules": rules})), "abuse.rules: found too many rules; write 256 at most");
    for (section, says) in [
        (json!({"pack": "on"}), "abuse.pack: found another word; write off or alert or enforce"),
        (json!({"lateness_seconds": 0}), "abuse.lateness_seconds: found a number; write a whole number of 1 or more"),
        (json!({"lateness_seconds": 86_401}), "abuse.lateness_seconds: found a larger number"),
        (json!({"subjects_per_partition_max": 0}), "abuse.subjects_per_partition_max: found a number"),
        (json!({"rule": []}), "abuse.rule: found an unknown key; write `rules`"),
        (json!({"rules": {"id": "x"}}), "abuse.rules: found a mapping; write a list"),
        (json!({"rules": ["x"]}), "abuse.rules[0]: found a string; write a mapping"),
    ] {
        let found = faults(&section);
        assert!(found.contains(says), "expected {says}\n  found    {found}");
    }
}

#[test]
fn an_override_without_effect_is_refused() {
    let check = |case: &&Value| {
        let (found, says) = (faults(&case["section"]), case["says"].as_str().unwrap());
        assert!(found.contains(says) && !found.contains('\n'), "{says}\n{found}");
    };
    check_each(fixture()["overrides"].as_array().unwrap(), |case| case.to_string(), check);
}
