//! Readers of values that are narrower than a type: numbers between two others, words of a list, and keys with defaults of their own.

use super::{Accepted, Section};

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
}
