//! Blocked patterns of paths.

use super::super::fields::Malformed;
use super::super::glob::{self, Case, GlobIndex, Wildcards};
use super::super::look_alike::plain_spelling;
use super::super::path::{NormalPath, PathSet, Purpose};
use super::super::shell_glob::ShellGlob;

/// Patterns of paths. Those without wildcards and slashes match anywhere in the text.
#[derive(Debug)]
pub(super) struct Patterns {
    entries: Vec<String>,
    words: GlobIndex,
    places: PathSet,
    /// The entries that begin at the root or a home, below which a whole folder may lie.
    pub(super) rooted: PathSet,
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
        let rooted = entries.iter().filter(|entry| entry.starts_with(['/', '~'])).cloned().collect();
        let rooted = PathSet::new(rooted, Purpose::Block, path)?;
        Ok(Self { entries, words, places, rooted })
    }

    /// Returns the pattern that blocks a path.
    pub(super) fn find(&self, path: &NormalPath, text: &str) -> Option<&str> {
        let word = || self.words.find(text).and_then(|tag| self.entries.get(tag)).map(String::as_str);
        self.places.find(path).or_else(word)
    }

    /// Returns whether a glob that is a whole path could find a path that a pattern blocks. A pattern that is relative may be found at any place.
    pub(super) fn may_be_found_at(&self, glob: &str) -> bool {
        self.places.may_be_found_at(glob) || self.places.may_be_found_at(glob.trim_start_matches('/'))
    }

    /// Returns whether a glob of a search below some folders asks for a path that a pattern blocks: the glob could find such a path, and has
    /// letters of its name. What finds all names, or all of an extension, asks for none.
    pub(super) fn is_asked_for_by(&self, glob: &str, folders: &[String]) -> bool {
        let lower = glob.to_lowercase();
        let depth = if glob.contains('/') { "" } else { "/**" };
        let mut globs = folders.iter().map(|folder| format!("{folder}{depth}/{glob}")).chain([glob.to_owned()]);
        let names = || self.entries.iter().flat_map(|entry| entry.split('/'));
        let says = |component: &str| {
            let pattern = ShellGlob::new(component);
            let is_open = pattern.is_anything() || pattern.is_kind();
            let says = |name: &str| {
                let name = name.to_lowercase();
                let found = if glob::has_wildcards(&name) { name.replace('?', "*") } else { format!("*{name}*") };
                pieces(&name).any(|name| pieces(component).any(|piece| overlaps(piece, name))) && pattern.meets(&found)
            };
            !is_open && names().any(says)
        };
        self.find(&NormalPath::new(glob), glob).is_some() || lower.split('/').any(says) && globs.any(|glob| self.may_be_found_at(&glob))
    }

    /// Returns how many entries there are.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many patterns a component of a path may be compared with.
    pub(super) fn weight(&self) -> usize {
        self.words.weight() + self.places.weight()
    }
}

/// Returns the texts between the wildcards of a component.
fn pieces(component: &str) -> impl Iterator<Item = &str> {
    component.split(['*', '?', '[', ']']).filter(|piece| !piece.is_empty())
}

/// Returns whether two texts may share letters in one name: one holds the other, or ends as the other begins.
fn overlaps(left: &str, right: &str) -> bool {
    let ends_as = |left: &str, right: &str| {
        right.char_indices().filter_map(|(at, char)| right.get(..at + char.len_utf8())).any(|front| left.ends_with(front))
    };
    left.contains(right) || right.contains(left) || ends_as(left, right) || ends_as(right, left)
}
