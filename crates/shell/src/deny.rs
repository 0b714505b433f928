//! The deny side: patterns that are commands are compared with every command that is reached, by program, options and leading words.

use rustc_hash::FxHashMap;

use super::argument::{Argument, Certainty};
use super::text::Texts;
use super::walk::Walk;
use super::{flags, literal_words, loose, tables};

/// How many words behind a program are looked at in a line that is not in the grammar.
const LOOSE_WORDS_MAX: usize = 64;

/// The blocked patterns: commands by the name of their program, all others in one automaton.
#[derive(Debug)]
pub struct Deny {
    patterns: Vec<String>,
    commands: FxHashMap<String, Vec<Pattern>>,
    texts: Texts,
}

/// A pattern that is a command.
#[derive(Debug)]
struct Pattern {
    /// Its place in the list.
    index: usize,
    /// Its words behind the program.
    words: Vec<String>,
}

/// What the deny side found.
#[derive(Debug, Default)]
pub struct Denied {
    /// The patterns, by their place in the list.
    pub patterns: Vec<usize>,
    /// The place of a command of which some words are computed, so that a pattern may match.
    pub hidden: Option<usize>,
}

impl Deny {
    /// Compiles the patterns. Blank ones are passed over.
    #[must_use]
    pub fn new(blocked: &[String]) -> Self {
        let mut commands: FxHashMap<String, Vec<Pattern>> = FxHashMap::default();
        let mut texts = Vec::new();
        for (index, pattern) in blocked.iter().enumerate() {
            match command_words(pattern) {
                Some(mut words) => {
                    let path = words.remove(0);
                    let program = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
                    commands.entry(program).or_default().push(Pattern { index, words });
                }
                None if pattern.trim().is_empty() => {}
                None => texts.push((index, pattern.as_str())),
            }
        }
        Self { patterns: blocked.to_vec(), commands, texts: Texts::new(&texts) }
    }

    /// Returns whether nothing is blocked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.iter().all(|pattern| pattern.trim().is_empty())
    }

    /// Returns whether a pattern names this program.
    #[must_use]
    pub fn names(&self, program: &str) -> bool {
        self.commands.contains_key(&program.to_ascii_lowercase())
    }

    /// Returns the pattern at a place in the list.
    #[must_use]
    pub fn pattern(&self, index: usize) -> Option<&str> {
        self.patterns.get(index).map(String::as_str)
    }

    /// Returns which patterns a line in the grammar matches.
    #[must_use]
    pub fn check(&self, command: &str, walk: &Walk<'_>) -> Denied {
        let mut denied = Denied::default();
        for reached in &walk.reached {
            self.command(&reached.words, &mut denied);
            self.removals(&reached.words, &mut denied);
            let name = reached.words.first().map_or("", |program| program.text.as_str());
            let is_known = tables::is_known(name) && tables::runs(name).is_none();
            if !reached.is_proven || !is_known {
                // It may start another command with its arguments.
                let last = reached.words.len().min(LOOSE_WORDS_MAX);
                (1..last).for_each(|from| self.command(reached.words.get(from..).unwrap_or_default(), &mut denied));
            }
            if !reached.is_proven {
                // Some argument may be executed: whatever stands in its text counts.
                let texts = reached.words.iter().skip(1).filter(|word| word.text.contains([' ', '\t', '\n', '=', '!']));
                texts.for_each(|word| self.words_of(&word.text, &mut denied));
            }
        }
        self.texts.command(command, &mut denied.patterns);
        walk.reached.iter().for_each(|reached| self.texts.words(&reached.words, &mut denied.patterns));
        walk.files.iter().for_each(|file| self.texts.text(&file.path, &mut denied.patterns));
        walk.paths(&mut |path, is_glob| self.texts.path(path, is_glob, &mut denied.patterns));
        denied.sort();
        denied
    }

    /// Returns which patterns a line matches that is not in the grammar: all its words count, wherever they stand, quoted or not.
    #[must_use]
    pub fn check_loosely(&self, command: &str) -> Denied {
        let mut denied = Denied::default();
        self.words_of(command, &mut denied);
        self.texts.command(command, &mut denied.patterns);
        loose::words(command).iter().flatten().for_each(|word| self.texts.path(&word.text, true, &mut denied.patterns));
        denied.hidden = None;
        denied.sort();
        denied
    }

    /// Takes `find -delete` for what it amounts to.
    fn removals(&self, words: &[Argument], denied: &mut Denied) {
        let is_find = words.first().is_some_and(|program| program.text.rsplit('/').next() == Some("find"));
        if is_find && words.iter().any(|word| word.text == "-delete") {
            self.command(&["rm", "-r", "-f"].map(Argument::known), denied);
        }
    }

    /// Looks for commands at every word of a text.
    fn words_of(&self, text: &str, denied: &mut Denied) {
        if self.commands.is_empty() {
            return;
        }
        for words in loose::words(text) {
            (0..words.len()).for_each(|from| {
                let to = words.len().min(from + LOOSE_WORDS_MAX);
                self.command(words.get(from..to).unwrap_or_default(), denied);
            });
        }
    }

    /// Compares a command with the patterns for its program.
    fn command(&self, words: &[Argument], denied: &mut Denied) {
        let Some((program, arguments)) = words.split_first() else { return };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        let family = flags::family(&lower);
        let of_family = (family != lower).then(|| self.commands.get(family)).flatten();
        let mut read: Option<Read> = None;
        for pattern in self.commands.get(&lower).into_iter().chain(of_family).flatten() {
            let read = read.get_or_insert_with(|| Read::new(&lower, arguments, *name != *lower));
            match read.matches(&lower, &pattern.words) {
                Match::Yes => denied.patterns.push(pattern.index),
                Match::Hidden => denied.hidden = denied.hidden.or(Some(program.at)),
                Match::No => {}
            }
        }
    }
}

impl Denied {
    fn sort(&mut self) {
        self.patterns.sort_unstable();
        self.patterns.dedup();
    }
}

/// Says whether a command matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    /// It may match: that depends on words that are computed.
    Hidden,
    No,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Flag {
    Short(char),
    Long(String),
}

/// The words of a command, read as options and others.
#[derive(Debug)]
struct Read {
    options: Vec<Flag>,
    operands: Vec<Option<String>>,
    /// Whether the first operand is surely not the value of an option.
    is_first_sure: bool,
    /// How many operands are known to stand before the first computed word that may be an option; `None` if there is no such word.
    hidden_after: Option<usize>,
}

impl Read {
    /// Reads the words behind a program. `fold` for a program whose name is not in lower case: a file system on which it is found folds
    /// case, and options are folded for good measure.
    fn new(program: &str, arguments: &[Argument], fold: bool) -> Self {
        let mut read = Self { options: Vec::new(), operands: Vec::new(), is_first_sure: true, hidden_after: None };
        let mut only_operands = false;
        let mut is_value = false;
        let mut subcommand = String::new();
        for field in arguments {
            if read.hidden_after.is_none() && matches!(field.certainty, Certainty::Nothing | Certainty::Value) {
                read.hidden_after = Some(read.operands.len());
            }
            let text = if fold { field.text.to_ascii_lowercase() } else { field.text.clone() };
            if std::mem::take(&mut is_value) {
                continue;
            }
            if !only_operands && text.len() > 1 && text.starts_with('-') {
                only_operands = text == "--";
                if read.operands.is_empty() && !only_operands {
                    match flags::takes_value(program, &text) {
                        Some(takes) => is_value = takes,
                        None => read.is_first_sure = false,
                    }
                }
                read.option(program, &subcommand, &text);
                continue;
            }
            if let Some(option) = flags::meaning(program, &subcommand, &text) {
                read.options.push(Flag::Long(option.to_owned()));
            }
            if read.operands.is_empty() {
                subcommand.clone_from(&text);
            }
            read.operands.push(field.as_known().map(|_| text));
        }
        read
    }

    fn option(&mut self, program: &str, subcommand: &str, text: &str) {
        if let Some(option) = flags::meaning(program, subcommand, text) {
            self.options.push(Flag::Long(option.to_owned()));
        }
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            if !name.is_empty() {
                self.options.push(Flag::Long(name.to_owned()));
            }
            return;
        }
        let letters = text.get(1..).unwrap_or_default();
        if flags::has_word_options(program) {
            self.options.push(Flag::Long(letters.to_owned()));
        }
        for letter in letters.chars() {
            self.options.push(match flags::long_name(program, subcommand, letter) {
                Some(long) => Flag::Long(long.to_owned()),
                None => Flag::Short(letter),
            });
        }
    }

    fn matches(&self, program: &str, pattern: &[String]) -> Match {
        let fields: Vec<Argument> = pattern.iter().map(Argument::known).collect();
        let wanted = Self::new(program, &fields, false);
        let has_options = wanted.wanted_options(program).iter().all(|option| self.has(program, option));
        let operands: Vec<&str> = wanted.operands.iter().flatten().map(String::as_str).collect();
        if has_options && self.has_operands(program, &operands) {
            return Match::Yes;
        }
        match self.hidden_after {
            Some(known) if operands.is_empty() || known == 0 || !self.is_first_sure => Match::Hidden,
            Some(_) if operands.first().is_some_and(|first| self.is_operand(program, 0, first)) => Match::Hidden,
            _ => Match::No,
        }
    }

    /// Returns the options of a pattern; a word behind one dash counts as a whole where the program has such options.
    fn wanted_options(&self, program: &str) -> Vec<Flag> {
        if !flags::has_word_options(program) {
            return self.options.clone();
        }
        self.options.iter().filter(|option| matches!(option, Flag::Long(_))).cloned().collect()
    }

    fn has(&self, program: &str, wanted: &Flag) -> bool {
        self.options.iter().any(|option| match (option, wanted) {
            (Flag::Long(given), Flag::Long(wanted)) => {
                // Long options may be abbreviated.
                given == wanted || (!given.is_empty() && wanted.starts_with(given.as_str()) && !flags::has_long(program, given))
            }
            (given, wanted) => given == wanted,
        })
    }

    fn is_operand(&self, program: &str, at: usize, wanted: &str) -> bool {
        let Some(Some(text)) = self.operands.get(at) else { return false };
        let is_root = |text: &str| text.starts_with('/') && text.bytes().all(|byte| matches!(byte, b'/' | b'.'));
        flags::same_word(program, text) == flags::same_word(program, wanted)
            || (wanted.ends_with('=') && text.starts_with(wanted))
            || (wanted == "/" && is_root(text))
    }

    /// Returns whether these words stand among the operands in this order, the first one first where that is known.
    fn has_operands(&self, program: &str, wanted: &[&str]) -> bool {
        let mut at = 0;
        for (index, word) in wanted.iter().enumerate() {
            // The operands of `dd if=… of=…` may come in any order.
            if word.ends_with('=') {
                if !(0..self.operands.len()).any(|at| self.is_operand(program, at, word)) {
                    return false;
                }
                continue;
            }
            let candidates = if index == 0 && self.is_first_sure { 0..1 } else { at..self.operands.len() };
            match candidates.into_iter().find(|at| self.is_operand(program, *at, word)) {
                Some(found) => at = found + 1,
                None => return false,
            }
        }
        true
    }
}

/// Returns the words of a pattern that is meant as a command: its first word looks like a program, and it is no path alone.
fn command_words(pattern: &str) -> Option<Vec<String>> {
    let words = literal_words(pattern)?;
    let program = words.first()?;
    let is_name = program.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '/')
        && program.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-/".contains(&byte))
        && !program.ends_with('/');
    let is_path_alone = words.len() == 1 && program.contains('/');
    // `DROP TABLE` is another language.
    let is_shouted = program.bytes().any(|byte| byte.is_ascii_uppercase()) && !program.bytes().any(|byte| byte.is_ascii_lowercase());
    (is_name && !is_path_alone && !is_shouted).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, command: &str) -> Match {
        let pattern = literal_words(pattern).unwrap();
        let words: Vec<Argument> = literal_words(command).unwrap().into_iter().map(Argument::known).collect();
        Read::new(&pattern[0], &words[1..], false).matches(&pattern[0], &pattern[1..])
    }

    #[test]
    fn options_match_in_any_order_and_form() {
        for command in ["rm -rf x", "rm -fr x", "rm x -r -f", "rm --recursive --force x", "rm -Rfv x", "rm --rec --fo x"] {
            assert_eq!(matches("rm -rf", command), Match::Yes, "{command}");
        }
        for command in ["rm -r x", "rm -f x", "rm x", "rm -- -rf"] {
            assert_eq!(matches("rm -rf", command), Match::No, "{command}");
        }
    }

    #[test]
    fn leading_words_match_behind_options() {
        for command in ["git push -f", "git -C /x push origin --force", "git push origin +main", "git --unlisted x push --force"] {
            assert_eq!(matches("git push --force", command), Match::Yes, "{command}");
        }
        for command in ["git push", "git push --force-with-lease", "git stash push --force", "git fetch --force", "git -C push fetch -f"] {
            assert_eq!(matches("git push --force", command), Match::No, "{command}");
        }
    }

    #[test]
    fn words_that_mean_the_same_match() {
        assert_eq!(matches("chmod 777", "chmod -R a+rwx x"), Match::Yes);
        assert_eq!(matches("chmod 777", "chmod 755 x"), Match::No);
        assert_eq!(matches("dd if=", "dd bs=1M if=/dev/zero of=x"), Match::Yes);
        assert_eq!(matches("rm -rf /", "rm -rf //"), Match::Yes);
        assert_eq!(matches("rm -rf /", "rm -rf /tmp"), Match::No);
    }

    #[test]
    fn patterns_that_are_no_commands_are_texts() {
        for pattern in ["*credentials*", "/etc/passwd", ":(){ :|:& };:", "| sh", "a|b", "[x]", "DROP TABLE", ".env", "X=1 y", "$(", "a; b"]
        {
            assert_eq!(command_words(pattern), None, "{pattern}");
        }
        for pattern in ["rm -rf", "sudo", "git push --force", "chmod 777", "dd if=", "mkfs"] {
            assert!(command_words(pattern).is_some(), "{pattern}");
        }
    }
}
