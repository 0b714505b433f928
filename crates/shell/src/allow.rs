//! The allow side: only what is proven to be on the list passes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::argument::Argument;
use super::literal_words;
use super::tables;
use super::template::{Place, Template};

/// The list of allowed commands, indexed by the first word.
#[derive(Debug, Default)]
pub struct Allow {
    any: bool,
    /// Entries without places, their words joined by [`SEPARATOR`].
    pub(crate) entries: FxHashSet<String>,
    /// The longest entry with this first word, in words.
    longest: FxHashMap<String, usize>,
    /// Entries with typed places.
    pub(crate) templates: Vec<Template>,
    /// The entries of `curl`, without the options that only say how it shows what it fetches.
    fetched: Vec<Template>,
}

/// The separator, which stands in no word: a command with a NUL is not parsed.
pub(crate) const SEPARATOR: char = '\0';

impl Allow {
    /// Compiles the list. `None` is the same as an empty list.
    #[must_use]
    pub fn new(allowed: Option<&[String]>) -> Self {
        let mut allow = Self::default();
        for entry in allowed.unwrap_or_default() {
            if entry.trim() == "*" {
                allow.any = true;
                continue;
            }
            allow.fetched.extend(fetched(entry));
            if let Some(template) = Template::read(entry) {
                // An entry that cannot be read matches nothing: `remarks` says so to its author.
                allow.templates.extend(template);
                continue;
            }
            let words = literal_words(entry).unwrap_or_else(|| entry.split_whitespace().map(str::to_owned).collect());
            let Some(first) = words.first() else { continue };
            let longest = allow.longest.entry(first.clone()).or_default();
            *longest = words.len().max(*longest);
            allow.entries.insert(words.join("\0"));
        }
        allow
    }

    /// Returns whether every command is allowed.
    #[must_use]
    pub fn allows_any(&self) -> bool {
        self.any
    }

    /// Returns whether no command is.
    #[must_use]
    pub fn allows_none(&self) -> bool {
        !self.any && self.entries.is_empty() && self.templates.is_empty()
    }

    /// Returns whether a program of this name is on the list, with or without further words.
    #[must_use]
    pub fn names(&self, program: &str) -> bool {
        self.longest.contains_key(program) || self.templates.iter().any(|template| template.program() == program)
    }

    /// Returns how many words the longest entry has with which a command begins; `None` if the command is not on the list.
    #[must_use]
    pub fn matched(&self, words: &[Argument]) -> Option<usize> {
        let first = words.first().and_then(Argument::as_known).unwrap_or_default();
        let longest = self.longest.get(first)?;
        let mut joined = String::new();
        let mut matched = None;
        for (index, word) in words.iter().take(*longest).enumerate() {
            let Some(text) = word.as_known() else { break };
            if !joined.is_empty() {
                joined.push(SEPARATOR);
            }
            joined.push_str(text);
            if self.entries.contains(&joined) {
                matched = Some(index + 1);
            }
        }
        matched
    }

    /// Returns the same, and the places of arguments among these words that no entry has: options that the program's table knows.
    #[must_use]
    pub fn matched_around(&self, words: &[Argument]) -> Option<(usize, Vec<usize>)> {
        let (first, arguments) = words.split_first()?;
        let program = first.as_known()?;
        let places = tables::without_options(program, arguments)?;
        let left = places.iter().filter_map(|place| arguments.get(*place));
        let left: Vec<Argument> = std::iter::once(first).chain(left).cloned().collect();
        let matched = self.matched(&left).filter(|given| *given > 1)?;
        let last = places.get(matched - 2)?;
        Some((last + 2, (0..*last).filter(|place| !places.contains(place)).collect()))
    }

    /// Returns the same where an entry lets `sed` write its files, however the command says so.
    #[must_use]
    pub fn matched_in_place(&self, words: &[Argument]) -> Option<(usize, Vec<usize>)> {
        let (first, arguments) = words.split_first().filter(|(first, _)| matches!(first.as_known(), Some("sed" | "gsed")))?;
        let (at, _) = tables::in_place(arguments)?;
        let is_listed = self.matched(&[first.clone(), Argument::known("-i")]) == Some(2);
        is_listed.then(|| (at + 2, (0..at).collect()))
    }

    /// Returns the typed places that a command fills, each with the place of its argument; `None` if it matches no entry with places, or is an
    /// entry word for word. Of several entries with places that match, the entry counts that holds the fewest words to the rules of files and of
    /// the web, and of these the first: a narrow entry takes nothing away from a wide one, and a wide one nothing from a narrow one.
    #[must_use]
    pub fn filled(&self, words: &[Argument]) -> Option<Vec<(usize, Place)>> {
        let (program, arguments) = words.split_first()?;
        if self.matched(words) == Some(words.len()) {
            return None;
        }
        let templates = self.templates.iter().filter(|template| Some(template.program()) == program.as_known());
        let held = |filled: &Vec<(usize, Place)>| filled.iter().filter(|(_, place)| matches!(place, Place::Path | Place::Url)).count();
        let filled = templates.filter_map(|template| template.matched(arguments)).min_by_key(held);
        filled.or_else(|| {
            let places = tables::without_showing(arguments).filter(|_| program.as_known() == Some(CURL))?;
            let left: Vec<Argument> = places.iter().filter_map(|at| arguments.get(*at)).cloned().collect();
            let filled = self.fetched.iter().filter_map(|template| template.matched(&left)).min_by_key(held)?;
            filled.into_iter().map(|(index, place)| Some((*places.get(index)?, place))).collect()
        })
    }
}

/// The program whose entries say what is fetched.
const CURL: &str = "curl";

/// Reads an entry of `curl` without the options that only say how it shows what it fetches.
fn fetched(entry: &str) -> Option<Template> {
    let words: Vec<&str> = entry.split_ascii_whitespace().collect();
    let (_, rest) = words.split_first().filter(|(program, _)| **program == CURL)?;
    let places = tables::without_showing(&rest.iter().copied().map(Argument::known).collect::<Vec<_>>())?;
    let left: Vec<&str> = std::iter::once(CURL).chain(places.iter().filter_map(|at| rest.get(*at).copied())).collect();
    Template::parse(&left).ok().filter(|_| !places.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entries: &[&str], words: &[&str]) -> bool {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let words: Vec<Argument> = words.iter().map(|word| Argument::known(*word)).collect();
        Allow::new(Some(&entries)).matched(&words).is_some()
    }

    #[test]
    fn an_entry_allows_commands_that_begin_with_its_words() {
        assert!(allows(&["git status"], &["git", "status", "-s"]));
        assert!(!allows(&["git status"], &["git", "push"]));
        assert!(!allows(&["git status"], &["git"]));
        assert!(allows(&["git status", "git"], &["git", "push"]));
        assert!(!allows(&["git"], &["/usr/bin/git", "status"]));
        assert!(!allows(&["git"], &["gitevil"]));
        assert!(allows(&["'my tool' run"], &["my tool", "run", "x"]));
    }

    #[test]
    fn an_entry_word_for_word_needs_no_place() {
        let entries = ["curl {url}", "curl {any}", "cp {path} {path}", "cp {any} {path}", "curl http://localhost/"].map(str::to_owned);
        let allow = Allow::new(Some(&entries));
        let filled = |line: &str| allow.filled(&line.split(' ').map(Argument::known).collect::<Vec<_>>());
        assert_eq!(filled("curl http://localhost/"), None);
        assert_eq!(filled("curl http://localhost/x"), Some(vec![(0, Place::Any)]));
        assert_eq!(filled("cp a b"), Some(vec![(0, Place::Any), (1, Place::Path)]));
    }

    #[test]
    fn blank_entries_allow_nothing() {
        assert!(Allow::new(Some(&[" ".to_owned()])).allows_none());
        assert!(Allow::new(None).allows_none());
    }
}
