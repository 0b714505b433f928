//! Sets of names: exact ones, and patterns with `*`. They are case-sensitive.

use std::collections::HashSet;

use super::fields::Malformed;
use super::glob::{self, Case, GlobIndex, Wildcards};

/// The names that a limit lists.
#[derive(Debug)]
pub(super) struct NameSet {
    exact: HashSet<String>,
    patterns: GlobIndex,
}

impl NameSet {
    pub(super) fn new(entries: Vec<String>) -> Self {
        let (patterns, exact): (Vec<String>, Vec<String>) = entries.into_iter().partition(|entry| glob::has_wildcards(entry));
        let patterns = GlobIndex::new(patterns.iter().map(|pattern| (pattern.as_str(), 0)), Wildcards::Anywhere, Case::Sensitive);
        Self { exact: exact.into_iter().collect(), patterns }
    }

    /// Returns the set as a `Result`, for callers that also read lists which can have wrong entries.
    pub(super) fn read(entries: Vec<String>) -> Result<Self, Malformed> {
        Ok(Self::new(entries))
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
