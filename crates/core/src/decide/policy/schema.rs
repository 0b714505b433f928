//! The part of the configuration's schema that decisions depend on, from what the readers of its sections take.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Registry;
use crate::settings::{Collector, Named, Notes, SchemaWriter, Section, put};

/// Sentences for people, by the paths of keys.
pub type Descriptions = BTreeMap<String, String>;

/// Configurations that together make the readers ask for every key: the two forms of a list of providers, the two of thresholds, and a
/// preset with rules.
fn forms() -> [Value; 4] {
    let provider = json!({"use": "allowlist"});
    [
        json!({"guardrails": {"provider": provider}}),
        json!({"guardrails": {"providers": [provider]}}),
        json!({"tool_loop_guardrails": {"warn_after": {}, "hard_stop_after": {}}}),
        json!({"tool_loop_guardrails": {"preset": "tollgate"}}),
    ]
}

/// Returns what the readers of all forms of a configuration take. `read` reads one of them.
pub fn notes_of(defaults: &Value, read: impl Fn(&Section<'_>)) -> Notes {
    let mut notes = Notes::default();
    for form in forms() {
        let collector = Collector::noting();
        read(&Section::root(&form, defaults, &collector));
        notes.extend(collector.into_notes());
    }
    // Which keys `config` has depends on `use`, and is said by the rules of `add_rules`.
    let is_chosen = |path: &str| path.contains("[].config.") || path.starts_with("guardrails.provider.config.");
    notes.accepted.retain(|path, _| !is_chosen(path));
    notes.required.retain(|path| !is_chosen(path));
    notes
}

/// Adds what `use` and `config` of detectors and providers may be, which depends on the registry.
pub fn add_rules(schema: &mut Value, registry: &Registry, descriptions: &Descriptions) {
    let detectors: Vec<_> = registry
        .detectors()
        .iter()
        .map(|detector| {
            (*detector as &dyn Named, config_of(descriptions, "safety_finish_reason.detectors[]", |config| drop((detector.read)(config))))
        })
        .collect();
    let providers: Vec<_> = registry
        .providers()
        .iter()
        .map(|provider| {
            (
                *provider as &dyn Named,
                config_of(descriptions, "guardrails.providers[]", |config| {
                    let (none, faults) = (Value::Null, Collector::default());
                    drop((provider.read)(config, &Section::root(&none, &none, &faults)));
                }),
            )
        })
        .collect();
    for (pointer, chosen) in [
        ("/properties/safety_finish_reason/properties/detectors/items", &detectors),
        ("/properties/guardrails/properties/providers/items", &providers),
        ("/properties/guardrails/properties/provider", &providers),
    ] {
        if let Some(entry) = schema.pointer_mut(pointer) {
            put_choice(entry, chosen);
        }
    }
}

/// Returns the schema of the `config` that a reader reads.
fn config_of(descriptions: &Descriptions, entry: &str, read: impl Fn(&Section<'_>)) -> Value {
    let (user, defaults, collector) = (json!({"config": {}}), json!({}), Collector::noting());
    {
        let root = Section::root(&user, &defaults, &collector);
        read(&root.section("config"));
    }
    let notes = collector.into_notes();
    let prefix = format!("{entry}.");
    let own = descriptions.iter().filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?.to_owned(), text.clone()))).collect();
    SchemaWriter { notes: &notes, defaults: &defaults, descriptions: &own }.section("config")
}

/// Says which names `use` may have, and which `config` each of them has.
fn put_choice(entry: &mut Value, chosen: &[(&dyn Named, Value)]) {
    let names = |named: &dyn Named| [named.name()].into_iter().chain(named.aliases().iter().copied()).collect::<Vec<_>>();
    let pattern = |names: &[&str]| format!("^(.*:)?({})$", names.join("|"));
    let all: Vec<_> = chosen.iter().flat_map(|(named, _)| names(*named)).collect();
    let known: Vec<_> = chosen.iter().map(|(named, _)| named.name()).collect();
    // The names are listed for editors, which complete them; the pattern lets the class paths of other systems through.
    let chosen_name = json!({"type": "string", "anyOf": [{"enum": known}, {"pattern": pattern(&all)}]});
    if let Some(name) = entry.pointer_mut("/properties/use") {
        let description = name.get("description").cloned();
        *name = chosen_name;
        if let Some(description) = description {
            put(name, "description", description);
        }
    }
    if let Some(config) = entry.pointer_mut("/properties/config").and_then(Value::as_object_mut) {
        config.retain(|name, _| name == "type" || name == "description");
    }
    put(entry, "required", json!(["use"]));
    let rule = |(named, config): &(&dyn Named, Value)| {
        let is_it = json!({"properties": {"use": {"type": "string", "pattern": pattern(&names(*named))}}, "required": ["use"]});
        let needs_config = config.get("required").is_some();
        json!({"if": is_it, "then": {"properties": {"config": config}, "required": if needs_config { vec!["config"] } else { vec![] }}})
    };
    put(entry, "allOf", chosen.iter().map(rule).collect());
}
