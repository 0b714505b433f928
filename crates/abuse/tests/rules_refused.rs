//! Tests what is refused of rules against abuse: each mistake is named with its key and the fix, and no value is quoted.

use serde_json::{Value, json};
use tollgate_abuse::AbuseSettings;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Collector, Section, defaults, parse};

/// 2026-11-24T00:00:00Z.
const NOW_MS: i64 = 1_795_478_400_000;

/// Returns what is wrong with a section `abuse`.
fn faults(user: &Value) -> String {
    let (defaults, faults) = (defaults().unwrap(), Collector::default());
    let settings = AbuseSettings::read(&Section::root(user, &defaults, &faults).section("abuse"), &SubjectHasher::new(None), NOW_MS);
    faults.into_result(settings).err().map_or_else(String::new, |faults| faults.to_string())
}

/// Returns a rule that is right, with these members put over it. Null takes a member away.
fn rule_with(over: &str) -> Value {
    let mut rule = json!({
        "id": "r",
        "detection": {"signal": "denial"},
        "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "1h", "condition": {"gte": 5}},
    });
    put_over(&mut rule, &parse(over).unwrap());
    rule
}

fn put_over(rule: &mut Value, over: &Value) {
    match (rule.as_object_mut(), over) {
        (Some(members), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    members.remove(key);
                } else {
                    put_over(members.entry(key.clone()).or_insert_with(|| json!({})), value);
                }
            }
        }
        _ => *rule = over.clone(),
    }
}

fn faults_of(over: &str) -> String {
    faults(&json!({"abuse": {"rules": [rule_with(over)]}}))
}

const RATIO: &str = "{type: ratio, over: {signal: response}, min: 1, condition: {gte: 0.5}}";

/// Returns a correlation of type `baseline` that is right, with other keys in place of its own.
fn baseline(over: &str) -> String {
    let own = ["condition: null", "factor: 8", "floor: 10"];
    let is_over = |own: &str| own.split_once(':').is_some_and(|(key, _)| over.starts_with(&format!("{key}:")));
    let own: Vec<_> = own.into_iter().filter(|own| !is_over(own)).collect();
    format!("{{detection: {{signal: call}}, correlation: {{type: baseline, {}, {over}}}}}", own.join(", "))
}

#[test]
fn a_rule_that_is_right_is_taken() {
    for over in ["{}", &format!("{{correlation: {RATIO}}}"), &baseline("for: 1m")] {
        assert_eq!(faults_of(over), "", "{over}");
    }
}

#[test]
fn each_mistake_is_named_with_its_fix() {
    let many = |count: usize| (0..count).map(|number| format!("v{number}")).collect::<Vec<_>>().join(", ");
    let cases = [
        // The rule as a whole.
        ("{id: null}", "rules[0].id: found nothing; write a string"),
        ("{id: \"a/b\"}", "rules[0].id: found a string that no rule can be named; write 64 letters"),
        ("{levle: high}", "rules[0].levle: found an unknown key; write `level`"),
        ("{level: hgih}", "rules[0].level: found another word; write informational or low or medium or high or critical"),
        ("{mode: block}", "rules[0].mode: found another word; write shadow or alert or enforce"),
        ("{mode: enforce}", "rules[0].mode: found `enforce` without a step that suspends; write `escalation: {steps: [warn, 15m]}`"),
        ("{mode: enforce, escalation: {steps: [warn]}}", "rules[0].mode: found `enforce` without a step that suspends"),
        ("{status: stable}", "rules[0].status: found a key that rules do not have; write `mode: shadow`"),
        ("{logsource: {product: x}}", "rules[0].logsource: found a key that rules do not have; remove it; `detection.signal`"),
        ("{timespan: 1h}", "rules[0].timespan: found a key that rules do not have; write it under `correlation`"),
        ("{suppress: 9d}", "rules[0].suppress: found a longer duration; write 8d at most"),
        // The detection.
        ("{detection: {signal: null}}", "rules[0].detection.signal: found nothing; write what is counted: `safety_stop`"),
        ("{detection: {signal: denail}}", "rules[0].detection.signal: found an unknown signal; write `denial`"),
        ("{detection: {signal: zzz}}", "found an unknown signal; write one of `safety_stop`, `denial`"),
        ("{detection: {tol: bash}}", "rules[0].detection.tol: found an unknown field; write `tool`"),
        (
            "{detection: {category: safety}}",
            "rules[0].detection.category: found a field that the signal does not have; remove it; `denial` has `user`",
        ),
        ("{detection: {signal: tokens, tool: x}}", "rules[0].detection.tool: found a field, and volumes have none"),
        (
            "{detection: {condition: selection}}",
            "rules[0].detection.condition: found a key that detections do not have; write the fields beside `signal`",
        ),
        ("{detection: {selection_a: {tool: x}}}", "rules[0].detection.selection_a: found a key that detections do not have"),
        (
            "{detection: {\"tool|re\": x}}",
            "rules[0].detection.tool|re: found the modifier `re`, which is not supported; write `startswith`",
        ),
        ("{detection: {\"tool|cidr\": x}}", "found the modifier `cidr`, which is not supported"),
        ("{detection: {\"tool|base64\": x}}", "found the modifier `base64`, which is not supported"),
        ("{detection: {\"tool|contains|all\": [x]}}", "found the modifier `all`, which is not supported"),
        ("{detection: {\"tool|windash\": x}}", "found the modifier `windash`, which is not supported"),
        ("{detection: {\"tool|startwith\": x}}", "rules[0].detection.tool|startwith: found an unknown modifier; write `startswith`"),
        ("{detection: {tool: \"mcp_*\"}}", "rules[0].detection.tool: found a wildcard; write `|startswith`"),
        ("{detection: {tool: []}}", "rules[0].detection.tool: found an empty list; write a string, or a list of strings"),
        ("{detection: {tool: 7}}", "rules[0].detection.tool: found a number; write a string"),
        ("{detection: {tool: \"\"}}", "rules[0].detection.tool: found an empty string"),
        (
            "{detection: {signal: safety_stop, category: saftey}}",
            "rules[0].detection.category: found a value that this field never has; write `safety`",
        ),
        ("{detection: {signal: safety_stop, stage: input}}", "found a value that this field never has; write one of `output`"),
        (
            &format!("{{detection: {{tool: {}}}}}", "x".repeat(129)),
            "rules[0].detection.tool: found a longer string; write 128 bytes at most",
        ),
        (&format!("{{detection: {{tool: [{}]}}}}", many(257)), "rules[0].detection.tool: found too many values; write 256 at most"),
        // The correlation.
        ("{correlation: null}", "rules[0].correlation.type: found nothing; write one of `event_count`"),
        ("{correlation: {type: event_cuont}}", "rules[0].correlation.type: found another word; write event_count or value_count"),
        (
            "{correlation: {type: temporal}}",
            "rules[0].correlation.type: found `temporal`, which is not supported; write one of `event_count`",
        ),
        ("{correlation: {type: temporal_ordered}}", "found `temporal_ordered`, which is not supported"),
        (
            "{correlation: {aliases: {}}}",
            "rules[0].correlation.aliases: found a key that rules do not have; remove it; fields have the same names",
        ),
        ("{correlation: {generate: true}}", "rules[0].correlation.generate: found a key that rules do not have"),
        (
            "{correlation: {rules: [a]}}",
            "rules[0].correlation.rules: found a key that rules do not have; remove it; a rule counts what its own",
        ),
        ("{correlation: {group_by: [user]}}", "rules[0].correlation.group_by: found a key that rules do not have; write `group-by`"),
        ("{correlation: {timespan: null}}", "rules[0].correlation.timespan: found nothing; write how far apart"),
        (
            "{correlation: {timespan: 1 hour}}",
            "rules[0].correlation.timespan: found a string that is no duration; write a number with s, m, h or d",
        ),
        ("{correlation: {timespan: 60}}", "rules[0].correlation.timespan: found a number; write a number with s, m, h or d"),
        ("{correlation: {timespan: 9d}}", "rules[0].correlation.timespan: found a longer duration; write 8d at most"),
        ("{correlation: {timespan: 0s}}", "rules[0].correlation.timespan: found a shorter duration; write 1s or more"),
        ("{correlation: {condition: {gte: 0}}}", "rules[0].correlation.condition.gte: found a number; write a whole number of 1 or more"),
        (
            "{correlation: {condition: {gte: 1025}}}",
            "rules[0].correlation.condition.gte: found a larger number; write a number from 1 to 1024",
        ),
        (
            "{correlation: {condition: {gte: null, gt: 5}}}",
            "rules[0].correlation.condition.gt: found a key that rules do not have; write `gte`",
        ),
        ("{correlation: {condition: {lt: 5}}}", "rules[0].correlation.condition.lt: found a key that rules do not have; write `gte`"),
        (
            "{correlation: {condition: {field: user}}}",
            "rules[0].correlation.condition.field: found a key of another type; remove it, or write `type: value_count`",
        ),
        ("{correlation: {min: 5}}", "rules[0].correlation.min: found a key of another type; remove it, or write `type: ratio`"),
        ("{correlation: {type: value_count}}", "rules[0].correlation.condition.field: found nothing; write whose values are counted"),
        (
            "{correlation: {type: value_count, condition: {gte: 2000, field: user}}}",
            "condition.gte: found a larger number; write a number from 1 to 1024",
        ),
        (
            "{correlation: {type: value_count, condition: {field: category}}}",
            "condition.field: found a field that the signal does not have; write one of `user`",
        ),
        ("{correlation: {type: value_count, condition: {field: usr}}}", "condition.field: found an unknown field; write `user`"),
        (
            "{detection: {signal: tokens}}",
            "rules[0].correlation.type: found a type that counts one by one, of a signal that is an amount; write `value_sum`",
        ),
        (
            "{correlation: {type: value_sum}}",
            "rules[0].correlation.type: found a type over amounts, of a signal that is none; write `event_count`",
        ),
        (
            "{detection: {signal: tokens}, correlation: {type: value_sum, timespan: 90s}}",
            "timespan: found a duration that is no whole number of minutes",
        ),
        (
            "{detection: {signal: tokens}, correlation: {type: value_sum, timespan: 30s}}",
            "timespan: found a shorter duration; write 1m or more",
        ),
        (
            "{detection: {signal: tokens}, correlation: {type: value_sum, condition: {gte: 0}}}",
            "condition.gte: found a number; write a whole number from 1",
        ),
        (
            "{detection: {signal: tokens}, correlation: {type: value_sum, condition: {field: tokens}}}",
            "condition.field: found a field, and the amount",
        ),
        (
            "{correlation: {type: ratio, min: 1, condition: {gte: 0.5}}}",
            "rules[0].correlation.over.signal: found nothing; write what it is a share of: `call`",
        ),
        (
            "{correlation: {type: ratio, over: {signal: denial}, min: 1, condition: {gte: 0.5}}}",
            "over.signal: found another word; write call or response or tokens",
        ),
        (
            "{correlation: {type: ratio, over: {signal: call, tool: x}, min: 1, condition: {gte: 0.5}}}",
            "over.tool: found an unknown key; write `signal`",
        ),
        (
            "{correlation: {type: ratio, over: {signal: call}, condition: {gte: 0.5}}}",
            "correlation.min: found nothing; write a whole number from 1",
        ),
        (
            "{correlation: {type: ratio, over: {signal: call}, min: 1, condition: {gte: 0}}}",
            "condition.gte: found a number; write a number above 0, up to 1",
        ),
        (
            "{correlation: {type: ratio, over: {signal: call}, min: 1, condition: {gte: 5}}}",
            "condition.gte: found a number; write a number above 0, up to 1",
        ),
        (
            "{correlation: {type: ratio, group-by: [user, tool], over: {signal: call}, min: 1, condition: {gte: 1}}}",
            "group-by: found a dimension, and what a ratio is over has none",
        ),
    ];
    for (over, says) in cases {
        let found = faults_of(over);
        assert!(found.contains(says), "{over}\n  expected {says}\n  found    {found}");
    }
}

#[test]
fn what_could_never_fire_is_named() {
    let cases = [
        (
            "{detection: {signal: safety_stop, \"category|startswith\": safty}}",
            "rules[0].detection.category|startswith: found a value that this field never has; write `safety`",
        ),
        ("{detection: {code: oap.evaluator_error}}", "rules[0].detection.code: found a code that no signal has; remove it"),
        (
            "{correlation: {type: value_count, condition: {field: user}}}",
            "rules[0].correlation.condition.field: found a field that the rule groups by",
        ),
        ("{correlation: {type: value_count, group-by: [user, tool], condition: {field: tool}}}", "found a field that the rule groups by"),
        ("{correlation: {type: value_count, group-by: [call], condition: {field: tool}}}", "found a field that the rule groups by"),
        (
            "{detection: {tool: [a, b]}, correlation: {type: value_count, condition: {field: tool, gte: 3}}}",
            "rules[0].correlation.condition.gte: found more values than the field can have here",
        ),
        (
            "{detection: {signal: safety_stop}, correlation: {type: value_count, condition: {field: stage, gte: 2}}}",
            "rules[0].correlation.condition.gte: found more values than the field can have here",
        ),
        (&baseline("history: 1h, warmup: 1h"), "rules[0].correlation.history: found a time in which no timespan is over"),
        (&baseline("timespan: 5d"), "rules[0].correlation.history: found a time in which no timespan is over"),
    ];
    for (over, says) in cases {
        let found = faults_of(over);
        assert!(found.contains(says), "{over}\n  expected {says}\n  found    {found}");
    }
    for right in [
        "{detection: {signal: safety_stop, \"category|contains\": afe}}",
        "{detection: {\"code|startswith\": oap.}}",
        "{correlation: {type: value_count, group-by: [call], condition: {field: user}}}",
        "{detection: {tool: [a, b]}, correlation: {type: value_count, condition: {field: tool, gte: 2}}}",
        &baseline("timespan: 1d, history: 2d, warmup: 1d"),
    ] {
        assert_eq!(faults_of(right), "", "{right}");
    }
}

#[test]
fn each_mistake_of_baselines_groups_ladders_and_exceptions_is_named() {
    let exception = |text: &str| format!("{{exceptions: [{text}]}}");
    let cases = [
        (baseline("condition: {gte: 5}"), "rules[0].correlation.condition: found a key of another type; write `factor` and `floor`"),
        (baseline("factor: 1"), "rules[0].correlation.factor: found a number of 1 or less"),
        (baseline("floor: 0"), "rules[0].correlation.floor: found a number; write a whole number from 1"),
        (
            baseline("history: 90m"),
            "rules[0].correlation.history: found a duration that is no multiple of `timespan`; write one, such as 1h",
        ),
        (baseline("history: 30m"), "rules[0].correlation.history: found a shorter duration; write 1h or more"),
        (baseline("history: 9d"), "rules[0].correlation.history: found a longer duration; write 8d at most"),
        (baseline("warmup: 30m"), "rules[0].correlation.warmup: found a shorter duration; write 1h or more"),
        (baseline("warmup: 90m"), "rules[0].correlation.warmup: found a duration that is no multiple of `timespan`"),
        (baseline("history: 2h, warmup: 3h"), "rules[0].correlation.warmup: found a longer duration; write 2h at most"),
        (baseline("timespan: 1m"), "rules[0].correlation.history: found too many timespans; write 256 times the timespan at most"),
        (baseline("group-by: [tenant, tool]"), "rules[0].correlation.group-by: found a dimension, and volumes have none"),
        (
            "{correlation: {group-by: []}}".to_owned(),
            "rules[0].correlation.group-by: found nothing; write whose signals are counted together",
        ),
        ("{correlation: {group-by: [tool]}}".to_owned(), "group-by: found a dimension at the first place; write one of `user`"),
        ("{correlation: {group-by: [usr]}}".to_owned(), "group-by: found an unknown kind of subject; write one of `user`, `tenant`"),
        ("{correlation: {group-by: [user, tol]}}".to_owned(), "group-by: found a dimension that the signal does not have; write `tool`"),
        ("{correlation: {group-by: [user, user]}}".to_owned(), "group-by: found a name that stands twice"),
        ("{correlation: {group-by: [user, tool, code, tenant, agent, thread]}}".to_owned(), "group-by: found too many dimensions"),
        (
            "{detection: {signal: loop_stop}, correlation: {group-by: [call]}}".to_owned(),
            "group-by: found `call`, which only denials are counted by",
        ),
        (
            "{correlation: {group-by: [call]}, escalation: {steps: [15m]}}".to_owned(),
            "rules[0].escalation.steps: found a suspension of a `call`, which cannot be suspended",
        ),
        (
            "{detection: {signal: suspended_call}, escalation: {steps: [15m]}}".to_owned(),
            "rules[0].escalation.steps: found a suspension for calls that a suspension has blocked, which would prolong itself; write [warn]",
        ),
        ("{escalation: {steps: [ban]}}".to_owned(), "rules[0].escalation.steps: found a step that is neither `warn` nor a duration"),
        ("{escalation: {steps: [2h, 15m]}}".to_owned(), "escalation.steps: found a suspension that is shorter than the one before it"),
        ("{escalation: {steps: [2h, warn]}}".to_owned(), "escalation.steps: found `warn` behind a suspension"),
        ("{escalation: {steps: [400d]}}".to_owned(), "escalation.steps: found a step that is too short or too long"),
        ("{escalation: {decay: 0s}}".to_owned(), "rules[0].escalation.decay: found a shorter duration; write 1s or more"),
        ("{escalation: {decays: 1h}}".to_owned(), "rules[0].escalation.decays: found an unknown key; write `decay`"),
        (exception("{tenant: \"id:a\"}"), "rules[0].exceptions[0].reason: found nothing; write a string"),
        (exception("{reason: x}"), "rules[0].exceptions[0]: found an exception for nobody; write one of `user`"),
        (exception("{tool: \"*\", reason: x}"), "rules[0].exceptions[0].tool: found a wildcard"),
        (exception("{tenant: acme, reason: x}"), "rules[0].exceptions[0].tenant: found a string that is neither an id nor a hash"),
        (exception("{category: safety, reason: x}"), "exceptions[0].category: found a field that what is counted does not have"),
        (exception("{tenant: \"id:a\", reason: x, until: soon}"), "exceptions[0].until: found a string that is no moment; write a day"),
        (
            exception("{tenant: \"id:a\", reason: x, until: 2026-11-24}"),
            "exceptions[0].until: found a moment that is over; remove the exception",
        ),
        (exception("{tenant: \"id:a\", reason: x, until: \"2026-11-23T23:00:00Z\"}"), "exceptions[0].until: found a moment that is over"),
        (exception(&format!("{{tenant: \"id:a\", reason: {}}}", "x".repeat(513))), "exceptions[0].reason: found a longer string"),
        (exception("[a]"), "rules[0].exceptions[0]: found a list; write a mapping"),
        (
            format!("{{correlation: {RATIO}, exceptions: [{{tool: x, reason: y}}]}}"),
            "exceptions[0].tool: found a field that what is counted does not have; remove it; write `user`",
        ),
    ];
    for (over, says) in cases {
        let found = faults_of(&over);
        assert!(found.contains(says), "{over}\n  expected {says}\n  found    {found}");
    }
    let later = exception("{tenant: \"id:a\", reason: x, until: 2026-11-25}");
    assert_eq!(faults_of(&later), "");
}

#[test]
fn mistakes_of_the_section_are_named() {
    let twice = json!({"abuse": {"rules": [rule_with("{}"), rule_with("{}")]}});
    assert_eq!(faults(&twice), "abuse.rules[1].id: found the id of another rule; give each rule an id of its own");
    let rules: Vec<_> = (0..257).map(|number| rule_with(&format!("{{id: r{number}}}"))).collect();
    assert_eq!(faults(&json!({"abuse": {"rules": rules}})), "abuse.rules: found too many rules; write 256 at most");
    for (section, says) in [
        (json!({"pack": "on"}), "abuse.pack: found another word; write off or alert or enforce"),
        (json!({"lateness_seconds": 0}), "abuse.lateness_seconds: found a number; write a whole number of 1 or more"),
        (json!({"lateness_seconds": 86_401}), "abuse.lateness_seconds: found a larger number"),
        (json!({"subjects_per_partition_max": 0}), "abuse.subjects_per_partition_max: found a number"),
        (json!({"rule": []}), "abuse.rule: found an unknown key; write `rules`"),
        (json!({"rules": {"id": "x"}}), "abuse.rules: found a mapping; write a list"),
        (json!({"rules": ["x"]}), "abuse.rules[0]: found a string; write a mapping"),
    ] {
        let found = faults(&json!({"abuse": section}));
        assert!(found.contains(says), "expected {says}\n  found    {found}");
    }
}
