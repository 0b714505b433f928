//! What readers take: the keys that they ask for and the values that they accept. The schema of the configuration is made of these notes, so
//! that it says what is read and nothing else.

use std::collections::{BTreeMap, BTreeSet};

/// The values that a reader accepts under a key. Null is always one of them, and counts as missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// A value that the reader looks at without asking for its type.
    Anything,
    /// A mapping with keys of its own.
    Section,
    /// A list of mappings with keys of their own.
    Sections,
    /// A boolean.
    Flag,
    /// A whole number between these two.
    Whole(u32, u32),
    /// A number above 0, up to this one.
    Fraction(u32),
    /// A whole number from 1 to this one.
    Amount(u64),
    /// A duration, such as `15m`.
    Duration,
    /// A text of at least one character.
    Text,
    /// One of these words.
    Word(Vec<&'static str>),
    /// A list of texts.
    Texts,
    /// A mapping whose keys are free.
    Mapping,
}

/// The notes on a configuration, by the paths of its keys. Elements of lists stand under `[]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// What is accepted under each key.
    pub accepted: BTreeMap<String, Accepted>,
    /// The keys that have to be written, because they have no default.
    pub required: BTreeSet<String>,
}

impl Notes {
    /// Adds a note. One that says more stays.
    pub(super) fn accept(&mut self, path: &str, accepted: Accepted) {
        let path = without_places(path);
        let known = self.accepted.entry(path).or_insert(Accepted::Anything);
        // A word is read as a text first, and a section is looked at before it is read.
        let says_more = !matches!((&*known, &accepted), (_, Accepted::Anything) | (Accepted::Word(_), Accepted::Text));
        if says_more {
            *known = accepted;
        }
    }

    pub(super) fn require(&mut self, path: &str) {
        self.required.insert(without_places(path));
    }

    /// Adds other notes.
    pub fn extend(&mut self, others: Self) {
        others.accepted.iter().for_each(|(path, accepted)| self.accept(path, accepted.clone()));
        self.required.extend(others.required);
    }
}

/// Returns a path whose places in lists are left out: `a[2].b` is `a[].b`.
fn without_places(path: &str) -> String {
    let mut in_brackets = false;
    let keep = |character: &char| {
        in_brackets = *character == '[' || (in_brackets && *character != ']');
        !in_brackets || *character == '['
    };
    path.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_say_more_stay() {
        let mut notes = Notes::default();
        notes.accept("a[2].b", Accepted::Text);
        notes.accept("a[10].b", Accepted::Word(vec!["x"]));
        notes.accept("a[0].b", Accepted::Text);
        notes.accept("a[0].b", Accepted::Anything);
        assert_eq!(notes.accepted, BTreeMap::from([("a[].b".to_owned(), Accepted::Word(vec!["x"]))]));
    }
}
