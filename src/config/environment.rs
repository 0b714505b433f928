//! `TOLLGATE__SECTION__KEY` variables, and `…_FILE` variables that name a file with a secret.

use serde_json::{Map, Value};

use super::{ConfigError, parse};

const PREFIX: &str = "TOLLGATE__";
const FILE_SUFFIX: &str = "_FILE";

/// Puts the variables of that prefix over `user`. A value is read as YAML, so lists and numbers can be written; under
/// `TOLLGATE__KAFKA__PROPERTIES__…` an underscore stands for a dot, as librdkafka's names have them.
pub(super) fn apply(user: &mut Value, variables: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
    let mut ours: Vec<_> = variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    ours.sort();
    for (name, text) in ours {
        let path = name.strip_prefix(PREFIX).unwrap_or_default();
        let (path, value) = match path.strip_suffix(FILE_SUFFIX) {
            Some(path) => (path, Value::from(read_secret(&name, &text)?)),
            None => (path, read_value(&name, &text)?),
        };
        let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
        set(user, &keys, value);
    }
    Ok(())
}

fn read_secret(name: &str, path: &str) -> Result<String, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: format!("the file that {name} names"), source })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn read_value(name: &str, text: &str) -> Result<Value, ConfigError> {
    if text.is_empty() {
        return Ok(Value::from(""));
    }
    // An address such as `host:9092` or a bare word is a string; only what YAML reads as something else is something else.
    match parse(&format!("value: {text}"), name) {
        Ok(mut parsed) => Ok(parsed.get_mut("value").map_or(Value::Null, Value::take)),
        Err(_) => Ok(Value::from(text)),
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
        apply(&mut user, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).unwrap();
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
