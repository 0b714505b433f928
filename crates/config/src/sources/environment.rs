//! Configuration by environment: `TOLLGATE__SECTION__KEY` variables, and `…_FILE` variables that name a file with the value.
//!
//! A value is text. It is put into the tree of values as YAML reads it, and unchanged into the [`Texts`] beside that tree; the reader of a
//! key decides which of the two counts. So one rule holds for all keys: a string is taken unchanged, and everything else is YAML, lists and
//! mappings too. `null` means no value.
//!
//! Two underscores separate the keys of a path, and a number is the index of a list's element: `…__PROVIDERS__0__CONFIG__URL`. An element
//! of a default list is set by its index too, and the index behind the last one adds an element. Names of variables are upper case, without
//! dots and dashes. A variable sets an existing key if their names differ in nothing but that; a new key gets lower case.

use std::cmp::Ordering;
use std::ffi::OsString;

use serde_json::{Map, Value};
use tollgate_core::settings::{Secret, Source, Texts};

use super::ConfigError;

const PREFIX: &str = "TOLLGATE__";
const FILE_SUFFIX: &str = "_file";

/// What the user wrote, in a file and in variables. It may hold secrets, so it has no `Debug`.
pub(super) struct Written {
    /// All values, as YAML reads them.
    pub(super) values: Value,
    /// The values that came as text.
    pub(super) texts: Texts,
}

/// One environment variable with our prefix.
struct Variable {
    name: String,
    path: Vec<String>,
    text: String,
}

/// Returns the values of the file, overridden by the variables with our prefix.
///
/// # Errors
/// Returns [`ConfigError`] for a variable that is not UTF-8, that names an element beyond the end of its list, or whose name is hardly meant for
/// anything but a key.
pub(super) fn over(
    file: Value,
    defaults: &Value,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Written, ConfigError> {
    let mut written = Written { values: file, texts: Texts::default() };
    let variables: Vec<(OsString, OsString)> = variables.into_iter().collect();
    if let Some((variable, fix)) = variables.iter().filter_map(|(name, _)| name.to_str()).find_map(|name| misspelt(name, defaults)) {
        return Err(ConfigError::Misspelt { variable, fix });
    }
    let mut ours = variables.into_iter().filter_map(Variable::read).collect::<Result<Vec<_>, _>>()?;
    // Mappings and lists come before what they hold, and elements in their order.
    ours.sort_by(|left, right| compare(&left.path, &right.path).then_with(|| left.name.cmp(&right.name)));
    ours.iter().try_for_each(|variable| written.put_variable(variable, defaults))?;
    Ok(written)
}

impl Variable {
    fn read((name, text): (OsString, OsString)) -> Option<Result<Self, ConfigError>> {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        let path = name.strip_prefix(PREFIX)?.split("__").map(str::to_lowercase).collect();
        let Ok(text) = text.into_string() else {
            return Some(Err(ConfigError::Syntax { origin: name, reason: "it is not UTF-8".to_owned() }));
        };
        Some(Ok(Self { name, path, text }))
    }

    fn source(&self, text: Result<String, String>, is_from_file: bool, is_second_reading: bool) -> Source {
        Source { variable: self.name.clone(), text: text.map(Secret), is_from_file, is_second_reading }
    }
}

/// Returns a variable that names a key, but has one underscore where two are needed or is not in upper case, with the name that is meant.
/// Other programs set names that begin with ours too: Kubernetes does for a service of that name.
fn misspelt(name: &str, defaults: &Value) -> Option<(String, String)> {
    if name.get(..PREFIX.len()).is_some_and(|prefix| prefix != PREFIX && prefix.eq_ignore_ascii_case(PREFIX)) {
        return Some((name.to_owned(), name.to_uppercase()));
    }
    let rest = name.strip_prefix("TOLLGATE_").filter(|rest| !rest.starts_with('_'))?;
    let is_key = |(at, _): &(usize, &str)| {
        let (section, key) = (rest.get(..*at).unwrap_or_default(), rest.get(at + 1..).unwrap_or_default());
        defaults.get(section.to_lowercase()).and_then(|section| section.get(key.to_lowercase())).is_some()
    };
    let fix = match rest.match_indices('_').find(is_key) {
        Some((at, _)) => format!("{PREFIX}{}__{}", rest.get(..at)?, rest.get(at + 1..)?),
        None if rest.contains("__") => format!("{PREFIX}{rest}"),
        None => return None,
    };
    Some((name.to_owned(), fix))
}

/// Compares two paths. Indices of a list are compared as numbers: 9 comes before 10.
fn compare(left: &[String], right: &[String]) -> Ordering {
    let key = |part: &String| (part.parse::<usize>().ok(), part.clone());
    left.iter().map(key).cmp(right.iter().map(key))
}

impl Written {
    /// Stores both readings of a variable that ends in `_FILE`: the value of the key before it, from that file, and the value of a key that
    /// itself ends in `_file`. The reader of the keys knows which of the two exists. A variable whose exact key is written in the file sets
    /// only that key.
    fn put_variable(&mut self, variable: &Variable, defaults: &Value) -> Result<(), ConfigError> {
        let before_suffix = variable.path.last().and_then(|last| last.strip_suffix(FILE_SUFFIX)).filter(|key| !key.is_empty());
        let Some(key) = before_suffix.filter(|_| self.value_at(&variable.path).is_none()) else {
            return self.put(variable, &variable.path, variable.source(Ok(variable.text.clone()), false, false), defaults);
        };
        let mut path = variable.path.clone();
        path.pop();
        path.push(key.to_owned());
        let content = std::fs::read_to_string(&variable.text).map_err(|error| error.to_string());
        let content = content.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
        self.put(variable, &path, variable.source(content, true, false), defaults)?;
        if key.parse::<usize>().is_err() {
            self.put(variable, &variable.path, variable.source(Ok(variable.text.clone()), false, true), defaults)?;
        }
        Ok(())
    }

    /// Returns what the file has at this path.
    fn value_at(&self, path: &[String]) -> Option<&Value> {
        let mut place = Some(&self.values);
        let mut rest = path;
        while let (Some(value), [first, below @ ..]) = (place, rest) {
            (place, rest) = match value {
                Value::Object(map) => match written_key(map, rest) {
                    Some((key, parts)) => (map.get(&key), rest.get(parts..).unwrap_or_default()),
                    None => (None, rest),
                },
                Value::Array(items) => (first.parse().ok().and_then(|index: usize| items.get(index)), below),
                _ => (None, rest),
            };
        }
        place
    }

    fn put(&mut self, variable: &Variable, path: &[String], source: Source, defaults: &Value) -> Result<(), ConfigError> {
        // A template may have left it empty.
        if variable.text.trim().is_empty() && self.value_at(path).is_some_and(holds) {
            return Err(ConfigError::Emptied { variable: variable.name.clone() });
        }
        let value = source.text.as_ref().map_or(Value::Null, |Secret(text)| read_yaml(text));
        place(&mut self.values, &mut self.texts, Some(defaults), path, (value, source))
            .map_err(|length| ConfigError::NoElement { variable: variable.name.clone(), length })
    }
}

/// Returns whether a value is more than an empty variable may take away unseen: a mapping, a list or a truth value.
fn holds(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        value => value.is_boolean(),
    }
}

/// Puts a value at a path. The error is the length of a list that has no such index.
fn place(
    value: &mut Value,
    texts: &mut Texts,
    default: Option<&Value>,
    path: &[String],
    (new, source): (Value, Source),
) -> Result<(), usize> {
    let [first, below @ ..] = path else {
        *value = new;
        texts.source = Some(source);
        texts.below.clear();
        return Ok(());
    };
    if !value.is_object() && !value.is_array() {
        *value = container(default, first);
        texts.source = None;
    }
    if let (Value::Array(items), Ok(index)) = (&mut *value, first.parse::<usize>()) {
        if index > items.len() {
            return Err(items.len());
        }
        if index == items.len() {
            items.push(Value::Null);
        }
        let Some(item) = items.get_mut(index) else { return Err(index) };
        return place(item, texts.below.entry(index.to_string()).or_default(), None, below, (new, source));
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
        *texts = Texts::default();
    }
    let Some(map) = value.as_object_mut() else { return Ok(()) };
    let (key, below) = match written_key(map, path) {
        Some((key, parts)) => (key, path.get(parts..).unwrap_or_default()),
        None => {
            texts.below.entry(first.clone()).or_default().is_new_key = true;
            (first.clone(), below)
        }
    };
    let default = default.and_then(|default| default.get(&key));
    let texts = texts.below.entry(key.clone()).or_default();
    place(map.entry(key).or_insert(Value::Null), texts, default, below, (new, source))
}

/// Returns the container for an element or key where there is none yet: the default list, an empty list for a number, else a mapping.
fn container(default: Option<&Value>, first: &str) -> Value {
    let is_number = first.parse::<usize>().is_ok();
    match default {
        Some(list @ Value::Array(_)) if is_number => list.clone(),
        Some(Value::Object(_)) => Value::Object(Map::new()),
        _ if is_number => Value::Array(Vec::new()),
        _ => Value::Object(Map::new()),
    }
}

/// Returns the key of a mapping that the beginning of a path names, and how many parts of the path it takes: a free key may hold two
/// underscores.
fn written_key(map: &Map<String, Value>, path: &[String]) -> Option<(String, usize)> {
    let folded = |key: &str| key.to_lowercase().replace(['.', '-'], "_");
    (1..=path.len()).rev().find_map(|parts| {
        let name = path.get(..parts)?.join("__");
        let same = |key: &&String| folded(key) == name;
        // Of several keys that differ only in case, dots and dashes, the one that is spelled exactly so is meant.
        let key = map.get_key_value(&name).map(|(key, _)| key).or_else(|| map.keys().find(same))?;
        Some((key.clone(), parts))
    })
}

/// Returns a text as YAML reads it. A text that is not YAML is a string.
fn read_yaml(text: &str) -> Value {
    // The text is indented, so that mappings of several lines can be written too, and no line becomes a key beside it.
    let indented: String = text.lines().map(|line| format!("  {line}\n")).collect();
    match tollgate_core::settings::parse(&format!("value:\n{indented}")) {
        Ok(mut parsed) => parsed.get_mut("value").map_or(Value::Null, Value::take),
        Err(_) => Value::from(text),
    }
}
