//! Sets of names: exact ones, and patterns with `*`. They are case-sensitive.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::glob::{self, Case, GlobIndex, Wildcards};
use super::look_alike::folded;

/// The names that a limit lists.
#[derive(Debug)]
pub(super) struct NameSet {
    exact: FxHashSet<String>,
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
        Self { exact: exact.into_iter().collect(), beginnings, lengths, patterns }
    }

    /// Returns the set of what is blocked: names, and patterns, that differ by case or punctuation alone are the same.
    pub(super) fn blocking(entries: Vec<String>) -> Self {
        let alike = |entry: &str| alike(entry, |char| "*?".contains(char));
        Self::new(entries.into_iter().flat_map(|entry| [alike(&entry), entry]).filter(|entry| !entry.is_empty()).collect())
    }

    /// Returns whether a set of what is blocked has a name.
    pub(super) fn blocks(&self, name: &str) -> bool {
        self.contains(name) || self.contains(&alike(name, |_| false))
    }

    /// Returns whether a set of what is blocked has a name by an entry without `*` and `?`.
    pub(super) fn names(&self, name: &str) -> bool {
        self.exact.contains(name) || self.exact.contains(&alike(name, |_| false))
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

/// Returns a name without case and look-alikes, and without punctuation but for what is kept.
fn alike(name: &str, is_kept: impl Fn(char) -> bool) -> String {
    folded(name).chars().filter(|char| char.is_alphanumeric() || is_kept(*char)).collect()
}

#[cfg(test)]
mod tests {
    use super::NameSet;

    #[test]
    fn blocked_names_are_so_in_any_case_and_with_any_punctuation() {
        let blocked = NameSet::blocking(["delete_*", "Merge-PR", "get?secret", "_"].map(str::to_owned).to_vec());
        for name in ["delete_repo", "delete-repo", "deleteRepo", "DELETE.REPO", "merge_pr", "mergePr", "get_secret", "\u{ff44}elete_x"] {
            assert!(blocked.blocks(name), "{name}");
        }
        for name in ["undelete", "merge", "getsecret", "_", "-"] {
            assert_eq!(blocked.blocks(name), name == "_", "{name}");
        }
    }

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
