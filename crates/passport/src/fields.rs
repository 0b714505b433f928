//! Typed reading of a passport's fields. A field of another type is kept as malformed, and denies once a call needs it.

use std::cell::RefCell;

use tollgate_json::{Shape, Text, Value};

/// How much of a passport's value or key a message quotes, in characters.
const QUOTED_CHARS_MAX: usize = 80;

/// A field as it was found. Null counts as missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Field<T> {
    /// The field is missing.
    Absent,
    /// The field has the expected type.
    Valid(T),
    /// The field is something else.
    Malformed(Malformed),
}

/// The description of a field that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) path: String,
    pub(super) found: String,
    pub(super) expected: String,
}

impl Malformed {
    pub(super) fn new(path: impl Into<String>, found: impl std::fmt::Display, expected: impl Into<String>) -> Self {
        Self { path: path.into(), found: found.to_string(), expected: expected.into() }
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is {}, expected {}", self.path, self.found, self.expected)
    }
}

impl<T> Field<T> {
    /// Returns what is wrong with the field, if it is malformed.
    pub(super) fn malformed(&self) -> Option<&Malformed> {
        if let Self::Malformed(malformed) = self { Some(malformed) } else { None }
    }

    /// Returns the value of a valid field.
    pub(super) fn valid(&self) -> Option<&T> {
        if let Self::Valid(value) = self { Some(value) } else { None }
    }

    /// Converts the value of a valid field by a function that cannot fail.
    pub(super) fn map<U>(self, next: impl FnOnce(T) -> U) -> Field<U> {
        self.and_then(|value| Ok(next(value)))
    }

    /// Converts the value of a valid field.
    pub(super) fn and_then<U>(self, next: impl FnOnce(T) -> Result<U, Malformed>) -> Field<U> {
        match self {
            Self::Absent => Field::Absent,
            Self::Valid(value) => next(value).map_or_else(Field::Malformed, Field::Valid),
            Self::Malformed(malformed) => Field::Malformed(malformed),
        }
    }
}

/// Returns the path of a member, such as `limits["web.fetch"].allowed_domains`. A long key is shortened: verdicts hold the path.
pub(super) fn member_path(parent: &str, key: &str) -> String {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !key.is_empty();
    match (parent.is_empty(), is_plain) {
        (true, true) => quoted(key),
        (false, true) => format!("{parent}.{}", quoted(key)),
        (_, false) => format!("{parent}[{:?}]", quoted(key)),
    }
}

/// Returns the path of an item of a list.
pub(super) fn item_path(parent: &str, index: usize) -> String {
    format!("{parent}[{index}]")
}

/// Returns the entries of a list, which is at `path`, if it has no entry that matches nothing. `said` is what such an entry is, and what to write
/// in its place.
pub(super) fn without(
    entries: Vec<String>,
    matches_nothing: impl Fn(&str) -> bool,
    path: &str,
    (found, expected): (&str, &str),
) -> Result<Vec<String>, Malformed> {
    match entries.iter().position(|entry| matches_nothing(entry)) {
        Some(index) => Err(Malformed::new(item_path(path, index), found, expected)),
        None => Ok(entries),
    }
}

/// Returns whether an entry of a list is a regular expression. To a reader of patterns `.*` asks for a dot in the name, which the author did not
/// mean: `.*secret`, `secret_.*` and `a.*@evil.com` would match next to nothing. `.*` alone is so too where names are listed; among paths it is every
/// hidden name.
#[must_use]
pub fn is_expression(entry: &str) -> bool {
    let is_anchored = entry.starts_with('^') || entry.len() > 1 && entry.ends_with('$');
    let is_begun = entry.starts_with(".*");
    // `g++` is a name.
    let is_repeated = entry.strip_suffix('+').is_some_and(|rest| rest.ends_with(|last: char| last.is_ascii_alphanumeric() || last == ']'));
    // Nobody has a hidden folder at the root.
    let is_slashed = entry.strip_prefix("/.").and_then(|rest| rest.strip_suffix('/')).is_some_and(|name| !name.contains('/'));
    is_anchored || is_begun || is_repeated || is_slashed || ["|", "_.*", "-.*", ".*@", ".+"].iter().any(|part| entry.contains(part))
}

/// Returns a text of the passport as messages quote it: shortened if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => text.to_owned(),
        Some(_) => text.chars().take(QUOTED_CHARS_MAX).chain(['…']).collect(),
    }
}

/// One object of a passport. It tracks which keys were read, so that unknown ones can be reported.
#[derive(Debug)]
pub(super) struct Section<'d> {
    /// The path of the object.
    pub(super) path: String,
    /// The object; `None` if it is missing.
    value: Option<Value<'d>>,
    known: RefCell<Vec<&'static str>>,
}

impl<'d> Section<'d> {
    pub(super) fn new(path: String, value: Option<Value<'d>>) -> Self {
        Self { path, value, known: RefCell::default() }
    }

    /// Returns the path of a key of this object.
    pub(super) fn path_of(&self, key: &str) -> String {
        member_path(&self.path, key)
    }

    /// Returns the value under a key. Null counts as missing.
    pub(super) fn value(&self, key: &'static str) -> Option<Value<'d>> {
        self.known.borrow_mut().push(key);
        self.value.and_then(|value| value.get(key)).filter(|value| !value.is_null())
    }

    /// Returns the string under a key.
    pub(super) fn string(&self, key: &'static str) -> Field<String> {
        self.typed(key, "a string", |value| value.as_text()?.into_str().map(std::borrow::Cow::into_owned))
    }

    /// Returns the truth value under a key.
    pub(super) fn flag(&self, key: &'static str) -> Field<bool> {
        self.typed(key, "true or false", |value| value.as_bool())
    }

    /// Returns the number under a key, which must be 0 or more.
    pub(super) fn number(&self, key: &'static str) -> Field<Amount> {
        self.typed(key, "a number of 0 or more", Amount::read)
    }

    /// Returns the list of strings under a key, none of which may be empty.
    pub(super) fn strings(&self, key: &'static str) -> Field<Vec<String>> {
        let Some(value) = self.value(key) else { return Field::Absent };
        strings(value, &self.path_of(key)).map_or_else(Field::Malformed, Field::Valid)
    }

    /// Returns the paths of limits that were not read, except for those that limit nothing: null, and false under a name that says what is
    /// required.
    pub(super) fn unknown(&self) -> Vec<String> {
        let known = self.known.borrow();
        let members = self.value.iter().flat_map(Value::members);
        let named = members.filter_map(|(key, value)| Some((key.as_text()?.into_str()?, value)));
        let limiting = named.filter(|(key, value)| !value.is_null() && (value.as_bool() != Some(false) || !key.contains("require")));
        limiting.map(|(key, _)| key).filter(|key| !known.iter().any(|known| known == key)).map(|key| self.path_of(&key)).collect()
    }

    /// Returns the names of the limits that were read, whether or not they are there.
    pub(super) fn known(&self) -> Vec<&'static str> {
        let mut known = self.known.borrow().clone();
        known.sort_unstable();
        known.dedup();
        known
    }

    fn typed<T>(&self, key: &'static str, expected: &str, read: impl FnOnce(Value<'d>) -> Option<T>) -> Field<T> {
        let Some(value) = self.value(key) else { return Field::Absent };
        match read(value) {
            Some(read) => Field::Valid(read),
            None => Field::Malformed(Malformed::new(self.path_of(key), shape_of(value), expected)),
        }
    }
}

/// Returns what was found, in words. A negative number is named as such.
fn shape_of(value: Value<'_>) -> String {
    match value.shape() {
        Shape::Number if value.source().starts_with(b"-") => "a negative number".to_owned(),
        shape => shape.to_string(),
    }
}

/// Reads a value as a list of strings, none of which may be empty. `path` is the path of the value.
pub(super) fn strings(value: Value<'_>, path: &str) -> Result<Vec<String>, Malformed> {
    const EXPECTED: &str = "an array of strings";
    if value.shape() != Shape::Array {
        return Err(Malformed::new(path, value.shape(), EXPECTED));
    }
    let item = |(index, item): (usize, Value<'_>)| match item.as_text().and_then(Text::into_str) {
        Some(text) if text.is_empty() => Err(Malformed::new(item_path(path, index), "an empty string", "at least one character")),
        Some(text) => Ok(text.into_owned()),
        None => Err(Malformed::new(item_path(path, index), item.shape(), "a string")),
    };
    value.items().enumerate().map(item).collect()
}

/// An amount that a call asks for or a limit allows: a finite number of 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Amount(f64);

/// Amounts are finite, and a finite number equals itself.
impl Eq for Amount {}

impl Amount {
    /// Returns the amount that a JSON number stands for, if it is one.
    pub(super) fn read(value: Value<'_>) -> Option<Self> {
        let number = (value.shape() == Shape::Number).then(|| tollgate_json::number::parse_float(value.source()))?;
        (number.is_finite() && number >= 0.0).then_some(Self(number))
    }

    /// Returns the amount in another unit, of which so many are one of this.
    pub(super) fn times(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }

    /// Returns a number of bytes as an amount.
    pub(super) fn of_bytes(bytes: usize) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "no text is near 2^53 bytes")]
        Self(bytes as f64)
    }
}
