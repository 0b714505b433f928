//! The `privacy` section: the keys of subject hashes.

use serde::Serialize;
use serde_json::{Value, json};

use tollgate_core::settings::{REDACTED, Section};

/// The most keys there may be. Each one more than the first costs a look-up for each event of a subject.
const KEYS_MAX: usize = 4;

/// The HMAC keys of subject hashes. Hashes are written under the first one, and found under all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SubjectKeys {
    keys: Vec<String>,
    /// Whether they were written as a list.
    is_list: bool,
}

impl SubjectKeys {
    /// Returns these keys.
    #[must_use]
    pub fn new(keys: Vec<String>) -> Self {
        Self { keys, is_list: true }
    }

    /// Returns the key that hashes are written under.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.keys.first().map(String::as_str)
    }

    /// Returns all keys, the one that hashes are written under first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(String::as_str)
    }

    /// Returns the section for people to read.
    pub(super) fn redacted(&self) -> Value {
        if self.is_list {
            return json!({"subject_key": null, "subject_keys": vec![REDACTED; self.keys.len()]});
        }
        json!({"subject_key": self.first().map(|_| REDACTED)})
    }
}

pub(super) fn read(section: &Section<'_>) -> SubjectKeys {
    let single = section.optional_string("subject_key");
    let keys = section.strings("subject_keys").unwrap_or_default();
    if single.is_some() && !keys.is_empty() {
        section.fault(
            "subject_keys",
            "a list beside subject_key",
            "write one of the two: subject_keys lists the new key first, and then the old one",
        );
    }
    if keys.len() > KEYS_MAX {
        section.fault("subject_keys", format!("a list of {} keys", keys.len()), format!("write at most {KEYS_MAX}"));
    }
    for (place, key) in keys.iter().enumerate() {
        let name = format!("subject_keys[{place}]");
        if key.is_empty() {
            section.fault(&name, "an empty string", "write a string of at least one character");
        }
        if key.contains(REDACTED) {
            section.fault(&name, "a secret that was redacted", "write the secret, or name its file in a variable that ends in _FILE");
        }
        if keys.iter().take(place).any(|earlier| earlier == key) {
            section.fault(&name, "a key that stands before it already", "write each key once");
        }
    }
    let is_list = single.is_none() && !keys.is_empty();
    SubjectKeys { keys: single.map_or(keys, |single| vec![single]), is_list }
}
