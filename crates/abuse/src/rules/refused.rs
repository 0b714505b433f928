//! What Sigma has and rules here have not. Each is refused by its name, with what to write in its place, so that nobody believes that it
//! works.

use tollgate_core::settings::Section;

/// A key of Sigma, and what to do about it.
type Refused = (&'static str, &'static str);

const ABOUT: &str = "remove it; a rule has `title` and `description` for people";
const BELOW_CORRELATION: &str = "write it under `correlation`";

const OF_RULE: &[Refused] = &[
    ("name", "write `id`"),
    ("status", "write `mode: shadow`, `mode: alert` or `mode: enforce`"),
    ("logsource", "remove it; `detection.signal` says what is counted"),
    ("author", ABOUT),
    ("date", ABOUT),
    ("modified", ABOUT),
    ("references", ABOUT),
    ("tags", ABOUT),
    ("falsepositives", ABOUT),
    ("fields", ABOUT),
    ("related", ABOUT),
    ("license", ABOUT),
    ("scope", ABOUT),
    ("taxonomy", ABOUT),
    ("action", "remove it; write each rule as an element of `rules`"),
    ("filter", "write `exceptions`"),
    ("rules", "remove it; a rule counts what its own `detection` names"),
    ("type", BELOW_CORRELATION),
    ("group-by", BELOW_CORRELATION),
    ("timespan", BELOW_CORRELATION),
    ("condition", BELOW_CORRELATION),
    ("steps", "write it under `escalation`"),
    ("decay", "write it under `escalation`"),
];

const OF_CORRELATION: &[Refused] = &[
    ("rules", "remove it; a rule counts what its own `detection` names"),
    ("aliases", "remove it; fields have the same names in all signals"),
    ("generate", "remove it; a rule raises alerts of its own, as `mode` says"),
    ("group_by", "write `group-by`"),
    ("timeframe", "write `timespan`"),
    ("window", "write `timespan`; windows slide"),
    ("field", "write it under `condition`"),
    ("gte", "write it under `condition`"),
];

const AT_LEAST: &str = "write `gte`, the least number that fires";

const OF_CONDITION: &[Refused] =
    &[("gt", AT_LEAST), ("lt", AT_LEAST), ("lte", AT_LEAST), ("eq", AT_LEAST), ("neq", AT_LEAST), ("percentile", AT_LEAST)];

const ALL_HOLD: &str = "write the fields beside `signal`; all of them have to hold, and of a list any value";

const OF_DETECTION: &[Refused] = &[
    ("condition", ALL_HOLD),
    ("selection", ALL_HOLD),
    ("keywords", "write the fields beside `signal`; signals have no text to search"),
    ("filter", "write `exceptions` beside `detection`"),
    ("timeframe", "write `correlation.timespan`"),
];

/// Sigma's types of correlations that there are none of here.
const TYPES: [&str; 5] = ["temporal", "temporal_ordered", "value_avg", "value_percentile", "value_median"];

/// Sigma's modifiers of fields that there are none of here.
#[rustfmt::skip]
const MODIFIERS: [&str; 28] = [
    "all", "base64", "base64offset", "cased", "cidr", "day", "exists", "expand", "fieldref", "gt", "gte", "hour", "i", "lt", "lte", "m",
    "minute", "month", "neq", "re", "s", "utf16", "utf16be", "utf16le", "week", "wide", "windash", "year",
];

fn refuse(section: &Section<'_>, refused: &[Refused]) {
    for (key, fix) in refused {
        section.refuse(key, "a key that rules do not have", fix);
    }
}

/// Refuses keys of a rule.
pub(super) fn of_rule(rule: &Section<'_>) {
    refuse(rule, OF_RULE);
}

/// Refuses keys of a correlation.
pub(super) fn of_correlation(correlation: &Section<'_>) {
    refuse(correlation, OF_CORRELATION);
}

/// Refuses comparisons.
pub(super) fn of_condition(condition: &Section<'_>) {
    refuse(condition, OF_CONDITION);
}

/// Returns what to write in place of a key of a detection, if it is one of Sigma's. Selections and filters may have a suffix.
pub(super) fn of_detection(key: &str) -> Option<&'static str> {
    OF_DETECTION
        .iter()
        .find(|(refused, _)| key.strip_prefix(refused).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('_')))
        .map(|(_, fix)| *fix)
}

/// Returns whether a type of correlation is one of Sigma's that there is none of here.
pub(super) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// Returns whether a modifier is one of Sigma's that there is none of here.
pub(super) fn is_modifier(name: &str) -> bool {
    MODIFIERS.contains(&name)
}
