//! Values that came as text, from variables of the environment, by the path of the key.
//!
//! The tree of values contains each text too, read as YAML. Here it is kept as it came, for keys that are strings: a password `0123` must
//! not become the number 123.

use std::collections::BTreeMap;

use serde::Serialize;

/// A tree of texts, parallel to the tree of values.
#[derive(Debug, Default)]
pub struct Texts {
    /// The variable that sets this key, if there is one.
    pub source: Option<Source>,
    /// Whether only a variable names the key. Its dots and dashes are still missing then.
    pub is_new_key: bool,
    /// The texts of the keys and list elements below it.
    pub below: BTreeMap<String, Texts>,
}

/// One variable with its text.
#[derive(Debug)]
pub struct Source {
    /// The variable's name.
    pub variable: String,
    /// The text, or why the file that holds it cannot be read.
    pub text: Result<Secret, String>,
    /// Whether the text is the content of the variable's file. Otherwise it is the variable's own value.
    pub is_from_file: bool,
    /// Whether this is the second reading of a variable in `_FILE`: as the value of a key that itself has this suffix, such as `ca_file`.
    /// It is used only where a reader knows such a key.
    pub is_second_reading: bool,
}

impl Texts {
    /// Returns the text that a string is read from. The word `null` in a variable counts as missing, as in YAML.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let source = self.source.as_ref()?;
        let Ok(Secret(text)) = &source.text else { return None };
        (source.is_from_file || text != "null").then_some(text.as_str())
    }

    /// Returns why the file that holds the value cannot be read.
    #[must_use]
    pub fn unreadable(&self) -> Option<&str> {
        self.source.as_ref()?.text.as_ref().err().map(String::as_str)
    }

    /// Returns the variable that set this key, or else the first that set a key below it.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        let own = self.source.as_ref().map(|source| source.variable.as_str());
        own.or_else(|| self.below.values().find_map(Texts::variable))
    }

    /// Returns whether a key is the second reading of a variable.
    pub(super) fn is_second_reading(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_second_reading)
    }

    /// Returns whether the value is the content of a variable's file.
    pub(super) fn is_from_file(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_from_file)
    }
}

/// A text that is never shown, neither printed nor serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// The text that is shown in place of a secret.
pub const REDACTED: &str = "[redacted]";
