//! Patterns of tool names, for every list of tools in a configuration.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use tollgate_passport::{is_expression, is_invisible, known_tools};

use crate::settings::{Section, Spelling, nearest, shape};

/// Names of tools, in which `*` stands for any characters. Names are case-sensitive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolPatterns {
    names: FxHashSet<String>,
    globs: Vec<String>,
}

impl ToolPatterns {
    /// Returns patterns from their texts.
    #[must_use]
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        let (globs, names): (Vec<_>, Vec<_>) = patterns.into_iter().partition(|pattern| pattern.contains('*'));
        Self { names: names.into_iter().collect(), globs }
    }

    /// Returns whether a tool's name matches one of the patterns.
    #[must_use]
    pub fn matches(&self, tool_name: &str) -> bool {
        self.names.contains(tool_name) || self.globs.iter().any(|glob| glob_matches(glob, tool_name))
    }
}

/// Reads a list of tools: names, in which `*` stands for any characters. An entry in the form of another product's rules, such as
/// `Bash(rm *)`, would match no tool, and is a fault.
pub fn read_tools(section: &Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let entries = section.strings(key)?;
    for (index, entry) in entries.iter().enumerate() {
        if is_foreign(entry) {
            section.fault(&format!("{key}[{index}]"), FOREIGN, FOREIGN_FIX);
        }
    }
    Some(entries)
}

/// Reads a mapping from tools, written as [`read_tools`] says, to whole numbers of 1 or more.
pub fn read_numbers_of_tools(section: &Section<'_>, key: &'static str) -> BTreeMap<String, u32> {
    let mut numbers = BTreeMap::new();
    for entry in section.entries(key, Spelling::Underscores) {
        if is_foreign(&entry.key) {
            entry.fault(FOREIGN, FOREIGN_FIX);
        }
        match entry.found.value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0) {
            Some(number) => _ = numbers.insert(entry.key, number),
            None => entry.fault(shape(entry.found.value), "write a whole number of 1 or more"),
        }
    }
    numbers
}

const FOREIGN: &str = "an entry that the name of no tool matches";
const FOREIGN_FIX: &str = "write the name of a tool, in which * stands for any characters, such as mcp__github__*; what a tool is given is for a passport to limit";

/// Returns whether an entry can be the name of no tool: it holds a character that no name has, is a regular expression (`web_.*`), or names the
/// server of tools alone (`mcp__github`).
pub fn is_foreign(entry: &str) -> bool {
    let is_foreign = |character: char| {
        character.is_whitespace() || character.is_control() || is_invisible(character) || "()[]{}^$|\\?,\"'`;!~#%&<>=".contains(character)
    };
    let is_server = entry
        .strip_prefix("mcp__")
        .is_some_and(|rest| !rest.contains('*') && rest.split_once("__").is_none_or(|(_, tool)| tool.is_empty()));
    entry.is_empty() || entry.contains(is_foreign) || is_expression(entry) || is_server
}

/// Returns remarks on the entries of a list of tools that differ a little from tools that are known: names are compared as they are.
pub fn unknown_names<'e>(key: &str, entries: impl IntoIterator<Item = &'e String>) -> impl Iterator<Item = String> {
    let known: BTreeSet<&str> = known_tools().filter(|tool| !tool.contains('*')).collect();
    entries.into_iter().filter(|entry| !entry.contains('*')).filter_map(move |entry| {
        let cased: Vec<_> = known.iter().copied().filter(|tool| tool.eq_ignore_ascii_case(entry) && tool != entry).collect();
        if !cased.is_empty() {
            return Some(format!("{key}: {entry} does not match {}, which hosts know too", cased.join(", ")));
        }
        let meant = nearest(entry, known.iter().copied()).filter(|_| !known.contains(entry.as_str()))?;
        Some(format!("{key}: no tool that is known here is called {entry}; did you mean {meant}?"))
    })
}

/// Returns whether a name can match both patterns. Between stars there is room for the pieces of both, so that only the ends can differ.
pub fn have_common_names(one: &str, other: &str) -> bool {
    let (Some((one_start, one_rest)), Some((other_start, other_rest))) = (one.split_once('*'), other.split_once('*')) else {
        return if one.contains('*') { glob_matches(one, other) } else { glob_matches(other, one) };
    };
    let [one_end, other_end] = [one_rest, other_rest].map(|rest| rest.rsplit('*').next().unwrap_or_default());
    (one_start.starts_with(other_start) || other_start.starts_with(one_start))
        && (one_end.ends_with(other_end) || other_end.ends_with(one_end))
}

/// Returns whether a name matches a pattern in which `*` stands for any characters. Each piece is searched behind the one before it. The
/// leftmost match is enough, since it leaves the most room.
fn glob_matches(glob: &str, name: &str) -> bool {
    let mut pieces = glob.split('*');
    let Some(mut rest) = name.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_tool_is_called_is_foreign() {
        for entry in ["", "Bash(rm *)", "mcp__github", "mcp__github__", "mcp__memory__.*", ".*", "bash;", "!bash", "ba\u{200b}sh", "a\tb"] {
            assert!(is_foreign(entry), "{entry:?}");
        }
        for entry in
            ["bash", "mcp__*", "mcp__github__*", "mcp__git*", "mcp__a__b", "issues.*", "functions.exec", "ns:tool", "a/b", "w\u{e4}hle"]
        {
            assert!(!is_foreign(entry), "{entry}");
        }
    }

    #[test]
    fn patterns_have_names_in_common() {
        for (one, other, expected) in [
            ("web_*", "mcp__*", false),
            ("web_*", "*", true),
            ("web_*", "*_search", true),
            ("web_*", "web_fetch", true),
            ("web_fetch", "web_search", false),
            ("web_fetch", "web_fetch", true),
            ("*_read", "*_write", false),
            ("a*b*c", "ab*bc", true),
        ] {
            assert_eq!((have_common_names(one, other), have_common_names(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("bash", "bash", true),
            ("bash", "bashful", false),
            ("bash", "Bash", false),
            ("mcp__*", "mcp__github__delete", true),
            ("mcp__*", "mcp_", false),
            ("*_delete", "repo_delete", true),
            ("*_delete", "repo_deleted", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "abxbxa", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("a**b", "ab", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(ToolPatterns::new([pattern.to_owned()]).matches(name), expected, "{pattern} {name}");
        }
    }
}
