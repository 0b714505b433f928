//! The JSON Schema of the configuration: the keys and values are those that the readers take, the defaults are `config/tollgate.yaml`, and
//! the sentences are the comments of `config/example.yaml`.

use serde_json::{Value, json};

use super::Settings;
use tollgate_abuse::add_abuse_rules;
use tollgate_core::decide::policy::{Descriptions, Registry, add_rules, notes_of};
use tollgate_core::decide::ruling::Rule;
use tollgate_core::settings::{Notes, SchemaWriter, put};

/// The annotated configuration.
const EXAMPLE: &str = include_str!("../../../../config/example.yaml");

impl Settings {
    /// Returns what is read of a configuration, over these defaults. What `config` of detectors and providers may hold is left out.
    #[must_use]
    pub fn notes(defaults: &Value) -> Notes {
        notes_of(defaults, |root| drop(Self::read_sections(root, i64::MIN)))
    }

    /// Returns the JSON Schema of the configuration, over these defaults.
    #[must_use]
    pub fn schema(defaults: &Value) -> Value {
        let notes = Self::notes(defaults);
        let descriptions = descriptions(EXAMPLE);
        let mut schema = SchemaWriter { notes: &notes, defaults, descriptions: &descriptions }.section("");
        add_rules(&mut schema, &Registry::builtin(), &descriptions);
        add_abuse_rules(&mut schema, &descriptions);
        put(&mut schema, "$schema", json!("http://json-schema.org/draft-07/schema#"));
        put(&mut schema, "title", json!("Tollgate's configuration"));
        schema
    }
}

/// Returns the comments of an annotated configuration, by the paths of their keys: what stands behind a key on its line, or before it on
/// lines of its own.
fn descriptions(annotated: &str) -> Descriptions {
    let mut found = Descriptions::new();
    // The names of the mappings that are open, each with its indentation.
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut before = String::new();
    for line in annotated.lines() {
        let text = line.trim_start();
        let indentation = line.len() - text.len();
        // A key may be commented out.
        let unused = text.strip_prefix("# ").filter(|unused| unused.contains(" # ") && key_of(unused.trim_start()).is_some());
        if let (None, Some(comment)) = (unused, text.strip_prefix("# ")) {
            before = if before.is_empty() { comment.to_owned() } else { format!("{before} {comment}") };
            continue;
        }
        let comment = std::mem::take(&mut before);
        let indentation = indentation + unused.map_or(0, |unused| unused.len() - unused.trim_start().len());
        let text = unused.unwrap_or(text).trim_start();
        // The first key of an element stands behind its dash.
        let (text, indentation, is_element) = match text.strip_prefix("- ") {
            Some(first) => (first, indentation + 2, true),
            None => (text, indentation, false),
        };
        let Some((key, rest)) = key_of(text) else { continue };
        open.retain(|(outer, _)| *outer < indentation);
        if is_element && let Some((_, list)) = open.last_mut().filter(|(_, list)| !list.ends_with("[]")) {
            list.push_str("[]");
        }
        open.push((indentation, key.to_owned()));
        let path = open.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(".");
        let behind = rest.split_once(" # ").map(|(_, behind)| behind.trim().to_owned());
        let text = behind.unwrap_or(comment);
        if !text.is_empty() {
            found.entry(path).or_insert(text);
        }
    }
    // The one provider is described as one of the list.
    let of_list = |(path, text): (&String, &String)| {
        Some((format!("guardrails.provider.{}", path.strip_prefix("guardrails.providers[].")?), text.clone()))
    };
    let single: Vec<_> = found.iter().filter_map(of_list).collect();
    found.extend(single);
    // The thresholds of a rule are described as those of the first rule.
    for rule in Rule::ALL {
        for key in ["warn_after", "deny_after", "halt_after"] {
            let [first, own] = [Rule::SameResult, *rule].map(|rule| format!("tool_loop_guardrails.rules.{}.{key}", rule.name()));
            let text = found.get(&first).cloned();
            found.extend(text.map(|text| (own, text)));
        }
    }
    found
}

/// Returns the key of a line, and what stands behind it.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '-');
    text.split_once(':').filter(|(key, _)| key.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_belong_to_the_keys_of_their_lines() {
        let text = "# The first.\n# And more.\na: 1\nb: # of b\n  c: x # of c\n  list: # of list\n    - use: y # of use\n      config:\n        d: 1 # of d\n    - use: z\n      e: 2 # of e\n  # f: # of f\n  #   h: 1 # of h\n\n# not of g\n\ng: 1 # of g\n";
        let found = descriptions(text);
        let found: Vec<_> = found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(
            found,
            [
                ("a", "The first. And more."),
                ("b", "of b"),
                ("b.c", "of c"),
                ("b.f", "of f"),
                ("b.f.h", "of h"),
                ("b.list", "of list"),
                ("b.list[].config.d", "of d"),
                ("b.list[].e", "of e"),
                ("b.list[].use", "of use"),
                ("g", "of g"),
            ]
        );
    }
}
