//! Typed reading of configuration values, which collects faults instead of stopping at the first.

mod secret;
mod yaml;

pub use secret::{REDACTED, Secret};
pub use yaml::{DEFAULTS, YamlError, defaults, parse};

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// One thing that is wrong in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key, as a dotted path.
    pub key: String,
    /// The shape of what was found there.
    pub found: String,
    /// What to write.
    pub fix: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: found {}; {}", self.key, self.found, self.fix)
    }
}

/// Everything that is wrong in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            write!(f, "{}{fault}", if index > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl Faults {
    /// Returns the one fault of a text that is not YAML.
    #[must_use]
    pub fn of(origin: &str, error: &YamlError) -> Self {
        let (found, fix) = (format!("what is not YAML ({error})"), "write a mapping of sections".to_owned());
        Self(vec![Fault { key: origin.to_owned(), found, fix }])
    }
}

/// Where faults are collected while sections are read.
#[derive(Debug, Default)]
pub struct Collector(RefCell<Vec<Fault>>);

impl Collector {
    fn push(&self, fault: Fault) {
        self.0.borrow_mut().push(fault);
    }

    /// Returns the value, or the faults if there are any.
    ///
    /// # Errors
    /// [`Faults`]: everything that was collected.
    pub fn into_result<T>(self, value: T) -> Result<T, Faults> {
        let faults = self.0.into_inner();
        if faults.is_empty() { Ok(value) } else { Err(Faults(faults)) }
    }
}

/// One mapping of the configuration, with the defaults behind it. When it is dropped, keys that nobody asked for are faults.
#[derive(Debug)]
pub struct Section<'v> {
    path: String,
    user: Option<&'v Map<String, Value>>,
    defaults: Option<&'v Map<String, Value>>,
    known: RefCell<BTreeSet<&'v str>>,
    faults: &'v Collector,
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let known = self.known.borrow();
        for key in self.user.iter().flat_map(|user| user.keys()).filter(|key| !known.contains(key.as_str())) {
            let nearest = known.iter().max_by(|left, right| similarity(left, key).total_cmp(&similarity(right, key)));
            let fix = nearest.map_or_else(|| "remove it".to_owned(), |nearest| format!("write `{nearest}`, or remove it"));
            self.faults.push(Fault { key: self.path_of(key), found: "an unknown key".to_owned(), fix });
        }
    }
}

fn similarity(left: &str, right: &str) -> f64 {
    strsim::jaro_winkler(left, right)
}

impl<'v> Section<'v> {
    /// Returns the section of a whole configuration, with the defaults behind it.
    #[must_use]
    pub fn root(user: &'v Value, defaults: &'v Value, faults: &'v Collector) -> Self {
        if !user.is_object() && !user.is_null() {
            let fix = "write a mapping of sections".to_owned();
            faults.push(Fault { key: "the configuration".to_owned(), found: shape(user).to_owned(), fix });
        }
        Self { path: String::new(), user: user.as_object(), defaults: defaults.as_object(), known: RefCell::default(), faults }
    }

    /// A section below this one; none and null are an empty one.
    pub fn section(&self, key: &'static str) -> Section<'v> {
        let user = self.user_value(key).filter(|value| !value.is_null());
        if let Some(value) = user.filter(|value| !value.is_object()) {
            self.fault(key, shape(value), "write a mapping");
        }
        Section {
            path: self.path_of(key),
            user: user.and_then(Value::as_object),
            defaults: self.defaults.and_then(|defaults| defaults.get(key)).and_then(Value::as_object),
            known: RefCell::default(),
            faults: self.faults,
        }
    }

    /// The entries of a list of sections, each without defaults; `None` if the key is not there at all.
    pub fn sections(&self, key: &'static str) -> Option<Vec<Section<'v>>> {
        let value = self.value(key)?;
        let Some(items) = value.as_array() else {
            self.fault(key, shape(value), "write a list");
            return Some(Vec::new());
        };
        let entry = |(index, item): (usize, &'v Value)| {
            let path = format!("{}[{index}]", self.path_of(key));
            if !item.is_object() {
                self.faults.push(Fault { key: path.clone(), found: shape(item).to_owned(), fix: "write a mapping with `use`".to_owned() });
            }
            Section { path, user: item.as_object(), defaults: None, known: RefCell::default(), faults: self.faults }
        };
        Some(items.iter().enumerate().map(entry).collect())
    }

    /// Returns a switch.
    #[must_use]
    pub fn bool(&self, key: &'static str) -> bool {
        self.typed(key, "write true or false", Value::as_bool).unwrap_or_default()
    }

    /// Returns a switch, or `None` where nothing is written.
    #[must_use]
    pub fn optional_bool(&self, key: &'static str) -> Option<bool> {
        self.value(key).filter(|value| !value.is_null())?;
        Some(self.bool(key))
    }

    /// Returns a whole number, which may be zero.
    #[must_use]
    pub fn u32(&self, key: &'static str) -> u32 {
        self.typed(key, "write a whole number of 0 or more", |value| u32::try_from(value.as_u64()?).ok()).unwrap_or_default()
    }

    /// A size or duration that must not be zero.
    pub fn positive(&self, key: &'static str) -> u32 {
        self.typed(key, "write a whole number of 1 or more", |value| u32::try_from(value.as_u64()?).ok().filter(|n| *n > 0)).unwrap_or(1)
    }

    /// Returns a whole number of 1 or more, or `None` where nothing is written.
    #[must_use]
    pub fn optional_positive(&self, key: &'static str) -> Option<u32> {
        self.value(key).filter(|value| !value.is_null())?;
        Some(self.positive(key))
    }

    /// Returns a text of at least one character.
    #[must_use]
    pub fn string(&self, key: &'static str) -> String {
        let text = self.typed(key, "write a string", |value| value.as_str().map(str::to_owned));
        match text.as_deref() {
            Some("") => self.fault(key, "an empty string", "write a string of at least one character"),
            Some(REDACTED) => {
                self.fault(key, "a secret that was redacted", "write the secret, or name its file in a variable that ends in _FILE")
            }
            _ => {}
        }
        text.unwrap_or_default()
    }

    /// Returns a text, or `None` where nothing is written.
    #[must_use]
    pub fn optional_string(&self, key: &'static str) -> Option<String> {
        self.value(key).filter(|value| !value.is_null())?;
        Some(self.string(key))
    }

    /// A list of strings; `None` for null or no such key.
    pub fn strings(&self, key: &'static str) -> Option<Vec<String>> {
        let value = self.value(key).filter(|value| !value.is_null())?;
        let strings = |value: &Value| value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        let read: Option<Vec<String>> = strings(value);
        if read.is_none() {
            self.fault(key, shape(value), "write a list of strings, such as [\"a\", \"b\"]");
        }
        Some(read.unwrap_or_default())
    }

    /// The entries of a mapping with free keys.
    pub fn entries(&self, key: &'static str) -> impl Iterator<Item = (&'v str, &'v Value)> {
        let value = self.value(key).filter(|value| !value.is_null());
        if let Some(value) = value.filter(|value| !value.is_object()) {
            self.fault(key, shape(value), "write a mapping");
        }
        value.and_then(Value::as_object).into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// Notes that a key is known and read elsewhere.
    pub fn pass_over(&self, key: &'v str) {
        self.known.borrow_mut().insert(key);
    }

    /// Whether the user wrote null.
    pub fn is_null(&self, key: &'static str) -> bool {
        self.user_value(key).is_some_and(Value::is_null)
    }

    /// Whether the user wrote this key, null or not.
    pub fn is_written(&self, key: &'static str) -> bool {
        self.user_value(key).is_some()
    }

    /// What stands under a key: what the user wrote, or else the default. Null is as good as nothing.
    pub fn value(&self, key: &'static str) -> Option<&'v Value> {
        self.user_value(key).filter(|value| !value.is_null()).or_else(|| self.defaults.and_then(|defaults| defaults.get(key)))
    }

    /// Notes that the value under `key` is wrong.
    pub fn fault(&self, key: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault { key: self.path_of(key), found: found.into(), fix: fix.into() });
    }

    fn user_value(&self, key: &'static str) -> Option<&'v Value> {
        self.known.borrow_mut().insert(key);
        self.user.and_then(|user| user.get(key))
    }

    fn typed<T>(&self, key: &'static str, fix: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let default = || self.defaults.and_then(|defaults| defaults.get(key)).and_then(&read);
        match self.user_value(key).filter(|value| !value.is_null()) {
            Some(value) => read(value).or_else(|| {
                self.fault(key, shape(value), fix);
                default()
            }),
            None => default().or_else(|| {
                self.fault(key, "nothing", fix);
                None
            }),
        }
    }

    /// Returns the dotted path of a key of this section.
    #[must_use]
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// What kind of value was found, without the value.
pub fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(number) if number.as_u64().is_none() => "a negative number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(items) if items.is_empty() => "an empty list",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn faults_name_key_shape_and_fix() {
        let (user, defaults) = (json!({"a": {"flag": "yes", "coutn": 1}, "n": -1}), json!({"a": {"flag": true, "count": 2}, "n": 3}));
        let faults = Collector::default();
        {
            let root = Section::root(&user, &defaults, &faults);
            let a = root.section("a");
            assert!(a.bool("flag"));
            assert_eq!(a.u32("count"), 2);
            assert_eq!(root.u32("n"), 3);
        }
        let text = faults.into_result(()).unwrap_err().to_string();
        assert!(text.contains("a.flag: found a string; write true or false"), "{text}");
        assert!(text.contains("a.coutn: found an unknown key; write `count`, or remove it"), "{text}");
        assert!(text.contains("n: found a negative number"), "{text}");
    }
}
