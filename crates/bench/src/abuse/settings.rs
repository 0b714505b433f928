//! The workers that are compared, and the rules that they count by.

use serde_json::{Value, json};
use tollgate_testkit::DENIED_TOOL;

use crate::{Subject, Variant};

/// The key of subject hashes, so that a hash costs what it does where there is one.
pub(super) const SUBJECT_KEY: &str = "a key of the benchmark, which is no secret to anybody";
/// How many subjects are suspended where the cost of that is measured.
const SUSPENDED: u32 = 1_000;
/// How many rules wait for offenders. A rule groups its alerts beyond twenty a minute, and stops suspending beyond twenty subjects; so
/// offenders are spread over several.
pub(super) const RULES: usize = 32;

/// Returns the tool that offends against the rule of this number.
pub(super) fn tool(rule: usize) -> String {
    format!("probe-{}", rule % RULES)
}

/// Returns a worker that only decides, without signals and without suspended subjects.
pub(super) fn without_abuse() -> Subject {
    let off = [("TOLLGATE__ABUSE__PACK", "off".to_owned()), ("TOLLGATE__ABUSE__SIGNALS", "false".to_owned())];
    variant("deciding, abuse off", &["--stage", "decide"], 0, off)
}

/// Returns a worker that only decides, writes the signals that the pack asks for, and knows suspended subjects.
pub(super) fn with_pack() -> Subject {
    variant("deciding, pack on", &["--stage", "decide"], SUSPENDED, [("TOLLGATE__ABUSE__PACK", "alert".to_owned())])
}

/// Returns a worker of both stages with the pack, and with rules of which every one fires on one call of its tool.
pub(super) fn counting(enforces: bool) -> Subject {
    let denied: Vec<String> = std::iter::once(DENIED_TOOL.to_owned()).chain((0..RULES).map(tool)).collect();
    let provider = json!({"use": "allowlist", "config": {"denied_tools": denied}});
    let rules: Vec<Value> = (0..RULES).map(|number| rule(number, enforces)).collect();
    let settings = [
        ("TOLLGATE__GUARDRAILS__PROVIDER", provider.to_string()),
        ("TOLLGATE__ABUSE__PACK", "alert".to_owned()),
        ("TOLLGATE__ABUSE__RULES", json!(rules).to_string()),
    ];
    variant("both stages", &[], 0, settings)
}

fn rule(number: usize, enforces: bool) -> Value {
    json!({
        "id": tool(number),
        "mode": if enforces { "enforce" } else { "alert" },
        "detection": {"signal": "denial", "tool": tool(number)},
        "correlation": {"type": "event_count", "group-by": ["user"], "timespan": "1h", "condition": {"gte": 1}},
        "escalation": {"steps": ["1h"], "decay": "24h"},
    })
}

fn variant(
    name: &'static str,
    arguments: &'static [&'static str],
    suspended: u32,
    settings: impl IntoIterator<Item = (&'static str, String)>,
) -> Subject {
    let key = ("TOLLGATE__PRIVACY__SUBJECT_KEY", SUBJECT_KEY.to_owned());
    Subject::Variant(Variant { name, arguments, environment: settings.into_iter().chain([key]).collect(), suspended })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_settings_are_read_by_a_worker() {
        for (subject, rules) in [(without_abuse(), 0), (with_pack(), 9), (counting(false), 9 + RULES), (counting(true), 9 + RULES)] {
            let Subject::Variant(variant) = subject else { panic!("a variant") };
            // What a worker is given in any case; a variant's own value comes later and counts.
            let denied = json!({"use": "allowlist", "config": {"denied_tools": [DENIED_TOOL]}}).to_string();
            let given = [("TOLLGATE__GUARDRAILS__ENABLED", "true".to_owned()), ("TOLLGATE__GUARDRAILS__PROVIDER", denied)];
            let variables: BTreeMap<_, _> = given.into_iter().chain(variant.environment).collect();
            let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
            let settings = tollgate_config::load(None, variables).unwrap();
            assert_eq!(settings.abuse.rules.rules.len(), rules, "{}", variant.name);
        }
    }
}
