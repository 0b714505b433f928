//! Sets of names: exact ones, and patterns with `*`. They are case-sensitive.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::argument_names::fold;
use super::fields::Malformed;
use super::glob::{self, Case, GlobIndex, Wildcards};

/// The names that a limit lists.
#[derive(Debug)]
pub(super) struct NameSet {
    exact: FxHashSet<String>,
    /// The exact names without case and punctuation.
    folded: FxHashSet<String>,
    /// What stands before the `*` of patterns that have one at their end alone, and the lengths of these texts in bytes. Most patterns are
    /// such, and a look-up for each length costs less than one in an index of all patterns.
    beginnings: FxHashSet<String>,
    lengths: BTreeSet<usize>,
    /// All other patterns, if there are any.
    patterns: Option<Box<GlobIndex>>,
}

impl NameSet {
    pub(super) fn new(entries: Vec<String>) -> Self {
        let (patterns, exact): (Vec<String>, Vec<String>) = entries.into_iter().partition(|entry| glob::has_wildcards(entry));
        let beginning = |pattern: &str| pattern.strip_suffix('*').filter(|rest| !glob::has_wildcards(rest)).map(str::to_owned);
        let (mut beginnings, mut others) = (FxHashSet::default(), Vec::new());
        for pattern in patterns {
            match beginning(&pattern) {
                Some(beginning) => _ = beginnings.insert(beginning),
                None => others.push(pattern),
            }
        }
        let lengths = beginnings.iter().map(String::len).collect();
        let index = || GlobIndex::new(others.iter().map(|pattern| (pattern.as_str(), 0)), Wildcards::Anywhere, Case::Sensitive);
        let patterns = (!others.is_empty()).then(|| Box::new(index()));
        let folded = exact.iter().filter_map(|name| fold(name)).collect();
        Self { exact: exact.into_iter().collect(), folded, beginnings, lengths, patterns }
    }

    /// Returns the set as a `Result`, for callers that also read lists which can have wrong entries.
    pub(super) fn read(entries: Vec<String>) -> Result<Self, Malformed> {
        Ok(Self::new(entries))
    }

    /// Returns whether an exact name of the set is this one but for case and punctuation, which the other has been freed of.
    pub(super) fn has_folded(&self, folded: &str) -> bool {
        self.folded.contains(folded)
    }

    /// Returns the name, or the pattern with a `*` at its end, that begins most like another name; `None` if nothing begins like it.
    pub(super) fn nearest(&self, name: &str) -> Option<String> {
        let alike = |known: &str| known.chars().zip(name.chars()).take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count();
        let exact = self.exact.iter().map(|known| (alike(known), known.clone()));
        let known = exact.chain(self.beginnings.iter().map(|known| (alike(known), format!("{known}*"))));
        let nearest = known.filter(|(alike, _)| *alike > 0).min_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
        nearest.map(|(_, known)| known)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        let has_beginning = |length: &usize| name.get(..*length).is_some_and(|beginning| self.beginnings.contains(beginning));
        self.exact.contains(name)
            || self.lengths.iter().any(has_beginning)
            || self.patterns.as_ref().is_some_and(|patterns| patterns.find(name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::NameSet;

    #[test]
    fn the_nearest_name_begins_most_like_another() {
        let names = NameSet::new(["create_issue", "create_pull", "list_*"].map(str::to_owned).to_vec());
        assert_eq!(names.nearest("create_issues").as_deref(), Some("create_issue"));
        assert_eq!(names.nearest("lists").as_deref(), Some("list_*"));
        assert_eq!(names.nearest("Create").as_deref(), Some("create_issue"));
        assert_eq!(names.nearest("push"), None);
    }

    #[test]
    fn names_are_exact_and_patterns_are_patterns() {
        let names = NameSet::new(["issues.*", "pull_create", "a", "g\u{e9}t_*", "*_end", "m?d*"].map(str::to_owned).to_vec());
        for (name, expected) in [
            ("issues.create", true),
            ("issues.", true),
            ("issues", false),
            ("pull_create", true),
            ("A", false),
            ("aa", false),
            ("g\u{e9}t_x", true),
            ("ge\u{301}t_x", false),
            ("x_end", true),
            ("mid", true),
            ("middle", true),
            ("md", false),
        ] {
            assert_eq!(names.contains(name), expected, "{name}");
        }
        assert!(NameSet::new(vec!["*".to_owned()]).contains("anything/at all"));
        assert!(!NameSet::new(Vec::new()).contains(""));
    }
}
