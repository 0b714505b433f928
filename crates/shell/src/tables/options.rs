//! The options of a table, made ready for looking up.

use rustc_hash::FxHashMap;

use super::Value;

/// How an option takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// It has none.
    Nothing,
    /// It must have one.
    Value(Value),
    /// It may have one, attached.
    Attached(Value),
    /// It takes the next two arguments.
    Two,
}

/// The options of a program or subcommand.
#[derive(Debug, Default)]
pub struct Options {
    /// Options of one letter behind one dash, and words behind one dash, by what stands behind the dash.
    short: FxHashMap<&'static str, Takes>,
    /// Options behind two dashes.
    long: FxHashMap<&'static str, Takes>,
    /// Whether a number behind a dash is an option.
    pub has_numbers: bool,
}

impl Options {
    /// Reads options as [`super::Program::options`] writes them.
    #[must_use]
    pub fn new(text: &'static str) -> Self {
        let mut options = Self::default();
        for word in text.split_whitespace() {
            if word == "-NUM" {
                options.has_numbers = true;
                continue;
            }
            let (name, takes) = match word.split_once("[=") {
                Some((name, value)) => (name, Takes::Attached(value_kind(value.trim_end_matches(']')))),
                None => match word.split_once('=') {
                    Some((name, "TWO")) => (name, Takes::Two),
                    Some((name, value)) => (name, Takes::Value(value_kind(value))),
                    None => (word, Takes::Nothing),
                },
            };
            match name.strip_prefix("--") {
                Some(long) => drop(options.long.insert(long, takes)),
                None => drop(options.short.insert(name.trim_start_matches('-'), takes)),
            }
        }
        options
    }

    /// Returns an option behind two dashes by its name in the table, and how it takes its value.
    #[must_use]
    pub fn long(&self, name: &str) -> Option<(&'static str, Takes)> {
        self.long.get_key_value(name).map(|(name, takes)| (*name, *takes))
    }

    /// Returns an option behind one dash by its name in the table, and how it takes its value.
    #[must_use]
    pub fn short(&self, name: &str) -> Option<(&'static str, Takes)> {
        self.short.get_key_value(name).map(|(name, takes)| (*name, *takes))
    }
}

fn value_kind(word: &str) -> Value {
    match word {
        "NEXT" => Value::Next,
        "SHELL" => Value::Shell,
        "SED" => Value::Sed,
        _ => Value::Text,
    }
}
