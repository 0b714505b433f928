//! Checks that every key of the defaults can be set by the environment. The keys are read from the file itself, so that a new one is tried
//! too.

use std::ffi::OsString;
use std::path::Path;

use super::*;
use tollgate_config::load;
use tollgate_core::decide::policy::Registry;
use tollgate_core::settings::{REDACTED, defaults};

/// Guardrails are switched on, so that what is set there can be seen, and there are rules to take away.
const FILE: &str = "guardrails: {enabled: true, provider: {use: oap_passport}}
serve: {tokens: t, tls: {certificate_file: a, key_file: b, client_ca_file: c}}
abuse:
  rules:
    - {id: a, detection: {signal: denial}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 5}}}
    - {id: b, detection: {signal: denial}, correlation: {type: event_count, group-by: [user], timespan: 1h, condition: {gte: 9}}}";

/// A place in the configuration: keys, and numbers for elements of lists.
type Place = Vec<String>;

fn variable(place: &Place) -> String {
    format!("TOLLGATE__{}", place.join("__").to_uppercase())
}

fn at<'v>(value: &'v Value, place: &Place) -> &'v Value {
    place.iter().fold(value, |value, part| match value {
        Value::Array(items) => part.parse().ok().and_then(|index: usize| items.get(index)).unwrap_or(&Value::Null),
        _ => value.get(part).unwrap_or(&Value::Null),
    })
}

fn below(place: &Place, part: impl ToString) -> Place {
    place.iter().cloned().chain([part.to_string()]).collect()
}

/// Collects every key: mappings and lists themselves, what stands in them, and one element of each list of strings.
fn places(value: &Value, place: &Place, found: &mut Vec<Place>) {
    if !place.is_empty() {
        found.push(place.clone());
    }
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, &below(place, key), found)),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().enumerate().for_each(|(index, item)| places(item, &below(place, index), found));
        }
        Value::Array(_) => found.push(below(place, 0)),
        _ => {}
    }
}

/// Returns the effective settings under these variables, or what is wrong.
fn effective_under(file: &Path, variables: &[(String, String)]) -> Result<Value, String> {
    let variables = variables.iter().map(|(name, text)| (OsString::from(name), OsString::from(text)));
    load(Some(file), variables).map(|settings| settings.redacted(tollgate_worker::kafka::is_property)).map_err(|error| error.to_string())
}

/// Returns texts to try on a key that holds `now`, and what should stand there then. For a string it is the text as it is.
fn candidates(now: &Value) -> Vec<(String, Value)> {
    let same = |text: &str| (text.to_owned(), Value::from(text));
    // These are the registered names, without the class paths of other systems that stand for them.
    let registry = Registry::builtin();
    let names = || registry.names().filter(|name| !name.contains(char::is_uppercase));
    let words = |first: &'static str| {
        [first, "json", "enforce", "suppress", "127.0.0.1:9", "http://127.0.0.1:9/v1"]
            .into_iter()
            .chain(names())
            .map(same)
            .collect::<Vec<_>>()
    };
    match now {
        Value::Bool(is_on) => vec![((!is_on).to_string(), json!(!is_on))],
        // A warning may not come behind its stop, nor a share be above the whole.
        Value::Number(number) => {
            let number = number.as_u64().unwrap();
            [number + 1, number.saturating_sub(1)].map(|number| (number.to_string(), json!(number))).to_vec()
        }
        Value::String(_) => words("0123"),
        // A string takes the word `true`. A number does not, nor does a list that is not shown while it is empty: they are tried last.
        Value::Null => {
            words("true").into_iter().chain([("7".to_owned(), json!(7)), ("[\"1\", b]".to_owned(), json!(["1", "b"]))]).collect()
        }
        Value::Array(items) if items.iter().any(Value::is_object) => vec![(json!(items[1..]).to_string(), json!(items[1..]))],
        // One list takes the names of rules alone.
        Value::Array(_) => ["[\"1\", b]", "[openai_refusal]"]
            .into_iter()
            .zip([json!(["1", "b"]), json!(["openai_refusal"])])
            .map(|(text, list)| (text.to_owned(), list))
            .collect(),
        Value::Object(map) if map.is_empty() => [json!({"client.rack": "c"}), json!({"safety-stop-user": {"threshold": 7}})]
            .map(|entries| (entries.to_string(), entries))
            .to_vec(),
        Value::Object(_) => vec![(now.to_string(), now.clone())],
    }
}

/// Returns whether a key has this value now. Sets are printed in their own order, and secrets not at all.
fn is_there(settings: &Value, place: &Place, expected: &Value) -> bool {
    let parent = at(settings, &place[..place.len() - 1].to_vec());
    let is_element = parent.as_array().is_some_and(|items| !items[0].is_object());
    let value = at(settings, place);
    let is_hidden = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(|item| item == REDACTED));
    value == expected || value == REDACTED || is_hidden(value) || (is_element && parent.as_array().unwrap().contains(expected))
}

#[test]
fn every_key_of_the_defaults_can_be_set() {
    let file = temporary(FILE);
    let base = effective_under(file.path(), &[]).unwrap();
    let mut keys = Vec::new();
    places(&defaults().unwrap(), &Vec::new(), &mut keys);
    assert!(keys.len() > 60, "only {} keys", keys.len());
    let check = |place: &Place| {
        let name = variable(place);
        let now = at(&base, place);
        let mut refused = Vec::new();
        let is_set = candidates(now).into_iter().filter(|(_, expected)| expected != now || now.is_object()).any(|(text, expected)| {
            let held = temporary(&format!("{text}\n"));
            // Another detector does not understand the configuration of the one before it.
            let beside = place.ends_with(&["use".to_owned()]).then(|| (name.replace("__USE", "__CONFIG"), "null".to_owned()));
            let direct = (name.clone(), text);
            let by_file = (format!("{name}_FILE"), held.path().display().to_string());
            let [direct, by_file] = [direct, by_file]
                .map(|variable| effective_under(file.path(), &beside.iter().cloned().chain([variable]).collect::<Vec<_>>()));
            assert_eq!(direct.as_ref().ok(), by_file.as_ref().ok(), "{name}_FILE means something else");
            match direct {
                Ok(settings) if is_there(&settings, place, &expected) => true,
                Ok(settings) => panic!("{name}: {} instead of {expected}", at(&settings, place)),
                Err(error) => {
                    refused.push(error);
                    false
                }
            }
        });
        assert!(is_set, "{name} takes nothing: {refused:?}");
    };
    check_each(keys, variable, check);
}

/// A string is taken as it stands, whatever YAML would make of it.
#[test]
fn texts_that_look_like_something_else() {
    let name = "TOLLGATE__PRIVACY__SUBJECT_KEY";
    for text in ["true", "0123", "1e3", "~", "[a", "{a: b}", "a #b", " x ", "'quoted'", "- a", "a: b", "&x", "a\nb: c", "2026-01-01"] {
        let settings = load(None, [(OsString::from(name), OsString::from(text))]).unwrap();
        assert_eq!(settings.subject_keys.iter().collect::<Vec<_>>(), [text]);
        let property = ("TOLLGATE__KAFKA__PROPERTIES__SASL_PASSWORD", text);
        let settings = load(None, [property].map(|(name, text)| (OsString::from(name), OsString::from(text)))).unwrap();
        assert_eq!(settings.kafka.properties["sasl.password"], text);
    }
    // `null` is nothing; a file says what it says.
    assert_eq!(load(None, [(OsString::from(name), OsString::from("null"))]).unwrap().subject_keys.first(), None);
    let file = temporary("null\n");
    let held = load(None, [(OsString::from(format!("{name}_FILE")), file.path().as_os_str().to_owned())]);
    assert_eq!(held.unwrap().subject_keys.first(), Some("null"));
}
