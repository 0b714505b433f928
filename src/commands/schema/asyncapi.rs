//! The AsyncAPI 3 document of the topics: what a program that is no Tollgate may write to them and read from them.

use serde_json::{Map, Value, json};

use tollgate_config::topics::{Party, TOPICS, TopicSpec};

/// Returns the document. Payloads are the JSON Schemas that `tollgate schema` prints, which stand beside it.
pub(super) fn document() -> Value {
    let public = || TOPICS.iter().copied().filter(|spec| is_public(spec));
    let channels: Map<_, _> = public().map(|spec| (spec.key.to_owned(), channel(spec))).collect();
    let operations: Map<_, _> = public().flat_map(operations).collect();
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The topics of Tollgate, from the side of Tollgate: it receives events and controls, and sends verdicts, dead \
                letters and alerts. The configuration gives each topic its name; the addresses here are the defaults. Every producer uses \
                the murmur2 partitioner, so that a thread stays on one partition.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
    })
}

/// Returns whether anybody but Tollgate's own workers has to do with the topic.
fn is_public(spec: &TopicSpec) -> bool {
    spec.record_key != "internal"
}

fn channel(spec: &TopicSpec) -> Value {
    json!({
        "address": spec.default_name,
        "description": spec.what,
        "messages": {"record": message(spec)},
        "bindings": {"kafka": {"bindingVersion": "0.5.0"}},
    })
}

fn message(spec: &TopicSpec) -> Value {
    let schema =
        payload(spec.key).map(|file| json!({"schemaFormat": "application/schema+json;version=draft-07", "schema": {"$ref": file}}));
    let key = json!({"type": "string", "description": spec.record_key});
    let members = [
        ("summary", Some(json!(spec.what))),
        ("bindings", Some(json!({"kafka": {"key": key, "bindingVersion": "0.5.0"}}))),
        ("payload", schema),
    ];
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns the file of the schema of a topic's records, where there is a schema.
fn payload(key: &str) -> Option<&'static str> {
    match key {
        "events" => Some("event.json"),
        "decisions" | "replies" => Some("verdict.json"),
        "controls" => Some("control.json"),
        _ => None,
    }
}

/// Returns what Tollgate does with a topic, by the names of the operations.
fn operations(spec: &TopicSpec) -> Vec<(String, Value)> {
    let is_ours = |parties: &[Party]| parties.contains(&Party::Workers);
    let operation = |action: &str| {
        let channel = format!("#/channels/{}", spec.key);
        let messages = json!([{"$ref": format!("{channel}/messages/record")}]);
        (format!("{action}_{}", spec.key), json!({"action": action, "channel": {"$ref": channel}, "messages": messages}))
    };
    let sends = is_ours(spec.written_by).then(|| operation("send"));
    let receives = is_ours(spec.read_by).then(|| operation("receive"));
    sends.into_iter().chain(receives).collect()
}
