//! The pack: the rules that come with the program, and what the configuration changes of them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use tollgate_core::codes::codes;
use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::settings::{Accepted, Collector, Faults, Section, duration_text, parse, parse_duration};

use super::digest::version_of;
use super::read_correlation::{FACTOR_MAX, SHARE_MAX, SUM_MAX, THRESHOLD_MAX, TIMESPAN_LEAST_MS, TIMESPAN_MS_MAX};
use super::read_rule::{ReadRule, Reading, read_rule};
use super::{Correlation, Mode};

codes! {
    /// What the rules that come with the program do.
    Pack {
        /// They are not in force.
        Off = "off",
        /// They raise alerts.
        Alert = "alert",
        /// Those with steps that suspend suspend, the others raise alerts.
        Enforce = "enforce",
    }
}

/// The pack's rules, in the form in which all rules are written.
pub const PACK: &str = include_str!("../../../../config/abuse-pack.yaml");

/// The pack's rules as values; a test rules out that the embedded file is broken.
static WRITTEN: LazyLock<Value> = LazyLock::new(|| parse(PACK).unwrap_or_default());

const OVERRIDES: &str = "overrides";
const ENABLED: &str = "enabled";
const TIMESPAN: &str = "timespan";
/// The keys of an override that change a number, with the place of that number in a rule.
const NUMBERS: [(&str, &str); 4] = [
    (TIMESPAN, "/correlation/timespan"),
    ("threshold", "/correlation/condition/gte"),
    ("factor", "/correlation/factor"),
    ("floor", "/correlation/floor"),
];

/// The pack, as a configuration has it.
pub(super) struct ReadPack {
    pub(super) mode: Pack,
    /// The rules in force.
    pub(super) rules: Vec<ReadRule>,
    /// What the configuration changes, by the ids of the rules.
    pub(super) overrides: Map<String, Value>,
}

/// Reads `pack` and `overrides` of the section `abuse`. The rules of the pack with the ids in `replaced` are not in force.
pub(super) fn read_pack(section: &Section<'_>, replaced: &BTreeSet<&str>) -> ReadPack {
    let mode = section.word("pack", &Pack::ALL.iter().map(|pack| (pack.as_str(), *pack)).collect::<Vec<_>>()).unwrap_or(Pack::Alert);
    let section_of_overrides = section.section(OVERRIDES);
    let (mut rules, mut overrides) = (Vec::new(), Map::new());
    for value in pack_rules() {
        let (Some(id), Ok(rule)) = (value.get("id").and_then(Value::as_str), read_value(value)) else { continue };
        let (rule, changes) = read_override(&section_of_overrides, id, (value, rule));
        let is_on = changes.get(ENABLED) != Some(&Value::Bool(false));
        if section_of_overrides.is_written(id) {
            if replaced.contains(id) {
                let fix = "write the number in that rule, and remove this override";
                section_of_overrides.fault(id, "an override of a rule that a rule of `abuse.rules` replaces", fix);
            }
            overrides.insert(id.to_owned(), Value::Object(changes));
        }
        if mode != Pack::Off && is_on && !replaced.contains(id) {
            rules.push(in_force(rule, mode));
        }
    }
    if mode == Pack::Off && !overrides.is_empty() {
        section.fault(OVERRIDES, "overrides of rules of the pack, which is off", "remove them, or write `pack: alert`");
    }
    ReadPack { mode, rules, overrides }
}

/// Reads a rule of the pack. Such a rule names no ids and has no exceptions.
fn read_value(value: &Value) -> Result<ReadRule, Faults> {
    let (none, faults) = (Value::Null, Collector::default());
    let reading = Reading { hasher: &SubjectHasher::new(None), now_ms: i64::MIN };
    let read = read_rule(&Section::root(value, &none, &faults), reading);
    faults.into_result(read)
}

/// Returns the rule with the changes of its override, and the changes. The changed rule is read as every rule is, so that the same is refused.
fn read_override(overrides: &Section<'_>, id: &'static str, (value, rule): (&Value, ReadRule)) -> (ReadRule, Map<String, Value>) {
    let section = overrides.section(id);
    let mut changes = read_numbers(&section, &rule.rule.correlation);
    let mut changed = value.clone();
    for (key, place) in NUMBERS {
        if let (Some(number), Some(found)) = (changes.get(key), changed.pointer_mut(place)) {
            if is_same(number, found) {
                section.fault(key, "the value that the rule has already", "write another value, or remove it");
            }
            *found = number.clone();
        }
    }
    let rule = read_value(&changed).unwrap_or_else(|Faults(faults)| {
        for fault in &faults {
            match NUMBERS.iter().find(|(_, place)| place.trim_start_matches('/').replace('/', ".") == fault.key) {
                Some((key, _)) => section.fault(key, fault.found.as_str(), fault.fix.as_str()),
                None => section.fault(
                    TIMESPAN,
                    "a duration that does not fit `history` and `warmup` of the rule",
                    "write a duration of which `history` and `warmup` are multiples, or a rule of your own with this id",
                ),
            }
        }
        rule
    });
    let enabled = section.optional_bool(ENABLED);
    if enabled == Some(false) {
        for key in changes.keys() {
            section.fault(key, "a number of a rule that is off", "remove it, or remove `enabled: false`");
        }
    } else if overrides.is_written(id) && overrides.value(id).is_none_or(changes_nothing) {
        overrides.fault(id, "an override that changes nothing", "write a number of the rule or `enabled: false`, or remove it");
    }
    changes.extend(enabled.map(|enabled| (ENABLED.to_owned(), json!(enabled))));
    (rule, changes)
}

/// Returns the number of a rule of the pack that a key of an override stands for.
pub(super) fn pack_number(id: &str, key: &str) -> Option<&'static Value> {
    let (_, place) = NUMBERS.iter().find(|(name, _)| *name == key)?;
    pack_rules().find(|rule| rule.get("id").and_then(Value::as_str) == Some(id))?.pointer(place)
}

/// Returns the rules of the pack as they are written.
fn pack_rules() -> impl Iterator<Item = &'static Value> {
    WRITTEN.get("rules").and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether two values are the same number or the same duration.
fn is_same(one: &Value, other: &Value) -> bool {
    let duration = |value: &Value| value.as_str().and_then(parse_duration);
    duration(one) == duration(other) && one.as_f64() == other.as_f64()
}

/// Returns whether an override says at most that its rule is on, as it is without it.
fn changes_nothing(written: &Value) -> bool {
    written
        .as_object()
        .is_some_and(|keys| keys.iter().all(|(key, value)| key == ENABLED && matches!(value, Value::Bool(true) | Value::Null)))
}

/// Returns the numbers that an override changes, by their keys. Only the keys that the rule's type has are read.
fn read_numbers(section: &Section<'_>, correlation: &Correlation) -> Map<String, Value> {
    let amount = |key| section.optional(key, Accepted::Amount(SUM_MAX), |section| section.amount(key, SUM_MAX)).flatten();
    let fraction = |key, most| section.optional(key, Accepted::Fraction(most), |section| section.fraction(key, most)).flatten();
    let [timespan_key, threshold_key, factor_key, floor_key] = NUMBERS.map(|(key, _)| key);
    let timespan = section.duration(timespan_key, TIMESPAN_LEAST_MS, TIMESPAN_MS_MAX).map(|length_ms| json!(duration_text(length_ms)));
    let [threshold, factor, floor] = match correlation {
        Correlation::EventCount { .. } | Correlation::ValueCount { .. } => {
            let accepted = Accepted::Whole(1, THRESHOLD_MAX);
            let threshold = section.optional(threshold_key, accepted, |section| section.between(threshold_key, 1, THRESHOLD_MAX));
            [threshold.map(Value::from), None, None]
        }
        Correlation::ValueSum { .. } => [amount(threshold_key).map(Value::from), None, None],
        Correlation::Ratio(_) => [fraction(threshold_key, SHARE_MAX).map(Value::from), None, None],
        Correlation::Baseline(_) => [None, fraction(factor_key, FACTOR_MAX).map(Value::from), amount(floor_key).map(Value::from)],
    };
    let numbers = NUMBERS.iter().zip([timespan, threshold, factor, floor]);
    numbers.filter_map(|((key, _), number)| Some(((*key).to_owned(), number?))).collect()
}

/// Returns a rule of the pack as it is in force.
fn in_force(mut read: ReadRule, pack: Pack) -> ReadRule {
    read.rule.mode = if pack == Pack::Enforce && read.rule.ladder.suspends() { Mode::Enforce } else { Mode::Alert };
    read.rule.version = version_of(&read.rule);
    read
}
