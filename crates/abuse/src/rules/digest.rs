//! Rules as they are in force, with defaults filled in: in the form that they are written in, and as the digest that is their version.

use serde_json::{Map, Value, json};

use tollgate_core::decide::signal::Dimension;
use tollgate_core::settings::{duration_text, put};
use tollgate_json::digest::Digest;
use tollgate_json::{Parser, canonical};

use super::read_values::{HASH, WARN};
use super::{Correlation, Detection, Exception, Operator, Rule, Step};

/// How deep a rule's JSON is nested at most.
const DEPTH_MAX: usize = 16;

/// Returns a rule in the form that it is written in. Read again, it is the same rule. Ids stand as their hashes.
pub(super) fn rule_json(rule: &Rule) -> Value {
    let ladder = &rule.ladder;
    let step = |step: &Step| match step {
        Step::Warn => WARN.to_owned(),
        Step::Suspend(suspension_ms) => duration_text(*suspension_ms),
    };
    json!({
        "id": rule.id,
        "level": rule.level.as_str(),
        "mode": rule.mode.as_str(),
        "detection": detection(&rule.detection),
        "correlation": correlation(rule),
        "escalation": {"steps": ladder.steps.iter().map(step).collect::<Vec<_>>(), "decay": duration_text(ladder.decay_ms)},
        "exceptions": rule.exceptions.iter().map(exception).collect::<Vec<_>>(),
        "suppress": duration_text(rule.suppress_ms),
    })
}

/// Returns the version of a rule: the digest of what it does. Reasons and other texts for people are no part of it.
pub(super) fn version_of(rule: &Rule) -> Digest {
    let mut value = rule_json(rule);
    for exception in value.get_mut("exceptions").and_then(Value::as_array_mut).into_iter().flatten() {
        exception.as_object_mut().and_then(|exception| exception.remove("reason"));
    }
    let text = value.to_string();
    let mut canonical_bytes = Vec::with_capacity(text.len());
    if let Ok(value) = Parser::new().parse(text.as_bytes(), DEPTH_MAX) {
        canonical::write(value, &mut canonical_bytes);
    }
    Digest::of(&canonical_bytes)
}

fn detection(detection: &Detection) -> Value {
    let mut members = Map::new();
    members.insert("signal".to_owned(), detection.signal.as_str().into());
    for field in &detection.fields {
        let name = field.dimension.as_str();
        let key = match field.operator {
            Operator::Equals => name.to_owned(),
            operator => format!("{name}|{}", operator.as_str()),
        };
        members.insert(key, values(field.dimension, &field.values));
    }
    Value::Object(members)
}

fn values(dimension: Dimension, values: &[String]) -> Value {
    let is_hash = dimension.subject().is_some() || dimension == Dimension::ArgsHash;
    values.iter().map(|value| if is_hash { format!("{HASH}{value}") } else { value.clone() }).collect()
}

fn correlation(rule: &Rule) -> Value {
    let group_by: Vec<_> =
        [rule.group_by.kind.as_str()].into_iter().chain(rule.group_by.dimensions.iter().map(|dimension| dimension.as_str())).collect();
    let mut value = match &rule.correlation {
        Correlation::EventCount { gte } => json!({"type": "event_count", "condition": {"gte": gte}}),
        Correlation::ValueCount { field, gte } => json!({"type": "value_count", "condition": {"field": field.as_str(), "gte": gte}}),
        Correlation::ValueSum { gte } => json!({"type": "value_sum", "condition": {"gte": gte}}),
        Correlation::Ratio(ratio) => json!({
            "type": "ratio",
            "condition": {"gte": ratio.gte},
            "over": {"signal": ratio.over.as_str()},
            "min": ratio.min,
            "for": duration_text(ratio.for_ms),
        }),
        Correlation::Baseline(baseline) => json!({
            "type": "baseline",
            "factor": baseline.factor,
            "floor": baseline.floor,
            "history": duration_text(baseline.history_ms),
            "warmup": duration_text(baseline.warmup_ms),
            "for": duration_text(baseline.for_ms),
        }),
    };
    put(&mut value, "group-by", json!(group_by));
    put(&mut value, "timespan", json!(duration_text(rule.timespan_ms)));
    value
}

fn exception(exception: &Exception) -> Value {
    let mut value = json!({"reason": exception.reason});
    for (dimension, found) in &exception.fields {
        put(&mut value, dimension.as_str(), values(*dimension, found));
    }
    if let Some(until_ms) = exception.until_ms {
        put(&mut value, "until", json!(moment(until_ms)));
    }
    value
}

/// Returns a time in milliseconds since the epoch as RFC 3339 writes it.
fn moment(time_ms: i64) -> String {
    let nanoseconds = i128::from(time_ms) * 1_000_000;
    let moment = time::OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
    moment.and_then(|moment| moment.format(&time::format_description::well_known::Rfc3339).ok()).unwrap_or_default()
}
