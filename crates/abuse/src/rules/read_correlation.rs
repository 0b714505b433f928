//! Reading `correlation`: what has to come together, within which time, and what is counted apart.

use tollgate_core::decide::signal::{Dimension, KeyKind, PointKind, SignalKind, VolumeKind};
use tollgate_core::settings::{Section, duration_text};

use super::fields::{fields_of, instead, listed, refuse_values};
use super::{Baseline, Correlation, Detection, GroupBy, Ratio, refused};

/// The largest threshold of a rule that counts signals or values. Up to it counting is exact.
pub const THRESHOLD_MAX: u32 = 1_024;
/// The longest timespan, in milliseconds: for so long the signals topic keeps signals.
pub const TIMESPAN_MS_MAX: i64 = 8 * 86_400_000;

pub(super) const KEY: &str = "correlation";
const SECOND_MS: i64 = 1_000;
/// The shortest timespan of a rule that counts one by one, in milliseconds.
pub(super) const TIMESPAN_LEAST_MS: i64 = SECOND_MS;
/// The parts that a window of amounts has. Amounts stand by whole seconds, so that a part is at least one.
const PARTS: i64 = 60;
/// The largest sum that a rule can ask for: beyond it, JSON's readers lose digits.
pub(super) const SUM_MAX: u64 = 1 << 53;
/// The largest share: all. 5 % are written as 0.05.
pub(super) const SHARE_MAX: u32 = 1;
/// The largest factor.
pub(super) const FACTOR_MAX: u32 = 1_000;
/// The most closed timespans that a baseline looks back over.
const SPANS_MAX: i64 = 256;
/// What a baseline looks back over, and how long a subject has to be known, where nothing is written.
const HISTORY_MS: i64 = 7 * 86_400_000;
const WARMUP_MS: i64 = 86_400_000;
/// The most dimensions beside the subject.
const DIMENSIONS_MAX: usize = 4;

/// The types, with the keys that only they have.
pub(super) const TYPES: [(&str, &[&str]); 5] = [
    ("event_count", &["condition"]),
    ("value_count", &["condition"]),
    ("value_sum", &["condition"]),
    ("ratio", &["condition", "over", "min", "for"]),
    ("baseline", &["factor", "floor", "history", "warmup", "for"]),
];

/// What a section `correlation` says.
#[derive(Debug)]
pub(super) struct ReadCorrelation {
    pub(super) correlation: Correlation,
    pub(super) group_by: GroupBy,
    pub(super) timespan_ms: i64,
}

/// Reads the correlation of a rule whose detection is known.
pub(super) fn read_correlation(rule: &Section<'_>, detection: &Detection) -> ReadCorrelation {
    let section = rule.section(KEY);
    refused::of_correlation(&section);
    let kind = read_type(&section);
    let by_seconds = matches!(kind, Some("value_sum" | "ratio" | "baseline"));
    let timespan_ms = read_timespan(&section, by_seconds);
    let group_by = read_group_by(&section, detection.signal, kind);
    for (key, of) in TYPES.iter().flat_map(|(of, keys)| keys.iter().map(move |key| (*key, *of))) {
        let is_own = TYPES.iter().any(|(name, keys)| Some(*name) == kind && keys.contains(&key));
        if kind.is_some() && !is_own {
            let fix =
                if key == "condition" { "write `factor` and `floor`".to_owned() } else { format!("remove it, or write `type: {of}`") };
            section.refuse(key, "a key of another type", &fix);
        }
    }
    let correlation = match kind {
        Some("value_count") => read_value_count(&section, detection, &group_by),
        Some("value_sum") => read_value_sum(&section, detection),
        Some("ratio") => read_ratio(&section),
        Some("baseline") => read_baseline(&section, detection, timespan_ms),
        _ => read_event_count(&section, detection),
    };
    ReadCorrelation { correlation, group_by, timespan_ms }
}

fn read_type(section: &Section<'_>) -> Option<&'static str> {
    let written = section.optional_string("type");
    let known = TYPES.map(|(name, _)| name);
    let Some(written) = written else {
        section.fault("type", "nothing", format!("write one of {}", listed(known)));
        return None;
    };
    if refused::is_type(&written) {
        section.fault("type", format!("`{written}`, which is not supported"), format!("write one of {}", listed(known)));
        return None;
    }
    let found = section.word("type", &TYPES.map(|(name, _)| (name, name)));
    found.filter(|_| !written.is_empty())
}

fn read_timespan(section: &Section<'_>, by_seconds: bool) -> i64 {
    let least_ms = if by_seconds { PARTS * SECOND_MS } else { TIMESPAN_LEAST_MS };
    if section.value("timespan").is_none() {
        section.fault("timespan", "nothing", "write how far apart what is counted may be, such as 1h");
    }
    let timespan_ms = section.duration("timespan", least_ms, TIMESPAN_MS_MAX).unwrap_or(PARTS * SECOND_MS);
    if by_seconds && timespan_ms % (PARTS * SECOND_MS) != 0 {
        section.fault("timespan", "a duration that is no whole number of minutes", "write one that is, such as 1m or 1h");
    }
    timespan_ms
}

fn read_group_by(section: &Section<'_>, signal: SignalKind, kind: Option<&str>) -> GroupBy {
    const KEY: &str = "group-by";
    let fallback = GroupBy { kind: KeyKind::User, dimensions: Vec::new() };
    let kinds: Vec<_> = KeyKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let written = section.strings(KEY).unwrap_or_default();
    let Some((first, others)) = written.split_first() else {
        section.fault(KEY, "nothing", format!("write whose signals are counted together, such as [user]: one of {}", listed(kinds)));
        return fallback;
    };
    let Some(kind_of_subject) = KeyKind::from_name(first) else {
        let found = if Dimension::from_name(first).is_some() { "a dimension at the first place" } else { "an unknown kind of subject" };
        section.fault(KEY, found, format!("write one of {} first, and dimensions behind it", listed(kinds)));
        return fallback;
    };
    if kind_of_subject == KeyKind::Call && signal != SignalKind::Point(PointKind::Denial) {
        section.fault(KEY, "`call`, which only denials are counted by", "write `signal: denial`, or another kind of subject");
    }
    let known: Vec<_> = match signal {
        SignalKind::Point(point) => fields_of(point),
        SignalKind::Volume(_) => Vec::new(),
    };
    let mut dimensions = Vec::new();
    for name in others {
        match Dimension::from_name(name).filter(|dimension| known.contains(dimension)) {
            Some(dimension) if dimensions.contains(&dimension) || dimension.subject() == Some(kind_of_subject) => {
                section.fault(KEY, "a name that stands twice", "write each once");
            }
            Some(dimension) => dimensions.push(dimension),
            None if known.is_empty() => section.fault(KEY, "a dimension, and volumes have none", "write the kind of subject alone"),
            None => {
                let names: Vec<_> = known.iter().map(|dimension| dimension.as_str()).collect();
                section.fault(KEY, "a dimension that the signal does not have", instead(name, &names));
            }
        }
    }
    if dimensions.len() > DIMENSIONS_MAX {
        section.fault(KEY, "too many dimensions", format!("write {DIMENSIONS_MAX} at most behind the kind of subject"));
    }
    if kind == Some("ratio") && !dimensions.is_empty() {
        section.fault(KEY, "a dimension, and what a ratio is over has none", "write the kind of subject alone");
    }
    GroupBy { kind: kind_of_subject, dimensions }
}

/// Returns the section `condition`, of which the comparisons that there are none of are refused.
fn condition_of<'v>(section: &Section<'v>) -> Section<'v> {
    let condition = section.section("condition");
    refused::of_condition(&condition);
    condition
}

/// Adds a fault if a rule that counts one by one is about amounts.
fn check_point(section: &Section<'_>, detection: &Detection) {
    if matches!(detection.signal, SignalKind::Volume(_)) {
        section.fault("type", "a type that counts one by one, of a signal that is an amount", "write `value_sum`, `baseline` or `ratio`");
    }
}

/// Adds a fault if a rule over amounts is about points.
fn check_volume(section: &Section<'_>, detection: &Detection) {
    if matches!(detection.signal, SignalKind::Point(_)) {
        section.fault("type", "a type over amounts, of a signal that is none", "write `event_count` or `value_count`, or count `tokens`");
    }
}

fn read_event_count(section: &Section<'_>, detection: &Detection) -> Correlation {
    check_point(section, detection);
    let condition = condition_of(section);
    condition.refuse("field", "a key of another type", "remove it, or write `type: value_count`");
    Correlation::EventCount { gte: condition.between("gte", 1, THRESHOLD_MAX) }
}

fn read_value_count(section: &Section<'_>, detection: &Detection, group_by: &GroupBy) -> Correlation {
    check_point(section, detection);
    let condition = condition_of(section);
    let gte = condition.between("gte", 1, THRESHOLD_MAX);
    let known = match detection.signal {
        SignalKind::Point(point) => fields_of(point),
        SignalKind::Volume(_) => Dimension::ALL.to_vec(),
    };
    let names: Vec<_> = known.iter().map(|dimension| dimension.as_str()).collect();
    let written = condition.optional_string("field");
    let field = written.as_deref().and_then(Dimension::from_name).filter(|field| known.contains(field));
    match (&written, field) {
        (None, _) => condition.fault("field", "nothing", format!("write whose values are counted: one of {}", listed(names))),
        (Some(_), Some(_)) => {}
        (Some(written), None) if Dimension::from_name(written).is_some() => {
            condition.fault("field", "a field that the signal does not have", format!("write one of {}", listed(names)));
        }
        (Some(written), None) => condition.fault("field", "an unknown field", instead(written, &names)),
    }
    field.into_iter().for_each(|field| refuse_values(&condition, (field, gte), detection, group_by));
    Correlation::ValueCount { field: field.unwrap_or(Dimension::User), gte }
}

fn read_value_sum(section: &Section<'_>, detection: &Detection) -> Correlation {
    check_volume(section, detection);
    let condition = condition_of(section);
    condition.refuse("field", "a field, and the amount of a signal is its only one", "remove it; `detection.signal` says what is summed");
    Correlation::ValueSum { gte: condition.amount("gte", SUM_MAX).unwrap_or(1) }
}

fn read_ratio(section: &Section<'_>) -> Correlation {
    let gte = condition_of(section).fraction("gte", SHARE_MAX).unwrap_or(1.0);
    let over = section.section("over");
    let volumes: Vec<_> = VolumeKind::ALL.iter().map(|kind| (kind.as_str(), *kind)).collect();
    if over.value("signal").is_none() {
        over.fault("signal", "nothing", format!("write what it is a share of: {}", listed(volumes.iter().map(|(name, _)| *name))));
    }
    let volume = over.word("signal", &volumes).unwrap_or(VolumeKind::Response);
    let min = section.amount("min", SUM_MAX).unwrap_or(1);
    Correlation::Ratio(Ratio { over: SignalKind::Volume(volume), gte, min, for_ms: read_for(section) })
}

fn read_baseline(section: &Section<'_>, detection: &Detection, timespan_ms: i64) -> Correlation {
    check_volume(section, detection);
    let factor = section.fraction("factor", FACTOR_MAX).unwrap_or(2.0);
    if factor <= 1.0 {
        section.fault("factor", "a number of 1 or less", "write how many times the usual amount it has to be, such as 8");
    }
    let floor = section.amount("floor", SUM_MAX).unwrap_or(1);
    let history_ms = read_spans(section, "history", timespan_ms, TIMESPAN_MS_MAX).unwrap_or_else(|| HISTORY_MS.max(timespan_ms));
    let warmup_ms = read_spans(section, "warmup", timespan_ms, history_ms).unwrap_or_else(|| WARMUP_MS.clamp(timespan_ms, history_ms));
    for (key, length_ms) in [("history", history_ms), ("warmup", warmup_ms)] {
        if length_ms % timespan_ms != 0 {
            section.fault(
                key,
                "a duration that is no multiple of `timespan`",
                format!("write one, such as {}", duration_text(timespan_ms)),
            );
        }
    }
    if history_ms < timespan_ms.saturating_mul(2) {
        let found = "a time in which no timespan is over before the one that is compared with it";
        section.fault("history", found, "write twice the timespan at least, or a shorter timespan");
    }
    if history_ms / timespan_ms.max(1) > SPANS_MAX {
        section.fault("history", "too many timespans", format!("write {SPANS_MAX} times the timespan at most, or a longer timespan"));
    }
    Correlation::Baseline(Baseline { factor, floor, history_ms, warmup_ms, for_ms: read_for(section) })
}

fn read_spans(section: &Section<'_>, key: &'static str, timespan_ms: i64, most_ms: i64) -> Option<i64> {
    section.duration(key, timespan_ms, most_ms.max(timespan_ms))
}

fn read_for(section: &Section<'_>) -> i64 {
    section.duration("for", 0, TIMESPAN_MS_MAX).unwrap_or(0)
}
