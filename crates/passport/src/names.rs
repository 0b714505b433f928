//! Sets of names: exact ones, and patterns with `*`. They are case-sensitive.

use std::collections::HashSet;

use super::argument_names::fold;
use super::fields::Malformed;
use super::glob::{self, Case, GlobIndex, Wildcards};

/// The names that a limit lists.
#[derive(Debug)]
pub(super) struct NameSet {
    exact: HashSet<String>,
    /// The exact names without case and punctuation.
    folded: HashSet<String>,
    patterns: GlobIndex,
}

impl NameSet {
    pub(super) fn new(entries: Vec<String>) -> Self {
        let (patterns, exact): (Vec<String>, Vec<String>) = entries.into_iter().partition(|entry| glob::has_wildcards(entry));
        let patterns = GlobIndex::new(patterns.iter().map(|pattern| (pattern.as_str(), 0)), Wildcards::Anywhere, Case::Sensitive);
        let folded = exact.iter().filter_map(|name| fold(name)).collect();
        Self { exact: exact.into_iter().collect(), folded, patterns }
    }

    /// Returns the set as a `Result`, for callers that also read lists which can have wrong entries.
    pub(super) fn read(entries: Vec<String>) -> Result<Self, Malformed> {
        Ok(Self::new(entries))
    }

    /// Returns whether an exact name of the set is this one but for case and punctuation, which the other has been freed of.
    pub(super) fn has_folded(&self, folded: &str) -> bool {
        self.folded.contains(folded)
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.exact.contains(name) || self.patterns.find(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::NameSet;

    #[test]
    fn names_are_exact_and_patterns_are_patterns() {
        let names = NameSet::new(["issues.*", "pull_create", "a"].map(str::to_owned).to_vec());
        for (name, expected) in [("issues.create", true), ("issues", false), ("pull_create", true), ("A", false), ("aa", false)] {
            assert_eq!(names.contains(name), expected, "{name}");
        }
        assert!(NameSet::new(vec!["*".to_owned()]).contains("anything/at all"));
        assert!(!NameSet::new(Vec::new()).contains(""));
    }
}
