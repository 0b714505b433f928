//! Sections: one mapping of a configuration, read key by key.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::spelling_help::{known_keys, nearest};
use super::{Accepted, Collector, Entry, Fault, Found, REDACTED, Spelling, Texts, shape};

/// The suffix, in lower case, of a variable that names the file with a key's value. It follows the name of the key.
const FILE_SUFFIX: &str = "_file";

/// One mapping of the configuration, with its defaults. When it is dropped, keys that were not read are faults.
#[derive(Debug)]
pub struct Section<'v> {
    path: String,
    user: Option<&'v Map<String, Value>>,
    defaults: Option<&'v Map<String, Value>>,
    /// The values that came as text, of this section's keys and below.
    texts: Option<&'v Texts>,
    /// The variable that set the whole section, if there is one.
    variable: Option<&'v str>,
    known: RefCell<BTreeSet<&'v str>>,
    faults: &'v Collector,
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let known = self.known.borrow();
        for key in self.user.iter().flat_map(|user| user.keys()).filter(|key| !known.contains(key.as_str())) {
            if self.is_read_otherwise(key, &known) {
                continue;
            }
            let only = known.first().copied().filter(|_| known.len() == 1);
            let fix = match only.or_else(|| nearest(key, known.iter().copied())) {
                Some(nearest) => format!("write `{nearest}`, or remove it"),
                None => format!("remove it{}", known_keys(&known, key)),
            };
            self.faults.push(Fault { key: self.name_of(key), found: "an unknown key".to_owned(), fix });
        }
    }
}

impl<'v> Section<'v> {
    /// Returns the section of a whole configuration, with its defaults.
    #[must_use]
    pub fn root(user: &'v Value, defaults: &'v Value, faults: &'v Collector) -> Self {
        if !user.is_object() && !user.is_null() {
            let fix = "write a mapping of sections".to_owned();
            faults.push(Fault { key: "the configuration".to_owned(), found: shape(user).to_owned(), fix });
        }
        let (user, defaults) = (user.as_object(), defaults.as_object());
        Self { path: String::new(), user, defaults, texts: None, variable: None, known: RefCell::default(), faults }
    }

    /// Returns the section with the values that came as text.
    #[must_use]
    pub fn with_texts(mut self, texts: &'v Texts) -> Self {
        self.texts = Some(texts);
        self
    }

    /// Returns whether a key has a default. The key is not known by that.
    #[must_use]
    pub fn has_default(&self, key: &str) -> bool {
        self.default_of(key).is_some()
    }

    /// Returns the section with other defaults.
    #[must_use]
    pub fn with_defaults(mut self, defaults: Option<&'v Map<String, Value>>) -> Self {
        self.defaults = defaults;
        self
    }

    /// Returns the section under a key. A missing key and null give an empty section.
    #[must_use]
    pub fn section(&self, key: &'static str) -> Section<'v> {
        self.accept(key, Accepted::Section);
        let user = self.user_value(key).filter(|value| !value.is_null());
        if let Some(value) = user.filter(|value| !value.is_object()) {
            self.fault(key, shape(value), "write a mapping");
        }
        let texts = self.texts_of(key);
        Section {
            path: self.path_of(key),
            user: user.and_then(Value::as_object),
            defaults: self.defaults.and_then(|defaults| defaults.get(key)).and_then(Value::as_object),
            texts,
            variable: own_variable(texts).or(self.variable),
            known: RefCell::default(),
            faults: self.faults,
        }
    }

    /// Returns the entries of a list of sections that name a thing with `use`, each without defaults; `None` if the key is missing.
    #[must_use]
    pub fn sections(&self, key: &'static str) -> Option<Vec<Section<'v>>> {
        self.elements(key, "write a mapping with `use`")
    }

    /// Returns the entries of a list of sections, each without defaults; `None` if the key is missing.
    #[must_use]
    pub fn mappings(&self, key: &'static str) -> Option<Vec<Section<'v>>> {
        self.elements(key, "write a mapping")
    }

    fn elements(&self, key: &'static str, fix: &str) -> Option<Vec<Section<'v>>> {
        self.accept(key, Accepted::Sections);
        let value = self.value(key)?;
        let Some(items) = value.as_array() else {
            self.fault(key, shape(value), "write a list");
            return Some(Vec::new());
        };
        let list = self.texts_of(key);
        let entry = |(index, item): (usize, &'v Value)| {
            let texts = list.and_then(|list| list.below.get(&index.to_string()));
            let section = Section {
                path: format!("{}[{index}]", self.path_of(key)),
                user: item.as_object(),
                defaults: None,
                texts,
                variable: own_variable(texts).or(own_variable(list)).or(self.variable),
                known: RefCell::default(),
                faults: self.faults,
            };
            let key = named(section.path.clone(), section.variable);
            self.check_readable(&key, texts);
            if !item.is_object() {
                self.faults.push(Fault { key, found: shape(item).to_owned(), fix: fix.to_owned() });
            }
            section
        };
        Some(items.iter().enumerate().map(entry).collect())
    }

    /// Returns a boolean.
    #[must_use]
    pub fn bool(&self, key: &'static str) -> bool {
        self.accept(key, Accepted::Flag);
        self.typed(key, "write true or false", Value::as_bool).unwrap_or_default()
    }

    /// Returns a whole number, which may be zero.
    #[must_use]
    pub fn u32(&self, key: &'static str) -> u32 {
        self.accept(key, Accepted::Whole(0, u32::MAX));
        self.typed(key, "write a whole number of 0 or more", |value| u32::try_from(value.as_u64()?).ok()).unwrap_or_default()
    }

    /// Returns a size or duration, which must not be zero.
    #[must_use]
    pub fn positive(&self, key: &'static str) -> u32 {
        self.accept(key, Accepted::Whole(1, u32::MAX));
        self.typed(key, "write a whole number of 1 or more", |value| u32::try_from(value.as_u64()?).ok().filter(|n| *n > 0)).unwrap_or(1)
    }

    /// Returns a text of at least one character.
    #[must_use]
    pub fn string(&self, key: &'static str) -> String {
        self.accept(key, Accepted::Text);
        let found = self.user_found(key).filter(|found| !found.is_nothing());
        let text = self.read(key, found, "write a string", |found| found.as_str().map(str::to_owned));
        match text.as_deref() {
            Some("") => self.fault(key, "an empty string", "write a string of at least one character"),
            Some(text) if text.contains(REDACTED) => {
                self.fault(key, "a secret that was redacted", "write the secret, or name its file in a variable that ends in _FILE")
            }
            _ => {}
        }
        text.unwrap_or_default()
    }

    /// Returns a text, or `None` where nothing is written.
    #[must_use]
    pub fn optional_string(&self, key: &'static str) -> Option<String> {
        self.accept(key, Accepted::Text);
        self.found(key).filter(|found| !found.is_nothing())?;
        Some(self.string(key))
    }

    /// Returns a list of strings; `None` if the key is null or missing.
    #[must_use]
    pub fn strings(&self, key: &'static str) -> Option<Vec<String>> {
        self.accept(key, Accepted::Texts);
        let value = self.value(key).filter(|value| !value.is_null())?;
        let texts = self.texts_of(key);
        let string = |(index, item): (usize, &'v Value)| {
            let texts = texts.and_then(|texts| texts.below.get(&index.to_string()));
            self.check_readable(&named(format!("{}[{index}]", self.path_of(key)), own_variable(texts)), texts);
            Found::new(item, texts).as_str().map(str::to_owned)
        };
        let read: Option<Vec<String>> = value.as_array().and_then(|items| items.iter().enumerate().map(string).collect());
        if read.is_none() {
            let other = value.as_array().and_then(|items| items.iter().enumerate().find(|(_, item)| !item.is_string()));
            let other = other.map(|(index, item)| format!("; [{index}] is {}", shape(item))).unwrap_or_default();
            self.fault(key, shape(value), format!("write a list of strings, such as [\"a\", \"b\"]{other}"));
        }
        Some(read.unwrap_or_default())
    }

    /// Returns the entries of a mapping with free keys. A key that only a variable names is spelled as `spelling` says.
    #[must_use]
    pub fn entries(&self, key: &'static str, spelling: Spelling) -> Vec<Entry<'v>> {
        self.accept(key, Accepted::Mapping);
        let value = self.value(key).filter(|value| !value.is_null());
        if let Some(value) = value.filter(|value| !value.is_object()) {
            self.fault(key, shape(value), "write a mapping");
        }
        let mut found = Vec::new();
        flatten("", value, self.texts_of(key), &mut found);
        let (path, variable) = (self.path_of(key), own_variable(self.texts_of(key)).or(self.variable));
        let entry = |(name, value, texts): (String, &'v Value, Option<&'v Texts>)| {
            let key = if texts.is_some_and(|texts| texts.is_new_key) { spelling.apply(&name) } else { name };
            let path = named(format!("{path}.{key}"), own_variable(texts).or(variable));
            let entry = Entry { key, found: Found::new(value, texts), path, faults: self.faults };
            self.check_readable(&entry.path, texts);
            entry
        };
        found.into_iter().map(entry).collect()
    }

    /// Notes that a key is known and read elsewhere.
    pub fn pass_over(&self, key: &'v str) {
        self.known.borrow_mut().insert(key);
    }

    /// Notes that nothing more can be said of the keys of this section, because what would know them is not known.
    pub fn pass_over_all(&self) {
        self.unread().into_iter().for_each(|key| self.pass_over(key));
    }

    /// Returns the keys that the user wrote and nobody has read.
    pub(super) fn unread(&self) -> Vec<&'v str> {
        let known = self.known.borrow();
        self.user.iter().flat_map(|user| user.keys()).map(String::as_str).filter(|key| !known.contains(key)).collect()
    }

    /// Returns the key among those that were read that another one is like.
    pub(super) fn nearest_read(&self, key: &str) -> Option<&'v str> {
        nearest(key, self.known.borrow().iter().copied())
    }

    /// Returns whether the user wrote this key, without knowing it: it may be one that is refused.
    pub(super) fn has(&self, key: &str) -> bool {
        self.user.is_some_and(|user| user.contains_key(key))
    }

    /// Returns whether the user wrote null.
    #[must_use]
    pub fn is_null(&self, key: &'static str) -> bool {
        self.user_value(key).is_some_and(Value::is_null)
    }

    /// Returns whether the user wrote this key, null or not.
    #[must_use]
    pub fn is_written(&self, key: &'static str) -> bool {
        self.user_value(key).is_some()
    }

    /// Returns the value under a key as YAML reads it: the user's, or else the default. Null counts as missing.
    #[must_use]
    pub fn value(&self, key: &'static str) -> Option<&'v Value> {
        self.user_value(key).filter(|value| !value.is_null()).or_else(|| self.default_of(key))
    }

    /// Adds a fault for the value under `key`.
    pub fn fault(&self, key: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault { key: self.name_of(key), found: found.into(), fix: fix.into() });
    }

    /// Returns the dotted path of a key of this section.
    #[must_use]
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the dotted path of a key. If a variable set it, the variable follows in parentheses.
    #[must_use]
    pub fn name_of(&self, key: &str) -> String {
        let own = self.texts_of(key).and_then(Texts::variable);
        named(self.path_of(key), own.or(self.variable))
    }

    fn default_of(&self, key: &str) -> Option<&'v Value> {
        self.defaults.and_then(|defaults| defaults.get(key))
    }

    fn texts_of(&self, key: &str) -> Option<&'v Texts> {
        self.texts.and_then(|texts| texts.below.get(key))
    }

    pub(super) fn accept(&self, key: &str, accepted: Accepted) {
        self.faults.accept(|| self.path_of(key), accepted);
    }

    fn user_value(&self, key: &'static str) -> Option<&'v Value> {
        self.accept(key, Accepted::Anything);
        self.known.borrow_mut().insert(key);
        self.check_readable(&self.name_of(key), self.texts_of(key));
        self.user.and_then(|user| user.get(key))
    }

    fn user_found(&self, key: &'static str) -> Option<Found<'v>> {
        self.user_value(key).map(|value| Found::new(value, self.texts_of(key)))
    }

    fn found(&self, key: &'static str) -> Option<Found<'v>> {
        let user = self.user_found(key).filter(|found| !found.is_nothing());
        user.or_else(|| self.default_of(key).map(|value| Found::new(value, None)))
    }

    fn typed<T>(&self, key: &'static str, fix: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let found = self.user_found(key).filter(|found| !found.value.is_null());
        self.read(key, found, fix, |found| read(found.value))
    }

    /// Adds a fault if the value is meant to be in a file that cannot be read.
    fn check_readable(&self, name: &str, texts: Option<&Texts>) {
        if let Some(reason) = texts.and_then(Texts::unreadable) {
            let found = format!("the name of a file that cannot be read ({reason})");
            self.faults.push(Fault { key: name.to_owned(), found, fix: "name a readable file".to_owned() });
        }
    }

    /// Reads what the user wrote, or else the default.
    fn read<T>(&self, key: &str, found: Option<Found<'v>>, fix: &str, read: impl Fn(Found<'v>) -> Option<T>) -> Option<T> {
        let default = || self.default_of(key).and_then(|value| read(Found::new(value, None)));
        match found {
            Some(found) => read(found).or_else(|| {
                self.fault(key, shape(found.value), fix);
                default()
            }),
            None => default().or_else(|| {
                self.faults.require(|| self.path_of(key));
                self.fault(key, "nothing", fix);
                None
            }),
        }
    }

    /// Returns whether a key that was not read is one of two readings of a variable in `_FILE`, of which the other was used.
    fn is_read_otherwise(&self, key: &str, known: &BTreeSet<&str>) -> bool {
        self.texts_of(key).is_some_and(|texts| {
            texts.is_second_reading() || (texts.is_from_file() && known.contains(format!("{key}{FILE_SUFFIX}").as_str()))
        })
    }
}

/// Collects the entries of a free mapping. Two underscores in a variable's name may be part of a key here, as in `MCP__GITHUB`, because
/// there is no mapping below a free one.
fn flatten<'v>(before: &str, value: Option<&'v Value>, texts: Option<&'v Texts>, found: &mut Vec<(String, &'v Value, Option<&'v Texts>)>) {
    for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
        let texts = texts.and_then(|texts| texts.below.get(name));
        match texts {
            Some(texts) if texts.is_second_reading() => {}
            Some(texts) if texts.is_new_key && texts.source.is_none() => {
                flatten(&format!("{before}{name}__"), Some(value), Some(texts), found);
            }
            _ => found.push((format!("{before}{name}"), value, texts)),
        }
    }
}

fn own_variable(texts: Option<&Texts>) -> Option<&str> {
    texts?.source.as_ref().map(|source| source.variable.as_str())
}

fn named(path: String, variable: Option<&str>) -> String {
    match variable {
        Some(variable) => format!("{path} ({variable})"),
        None => path,
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
