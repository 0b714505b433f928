//! The JSON Schema of a configuration, from the notes on what its readers take.

use serde_json::{Map, Value, json};

use super::{Accepted, DURATION_PATTERN, Notes};

/// Makes the schema of a configuration.
#[derive(Debug)]
pub struct SchemaWriter<'n> {
    /// What is read.
    pub notes: &'n Notes,
    /// The built-in defaults.
    pub defaults: &'n Value,
    /// Sentences for people, by path.
    pub descriptions: &'n std::collections::BTreeMap<String, String>,
}

impl SchemaWriter<'_> {
    /// Returns the schema of the section at a path, without what is outside of it. The path of the whole configuration is empty.
    #[must_use]
    pub fn section(&self, path: &str) -> Value {
        let child = |key: &'_ &String| is_child(path, key);
        let mut properties = Map::new();
        for key in self.notes.accepted.keys().filter(child) {
            let name = key.rsplit('.').next().unwrap_or_default();
            properties.insert(name.to_owned(), self.key(key));
        }
        let required: Vec<_> = self.notes.required.iter().filter(child).filter_map(|key| key.rsplit('.').next()).collect();
        let mut schema = json!({"type": ["object", "null"], "properties": properties, "additionalProperties": false});
        if !required.is_empty() {
            put(&mut schema, "required", json!(required));
        }
        schema
    }

    fn key(&self, path: &str) -> Value {
        let accepted = self.notes.accepted.get(path).unwrap_or(&Accepted::Anything);
        let mut schema = match accepted {
            Accepted::Anything => json!({}),
            Accepted::Section => self.section(path),
            Accepted::Sections => json!({"type": ["array", "null"], "items": self.element(path)}),
            Accepted::Flag => json!({"type": ["boolean", "null"]}),
            Accepted::Whole(least, most) => json!({"type": ["integer", "null"], "minimum": least, "maximum": most}),
            Accepted::Fraction(most) => json!({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": most}),
            Accepted::Amount(most) => json!({"type": ["integer", "null"], "minimum": 1, "maximum": most}),
            Accepted::Duration => json!({"type": ["string", "null"], "pattern": DURATION_PATTERN}),
            Accepted::Text => json!({"type": ["string", "null"], "minLength": 1}),
            Accepted::Word(words) => json!({"enum": words.iter().map(|word| json!(word)).chain([Value::Null]).collect::<Vec<_>>()}),
            Accepted::Texts => json!({"type": ["array", "null"], "items": {"type": "string"}}),
            Accepted::Mapping => {
                json!({"type": ["object", "null"], "additionalProperties": {"type": ["string", "number", "boolean", "null"]}})
            }
        };
        if let Some(description) = self.descriptions.get(path) {
            put(&mut schema, "description", json!(description));
        }
        let default = path.split('.').try_fold(self.defaults, |value, name| value.get(name));
        if let Some(default) = default.filter(|default| !default.is_object()) {
            put(&mut schema, "default", default.clone());
        }
        schema
    }

    /// Returns the schema of an element of a list of sections: a mapping, which is not null.
    fn element(&self, path: &str) -> Value {
        let mut element = self.section(&format!("{path}[]"));
        put(&mut element, "type", json!("object"));
        element
    }
}

/// Sets a member of a schema.
pub fn put(schema: &mut Value, name: &str, value: Value) {
    if let Some(members) = schema.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

fn is_child(path: &str, key: &str) -> bool {
    let rest = if path.is_empty() { Some(key) } else { key.strip_prefix(path).and_then(|rest| rest.strip_prefix('.')) };
    rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('.') && !rest.ends_with("[]"))
}
