//! Words → arguments: what a word stands for in the loops that are around it, as far as that is known.

use std::borrow::Cow;

use super::argument::{Argument, Certainty};
use super::found::{self, Found};
use super::grammar::{self, Access, Command, Construct, Kind, List, Piece, Redirect, Simple, Trim, Word};
use super::output::{self, Form};
use super::reached::Way;
use super::streams;
use super::walk::Walk;

/// TABLE: variables of the environment in which no secret is kept, and that no line sets.
const KNOWN_NAMES: [&str; 8] = ["GOPATH", "HOSTNAME", "JAVA_HOME", "LOGNAME", "PATH", "SHELL", "USER", "VIRTUAL_ENV"];

impl Walk<'_> {
    /// Returns what a word stands for.
    pub(super) fn argument(&mut self, word: &Word) -> Argument {
        let mut argument = Argument { at: word.at, ..Argument::default() };
        let mut is_split = false;
        let (mut names, mut others, mut numbers) = (false, false, false);
        for (index, piece) in word.pieces.iter().enumerate() {
            if let Some(text) = self.literal(piece) {
                argument.text.push_str(&text);
                continue;
            }
            let front = argument.text.len();
            let (unknown, splits) = self.piece(piece, word, index, &mut argument);
            is_split |= splits;
            numbers |= std::mem::take(&mut argument.is_number);
            let is_name = std::mem::take(&mut argument.is_reference);
            names |= is_name;
            others |= !is_name && unknown != Certainty::Known;
            argument.certainty = joined(argument.certainty, unknown, argument.text.get(..front).unwrap_or_default());
        }
        argument.is_reference = names && !others;
        // With anything beside it, it is no number.
        argument.is_number = numbers && argument.text == "*";
        argument.computed |= argument.found && is_glued(&argument.text);
        if is_split {
            // What stands in front of the first word is not in front of the others.
            "*".clone_into(&mut argument.text);
            argument.certainty = Certainty::Nothing;
        }
        self.spend(argument.text.len());
        argument
    }

    /// Appends what a piece that is not written out stands for. Returns what is known of it, and whether it may be several words.
    fn piece(&mut self, piece: &Piece, word: &Word, index: usize, argument: &mut Argument) -> (Certainty, bool) {
        let mut splits = false;
        let certainty = match piece {
            Piece::Text(_) | Piece::Sum(_) => {
                self.doubt(Construct::Arithmetic, word.at);
                Certainty::Nothing
            }
            Piece::Glob(char) => {
                argument.many = true;
                argument.text.push(*char);
                Certainty::Nothing
            }
            Piece::Home | Piece::Directory => self.folder(piece, word, index, argument),
            Piece::Status => {
                argument.text.push('*');
                argument.is_number = true;
                Certainty::Operand
            }
            // The same form as the output of `pgrep`.
            Piece::Background => {
                argument.text.push('*');
                (argument.many, argument.computed, argument.is_number) = (true, true, true);
                Certainty::Operand
            }
            Piece::Variable { name, trim, quoted, at } => {
                let certainty = self.variable((name, trim), *quoted, *at, argument);
                splits = !quoted && certainty == Certainty::Nothing && self.values.iter().any(|(bound, _)| bound == name);
                certainty
            }
            Piece::Output { list, quoted } => {
                let (certainty, is_plain) = self.output((list, *quoted), word, index, argument);
                argument.many |= !quoted && certainty != Certainty::Known;
                splits = !quoted && !is_plain;
                certainty
            }
            Piece::Process(list) => {
                self.read_output(list);
                argument.text.push_str("/dev/null");
                Certainty::Known
            }
        };
        (certainty, splits)
    }

    /// Returns the text of a piece that is written out, as a sum is whose variables hold digits.
    fn literal<'p>(&self, piece: &'p Piece) -> Option<Cow<'p, str>> {
        match piece {
            Piece::Text(text) => Some(Cow::Borrowed(text)),
            Piece::Sum(text) => self.sum(text).map(|value| Cow::Owned(value.to_string())),
            _ => None,
        }
    }

    fn sum(&self, text: &str) -> Option<u32> {
        const SIGNS: [char; 4] = [' ', '+', '-', '*'];
        let mut read = String::with_capacity(text.len());
        for part in text.split_inclusive(SIGNS) {
            let name = part.trim_end_matches(SIGNS);
            let is_name = name.starts_with(|first: char| !first.is_ascii_digit());
            let bound = || self.values.iter().rev().find(|(bound, _)| bound == name).filter(|(_, value)| !value.is_numbered);
            let is_decimal = |value: &&str| value.bytes().all(|byte| byte.is_ascii_digit());
            let value = if is_name { bound()?.1.as_known().filter(is_decimal)? } else { name };
            read.push_str(value);
            read.push_str(part.strip_prefix(name)?);
        }
        grammar::sum(&read)
    }

    /// Appends the home or working directory, and returns what is known of it.
    fn folder(&mut self, piece: &Piece, word: &Word, index: usize, argument: &mut Argument) -> Certainty {
        if !(argument.text.is_empty() || argument.text.ends_with(['=', ':', '@', ','])) {
            self.doubt(Construct::Inside, word.at);
        }
        let is_home = *piece == Piece::Home;
        argument.text.push(if is_home { '~' } else { '.' });
        let is_path = match word.pieces.get(index + 1) {
            None => true,
            Some(Piece::Text(text)) => text.is_empty() || text.starts_with('/'),
            Some(_) => false,
        };
        // Another name than that of the folder begins there, which nobody knows.
        if !is_home && !is_path {
            self.doubt(Construct::Inside, word.at);
        }
        // Where the home directory is not set, only a slash behind it makes it a path.
        if is_path || !is_home { Certainty::Operand } else { Certainty::Nothing }
    }

    /// Walks commands whose output is read.
    pub(super) fn read_output(&mut self, list: &List) {
        self.ways.push(Way::Substitution);
        let is_read_on = std::mem::replace(&mut self.is_read_on, true);
        self.elsewhere(|walk| walk.list(list));
        self.is_read_on = is_read_on;
        self.ways.pop();
    }

    /// Appends the output of commands, and returns what is known of it, with whether it is one word without blanks.
    fn output(&mut self, (list, quoted): (&List, bool), word: &Word, index: usize, argument: &mut Argument) -> (Certainty, bool) {
        self.read_output(list);
        // Where the commands fail, what stands behind would begin the word.
        let next = match word.pieces.get(index + 1) {
            None => "",
            Some(Piece::Text(text)) => text.as_str(),
            Some(_) => "/",
        };
        let is_range = next.starts_with("..") && next.trim_start_matches('.').starts_with(|first: char| first.is_ascii_alphanumeric());
        let may_be_empty = !argument.text.is_empty() || next.is_empty() || is_range;
        let form = output::form(list).filter(|form| *form == Form::Number || may_be_empty);
        let is_alone = argument.text.is_empty() && next.is_empty();
        let number = output::number(list).unwrap_or_default();
        match form {
            // A number stands for all, but in the name of a file. How many digits a count has is not known.
            Some(Form::Number) if number.len() > 1 || is_alone || argument.text.starts_with('-') => {
                argument.text.push_str(&number);
                argument.is_numbered = true;
                (Certainty::Known, true)
            }
            Some(Form::Revision) if ends_name(&argument.text, next) => {
                argument.text.push('1');
                (Certainty::Known, true)
            }
            Some(Form::Revision) if is_alone && quoted => {
                argument.text.push('1');
                (Certainty::Operand, true)
            }
            Some(Form::Ids) if is_alone => {
                argument.text.push('1');
                argument.computed = true;
                (Certainty::Operand, true)
            }
            // There may be none. Without quotes the next argument takes its place then, and between others what stands around it is another path.
            Some(form) if form != Form::Ids => {
                argument.text.push(if form == Form::Revision && is_alone { '1' } else { '*' });
                argument.computed = true;
                argument.is_reference = true;
                (Certainty::Operand, true)
            }
            _ if is_alone && self.prints_numbers(list) => {
                argument.text.push('*');
                argument.computed = true;
                argument.is_number = true;
                (Certainty::Operand, true)
            }
            _ => {
                argument.text.push('*');
                let is_found = self.is_found(list);
                argument.computed |= !is_found;
                argument.found |= is_found;
                (Certainty::Nothing, false)
            }
        }
    }

    /// Returns whether commands print numbers and nothing else, or nothing.
    pub(super) fn prints_numbers(&mut self, list: &List) -> bool {
        let [pipeline] = list.as_slice() else { return false };
        pipeline.commands.last().is_some_and(|last| self.are_numbers(last))
    }

    /// Returns whether what a command prints is numbers. Errors among them would be none, and what commands print is not looked at twice.
    pub(super) fn are_numbers(&mut self, command: &Command) -> bool {
        let Kind::Simple(Simple { assignments, words, .. }) = &command.kind else { return false };
        let may_count = words.first().and_then(Word::as_text).is_some_and(|program| output::COUNTERS.contains(&program));
        may_count && assignments.is_empty() && self.words_of(command).is_some_and(|words| output::are_numbers(&words))
    }

    /// Returns what the commands of a pipeline find.
    pub(super) fn found(&mut self, pipeline: &[Command]) -> Found {
        let words = |command: &Command| self.words_of(command).filter(|_| !streams::reads_elsewhere(command));
        if pipeline.first().is_some_and(streams::may_find) {
            found::found(&pipeline.iter().map(words).collect::<Vec<_>>())
        } else {
            Found::default()
        }
    }

    /// Returns whether a list prints names of files that a program has found, each in a line of its own.
    pub(super) fn is_found(&mut self, list: &List) -> bool {
        let [pipeline] = list.as_slice() else { return false };
        let found = self.found(&pipeline.commands);
        found.commands == pipeline.commands.len() && !found.has_nul
    }

    /// Returns the words of a simple command whose errors nobody takes for what it prints. The commands in a word are not walked once more: only
    /// where the form of their output is known, the word is no option.
    fn words_of(&mut self, command: &Command) -> Option<Vec<Argument>> {
        let Command { kind: Kind::Simple(Simple { words, unbraced, .. }), redirects } = command else { return None };
        let is_silent = |redirect: &Redirect| match redirect {
            Redirect::File { access: Access::Write, target } => target.as_text() == Some("/dev/null"),
            Redirect::File { .. } | Redirect::Document(_) => true,
            Redirect::Joined => false,
        };
        if !unbraced.is_empty() || !redirects.iter().all(is_silent) {
            return None;
        }
        let is_open = |word: &Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Output { .. } | Piece::Process(_)));
        let word = |word: &Word| match word.as_output() {
            Some(list) if output::form(list).is_some() => Argument { certainty: Certainty::Operand, many: true, ..Argument::known("1") },
            _ if is_open(word) => Argument { certainty: Certainty::Nothing, many: true, computed: true, ..Argument::known("*") },
            _ => self.argument(word),
        };
        Some(words.iter().map(word).collect())
    }

    /// Appends the value of a variable, and returns what is known of it.
    fn variable(&mut self, (name, trim): (&str, &Trim), quoted: bool, at: usize, argument: &mut Argument) -> Certainty {
        let Some((_, value)) = self.values.iter().rev().find(|(bound, _)| bound == name) else {
            // No line sets it, and it is no secret. What is in it is not known: it may be an option, or several words.
            if KNOWN_NAMES.contains(&name) && *trim == Trim::Nothing {
                argument.text.push('*');
                argument.many |= !quoted;
                argument.computed = true;
                return Certainty::Nothing;
            }
            self.doubt(Construct::Variable, at);
            return Certainty::Nothing;
        };
        // What a loop has for its variable has no blank and no glob in it if it is plain. Braces are not looked at any more.
        let is_plain =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./,:@%+{}".contains(&byte));
        let trimmed = trimmed(value, trim);
        let is_status = trimmed.is_number && !trimmed.computed && *trim == Trim::Nothing;
        let is_unquoted = !quoted && !is_status && !trimmed.as_known().is_some_and(is_plain);
        // What a program prints is any number of words there, as it is without a variable around it.
        let is_printed = trimmed.computed || trimmed.found;
        argument.many |= is_unquoted;
        argument.computed |= trimmed.computed;
        argument.found |= trimmed.found;
        argument.is_reference |= trimmed.is_reference && *trim == Trim::Nothing;
        argument.is_number |= trimmed.is_number && *trim == Trim::Nothing;
        argument.is_numbered |= trimmed.is_numbered;
        let length = value.text.len();
        if length <= self.budget {
            argument.text.push_str(&trimmed.text);
        }
        if is_unquoted && !is_printed {
            self.doubt(Construct::Unquoted, at);
        }
        self.spend(length);
        trimmed.certainty
    }
}

/// Returns the value of a variable without what is taken away from it.
fn trimmed(value: &Argument, trim: &Trim) -> Argument {
    let text = value.text.as_str();
    let is_known = value.certainty == Certainty::Known;
    // The end of a value that is not known to its end is not known either, nor is it known which digits of a number stand there.
    let is_open = |end: &str| {
        let behind = text.rsplit(['*', '?', ']']).next().unwrap_or_default();
        let is_number = value.is_numbered && end.contains(|char: char| char.is_ascii_digit());
        is_number || !is_known && !text.ends_with(end) && end.ends_with(behind)
    };
    let text = match trim {
        Trim::Nothing => text,
        Trim::End(end) if is_open(end) => {
            return Argument { text: "*".to_owned(), certainty: Certainty::Nothing, computed: true, ..value.clone() };
        }
        Trim::End(end) => text.strip_suffix(end.as_str()).unwrap_or(text),
        Trim::Folders => text.rsplit('/').next().unwrap_or_default(),
    };
    let certainty = match trim {
        Trim::Folders if !is_known => match text.find(['*', '?', '[']) {
            Some(0) | None => Certainty::Nothing,
            Some(at) => unfinished(text.get(..at).unwrap_or_default()),
        },
        _ => value.certainty,
    };
    // A name without its folders is another one, of a file in the folder at hand that no program has found.
    let is_found = value.found && *trim != Trim::Folders;
    let computed = value.computed || value.found && !is_found;
    Argument { text: text.to_owned(), certainty, found: is_found, computed, ..value.clone() }
}

/// Returns whether text stands beside a name that a program has found in a path, and is part of another name then: a found name may be `.`, or
/// begin with `./`. An ending such as `.bak` behind the whole name makes a name with this ending.
#[must_use]
pub fn is_glued(path: &str) -> bool {
    let is_ending = |end: &str| {
        let name = end.strip_prefix('.').unwrap_or_default();
        name.starts_with(|first: char| first.is_ascii_alphanumeric()) && !name.contains(['*', '?', '['])
    };
    let is_whole = |part: &str| part.strip_prefix('*').is_some_and(|end| end.is_empty() || is_ending(end));
    // In front of these signs stands another word.
    let mut parts = path.split(['/', '=', ':', ',', '@']).skip_while(|part| !part.contains('*')).peekable();
    let is_first = parts.peek().is_none_or(|part| is_whole(part));
    !is_first || parts.any(|part| part == ".." || part.contains('*') && !is_whole(part))
}

/// Returns whether a word with a revision in it is as good a name without it: `build-$(…)`, `build-$(…).tgz`.
fn ends_name(front: &str, behind: &str) -> bool {
    let is_begun = front.strip_suffix('-').is_some_and(|name| name.ends_with(|last: char| last.is_ascii_alphanumeric()));
    is_begun && !front.starts_with('-') && (behind.is_empty() || behind.starts_with('.'))
}

/// Returns what is known of a word of which this was known up to a piece behind the text in front.
fn joined(certainty: Certainty, piece: Certainty, front: &str) -> Certainty {
    match (certainty, piece) {
        (certainty, Certainty::Known) => certainty,
        (Certainty::Known, piece) if front.is_empty() => piece,
        (Certainty::Known, _) => unfinished(front),
        (certainty, _) => certainty,
    }
}

/// Returns what is known of a word that begins with this text and goes on with something unknown.
fn unfinished(text: &str) -> Certainty {
    match text.strip_prefix('-') {
        None => Certainty::Operand,
        Some(rest) if rest.starts_with('-') && rest.contains('=') => Certainty::Value,
        Some(_) => Certainty::Nothing,
    }
}
