//! Which entry of a list a refused command comes nearest to, and which entries a line misses: for those who ask why a line was refused, and for
//! no verdict.

use std::fmt;

use super::allow::{Allow, SEPARATOR};
use super::argument::Argument;
use super::walk::Walk;
use super::{COMMAND_BYTES_MAX, CommandRules, place, tables};

/// The entry of a list that a command comes nearest to. It holds words of the list, and no word of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearEntry {
    /// The entry.
    pub entry: String,
    /// Which word of the command departs from the entry, from 1 on.
    pub word: usize,
    /// What the entry has there; `None` if the entry ends before.
    pub expected: Option<String>,
}

impl fmt::Display for NearEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entry, word, expected } = self;
        write!(
            formatter,
            "the nearest entry of allowed_commands is '{entry}', and the command departs from it at word {word}, where the entry "
        )?;
        match expected {
            Some(expected) => write!(formatter, "has '{expected}'"),
            None => formatter.write_str("has ended"),
        }
    }
}

impl CommandRules {
    /// Returns which entry the first command of a line comes nearest to that is not on the list; `None` if every command is on the list, if no
    /// entry has the command's program, or if the line cannot be proven.
    #[must_use]
    pub fn nearest(&self, command: &str) -> Option<NearEntry> {
        self.refused(command, |_, words| self.allow.nearest(words)).into_iter().next().flatten()
    }

    /// Returns an entry for each command of a line that is not on the list: its program and, where the program's table has some, its subcommand.
    /// A program that may not be named is told by its place in the line, in characters from 1.
    #[must_use]
    pub fn missing(&self, command: &str) -> Vec<Result<String, usize>> {
        let missing = self.refused(command, |at, words| {
            let (program, arguments) = words.split_first()?;
            let known = program.as_known().filter(|name| self.program(Some(name)).name.is_some());
            Some(known.ok_or(place(command, at)).map(|name| match tables::subcommand_name(name, arguments) {
                Some(subcommand) => format!("{name} {subcommand}"),
                None => name.to_owned(),
            }))
        });
        let mut entries = Vec::new();
        missing.into_iter().flatten().for_each(|entry| {
            if !entries.contains(&entry) {
                entries.push(entry)
            }
        });
        entries
    }

    /// Returns what a function says of each command of a line that is not on the list, given its place in bytes and its words.
    fn refused<T>(&self, command: &str, say: impl Fn(usize, &[Argument]) -> T) -> Vec<T> {
        let mut walk = Walk::new(Some(&self.allow));
        if command.len() > COMMAND_BYTES_MAX || self.allow.allows_any() || walk.line(command).is_err() {
            return Vec::new();
        }
        let refused = walk.not_allowed.iter().filter_map(|index| walk.reached.get(*index));
        refused.map(|reached| say(reached.words.first().map_or(0, |first| first.at), &reached.words)).collect()
    }
}

impl Allow {
    /// Returns the entry that a command which is not on the list comes nearest to; `None` if no entry has its program. Of entries with as many
    /// words in common the first in the order of the alphabet counts.
    pub(crate) fn nearest(&self, words: &[Argument]) -> Option<NearEntry> {
        let program = words.first().and_then(Argument::as_known)?;
        let plain = self.entries.iter().filter_map(|entry| near_plain(&entry.split(SEPARATOR).collect::<Vec<_>>(), words));
        let arguments = words.get(1..).unwrap_or_default();
        let templates = self.templates.iter().filter(|template| template.program() == program).map(|template| {
            let (at, expected) = template.departure(arguments);
            NearEntry { entry: template.to_string(), word: at + 2, expected }
        });
        plain.chain(templates).min_by(|one, other| other.word.cmp(&one.word).then_with(|| one.entry.cmp(&other.entry)))
    }
}

/// Returns where a command departs from an entry without places that has the command's program, whatever the folder of the program is.
fn near_plain(entry: &[&str], words: &[Argument]) -> Option<NearEntry> {
    let alike = entry.iter().zip(words).take_while(|(entry, word)| word.as_known() == Some(**entry)).count();
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let is_program = || words.first().and_then(Argument::as_known).map(name) == entry.first().map(|program| name(program));
    (alike > 0 || is_program()).then(|| NearEntry {
        entry: entry.join(" "),
        word: alike + 1,
        expected: entry.get(alike).map(|word| (*word).to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(entries: &[&str], line: &str) -> Option<(String, usize, Option<String>)> {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let words: Vec<Argument> = line.split(' ').map(Argument::known).collect();
        Allow::new(Some(&entries)).nearest(&words).map(|near| (near.entry, near.word, near.expected))
    }

    #[test]
    fn the_entry_with_most_words_in_common_is_the_nearest() {
        let near = |entry: &str, word, expected: &str| Some((entry.to_owned(), word, Some(expected.to_owned())));
        let list = ["git status", "git log --oneline", "ls", "gh pr view {number} [--json {word}]", "kubectl get pods"];
        assert_eq!(nearest(&list, "git push origin"), near("git log --oneline", 2, "log"));
        assert_eq!(nearest(&list, "git log -p"), near("git log --oneline", 3, "--oneline"));
        assert_eq!(nearest(&list, "/usr/bin/ls -l"), near("ls", 1, "ls"));
        assert_eq!(nearest(&list, "gh pr view seven"), near("gh pr view {number} [--json {word}]", 4, "{number}"));
        assert_eq!(nearest(&list, "gh pr view 7 --json -x"), near("gh pr view {number} [--json {word}]", 6, "{word}"));
        assert_eq!(nearest(&list, "gh pr"), near("gh pr view {number} [--json {word}]", 3, "view"));
        assert_eq!(nearest(&["wc {path}"], "wc a b"), Some(("wc {path}".to_owned(), 3, None)));
        assert_eq!(nearest(&list, "rm -rf x"), None);
    }

    #[test]
    fn every_command_that_the_list_misses_is_named_once() {
        let missing = |line: &str| CommandRules::new(Some(&["ls".to_owned(), "git log".to_owned()]), &[]).missing(line);
        let named = |names: &[&str]| names.iter().map(|name| Ok((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(missing("ls && tail x | head; tail y && git push origin && git log"), named(&["tail", "head", "git push"]));
        assert_eq!(missing("ls && ./frobnicate x"), [Err(7)]);
        assert_eq!(missing("ls $("), []);
    }

    #[test]
    fn it_says_nothing_of_the_command_but_a_number() {
        let said =
            |expected: Option<&str>| NearEntry { entry: "git log".to_owned(), word: 2, expected: expected.map(str::to_owned) }.to_string();
        assert!(said(Some("log")).ends_with("is 'git log', and the command departs from it at word 2, where the entry has 'log'"));
        assert!(said(None).ends_with("at word 2, where the entry has ended"));
    }
}
