//! Values as they were found in a configuration, and the entries of mappings whose keys are free.

use serde_json::Value;

use super::{Collector, Fault, Texts};

/// A value that the user wrote.
#[derive(Debug, Clone, Copy)]
pub struct Found<'v> {
    /// The value as YAML reads it.
    pub value: &'v Value,
    /// The text itself, if the value came as text.
    text: Option<&'v str>,
}

impl<'v> Found<'v> {
    pub(super) fn new(value: &'v Value, texts: Option<&'v Texts>) -> Self {
        Self { value, text: texts.and_then(Texts::text) }
    }

    /// Returns the string that it is: the text as it came, or a value that is a string.
    #[must_use]
    pub fn as_str(self) -> Option<&'v str> {
        self.text.or_else(|| self.value.as_str())
    }

    /// Returns whether nothing is written, for readers of strings.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self.text.is_none() && self.value.is_null()
    }
}

/// The spelling of a key of a free mapping that only a variable names. Names of variables are in upper case, and contain neither dots nor
/// dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// In lower case, with its underscores.
    Underscores,
    /// In lower case, with dots for underscores.
    Dots,
    /// In lower case, with dashes for underscores.
    Dashes,
}

impl Spelling {
    pub(super) fn apply(self, name: &str) -> String {
        let joint = match self {
            Self::Underscores => return name.to_owned(),
            Self::Dots => ".",
            Self::Dashes => "-",
        };
        name.replace("__", joint).replace('_', joint)
    }
}

/// An entry of a mapping with free keys.
#[derive(Debug)]
pub struct Entry<'v> {
    /// The key.
    pub key: String,
    /// The value under the key.
    pub found: Found<'v>,
    pub(super) path: String,
    pub(super) faults: &'v Collector,
}

impl Entry<'_> {
    /// Adds a fault for this entry.
    pub fn fault(&self, found: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault { key: self.path.clone(), found: found.into(), fix: fix.into() });
    }
}

/// Returns what kind of value it is, without the value.
#[must_use]
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
