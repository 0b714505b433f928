//! Holds every answer that the tests get against the OpenAPI document: the status has to be there, and the body has to be valid.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::client::Answer;

/// The document's place. Nothing is fetched from there.
const PLACE: &str = "https://tollgate.example/";

/// The document, with validators of bodies by path, method and status.
struct Document {
    text: Value,
    validators: Mutex<HashMap<String, &'static Validator>>,
}

fn published(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn document() -> &'static Document {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    DOCUMENT.get_or_init(|| Document { text: published("openapi.json"), validators: Mutex::default() })
}

/// Checks an answer to a request for a path that the document has.
pub fn check(method: &str, target: &str, answer: &Answer) {
    let document = document();
    let Some(template) = document.template(target.split('?').next().unwrap()) else { return };
    let operation = format!("/paths/{}/{}", template.replace('~', "~0").replace('/', "~1"), method.to_lowercase());
    // Another method than the path takes is refused as everywhere.
    let response = match document.text.pointer(&operation) {
        Some(_) => format!("{operation}/responses/{}", answer.status),
        None => format!("/components/responses/{}", answer.status),
    };
    let found = document.text.pointer(&response).unwrap_or_else(|| panic!("openapi.json lacks {response}: {answer:?}"));
    let response = found["$ref"].as_str().map_or(response.as_str(), |reference| reference.trim_start_matches('#'));
    let schema = format!("{response}/content/application~1json/schema");
    let body = answer.json();
    let errors: Vec<_> = document.validator(&schema).iter_errors(&body).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{schema}: {errors:?}\n{body}");
    let headers = &document.text.pointer(response).unwrap()["headers"];
    for name in headers.as_object().unwrap().keys() {
        assert!(answer.head.contains(&format!("\r\n{}: ", name.to_lowercase())), "{response}: no {name}: {answer:?}");
    }
}

impl Document {
    /// Returns the path of the document that a path of a request is.
    fn template(&self, path: &str) -> Option<&str> {
        let paths = self.text["paths"].as_object().unwrap().keys();
        // Paths with more fixed parts come first.
        let mut fitting: Vec<_> = paths.filter(|template| fits(template, path)).collect();
        fitting.sort_by_key(|template| template.matches('{').count());
        fitting.first().map(|template| template.as_str())
    }

    fn validator(&self, pointer: &str) -> &'static Validator {
        let mut validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        validators.entry(pointer.to_owned()).or_insert_with(|| {
            assert!(self.text.pointer(pointer).is_some(), "openapi.json lacks {pointer}");
            let mut registry = Registry::new();
            for name in ["openapi.json", "verdict.json", "event.json"] {
                registry = registry.add(format!("{PLACE}{name}"), published(name)).unwrap();
            }
            let registry = registry.prepare().unwrap();
            let pointer = pointer.replace('{', "%7B").replace('}', "%7D");
            let schema = json!({"$ref": format!("{PLACE}openapi.json#{pointer}")});
            Box::leak(Box::new(jsonschema::options().with_registry(&registry).build(&schema).expect("a schema")))
        })
    }
}

/// Returns whether a path is one of a template. What stands last in braces may have several segments.
fn fits(template: &str, path: &str) -> bool {
    let (fixed, place) = template.split_once('{').unwrap_or((template, ""));
    path.strip_prefix(fixed).is_some_and(|rest| rest.is_empty() == place.is_empty())
}

#[test]
fn every_path_of_the_document_is_answered() {
    let dev = crate::brokers::dev::Dev::start();
    let mut asked = 0;
    for (template, operations) in document().text["paths"].as_object().unwrap() {
        let path = template.replace("{host}", "codex").replace("{event}", "preToolUse").replace("{path}", "a/decision");
        let path = path.replace("{verdict_id}", "00000000000000000000000000000000");
        for method in operations.as_object().unwrap().keys() {
            let answer = if method == "get" { dev.client.get(&path) } else { dev.client.post(&path, &[], "{}") };
            assert_ne!(answer.status, 405, "{method} {path}");
            assert!(answer.status != 404 || answer.json()["code"] == "verdict_unknown", "{method} {path}: {answer:?}");
            asked += 1;
        }
    }
    assert!(asked >= 6, "{asked}");
}
