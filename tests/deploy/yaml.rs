//! Reads YAML into JSON values, with merge keys put in.

use serde_json::{Map, Value};
use yaml_rust2::{Yaml, YamlLoader};

/// Reads a file that holds one document.
pub fn file(path: &str) -> Value {
    let documents = YamlLoader::load_from_str(&super::read(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let [document] = &documents[..] else { panic!("{path}: {} documents", documents.len()) };
    json(document)
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Boolean(value) => Value::from(*value),
        Yaml::Integer(value) => Value::from(*value),
        Yaml::Real(value) => Value::from(value.parse::<f64>().unwrap()),
        Yaml::String(value) => Value::from(value.as_str()),
        Yaml::Array(values) => values.iter().map(json).collect(),
        Yaml::Hash(entries) => {
            let mut merged = Map::new();
            let is_merge = |key: &Yaml| key.as_str() == Some("<<");
            for (_, value) in entries.iter().filter(|(key, _)| is_merge(key)) {
                merged.extend(json(value).as_object().expect("a mapping below <<").clone());
            }
            for (key, value) in entries.iter().filter(|(key, _)| !is_merge(key)) {
                merged.insert(key.as_str().expect("keys are strings").to_owned(), json(value));
            }
            Value::Object(merged)
        }
        Yaml::Alias(_) | Yaml::BadValue => panic!("YAML that this test does not read: {yaml:?}"),
    }
}

/// Puts the defaults of `${NAME:-default}` into all strings, as compose does where the environment has no such variable.
pub fn with_defaults(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(without_variables(&text)),
        Value::Array(values) => values.into_iter().map(with_defaults).collect(),
        Value::Object(entries) => entries.into_iter().map(|(key, value)| (key, with_defaults(value))).collect::<Map<_, _>>().into(),
        value => value,
    }
}

fn without_variables(text: &str) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let (variable, after) = rest.split_once('}').expect("a closing brace");
    let (_, default) = variable.split_once(":-").unwrap_or_else(|| panic!("{text}: a variable without a default"));
    format!("{before}{default}{}", without_variables(after))
}

#[test]
fn merges_and_defaults_are_put_in() {
    let documents = YamlLoader::load_from_str("a: &a {x: 1, y: \"${T:-t}/${U:-}\"}\nb: {<<: *a, x: 2}").unwrap();
    let read = json(&documents[0]);
    assert_eq!(read["b"], serde_json::json!({"x": 2, "y": "${T:-t}/${U:-}"}));
    assert_eq!(with_defaults(read)["b"], serde_json::json!({"x": 2, "y": "t/"}));
}
