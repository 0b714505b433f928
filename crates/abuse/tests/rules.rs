//! Tests the reading of rules against abuse: what is written is what is in force, what is not supported is refused by name, and the pack.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollgate_abuse::{
    AbuseSettings, Baseline, Correlation, Exception, FieldTest, GroupBy, Ladder, Level, Mode, Operator, PACK, Pack, Ratio, Rule, Step,
};
use tollgate_core::decide::controls::{Subject, SubjectHasher};
use tollgate_core::decide::ruling::SubjectKind;
use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind, VolumeKind};
use tollgate_core::settings::{Collector, Section, defaults, parse};

/// 2026-11-24T00:00:00Z.
const NOW_MS: i64 = 1_795_478_400_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

fn hasher() -> SubjectHasher {
    SubjectHasher::new(Some("key"))
}

fn hash(kind: SubjectKind, tenant: &str, id: &str) -> String {
    hasher().hash(&Subject { kind, tenant, id }).to_string()
}

/// Reads a configuration's section `abuse`, and returns the settings or the faults as text.
fn read(text: &str) -> Result<AbuseSettings, String> {
    let (user, defaults, faults) = (parse(text).unwrap(), defaults().unwrap(), Collector::default());
    let settings = AbuseSettings::read(&Section::root(&user, &defaults, &faults).section("abuse"), &hasher(), NOW_MS);
    faults.into_result(settings).map_err(|faults| faults.to_string())
}

/// Reads one rule, written in one line of YAML, without the pack.
fn read_one(text: &str) -> Result<AbuseSettings, String> {
    read(&format!("abuse: {{pack: off, rules: [{text}]}}"))
}

fn rule(text: &str) -> Result<Rule, String> {
    read_one(text).map(|settings| settings.rules.rules[0].clone())
}

const WHOLE: &str = "
abuse:
  pack: off
  rules:
    - id: safety-stop-user
      level: high
      mode: enforce
      detection: {signal: safety_stop, category: [safety, prohibited], provider|startswith: azure}
      correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}
      escalation: {steps: [warn, 15m, 2h, 1d, 7d], decay: 24h}
      exceptions: [{tenant: \"id:red-team\", until: 2027-01-01, reason: ordered tests}]
      suppress: 30m
";

#[test]
fn an_exception_that_is_over_is_named() {
    let rules = read(WHOLE).unwrap().rules;
    assert_eq!(rules.ended_exceptions(1_798_761_599_999).count(), 0);
    let ended: Vec<_> = rules.ended_exceptions(1_798_761_600_000).collect();
    assert!(ended.len() == 1 && ended[0].starts_with("abuse rule safety-stop-user: exceptions[0] is over"), "{ended:?}");
}

#[test]
fn a_rule_is_what_is_written() {
    let settings = read(WHOLE).unwrap();
    let [rule] = &settings.rules.rules[..] else { panic!("{:?}", settings.rules) };
    let test = |dimension, operator, values: &[&str]| FieldTest {
        dimension,
        operator,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    assert_eq!((rule.id.as_str(), rule.level, rule.mode), ("safety-stop-user", Level::High, Mode::Enforce));
    assert_eq!(rule.detection.signal, SignalKind::Point(PointKind::SafetyStop));
    assert_eq!(
        rule.detection.fields,
        [
            test(Dimension::Category, Operator::Equals, &["prohibited", "safety"]),
            test(Dimension::Provider, Operator::StartsWith, &["azure"])
        ]
    );
    assert_eq!(rule.correlation, Correlation::EventCount { gte: 5 });
    assert_eq!(rule.group_by, GroupBy { kind: KeyKind::User, dimensions: Vec::new() });
    assert_eq!((rule.timespan_ms, rule.suppress_ms), (HOUR_MS, 30 * MINUTE_MS));
    let steps = [15 * MINUTE_MS, 2 * HOUR_MS, DAY_MS, 7 * DAY_MS].map(Step::Suspend);
    assert_eq!(rule.ladder, Ladder { steps: [vec![Step::Warn], steps.to_vec()].concat(), decay_ms: DAY_MS });
    assert_eq!(
        rule.exceptions,
        [Exception {
            fields: vec![(Dimension::Tenant, vec![hash(SubjectKind::Tenant, "", "red-team")])],
            until_ms: Some(1_798_761_600_000),
            reason: "ordered tests".to_owned(),
        }]
    );
    assert_eq!((settings.rules.lateness_ms, settings.rules.subjects_max, settings.signals), (300_000, 1_000_000, true));
}

/// An id is hashed within its tenant, which stands beside it even where what is counted has no tenant.
#[test]
fn an_exception_names_an_id_with_its_tenant_and_one_without_is_told_of() {
    let alice = hash(SubjectKind::User, "acme", "alice");
    for (counted, fields) in [
        ("detection: {signal: safety_stop}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 3}}", 2),
        ("detection: {signal: tokens}, correlation: {type: value_sum, group-by: [user], timespan: 1h, condition: {gte: 3}}", 1),
    ] {
        let of = |exception: &str| read_one(&format!("{{id: r, {counted}, exceptions: [{{{exception}, reason: x}}]}}"));
        let read = of("user: \"id:alice\", tenant: \"id:acme\"").unwrap();
        let exception = &read.rules.rules[0].exceptions[0];
        assert_eq!((exception.fields.len(), read.remarks.len()), (fields, 0));
        assert!(exception.fields.contains(&(Dimension::User, vec![alice.clone()])), "{exception:?}");
        assert!(of("user: \"id:alice\", tenant: acme").is_err());
        assert!(of(&format!("user: \"hash:{alice}\"")).is_ok_and(|read| read.remarks.is_empty()));
        let read = of("user: \"id:alice\"").unwrap();
        let says = "abuse rule r: exceptions[0] names an id without its tenant";
        assert!(read.remarks.len() == 1 && read.remarks[0].starts_with(says), "{:?}", read.remarks);
        assert_eq!(read.rules.ended_exceptions(i64::MAX).count(), 0);
    }
}

/// A detection that names an id without its tenant finds nobody where events have tenants.
#[test]
fn a_detection_that_names_an_id_without_its_tenant_is_told_of() {
    let said = |fields: &str| {
        let correlation = "correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 3}}";
        read_one(&format!("{{id: r, detection: {{signal: denial, {fields}}}, {correlation}}}")).unwrap().remarks
    };
    assert!(said("agent: [\"id:a\", \"id:b\"]")[0].starts_with("abuse rule r: detection names an id without its tenant"));
    for fields in ["agent: \"id:a\", tenant: \"id:acme\"", "tenant: \"id:acme\"", "tool: \"id:a\""] {
        assert!(said(fields).is_empty(), "{fields}");
    }
}

/// A rule that names what nobody has looks like a rule that watches somebody.
#[test]
fn a_text_that_no_signal_has_is_refused() {
    let of = |field: &str| {
        let correlation = "correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 3}}";
        read_one(&format!("{{id: r, detection: {{signal: denial, {field}}}, {correlation}}}"))
    };
    for field in [
        "tool: \"bash \"",
        "tool: mcp__github",
        "\"tool|startswith\": \" mcp__\"",
        "user: \"id: 42\"",
        "tenant: \"id:*\"",
        "tenant: \"id:a \"",
    ] {
        assert!(of(field).is_err(), "{field}");
    }
    for field in ["tool: bash", "\"tool|startswith\": mcp__github__", "tenant: \"id:acme corp\""] {
        assert!(of(field).is_ok(), "{field}: {:?}", of(field).err());
    }
}

#[test]
fn rules_without_signals_are_remarked_upon() {
    let rule =
        "{id: r, detection: {signal: denial}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 3}}}";
    for (text, is_remarked) in [
        ("abuse: {pack: enforce, signals: false}".to_owned(), true),
        ("abuse: {pack: off, signals: false}".to_owned(), false),
        ("abuse: {pack: enforce}".to_owned(), false),
        (format!("abuse: {{pack: off, signals: false, rules: [{rule}]}}"), true),
    ] {
        assert_eq!(read(&text).unwrap().remarks.iter().any(|remark| remark.starts_with("abuse.signals is false")), is_remarked, "{text}");
    }
}

#[test]
fn every_type_is_read_and_what_is_left_out_has_its_default() {
    let of =
        |correlation: &str, signal: &str| rule(&format!("{{id: r, detection: {{signal: {signal}}}, correlation: {correlation}}}")).unwrap();
    let count = of("{type: value_count, group-by: [user, tool], timespan: 90s, condition: {gte: 4, field: code}}", "denial");
    assert_eq!(count.correlation, Correlation::ValueCount { field: Dimension::Code, gte: 4 });
    assert_eq!(count.group_by, GroupBy { kind: KeyKind::User, dimensions: vec![Dimension::Tool] });
    assert_eq!((count.level, count.mode, count.suppress_ms), (Level::Medium, Mode::Alert, 90_000));
    assert_eq!(count.ladder, Ladder { steps: Vec::new(), decay_ms: DAY_MS });
    let sum = of("{type: value_sum, group-by: [tenant], timespan: 8d, condition: {gte: 9000000000}}", "tokens");
    assert_eq!((sum.correlation, sum.timespan_ms), (Correlation::ValueSum { gte: 9_000_000_000 }, 8 * DAY_MS));
    let ratio =
        of("{type: ratio, group-by: [tenant], timespan: 6h, over: {signal: response}, min: 200, condition: {gte: 0.05}}", "safety_stop");
    let over = SignalKind::Volume(VolumeKind::Response);
    assert_eq!(ratio.correlation, Correlation::Ratio(Ratio { over, gte: 0.05, min: 200, for_ms: 0 }));
    let baseline = of("{type: baseline, group-by: [tenant], timespan: 1h, factor: 8, floor: 2000, for: 10m}", "call");
    let expected = Baseline { factor: 8.0, floor: 2_000, history_ms: 7 * DAY_MS, warmup_ms: DAY_MS, for_ms: 10 * MINUTE_MS };
    assert_eq!(baseline.correlation, Correlation::Baseline(expected));
}

#[test]
fn ids_are_hashed_within_the_tenants_beside_them() {
    let correlation = "correlation: {type: event_count, group-by: [tenant], timespan: 1h, condition: {gte: 1}}";
    let of = |fields: &str| rule(&format!("{{id: r, detection: {{signal: denial, {fields}}}, {correlation}}}"));
    let values = |fields: &str| of(fields).unwrap().detection.fields[0].values.clone();
    assert_eq!(values("user: \"id:alice\""), [hash(SubjectKind::User, "", "alice")]);
    assert_eq!(values("user: \"id:alice\", tenant: \"id:acme\""), [hash(SubjectKind::User, "acme", "alice")]);
    let mut both = [hash(SubjectKind::User, "a", "alice"), hash(SubjectKind::User, "b", "alice")];
    both.sort_unstable();
    assert_eq!(values("user: \"id:alice\", tenant: [\"id:a\", \"id:b\"]"), both);
    let digest = hash(SubjectKind::Thread, "x", "y");
    assert_eq!(values(&format!("thread: \"hash:{digest}\", tenant: \"hash:{digest}\"")), std::slice::from_ref(&digest));
    assert_eq!(values(&format!("args_hash: {digest}")), std::slice::from_ref(&digest));
    for (fields, says) in [
        (format!("user: \"id:alice\", tenant: \"hash:{digest}\""), "found an id beside a tenant's hash"),
        ("user: alice".to_owned(), "found a string that is neither an id nor a hash; write `id:` and the user's id"),
        ("user: \"id:\"".to_owned(), "found a string that is neither an id nor a hash"),
        (format!("user: \"hash:{}\"", digest.to_uppercase()), "found a hash that is not 64 lower-case hex digits"),
        ("user|startswith: \"id:a\"".to_owned(), "found a modifier on a hash"),
        ("args_hash: abc".to_owned(), "found a string that is no hash of arguments"),
    ] {
        let refused = of(&fields).unwrap_err();
        assert!(refused.contains(says) && !refused.contains("alice"), "{says}\n{refused}");
    }
}

/// Returns the rule as it is printed.
fn printed(settings: &AbuseSettings) -> Value {
    serde_json::to_value(settings).unwrap()["rules"].clone()
}

#[test]
fn what_is_printed_can_be_read_again_and_is_the_same() {
    let others = "
    - {id: a, title: A, description: Why., detection: {signal: tokens}, correlation: {type: value_sum, group-by: [user], timespan: 1m, condition: {gte: 7}}}
    - {id: b, detection: {signal: loop_stop}, correlation: {type: ratio, group-by: [user], timespan: 2m, over: {signal: call}, min: 1, condition: {gte: 0.5}}}
    - {id: c, detection: {signal: call}, correlation: {type: baseline, group-by: [user], timespan: 2h, factor: 1.5, floor: 1, warmup: 4h}}
    - {id: d, detection: {signal: denial, user: \"id:x\"}, correlation: {type: value_count, group-by: [call, tenant], timespan: 60m, condition: {gte: 2, field: agent}}}
";
    let first = read(&format!("{WHOLE}{others}")).unwrap();
    let again = read(&json!({"abuse": {"pack": "off", "rules": printed(&first)}}).to_string()).unwrap();
    assert_eq!(first.rules.rules, again.rules.rules);
    assert_eq!(printed(&first), printed(&again));
    let text = printed(&first).to_string();
    assert!(!text.contains("red-team") && !text.contains("id:") && text.contains("\"timespan\":\"1h\""), "{text}");
    let versions: BTreeSet<_> = first.rules.rules.iter().map(|rule| rule.version.to_string()).collect();
    assert_eq!(versions.len(), 5);
}

#[test]
fn the_version_is_that_of_what_a_rule_does() {
    let base = rule("{id: r, detection: {signal: denial, tool: [a, b]}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}}").unwrap();
    assert_eq!(base.version.to_string(), "dcb5499a67e50f18121782e886b953189e88d06ca73bbf8a78674c06a2ab28a1");
    let same = "{id: r, title: Another, level: medium, mode: alert, suppress: 60m, detection: {tool: [b, a, a], signal: denial}, correlation: {type: event_count, group-by: [user], timespan: 60m, condition: {gte: 5}}, escalation: {steps: [], decay: 24h}}";
    assert_eq!(rule(same).unwrap().version, base.version);
    for other in [
        "{id: s, detection: {signal: denial, tool: [a, b]}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}}",
        "{id: r, detection: {signal: denial, tool: [a]}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}}",
        "{id: r, detection: {signal: denial, tool: [a, b]}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 6}}}",
        "{id: r, mode: shadow, detection: {signal: denial, tool: [a, b]}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}}",
    ] {
        assert_ne!(rule(other).unwrap().version, base.version, "{other}");
    }
}

#[test]
fn the_pack_is_on_and_raises_alerts() {
    let settings = read("{}").unwrap();
    let rules = &settings.rules.rules;
    let ids: Vec<_> = rules.iter().map(|rule| rule.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "safety-stop-user",
            "safety-stop-user-day",
            "safety-stop-rotation",
            "safety-stop-share",
            "denied-tool-probing",
            "same-denied-call",
            "loop-stop-agent",
            "runaway-calls-tenant",
            "runaway-tokens-tenant",
        ]
    );
    assert_eq!(settings.pack, Pack::Alert);
    assert!(rules.iter().all(|rule| rule.mode == Mode::Alert));
    let enforced = read("abuse: {pack: enforce}").unwrap();
    let suspending: Vec<_> = enforced.rules.rules.iter().filter(|rule| rule.suspends()).map(|rule| rule.id.as_str()).collect();
    assert_eq!(suspending, ["safety-stop-user", "safety-stop-user-day"]);
    assert!(enforced.rules.rules.iter().all(|rule| rule.suspends() || rule.mode == Mode::Alert));
    assert!(read("abuse: {pack: off}").unwrap().rules.rules.is_empty());
    // Each says why its number is what it is.
    let written = parse(PACK).unwrap();
    let reasons: Vec<_> = written["rules"].as_array().unwrap().iter().map(|rule| rule["description"].as_str().unwrap().len()).collect();
    assert!(reasons.len() == 9 && reasons.iter().all(|length| *length > 60), "{reasons:?}");
}

#[test]
fn a_rule_with_the_id_of_one_of_the_pack_replaces_it() {
    let settings = read(&WHOLE.replace("pack: off", "pack: alert")).unwrap();
    let rules = &settings.rules.rules;
    assert_eq!((rules.len(), rules[8].id.as_str(), rules[8].mode), (9, "safety-stop-user", Mode::Enforce));
    assert_eq!(rules.iter().filter(|rule| rule.id == "safety-stop-user").count(), 1);
}

/// What is not overridden is the pack's, and a changed number is another version of the rule, so that it is warmed up.
#[test]
fn an_override_changes_numbers_of_a_rule_of_the_pack() {
    let (pack, overrides) = (read("{}").unwrap(), "{threshold: 8, timespan: 90m}");
    let changed = read(&format!("abuse: {{overrides: {{safety-stop-user: {overrides}}}}}")).unwrap();
    let [before, after] = [&pack, &changed].map(|settings| settings.rules.rules[0].clone());
    assert_eq!(after.correlation, Correlation::EventCount { gte: 8 });
    assert_eq!((after.timespan_ms, after.suppress_ms), (90 * MINUTE_MS, 90 * MINUTE_MS));
    assert_ne!(after.version, before.version);
    let numbers = (before.correlation.clone(), before.timespan_ms, before.suppress_ms, before.version);
    let (correlation, timespan_ms, suppress_ms, version) = numbers;
    assert_eq!(Rule { correlation, timespan_ms, suppress_ms, version, ..after }, before);
    assert_eq!(changed.rules.rules[1..], pack.rules.rules[1..]);
    // The same rule, copied, is the same version.
    let mut copied = parse(PACK).unwrap()["rules"][0].clone();
    (copied["correlation"]["condition"]["gte"], copied["correlation"]["timespan"]) = (json!(8), json!("90m"));
    let copied = read(&json!({"abuse": {"pack": "off", "rules": [copied]}}).to_string()).unwrap();
    assert_eq!(copied.rules.rules[0].version, changed.rules.rules[0].version);
    let printed = serde_json::to_value(&changed).unwrap();
    assert_eq!((&printed["overrides"], &printed["rules"]), (&json!({"safety-stop-user": {"threshold": 8, "timespan": "90m"}}), &json!([])));
    let again = read(&json!({"abuse": printed}).to_string()).unwrap();
    assert_eq!(again.rules.rules, changed.rules.rules);
    let enforced = read("abuse: {pack: enforce, overrides: {safety-stop-user: {threshold: 8}}}").unwrap();
    assert_eq!(enforced.rules.rules[0].mode, Mode::Enforce);
}

#[test]
fn an_override_fits_the_type_of_its_rule_and_can_switch_it_off() {
    let of = |overrides: &str| read(&format!("abuse: {{overrides: {{{overrides}}}}}"));
    let settings = of("safety-stop-share: {threshold: 0.08}, runaway-calls-tenant: {factor: 4, floor: 9000, timespan: 2h}").unwrap();
    let rules = &settings.rules.rules;
    assert!(matches!(&rules[3].correlation, Correlation::Ratio(Ratio { gte, min: 200, .. }) if *gte == 0.08), "{:?}", rules[3]);
    let is_changed = matches!(&rules[7].correlation, Correlation::Baseline(Baseline { factor, floor: 9000, .. }) if *factor == 4.0);
    assert!(is_changed && rules[7].timespan_ms == 2 * HOUR_MS, "{:?}", rules[7]);
    let off = of("same-denied-call: {enabled: false}, loop-stop-agent: {enabled: true, threshold: 3}").unwrap();
    assert_eq!(off.switched_off().collect::<Vec<_>>(), ["same-denied-call"]);
    assert!(off.rules.rules.len() == 8 && off.rules.rules.iter().all(|rule| rule.id != "same-denied-call"));
    let listed: Vec<_> = off.listed().map(|(_, value)| (value["id"].clone(), value["from"].clone(), value["overridden"].clone())).collect();
    assert_eq!(listed[5], (json!("loop-stop-agent"), json!("pack"), json!({"threshold": {"pack": 10, "now": 3}})));
    assert_eq!(listed[0], (json!("safety-stop-user"), json!("pack"), Value::Null));
}
