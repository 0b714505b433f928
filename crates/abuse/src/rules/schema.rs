//! The part of the configuration's schema that says what a rule may be, from what the readers take and the closed sets of names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use tollgate_core::decide::controls::SubjectHasher;
use tollgate_core::decide::signal::{Dimension, KeyKind, SignalKind, TEXT_BYTES_MAX};
use tollgate_core::settings::{Collector, DURATION_PATTERN, Notes, SchemaWriter, Section, put};

use super::Operator;
use super::fields::values_of;
use super::read_correlation::TYPES;
use super::read_rule::{RULE_ID_BYTES_MAX, Reading, STEPS_MAX};
use super::read_values::VALUES_MAX;
use super::settings::{RULES_MAX, read_rules};

/// Where the rules stand in the schema of the configuration, and in the paths of its descriptions.
const POINTER: &str = "/properties/abuse/properties/rules";
const OVERRIDES_POINTER: &str = "/properties/abuse/properties/overrides/properties";
const SECTION: &str = "abuse.";
const RULE: &str = "rules[]";

/// Adds what an element of `abuse.rules` may be to the schema of the configuration. `descriptions` are sentences for people, by the paths
/// of keys.
pub fn add_abuse_rules(schema: &mut Value, descriptions: &BTreeMap<String, String>) {
    let own = descriptions.iter().filter_map(|(path, text)| Some((path.strip_prefix(SECTION)?.to_owned(), text.clone()))).collect();
    if let Some(rules) = schema.pointer_mut(POINTER) {
        put(rules, "maxItems", json!(RULES_MAX));
        put(rules, "items", rule(&own));
    }
    if let Some(overrides) = schema.pointer_mut(OVERRIDES_POINTER).and_then(Value::as_object_mut) {
        overrides.iter_mut().for_each(|(id, of_rule)| describe_override(id, of_rule, &own));
    }
}

/// Adds sentences for people to what the override of a rule may be. The descriptions have each key of an override once, of any rule.
fn describe_override(id: &str, of_rule: &mut Value, descriptions: &BTreeMap<String, String>) {
    put(of_rule, "description", json!(format!("what is changed of the pack's rule {id}")));
    for (key, property) in of_rule.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let is_of = |path: &str| path.strip_prefix("overrides.").is_some_and(|rest| rest.split('.').nth(1) == Some(key));
        if let Some((_, text)) = descriptions.iter().find(|(path, _)| is_of(path)) {
            put(property, "description", json!(text));
        }
    }
}

fn rule(descriptions: &BTreeMap<String, String>) -> Value {
    let each: Vec<_> = TYPES.iter().map(|(name, _)| (*name, notes_of(name))).collect();
    let mut all = Notes::default();
    each.iter().for_each(|(_, notes)| all.extend(notes.clone()));
    let section = |notes: &Notes, path: &str| SchemaWriter { notes, defaults: &Value::Null, descriptions }.section(path);
    let mut rule = section(&all, RULE);
    put(&mut rule, "type", json!("object"));
    put(&mut rule, "required", json!(["id", "detection", "correlation"]));
    let describe = |path: &str| descriptions.get(&format!("{RULE}.{path}")).cloned().unwrap_or_default();
    if let Some(id) = rule.pointer_mut("/properties/id") {
        put(id, "pattern", json!("^[A-Za-z0-9._-]+$"));
        put(id, "maxLength", json!(RULE_ID_BYTES_MAX));
    }
    if let Some(detection) = rule.pointer_mut("/properties/detection") {
        *detection = detection_schema(&describe("detection"), &describe("detection.signal"));
    }
    if let Some(steps) = rule.pointer_mut("/properties/escalation/properties/steps") {
        let pattern = format!("^(warn|{})$", DURATION_PATTERN.trim_matches(['^', '$']));
        put(steps, "items", json!({"type": "string", "pattern": pattern}));
        put(steps, "maxItems", json!(STEPS_MAX));
    }
    for dimension in Dimension::ALL {
        if let Some(field) = rule.pointer_mut(&format!("/properties/exceptions/items/properties/{}", dimension.as_str())) {
            *field = field_schema(dimension, Operator::Equals);
        }
    }
    if let Some(reason) = rule.pointer_mut("/properties/exceptions/items") {
        put(reason, "required", json!(["reason"]));
    }
    if let Some(correlation) = rule.pointer_mut("/properties/correlation") {
        refine_correlation(correlation);
        let rules: Vec<_> = each.iter().map(|(name, notes)| of_type(name, section(notes, &format!("{RULE}.correlation")))).collect();
        put(correlation, "allOf", json!(rules));
    }
    rule
}

/// Returns what the readers take of a rule of a type.
fn notes_of(name: &str) -> Notes {
    // Amounts have no fields, so that a rule over denials is the one whose exceptions can name all of them.
    let user = json!({"rules": [{"detection": {"signal": "denial"}, "correlation": {"type": name}, "exceptions": [{}]}]});
    let (none, collector) = (Value::Null, Collector::noting());
    read_rules(&Section::root(&user, &none, &collector), Reading { hasher: &SubjectHasher::new(None), now_ms: i64::MIN });
    collector.into_notes()
}

/// Leaves to the types what a key holds, and says what the keys of all types hold.
fn refine_correlation(correlation: &mut Value) {
    let names: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
    let mut group_by: Vec<_> = KeyKind::ALL.iter().map(|kind| kind.as_str()).collect();
    for dimension in Dimension::ALL {
        // Kinds of subjects are dimensions too, and no value may stand in an enumeration twice.
        if !group_by.contains(&dimension.as_str()) {
            group_by.push(dimension.as_str());
        }
    }
    for (key, property) in correlation.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let description = property.get("description").cloned().unwrap_or_default();
        match key.as_str() {
            "type" => *property = json!({"enum": names}),
            "group-by" => *property = json!({"type": "array", "minItems": 1, "items": {"enum": group_by}}),
            "timespan" => {}
            _ => *property = json!({}),
        }
        put(property, "description", description);
    }
    put(correlation, "type", json!("object"));
    put(correlation, "required", json!(["type", "group-by", "timespan"]));
}

/// Returns the rule that a type has these keys and no others.
fn of_type(name: &str, mut section: Value) -> Value {
    let required: &[&str] = match name {
        "ratio" => &["condition", "over", "min"],
        "baseline" => &["factor", "floor"],
        _ => &["condition"],
    };
    let in_condition: &[&str] = if name == "value_count" { &["gte", "field"] } else { &["gte"] };
    if let Some(properties) = section.get_mut("properties").and_then(Value::as_object_mut) {
        for shared in ["type", "group-by", "timespan"] {
            properties.insert(shared.to_owned(), json!(true));
        }
        if let Some(condition) = properties.get_mut("condition") {
            put(condition, "type", json!("object"));
            put(condition, "required", json!(in_condition));
        }
    }
    put(&mut section, "type", json!("object"));
    put(&mut section, "required", json!(required));
    json!({"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": section})
}

fn detection_schema(description: &str, of_signal: &str) -> Value {
    let mut properties = Map::new();
    let signals: Vec<_> = SignalKind::names().collect();
    properties.insert("signal".to_owned(), json!({"enum": signals, "description": of_signal}));
    for dimension in Dimension::ALL {
        let name = dimension.as_str();
        properties.insert(name.to_owned(), field_schema(dimension, Operator::Equals));
        let is_text = dimension.subject().is_none() && dimension != Dimension::ArgsHash;
        for operator in [Operator::StartsWith, Operator::EndsWith, Operator::Contains].iter().filter(|_| is_text) {
            properties.insert(format!("{name}|{}", operator.as_str()), field_schema(dimension, *operator));
        }
    }
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": false,
        "required": ["signal"],
    })
}

/// Returns the schema of the values of a field: one, or a list of which any will do.
fn field_schema(dimension: Dimension, operator: Operator) -> Value {
    let value = match (dimension.subject(), dimension) {
        (Some(_), _) => json!({"type": "string", "pattern": "^(id:.+|hash:[0-9a-f]{64})$"}),
        (None, Dimension::ArgsHash) => json!({"type": "string", "pattern": "^(hash:)?[0-9a-f]{64}$"}),
        _ => match values_of(dimension).filter(|_| operator == Operator::Equals) {
            Some(known) => json!({"enum": known}),
            None => json!({"type": "string", "minLength": 1, "maxLength": TEXT_BYTES_MAX, "pattern": "^[^*?]*$"}),
        },
    };
    let what = match dimension {
        Dimension::User => "The user: `id:` and the id within the tenant beside it, or `hash:` and the hash.",
        Dimension::Tenant => "The tenant: `id:` and the id, or `hash:` and the hash.",
        Dimension::Agent => "The agent: `id:` and the id within the tenant beside it, or `hash:` and the hash.",
        Dimension::Thread => "The thread: `id:` and the id within the tenant beside it, or `hash:` and the hash.",
        Dimension::Tool => "The tool that was called.",
        Dimension::Code => "The verdict's code.",
        Dimension::ArgsHash => "The digest of the call's arguments.",
        Dimension::Category => "The category of a safety stop.",
        Dimension::Stage => "Whether a safety stop was about the input or the output.",
        Dimension::Provider => "The model provider, as the event names it.",
        Dimension::Detector => "The safety detector that saw the stop.",
    };
    let list = json!({"type": "array", "minItems": 1, "maxItems": VALUES_MAX, "items": value});
    json!({"description": what, "anyOf": [value, list]})
}
