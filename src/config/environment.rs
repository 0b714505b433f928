//! `TOLLGATE__SECTION__KEY` variables, and `…_FILE` variables that name a file with a secret.

use std::ffi::OsString;

use serde_json::{Map, Value};

use super::{ConfigError, parse};

const PREFIX: &str = "TOLLGATE__";
const FILE_SUFFIX: &str = "_FILE";

/// Puts the variables of that prefix over `user`. Where the default is a string the value is taken as it is; elsewhere it is read as
/// YAML, so that lists and numbers can be written. Under `TOLLGATE__KAFKA__PROPERTIES__…` an underscore stands for a dot, as librdkafka's
/// names have them.
pub(super) fn apply(
    user: &mut Value,
    defaults: &Value,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), ConfigError> {
    let named = |(name, value): (OsString, OsString)| Some((name.into_string().ok().filter(|name| name.starts_with(PREFIX))?, value));
    let mut ours: Vec<_> = variables.into_iter().filter_map(named).collect();
    ours.sort();
    for (name, text) in ours {
        let text = text.into_string().map_err(|_| ConfigError::Syntax { origin: name.clone(), reason: "it is not UTF-8".to_owned() })?;
        let path = name.strip_prefix(PREFIX).unwrap_or_default();
        let (path, is_file) = path.strip_suffix(FILE_SUFFIX).map_or((path, false), |path| (path, true));
        let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
        let value = match is_file {
            true => Value::from(read_secret(&name, &text)?),
            false if is_text(defaults, &keys) => read_text(text),
            false => read_yaml(&name, text),
        };
        set(user, &keys, value);
    }
    Ok(())
}

/// Whether a key holds a string, which its default tells; an optional one has none, and only the number of members is no string then.
fn is_text(defaults: &Value, keys: &[String]) -> bool {
    let is_property = keys.iter().rev().skip(1).any(|key| key == "properties");
    let default = keys.iter().try_fold(defaults, |value, key| value.get(key));
    is_property
        || default.is_some_and(|default| default.is_string() || (default.is_null() && keys.last().is_some_and(|key| key != "members")))
}

fn read_text(text: String) -> Value {
    if text == "null" { Value::Null } else { Value::from(text) }
}

fn read_secret(name: &str, path: &str) -> Result<String, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: format!("the file that {name} names"), source })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// What is no YAML is a string.
fn read_yaml(name: &str, text: String) -> Value {
    match parse(&format!("value: {text}"), name) {
        Ok(mut parsed) => parsed.get_mut("value").map_or(Value::Null, Value::take),
        Err(_) => Value::from(text),
    }
}

fn set(value: &mut Value, keys: &[String], new: Value) {
    let Some((first, rest)) = keys.split_first() else {
        *value = new;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Some(map) = value.as_object_mut() else { return };
    if first == "properties" && !rest.is_empty() {
        let properties = map.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
        let name = rest.join("_").replace('_', ".");
        set(properties, &[name], new);
        return;
    }
    set(map.entry(first.clone()).or_insert(Value::Null), rest, new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn applied(variables: &[(&str, &str)]) -> Value {
        let mut user = json!({"kafka": {"brokers": "a:1"}});
        let defaults = tollgate_core::settings::defaults().unwrap();
        apply(&mut user, &defaults, variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)))).unwrap();
        user
    }

    #[test]
    fn variables_override_and_keep_their_types() {
        let user = applied(&[
            ("TOLLGATE__KAFKA__BROKERS", "b:9092,c:9092"),
            ("TOLLGATE__KAFKA__REPLY_TOPICS", "[\"r.*\", s]"),
            ("TOLLGATE__WORKER__MEMBERS", "2"),
            ("TOLLGATE__KAFKA__PROPERTIES__SECURITY_PROTOCOL", "ssl"),
            ("OTHER", "x"),
        ]);
        assert_eq!(user["kafka"]["brokers"], "b:9092,c:9092");
        assert_eq!(user["kafka"]["reply_topics"], json!(["r.*", "s"]));
        assert_eq!(user["worker"]["members"], 2);
        assert_eq!(user["kafka"]["properties"], json!({"security.protocol": "ssl"}));
    }

    #[test]
    fn secrets_come_from_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "s3cret\n").unwrap();
        let user = applied(&[("TOLLGATE__PRIVACY__SUBJECT_KEY_FILE", file.path().to_str().unwrap())]);
        assert_eq!(user["privacy"]["subject_key"], "s3cret");
    }
}
