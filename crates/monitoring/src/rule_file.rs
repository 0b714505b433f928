//! The rules as Prometheus reads them: YAML.

use yaml_rust2::yaml::Hash;
use yaml_rust2::{Yaml, YamlEmitter};

use crate::rules::{Alert, Group, Recording, groups};
use crate::runbook::url;

const HEAD: &str = "\
# Prometheus' rules for Tollgate. Written from crates/monitoring: `UPDATE_DOCS=1 cargo test -p tollgate-monitoring` writes them anew.
# docs/runbook.md says what to do when an alert fires. Put the place where you keep it in for https://example.org/tollgate/docs/runbook.md.
";

/// Returns the text of the rule file.
#[must_use]
pub fn text() -> String {
    let file = mapping([("groups", Yaml::Array(groups().iter().map(group).collect()))]);
    let mut text = String::new();
    let mut emitter = YamlEmitter::new(&mut text);
    emitter.multiline_strings(true);
    // Writing to memory fails only for values that these are none of.
    let _infallible = emitter.dump(&file);
    let body = text.strip_prefix("---\n").unwrap_or(&text);
    format!("{HEAD}{body}\n")
}

fn mapping<'k>(entries: impl IntoIterator<Item = (&'k str, Yaml)>) -> Yaml {
    Yaml::Hash(entries.into_iter().map(|(key, value)| (string(key), value)).collect::<Hash>())
}

fn string(text: &str) -> Yaml {
    Yaml::String(text.to_owned())
}

fn group(group: &Group) -> Yaml {
    let rules = group.recordings.iter().map(recording).chain(group.alerts.iter().map(alert));
    mapping([("name", string(group.name)), ("rules", Yaml::Array(rules.collect()))])
}

fn recording(recording: &Recording) -> Yaml {
    mapping([("record", string(&recording.name)), ("expr", string(&recording.expression))])
}

fn alert(alert: &Alert) -> Yaml {
    let labels = mapping([("severity", string(alert.severity.as_str()))]);
    let annotations =
        mapping([("summary", string(alert.summary)), ("description", string(alert.description)), ("runbook_url", string(&url(alert)))]);
    mapping([
        ("alert", string(alert.name)),
        ("expr", string(&alert.expression)),
        ("for", string(alert.holds)),
        ("labels", labels),
        ("annotations", annotations),
    ])
}
