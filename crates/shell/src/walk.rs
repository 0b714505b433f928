//! Tree → the commands that run: loops over words are gone through, and what programs start by their tables is followed.

use std::rc::Rc;

use super::allow::Allow;
use super::argument::Argument;
use super::entry::Entry;
use super::files::{Directories, FileOperand, FileUse, Unplaced};
use super::found;
use super::grammar::{self, Command, Construct, Kind, Piece, Redirect, Refusal, Simple, Word};
use super::reached::{Doubt, Reached, Way};
use super::tables::{self, Reading, Unlisted};
use super::{COMMANDS_MAX, assignments, entry, streams};

/// The commands that need no permission: they do nothing outside the shell, and tell no more than whether a file is there.
const FREE: [&str; 14] = [":", "[", "[[", "break", "command", "continue", "exit", "export", "false", "set", "test", "true", "type", "wait"];

/// How many bytes of words are looked at in a line, with every turn of a loop counted: so many, and so many more for each byte of the line, up to
/// the most. What loops multiply is bounded so.
const WALKED: usize = 3 << 14;
const WALKED_PER_BYTE: usize = 6;
const WALKED_MAX: usize = 1 << 18;

/// The most doubts that are told of one line.
const DOUBTS_MAX: usize = 16;

/// What a word costs beside its text, in bytes.
pub(super) const WORD_BYTES: usize = 16;

/// Collects what runs.
#[derive(Debug, Default)]
pub struct Walk<'a> {
    /// The list of allowed commands; `None` if every command is allowed.
    pub(super) allow: Option<&'a Allow>,
    /// The commands that run.
    pub reached: Vec<Reached>,
    /// The files that are opened by redirections.
    pub files: Vec<FileUse>,
    /// The files that programs are given, by their tables.
    pub operands: Vec<FileOperand>,
    /// The names of files with numbers that the line computes, as globs.
    pub(super) numbered: Vec<String>,
    /// The folders in which programs look for names of files, as if they wrote there.
    pub(super) searched: Vec<FileOperand>,
    /// The same files and folders, with relative paths that are seen from a folder which is not known.
    pub(super) unplaced: Unplaced,
    /// The patterns with which programs look for names of files themselves.
    pub patterns: Vec<String>,
    /// Addresses that typed places of the list hold.
    pub urls: Vec<String>,
    /// The folders that `cd` goes to.
    pub directories: Directories,
    /// The commands that are not on the list, by their place in `reached`.
    pub not_allowed: Vec<usize>,
    /// What cannot be proven.
    pub doubts: Vec<Doubt>,
    /// Whether a command prints secrets by its nature.
    pub prints_secrets: bool,
    pub(super) ways: Vec<Way>,
    /// The variables of the loops around, with their values.
    pub(super) values: Vec<(String, Argument)>,
    /// Whether a variable in capitals around holds a text that `make` or a shell may read more in.
    pub(super) holds_odd: bool,
    /// The place of the text that is given to a shell, if this is inside one.
    pub(super) text_at: Option<usize>,
    pub(super) depth: usize,
    /// How many `while` loops are around.
    pub(super) repeats: usize,
    /// Whether what the command reads is names of files that a program has found.
    pub(super) is_fed_found: bool,
    /// Whether a NUL may stand between these names.
    pub(super) is_fed_nul: bool,
    /// Whether these names are whole, and none looks like an option.
    pub(super) is_fed_whole: bool,
    /// Whether what the command reads is numbers.
    pub(super) is_fed_numbers: bool,
    /// How many bytes the command reads from a pipe at most, and how many it writes, if that is known.
    pub(super) fed_bytes: Option<usize>,
    pub(super) written_bytes: Option<usize>,
    /// Whether the command reads what the line gives it: from a pipe, a file or a text.
    pub(super) is_fed: bool,
    /// Whether the loop around goes into a folder of each turn and back, and whether this turn has gone into it.
    pub(super) round: Option<bool>,
    /// Whether another program may read what the command prints.
    pub(super) is_read_on: bool,
    /// Whether a program reads names of files from a list.
    pub(super) reads_names: bool,
    /// Whether a program finds names that nothing narrows down, hidden ones among them.
    pub(super) finds_hidden: bool,
    /// Whether a program other than `cd` is given a relative path.
    pub(super) names_relative: bool,
    /// The places of programs that are named by relative paths.
    pub(super) relative_programs: Vec<usize>,
    /// The places of the words that an entry of the list has of a command which starts others.
    pub(super) authored: Vec<usize>,
    /// How many bytes of words may still be looked at.
    pub(super) budget: usize,
}

impl<'a> Walk<'a> {
    /// Returns a walk under a list of allowed commands; `None` for a walk under which every command is allowed.
    #[must_use]
    pub fn new(allow: Option<&'a Allow>) -> Self {
        Self { allow, budget: WALKED_MAX, ..Self::default() }
    }

    /// Walks a command line.
    ///
    /// # Errors
    /// [`Refusal`] if it is not in the grammar.
    pub fn line(&mut self, text: &str) -> Result<(), Refusal> {
        let list = grammar::parse_line(text, self.allow.is_some())?;
        self.budget = WALKED_MAX.min(WALKED + text.len() * WALKED_PER_BYTE);
        self.list(&list);
        self.resolve_files();
        Ok(())
    }

    pub(super) fn doubt(&mut self, construct: Construct, at: usize) {
        self.doubt_of(None, construct, at);
    }

    pub(super) fn doubt_of(&mut self, program: Option<String>, construct: Construct, at: usize) {
        let doubt = Doubt { construct, at: self.text_at.unwrap_or(at), program };
        // There is always room for saying once that not all has been looked at.
        let is_new = |other: &Doubt| if construct == Construct::TooMuch { other.construct != construct } else { *other != doubt };
        if (self.doubts.len() < DOUBTS_MAX || construct == Construct::TooMuch) && self.doubts.iter().all(is_new) {
            self.doubts.push(doubt);
        }
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        self.budget = self.budget.saturating_sub(bytes);
    }

    pub(super) fn is_over(&self) -> bool {
        self.budget == 0 || self.reached.len() >= COMMANDS_MAX
    }

    pub(super) fn pipeline(&mut self, pipeline: &[Command]) {
        let (outer, is_read_on, is_fed) = (self.is_fed_found, self.is_read_on, self.is_fed);
        let printing = streams::first_printing(pipeline);
        let found = self.found(pipeline);
        let mut fed_bytes = None;
        for (place, command) in pipeline.iter().enumerate() {
            if self.is_over() {
                return self.doubt(Construct::TooMuch, 0);
            }
            if place > 0 {
                self.is_fed_found = place <= found.commands;
                self.is_fed_nul = found.has_nul;
            }
            self.is_fed_whole = place == 1 && found.are_whole;
            let before = place.checked_sub(1).and_then(|before| pipeline.get(before));
            self.is_fed_numbers = !streams::reads_elsewhere(command) && before.is_some_and(|before| self.are_numbers(before));
            // What a command reads by a redirection is not what the pipe brings.
            self.is_fed_found &= !streams::reads_elsewhere(command);
            self.is_fed = is_fed || place > 0 || streams::reads_elsewhere(command);
            self.is_read_on = is_read_on || place + 1 < printing;
            self.fed_bytes = fed_bytes;
            fed_bytes = self.command(command);
        }
        (self.is_fed_found, self.is_fed_numbers, self.is_read_on, self.is_fed) = (outer, false, is_read_on, is_fed);
    }

    /// Walks a command: how many bytes it writes at most, if that is known.
    fn command(&mut self, command: &Command) -> Option<usize> {
        let outside = self.directories.spot();
        let written = match &command.kind {
            Kind::Simple(simple) => self.simple(simple, &command.redirects),
            kind => {
                self.compound(kind, command);
                None
            }
        };
        // A shell opens the files before it runs the command.
        let inside = self.directories.set(outside);
        for redirect in &command.redirects {
            if let Redirect::File { access, target } = redirect {
                self.redirect(*access, target, written);
            }
        }
        self.directories.set(inside);
        written
    }

    fn simple(&mut self, simple: &Simple, redirects: &[Redirect]) -> Option<usize> {
        let program = simple.words.first().and_then(Word::as_text).unwrap_or_default();
        let document = streams::document(redirects);
        let read = document.map(str::len).or(self.fed_bytes.filter(|_| !redirects.iter().any(streams::is_input)));
        for (name, value) in &simple.assignments {
            if !value.as_text().is_some_and(|value| assignments::is_harmless_for(program, name, value)) {
                self.doubt(Construct::Assignment, value.at);
            }
            if matches!(name.as_str(), "PYTHONPATH" | "NODE_PATH") {
                self.load_from(value.as_text().unwrap_or_default());
            }
        }
        if streams::feeds_others(simple, redirects) {
            let at = simple.words.first().map_or(0, |word| word.at);
            self.doubt_of(Some("exec".to_owned()), Construct::Argument(tables::FEEDS), at);
        }
        let is_process = |word: &&Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Process(_)));
        let mut words: Vec<Argument> = simple.words.iter().map(|word| self.argument(word)).collect();
        // Without a word it reads the patch.
        words.extend(document.filter(|_| program == "apply_patch" && words.len() == 1).map(Argument::known));
        // A list of names is no file that is only read.
        let is_read = || streams::takes_processes(program) && tables::reads_names(program, words.get(1..).unwrap_or_default()).is_none();
        if let Some(word) = simple.words.iter().find(is_process).filter(|_| !is_read()) {
            self.doubt(Construct::Process, word.at);
        }
        let written = streams::output_bytes(&words, read).filter(|_| simple.unbraced.is_empty());
        self.written_bytes = written;
        self.run(words);
        if !simple.unbraced.is_empty() {
            let words = simple.unbraced.iter().map(|word| self.argument(word)).collect();
            self.run(words);
        }
        self.written_bytes = None;
        written
    }

    /// Notes a command as reached: its program, its place among those that are reached, and its words. Nothing is returned for a program that is
    /// not known, which is a doubt.
    fn reach(&mut self, words: Vec<Argument>) -> Option<(String, usize, Rc<[Argument]>)> {
        let first = words.first()?;
        let program = first.as_known().map(str::to_owned);
        let Some(program) = program.filter(|_| !self.is_over()) else {
            let construct = if first.as_known().is_none() { Construct::Program } else { Construct::TooMuch };
            self.doubt(construct, first.at);
            return None;
        };
        self.spend(words.iter().map(|word| word.text.len() + WORD_BYTES).sum());
        let words: Rc<[Argument]> = words.into();
        self.reached.push(Reached {
            words: Rc::clone(&words),
            ways: self.ways.clone(),
            is_proven: true,
            texts: Vec::new(),
            files: Vec::new(),
        });
        Some((program, self.reached.len() - 1, words))
    }

    /// Notes a command, and walks what it starts.
    pub(super) fn run(&mut self, words: Vec<Argument>) {
        let Some((program, index, words)) = self.reach(words) else { return };
        let at = words.first().map_or(0, |first| first.at);
        let filled = self.allow.and_then(|allow| allow.filled(&words));
        let whole = filled.as_ref().map(|_| (words.len(), Vec::new()));
        let Some((given, between)) = whole.or_else(|| self.given(&program, &words)) else {
            return self.unlisted(program, index, at);
        };
        let arguments = words.get(1..).unwrap_or_default();
        if self.allow.is_some() && program.contains('/') && !program.starts_with('/') {
            self.relative_programs.push(at);
        }
        let name = program.rsplit('/').next().unwrap_or_default();
        let outside = self.directories.spot();
        self.git(name, arguments, at);
        let filled = filled.unwrap_or_default();
        let reading = tables::read(name, arguments);
        let is_listed = reading.is_ok();
        self.reads_value(name, is_listed, at);
        let entry = Entry { given, between: &between, filled: &filled, is_listed };
        let touched = self.touch(name, arguments, &entry);
        self.addresses(name, arguments, &entry);
        self.links(name, arguments);
        self.read_texts(name, arguments, index);
        let was_fed_found = self.is_fed_found;
        let is_parted = !self.is_fed_nul || tables::takes_nul(arguments);
        if matches!(name, "xargs" | "gxargs") && (tables::reads_list(arguments) || !is_parted) {
            (self.is_fed_found, self.is_fed_numbers) = (false, false);
        }
        self.is_fed_whole &= self.is_fed_found && found::takes_whole(arguments);
        let own = filled.iter().map(|(index, _)| index).chain(&between);
        let places: Vec<usize> = own.filter_map(|index| arguments.get(*index)).map(|argument| argument.at).collect();
        // What an entry says word for word is its author's, whatever a table makes of it. An interpreter alone reads what it runs.
        let is_written_out = given > 1 && given == words.len() && between.is_empty();
        self.prints_secrets |= !(is_written_out && places.is_empty()) && tables::prints_secrets(name, arguments);
        let hands_on = is_written_out && hands_on(name, &reading);
        let authored = words.iter().take(if given > 1 { given } else { 0 }).map(|word| word.at).filter(|at| !places.contains(at));
        let outer = std::mem::replace(&mut self.authored, authored.collect());
        let started = if is_written_out && !hands_on && !tables::is_refused(name) {
            entry::in_places(name, arguments, &filled, &places)
        } else {
            entry::read(name, arguments, if hands_on { 1 } else { given }, reading)
        };
        self.fill((name, arguments), filled, &touched, is_listed);
        if let Some(reached) = self.reached.get_mut(index) {
            reached.files = touched;
        }
        match started {
            Ok(started) => started.into_iter().for_each(|started| self.started(name, started)),
            // An interpreter that is listed by its name alone runs whatever it is given.
            Err(unlisted) if unlisted.what == tables::LITERAL && given == 1 && tables::runs(name).is_some() => {}
            Err(unlisted) => self.unproven(name, &unlisted, index, words.get(unlisted.index + 1).map_or(at, |word| word.at)),
        }
        self.is_fed_found = was_fed_found;
        self.authored = outer;
        self.goes(name, arguments, at);
        if name == "git" {
            self.directories.set(outside);
        }
    }

    /// Notes that a command is not on the list. Where the program is refused always, to list it would not help.
    fn unlisted(&mut self, program: String, reached: usize, at: usize) {
        if tables::is_refused(&program) {
            self.doubt_of(Some(program), Construct::Argument(tables::REFUSED), at);
        } else {
            self.not_allowed.push(reached);
        }
    }

    /// Notes that an argument of a reached command is not known to be harmless.
    fn unproven(&mut self, name: &str, unlisted: &Unlisted, reached: usize, place: usize) {
        if let Some(reached) = self.reached.get_mut(reached) {
            reached.is_proven = false;
        }
        let construct = match name {
            "read" => Construct::Read,
            _ if self.allow.is_none() => Construct::ShellText,
            _ => Construct::Argument(unlisted.what),
        };
        if self.allow.is_some() || tables::executes_texts(name) {
            self.doubt_of(Some(name.to_owned()), construct, place);
        }
    }

    /// Notes that a program may read a value that is not plain: one that runs a project's own files, or is given what its table does not know.
    fn reads_value(&mut self, name: &str, is_listed: bool, at: usize) {
        if self.holds_odd && (!is_listed || tables::runs(name).is_some()) {
            self.doubt(Construct::ReadValue, at);
        }
    }

    /// Notes where `git` goes by its options, and that it asks what to do.
    fn git(&mut self, name: &str, arguments: &[Argument], at: usize) {
        if name != "git" {
            return;
        }
        if arguments.first().is_some_and(|word| word.text.starts_with('-')) {
            // It may go to another folder, from which its operands are seen.
            self.directories.lose();
        }
        if (self.is_fed || !self.ways.is_empty()) && tables::asks(arguments) {
            // It does what it reads, and an editor takes commands from a pipe.
            self.doubt_of(Some("git".to_owned()), Construct::Argument(tables::ASKS), at);
        }
    }

    /// Returns how many words of a command that another one starts are those of the entry for both: `timeout 60 npm test` says so of `npm test`.
    /// Of what `xargs` and `find` hand names to, only the program counts.
    fn authored_words(&self, words: &[Argument]) -> Option<usize> {
        let Some(Way::Behind(starter)) = self.ways.last() else { return None };
        let count = words.iter().take_while(|word| self.authored.contains(&word.at)).count();
        let counted = if matches!(starter.as_str(), "xargs" | "gxargs" | "find" | "gfind") { count.min(1) } else { count };
        (counted > 0).then_some(counted)
    }

    /// Returns how many words of a command are those of an entry of the list, and the places of the arguments among them that are not: options that
    /// the program's table knows. `None` if the command is not on the list.
    fn given(&self, program: &str, words: &[Argument]) -> Option<(usize, Vec<usize>)> {
        let Some(allow) = self.allow else { return Some((0, Vec::new())) };
        // Behind a program that starts it, it is whatever has this name.
        let is_free = FREE.contains(&program) && !matches!(self.ways.last(), Some(Way::Behind(_)));
        // A program that an entry names may tell its version.
        let is_asked = || tables::asks_version(program, words.get(1..).unwrap_or_default()) && allow.names(program);
        let alone = |given: usize| (given, Vec::new());
        let plain = || self.authored_words(words).or_else(|| (is_free || is_asked()).then_some(1)).map(alone);
        let matched = allow.matched(words);
        let found = matched.filter(|given| *given > 1).map(alone).or_else(|| allow.matched_in_place(words)).or(matched.map(alone));
        let found = found.or_else(|| allow.matched_around(words)).or_else(plain);
        found.filter(|(given, between)| *given < 2 || self.stays(allow, words, (*given, between)))
    }

    /// Returns whether a builder works in the folder at hand, or in a folder that a word of its entry names. In another folder lie scripts of
    /// others, to which a line may go that may `cd`.
    fn stays(&self, allow: &Allow, words: &[Argument], (given, between): (usize, &[usize])) -> bool {
        let Some((program, arguments)) = words.split_first() else { return true };
        let name = program.text.rsplit('/').next().unwrap_or_default();
        let is_named = |place: &usize| place + 1 < given && !between.contains(place);
        let is_listed = |program: Argument| allow.matched(&[program]).is_some();
        tables::runs(name).is_none()
            || tables::entered(name, arguments).iter().all(is_named)
            || is_listed(Argument::known("cd"))
            || is_listed(program.clone())
    }
}

/// Returns whether a command that an entry has word for word gives other commands more than its words: names that `xargs` reads and `find` finds.
fn hands_on(name: &str, reading: &Reading) -> bool {
    match name {
        "xargs" | "gxargs" => true,
        "find" | "gfind" => reading.as_ref().is_ok_and(|started| !started.is_empty()),
        _ => false,
    }
}
