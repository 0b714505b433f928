//! Blocked patterns of paths.

use super::super::fields::Malformed;
use super::super::glob::{self, Case, GlobIndex, Wildcards};
use super::super::look_alike::plain_spelling;
use super::super::path::{NormalPath, PathSet, Purpose};

/// Patterns of paths. Those without wildcards and slashes match anywhere in the text.
#[derive(Debug)]
pub(super) struct Patterns {
    entries: Vec<String>,
    words: GlobIndex,
    places: PathSet,
}

impl Patterns {
    /// Returns the patterns of a list, which is at `path` in the passport.
    pub(super) fn read(entries: Vec<String>, path: &str) -> Result<Self, Malformed> {
        let is_word = |(_, entry): &(usize, &String)| !glob::has_wildcards(entry) && !entry.contains('/');
        // A word beyond ASCII is looked for in its plain spelling too, as texts are.
        let spellings = |(tag, entry): (usize, &String)| {
            let plain = plain_spelling(entry).filter(|_| !entry.is_ascii());
            std::iter::once(entry.clone()).chain(plain).map(move |word| (format!("**{word}**"), tag))
        };
        let words: Vec<(String, usize)> = entries.iter().enumerate().filter(is_word).flat_map(spellings).collect();
        let words = GlobIndex::new(words.iter().map(|(word, tag)| (word.as_str(), *tag)), Wildcards::WithinComponent, Case::Ignored);
        // A glob may find a name that holds a word, wherever it lies.
        let holding = entries.iter().enumerate().filter(is_word).map(|(_, word)| format!("**/*{word}*"));
        let places = PathSet::new(entries.iter().cloned().chain(holding).collect(), Purpose::Block, path)?;
        Ok(Self { entries, words, places })
    }

    /// Returns the pattern that blocks a path.
    pub(super) fn find(&self, path: &NormalPath, text: &str) -> Option<&str> {
        let word = || self.words.find(text).and_then(|tag| self.entries.get(tag)).map(String::as_str);
        self.places.find(path).or_else(word)
    }

    /// Returns whether a glob that is a whole path could find a path that a pattern blocks.
    pub(super) fn may_be_found_at(&self, glob: &str) -> bool {
        self.places.may_be_found_at(glob)
    }

    /// Returns how many patterns a component of a path may be compared with.
    pub(super) fn weight(&self) -> usize {
        self.words.weight() + self.places.weight()
    }
}
