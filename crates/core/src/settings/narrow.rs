//! Readers of values that are narrower than a type: numbers between two others, durations, words of a list, and keys with defaults of their
//! own; and keys that are refused by name.

use serde_json::Value;

use super::{Accepted, Section, duration_text, parse_duration, shape};

impl Section<'_> {
    /// Returns a size or duration of at least `least` and at most `most`.
    #[must_use]
    pub fn between(&self, key: &'static str, least: u32, most: u32) -> u32 {
        let value = self.positive(key);
        self.accept(key, Accepted::Whole(least, most));
        if value < least {
            self.fault(key, "a smaller number", format!("write {least} or more"));
        }
        if value > most {
            self.fault(key, "a larger number", format!("write a number from {least} to {most}"));
        }
        value
    }

    /// Returns what one of some words stands for, or `None` where nothing is written, or another word, which is a fault.
    #[must_use]
    pub fn word<T: Copy>(&self, key: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        self.accept(key, Accepted::Word(words.iter().map(|(word, _)| *word).collect()));
        let written = self.optional_string(key).filter(|written| !written.is_empty())?;
        let found = words.iter().find(|(word, _)| *word == written);
        if found.is_none() {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.fault(key, "another word", format!("write {}", words.join(" or ")));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Returns a boolean, or `None` where nothing is written.
    #[must_use]
    pub fn optional_bool(&self, key: &'static str) -> Option<bool> {
        self.accept(key, Accepted::Flag);
        self.value(key).filter(|value| !value.is_null())?;
        Some(self.bool(key))
    }

    /// Returns a whole number of 1 or more, or `None` where nothing is written.
    #[must_use]
    pub fn optional_positive(&self, key: &'static str) -> Option<u32> {
        self.accept(key, Accepted::Whole(1, u32::MAX));
        self.value(key).filter(|value| !value.is_null())?;
        Some(self.positive(key))
    }

    /// Returns a boolean, or the default of another form of the section where the key is not written.
    #[must_use]
    pub fn bool_or(&self, key: &'static str, default: bool) -> bool {
        self.accept(key, Accepted::Flag);
        if self.is_written(key) { self.bool(key) } else { default }
    }

    /// Returns a whole number, or the default of another form of the section where the key is not written.
    #[must_use]
    pub fn u32_or(&self, key: &'static str, default: u32) -> u32 {
        self.accept(key, Accepted::Whole(0, u32::MAX));
        if self.is_written(key) { self.u32(key) } else { default }
    }

    /// Returns a number above 0 and at most `most`, which may have a fraction. `None` is a fault, which is noted.
    #[must_use]
    pub fn fraction(&self, key: &'static str, most: u32) -> Option<f64> {
        self.accept(key, Accepted::Fraction(most));
        let found = self.value(key);
        let number = found.and_then(Value::as_f64).filter(|number| *number > 0.0 && *number <= f64::from(most));
        if number.is_none() {
            self.fault(key, found.map_or("nothing", shape), format!("write a number above 0, up to {most}"));
        }
        number
    }

    /// Returns a whole number of 1 or more and at most `most`. `None` is a fault, which is noted.
    #[must_use]
    pub fn amount(&self, key: &'static str, most: u64) -> Option<u64> {
        self.accept(key, Accepted::Amount(most));
        let found = self.value(key);
        let number = found.and_then(Value::as_u64).filter(|number| (1..=most).contains(number));
        if number.is_none() {
            self.fault(key, found.map_or("nothing", shape), format!("write a whole number from 1 to {most}"));
        }
        number
    }

    /// Returns what `read` makes of a key, or `None` where nothing is written. `accepted` is what `read` accepts.
    pub fn optional<T>(&self, key: &'static str, accepted: Accepted, read: impl FnOnce(&Self) -> T) -> Option<T> {
        self.accept(key, accepted);
        self.value(key)?;
        Some(read(self))
    }

    /// Returns a duration in milliseconds, or `None` where nothing is written, or what is no duration between these two, which is a fault.
    #[must_use]
    pub fn duration(&self, key: &'static str, least_ms: i64, most_ms: i64) -> Option<i64> {
        self.accept(key, Accepted::Duration);
        let found = self.value(key)?;
        let Some(duration_ms) = found.as_str().and_then(parse_duration) else {
            let what = if found.is_string() { "a string that is no duration" } else { shape(found) };
            self.fault(key, what, "write a number with s, m, h or d, such as 90s, 15m, 2h or 1d");
            return None;
        };
        if duration_ms < least_ms {
            self.fault(key, "a shorter duration", format!("write {} or more", duration_text(least_ms)));
            return None;
        }
        if duration_ms > most_ms {
            self.fault(key, "a longer duration", format!("write {} at most", duration_text(most_ms)));
            return None;
        }
        Some(duration_ms)
    }

    /// Adds a fault for each key that belongs into the section under `key`, of which the keys have been read.
    pub fn refuse_keys_of(&self, key: &str, below: &Self) {
        for written in self.unread() {
            if let Some(meant) = below.nearest_read(written) {
                self.pass_over(written);
                self.fault(written, "an unknown key", format!("write `{meant}` under `{key}`, as in `{key}: {{{meant}: …}}`"));
            }
        }
    }

    /// Adds a fault for a key that has no place here, if it is written. Nobody has to know the key otherwise.
    pub fn refuse(&self, key: &'static str, found: &str, fix: &str) {
        if self.has(key) {
            self.pass_over(key);
            self.fault(key, found, fix);
        }
    }
}
