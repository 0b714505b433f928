//! What a test file expects of a verdict, and in which fields the verdict differs from it.

use std::sync::LazyLock;

use serde_json::{Map, Value};
use tollgate_core::decide::evaluate;
use tollgate_core::settings::{Section, shape};

use crate::commands::shared::suites::Difference;

/// The member that stands for the code of a record that cannot be read.
pub(super) const REJECTED: &str = "rejected";
/// The only member of a mapping that asks for a part of a text or for an element of a list.
const CONTAINS: &str = "contains";

/// The schema of verdicts: it names the fields that can be expected.
static SCHEMA: LazyLock<Value> = LazyLock::new(evaluate::schema);

/// What is expected of one step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    /// Nothing is said of it.
    Anything,
    /// There is no verdict, as on the boundary of a turn.
    Nothing,
    /// The verdict has these fields.
    Fields(Map<String, Value>),
}

impl Expected {
    /// Reads what a step expects.
    pub(super) fn read(step: &Section<'_>) -> Self {
        const FIX: &str = "write a mapping of verdict fields, or `none` where there is no verdict";
        match step.value("expect") {
            None if step.is_null("expect") => {
                step.fault("expect", "nothing", FIX);
                Self::Anything
            }
            None => Self::Anything,
            Some(Value::String(word)) if word == "none" => Self::Nothing,
            Some(Value::Object(fields)) if !fields.is_empty() => {
                let section = step.section("expect");
                section.pass_over(REJECTED);
                check(&section, fields, &SCHEMA);
                Self::Fields(fields.clone())
            }
            Some(other) => {
                step.fault("expect", if other.is_object() { "an empty mapping" } else { shape(other) }, FIX);
                Self::Anything
            }
        }
    }

    /// Returns whether it says anything.
    pub(super) fn is_anything(&self) -> bool {
        *self == Self::Anything
    }

    /// Returns whether it expects that the record cannot be read.
    pub(super) fn is_rejection(&self) -> bool {
        matches!(self, Self::Fields(fields) if fields.contains_key(REJECTED))
    }

    /// Returns every field in which what was got differs, in the order of the alphabet. `None` is no verdict.
    pub(super) fn differences(&self, got: Option<&Value>) -> Vec<Difference> {
        let mut differences = Vec::new();
        match (self, got) {
            (Self::Anything, _) | (Self::Nothing, None) => {}
            (Self::Nothing, Some(got)) => {
                for field in ["action", "code"] {
                    let got = got.get(field).map_or_else(String::new, Value::to_string);
                    differences.push(Difference { field: field.to_owned(), expected: "no verdict".to_owned(), got });
                }
            }
            (Self::Fields(fields), None) => {
                let missing = |(field, expected): (&String, &Value)| Difference {
                    field: field.clone(),
                    expected: expected.to_string(),
                    got: "no verdict".to_owned(),
                };
                differences.extend(fields.iter().map(missing));
            }
            (Self::Fields(fields), Some(got)) => compare_members("", fields, got, &mut differences),
        }
        differences
    }
}

/// Adds faults for fields that no verdict has, and for words that none of them can be.
fn check(section: &Section<'_>, fields: &Map<String, Value>, schema: &'static Value) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        section.pass_over(name);
        let Some(expected) = fields.get(name) else { continue };
        let words = property.get("enum").and_then(Value::as_array);
        if let Some(words) = words.filter(|words| expected.is_string() && !words.contains(expected)) {
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            section.fault(name, "another word", format!("write {}", words.join(" or ")));
        }
        if expected.get(CONTAINS).is_some_and(|part| part == "" || part.as_object().is_some_and(Map::is_empty)) {
            section.fault(name, "a part that everything contains", "write a text or fields, so that the case can fail");
        }
        let Some(below) = expected.as_object().filter(|below| !is_contains(below)) else {
            check_elements(section, name, expected, property);
            continue;
        };
        if property.get("properties").is_some() {
            check(&section.section(name), below, property);
        }
    }
}

/// Adds the faults of the mappings in a list.
fn check_elements(section: &Section<'_>, name: &'static str, expected: &Value, property: &'static Value) {
    let Some(schema) = property.get("items").filter(|items| items.get("properties").is_some()) else { return };
    if expected.is_array() {
        let elements = section.sections(name).into_iter().flatten();
        let mappings = expected.as_array().into_iter().flatten().filter_map(Value::as_object);
        elements.zip(mappings).for_each(|(element, fields)| check(&element, fields, schema));
    }
}

fn is_contains(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.contains_key(CONTAINS)
}

fn compare_members(path: &str, expected: &Map<String, Value>, got: &Value, differences: &mut Vec<Difference>) {
    for (name, expected) in expected {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        compare(&path, expected, got.get(name), differences);
    }
}

fn compare(path: &str, expected: &Value, got: Option<&Value>, differences: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(fields), _) if is_contains(fields) => {
            let part = fields.get(CONTAINS).unwrap_or(&Value::Null);
            if !got.is_some_and(|got| contains(got, part)) {
                differences.push(difference(path, format!("contains {part}"), got));
            }
        }
        (Value::Object(fields), Some(got @ Value::Object(_))) => compare_members(path, fields, got, differences),
        (Value::Array(expected), Some(Value::Array(got))) if expected.len() == got.len() => {
            for (place, (expected, got)) in expected.iter().zip(got).enumerate() {
                compare(&format!("{path}[{place}]"), expected, Some(got), differences);
            }
        }
        (Value::Null, None) => {}
        (expected, Some(got)) if is_equal(expected, got) => {}
        (expected, got) => differences.push(difference(path, expected.to_string(), got)),
    }
}

/// Returns whether a text holds a part, or a list an element with the fields that are asked for.
fn contains(got: &Value, part: &Value) -> bool {
    match (got, part) {
        (Value::String(got), Value::String(part)) => got.contains(part.as_str()),
        (Value::Array(got), part) => got.iter().any(|element| {
            let mut differences = Vec::new();
            compare("", part, Some(element), &mut differences);
            differences.is_empty()
        }),
        _ => false,
    }
}

/// Returns whether two values are equal. Numbers are by their value: YAML does not tell 2 from 2.0 as JSON does.
fn is_equal(expected: &Value, got: &Value) -> bool {
    expected == got || expected.as_f64().is_some_and(|expected| got.as_f64() == Some(expected))
}

fn difference(path: &str, expected: String, got: Option<&Value>) -> Difference {
    let expected = if expected == "null" { "absent".to_owned() } else { expected };
    Difference { field: path.to_owned(), expected, got: got.map_or_else(|| "absent".to_owned(), Value::to_string) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(expected: Value, got: Value) -> Vec<String> {
        let Value::Object(fields) = expected else { panic!("{expected} is no mapping") };
        let differences = Expected::Fields(fields).differences(Some(&got));
        differences.into_iter().map(|Difference { field, expected, got }| format!("{field}: {expected} | {got}")).collect()
    }

    #[test]
    fn only_what_is_expected_is_compared() {
        let got =
            json!({"action": "block", "count": 2, "reasons": [{"code": "a", "message": "m n"}, {"code": "b"}], "safety": {"x": 1, "y": 2}});
        for expected in [
            json!({"action": "block"}),
            json!({"count": 2.0, "turn_id": null}),
            json!({"reasons": [{"code": "a"}, {}]}),
            json!({"reasons": {"contains": {"code": "b"}}}),
            json!({"reasons": [{"message": {"contains": "n"}}, {"code": "b"}], "safety": {"y": 2}}),
        ] {
            assert_eq!(differences(expected, got.clone()), Vec::<String>::new());
        }
        for (expected, found) in [
            (json!({"action": "allow", "count": 2}), r#"action: "allow" | "block""#),
            (json!({"guidance": "g"}), r#"guidance: "g" | absent"#),
            (json!({"count": null}), "count: absent | 2"),
            (json!({"count": "2"}), r#"count: "2" | 2"#),
            (json!({"reasons": [{}, {"code": "c"}]}), r#"reasons[1].code: "c" | "b""#),
            (json!({"reasons": [{}]}), r#"reasons: [{}] | [{"code":"a","message":"m n"},{"code":"b"}]"#),
            (
                json!({"reasons": {"contains": {"code": "c"}}}),
                r#"reasons: contains {"code":"c"} | [{"code":"a","message":"m n"},{"code":"b"}]"#,
            ),
            (json!({"safety": {"y": 3}}), "safety.y: 3 | 2"),
            (json!({"action": {"contains": "x"}}), r#"action: contains "x" | "block""#),
        ] {
            assert_eq!(differences(expected, got.clone()), [found]);
        }
    }

    #[test]
    fn no_verdict_differs_from_any() {
        assert_eq!(Expected::Nothing.differences(None), []);
        assert_eq!(Expected::Nothing.differences(Some(&json!({"action": "allow", "code": "allow"}))).len(), 2);
        assert_eq!(Expected::Fields(Map::from_iter([("action".to_owned(), json!("allow"))])).differences(None).len(), 1);
    }
}
