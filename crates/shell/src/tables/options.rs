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

/// What an option means for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    Free,
    /// `!`: it is one of those that others need.
    Needed,
    /// `?`: it needs one of those.
    Needing,
}

/// What is known of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Its name in the table, without dashes.
    pub name: &'static str,
    /// How it takes its value.
    pub takes: Takes,
    /// What it means for the others.
    pub role: Role,
}

/// The options of a program or subcommand.
#[derive(Debug, Default)]
pub struct Options {
    /// Options of one letter behind one dash, and words behind one dash, by what stands behind the dash.
    short: FxHashMap<&'static str, Known>,
    /// Options behind two dashes.
    long: FxHashMap<&'static str, Known>,
    /// Whether a number behind a dash is an option.
    pub has_numbers: bool,
    /// Whether one of the needed options must be there.
    pub is_needing: bool,
    /// Whether the value of one of them is a file or folder.
    pub has_files: bool,
    /// The options as they are written.
    pub words: Vec<&'static str>,
}

impl Options {
    /// Reads options as `programs.txt` writes them.
    #[must_use]
    pub fn new(text: &'static str) -> Self {
        let mut options = Self::default();
        options.extend(text.split_whitespace());
        options
    }

    /// Adds options.
    pub fn extend(&mut self, words: impl IntoIterator<Item = &'static str>) {
        for word in words {
            self.words.push(word);
            match word {
                "-NUM" => self.has_numbers = true,
                "?" => self.is_needing = true,
                _ => self.add(word),
            }
        }
    }

    fn add(&mut self, word: &'static str) {
        let (role, word) = match (word.strip_prefix('!'), word.strip_prefix('?')) {
            (Some(word), _) => (Role::Needed, word),
            (_, Some(word)) => (Role::Needing, word),
            _ => (Role::Free, word),
        };
        let (name, takes) = match word.split_once("[=") {
            Some((name, value)) => (name, Takes::Attached(value_kind(value.trim_end_matches(']')))),
            None => match word.split_once('=') {
                Some((name, "TWO")) => (name, Takes::Two),
                Some((name, value)) => (name, Takes::Value(value_kind(value))),
                None => (word, Takes::Nothing),
            },
        };
        self.has_files |= matches!(takes, Takes::Value(kind) | Takes::Attached(kind) if kind.is_file());
        let known = Known { name: name.trim_start_matches('-'), takes, role };
        match name.strip_prefix("--") {
            Some(long) => drop(self.long.insert(long, known)),
            None => drop(self.short.insert(name.trim_start_matches('-'), known)),
        }
    }

    /// Returns what is known of an option behind two dashes.
    #[must_use]
    pub fn long(&self, name: &str) -> Option<Known> {
        self.long.get(name).copied()
    }

    /// Returns what is known of an option behind one dash.
    #[must_use]
    pub fn short(&self, name: &str) -> Option<Known> {
        self.short.get(name).copied()
    }
}

fn value_kind(word: &str) -> Value {
    match word {
        "NEXT" => Value::Next,
        "SHELL" => Value::Shell,
        "SED" => Value::Sed,
        "WORD" => Value::Word,
        "NAME" => Value::Name,
        "EXPRESSION" => Value::Expression,
        "WARNING" => Value::Warning,
        "DISABLED" => Value::Disabled,
        "FILE" => Value::File,
        "BELOW" => Value::Below,
        "INPUT" => Value::Input,
        "ENCODING" => Value::Encoding,
        "FORMAT" => Value::Format,
        "GIT" => Value::Git,
        "STRATEGY" => Value::Strategy,
        "TRIPLE" => Value::Triple,
        "WRITTEN" => Value::Written,
        "PACKAGES" => Value::Packages,
        "REPOSITORY" => Value::Repository,
        "CMAKE" => Value::Cmake,
        _ => Value::Text,
    }
}

/// TABLE: letters that take no value in nearly every program, and may stand in front of one that does.
const FLAGS: &str = "itdqTP";

/// The most letters of an option behind one dash (`-iwithprefixbefore`).
const LETTERS_MAX: usize = 17;

/// Returns what may be the value that is attached to an option: behind `=`, behind its letter, or behind several letters: behind flags, what begins
/// at the root or a home behind three letters at most (`-itv/x:/y`, `-so/x`, but not `-Isrc/x`), and any other path (`-MF.git/x`, `-includea/b`).
pub(super) fn attached(text: &str) -> Vec<&str> {
    let value = text.split_once('=').map(|(_, value)| value);
    let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    let ends = letters.char_indices().take_while(|(_, letter)| letter.is_ascii_alphabetic()).map(|(at, _)| at + 1);
    let is_end = |at: &usize| {
        let flags = letters.get(..at - 1).unwrap_or_default();
        let value = letters.get(*at..).unwrap_or_default();
        let is_path = if value.starts_with(['/', '~']) { *at <= 3 } else { *at <= LETTERS_MAX && value.contains(['/', '.']) };
        is_path || flags.chars().all(|letter| FLAGS.contains(letter))
    };
    value.into_iter().chain(ends.filter(is_end).filter_map(|at| letters.get(at..))).filter(|value| !value.is_empty()).collect()
}
