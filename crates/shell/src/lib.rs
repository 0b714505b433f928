//! Proves which commands a shell command line would execute, and whether a list of rules allows them.
//!
//! Give it a command line that somebody else wrote, such as a language model, and a list of what is allowed and what is blocked:
//! [`CommandRules::check`] returns the objections. [`analyse`] returns the commands themselves, to explain a decision.
//!
//! The two kinds of rules are applied differently:
//!
//! - **The allow side** proves. A line is allowed only if it is in a small [`grammar`] that bash, dash, zsh and busybox sh read alike, if
//!   every command in it is on the list, and if every argument is known to its program's table ([`tables`]). What is not proven is
//!   refused, with its place and with what to write instead.
//! - **The deny side** is a seat belt. Patterns are compared with every command that runs, behind `sudo`, `env`, `xargs` and their like and
//!   in `sh -c` texts too. A line that is not in the grammar is refused where there are patterns, unless
//!   [`CommandRules::letting_unproven_through`] says otherwise; then patterns are compared with all its words.
//!
//! | file | what it does |
//! |---|---|
//! | [`grammar`] | text → tree, or the construct that is not in the grammar |
//! | `walk`, `compound`, `reached`, `expand`, `output`, `found` | tree → the commands that run |
//! | `folders` | in which folder each of them runs |
//! | `touch`, `filled`, `files` | the files that redirections open, and those that programs are given |
//! | `template` | an entry with typed places: `gh pr view {number}` |
//! | `entry` | what an entry of the list says of the arguments |
//! | [`tables`] | a row of `programs.txt` for each program: the arguments that are known to be harmless |
//! | `assignments` | the variables that may be set |
//! | `allow` | the list |
//! | `deny`, `flags`, `text`, `paths`, `loose` | the patterns |
//! | [`globs`] | whether two wildcard patterns have a text in common |
//! | `near` | the entry of the list that a refused command comes nearest to |
//! | `finding` | the objections, with their messages |
//! | `advice` | what the author of a list should know about its entries |
//!
//! # What this does not do
//!
//! It judges a command line, not what programs do, and it is no sandbox. Shells are taken to be bash, dash, zsh or busybox sh that is
//! given the line by `-c` or in a file: not interactive, without aliases and with its options as they are by default. A listed interpreter
//! runs arbitrary code, and so does whatever runs a project's own files.

mod advice;
mod allow;
mod argument;
mod assignments;
mod compound;
mod deny;
mod entry;
mod expand;
mod files;
mod filled;
mod finding;
mod flags;
mod folders;
mod found;
pub mod globs;
pub mod grammar;
mod loose;
mod names;
mod near;
mod output;
mod patch;
mod paths;
mod reached;
mod starts;
mod streams;
pub mod tables;
mod template;
mod text;
mod touch;
mod walk;

pub use advice::{Remark, remarks};
use allow::Allow;
pub use argument::{Argument, Certainty};
use deny::Deny;
pub use files::{Below, FileOperand, FileUse};
pub use filled::decoded;
pub use finding::{CommandFinding, Listed, Program, Unproven};
use grammar::{Construct, Refusal};
pub use near::NearEntry;
pub use patch::patched;
use reached::{Doubt, Reached, Way};
use rustc_hash::FxHashSet;
pub use tables::{HIDDEN_ONES, braces};
pub use template::has_place;
use walk::Walk;

/// The longest command that is parsed, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// The most simple commands that one command line may execute, with every turn of a loop over words counted.
pub const COMMANDS_MAX: usize = 1024;

/// The most different words of a line that are looked at, in every folder that the line goes to.
const WORDS_MAX: usize = 16_384;

/// The rules for commands, compiled.
#[derive(Debug)]
pub struct CommandRules {
    allow: Allow,
    deny: Deny,
    lets_unproven_through: bool,
}

/// What is said of a command line.
#[derive(Debug, Default)]
pub struct Checked {
    /// Every objection, allow side first. If there is none, the line may run, as far as its commands go.
    pub findings: Vec<CommandFinding>,
    /// The files that redirections open, under a list of commands: whoever lets the line run has to allow them. Devices that keep nothing
    /// are not among them.
    pub files: Vec<FileUse>,
    /// The files that programs are given by arguments, in every folder that the line goes to.
    pub operands: Vec<FileOperand>,
    /// The patterns with which programs look for names of files themselves.
    pub patterns: Vec<String>,
    /// Addresses in typed places of the list: whoever lets the line run has to allow them.
    pub urls: Vec<String>,
    /// Whether a command prints secrets by its nature, such as the environment or a token.
    pub prints_secrets: bool,
    words: Vec<(String, bool)>,
}

impl Checked {
    /// Calls a function with every word of the line that may be the name of a file, and with whether it is a glob: `*` then stands for
    /// what is not known. Under a list, words that are texts to their programs are left out.
    pub fn each_word(&self, call: &mut impl FnMut(&str, bool)) {
        self.words.iter().for_each(|(word, is_glob)| call(word, *is_glob));
    }
}

impl CommandRules {
    /// Compiles rules.
    ///
    /// `allowed`: `None` or empty denies everything; an entry `*` allows any command; any other matches a simple command whose words
    /// begin with the entry's words.
    ///
    /// `blocked`: a pattern that is a command (`rm -rf`, `git push --force`, `sudo`) matches commands of this program with these options
    /// and leading words; any other (`*credentials*`, `/etc/passwd`, `| sh`) is found anywhere in the text, where `*` stands for
    /// anything.
    #[must_use]
    pub fn new(allowed: Option<&[String]>, blocked: &[String]) -> Self {
        Self { allow: Allow::new(allowed), deny: Deny::new(blocked), lets_unproven_through: false }
    }

    /// Returns the rules, but where everything is allowed a line that cannot be proven is only compared with the blocked patterns.
    #[must_use]
    pub fn letting_unproven_through(self, lets: bool) -> Self {
        Self { lets_unproven_through: lets, ..self }
    }

    /// Returns whether every command is allowed and nothing is blocked.
    #[must_use]
    pub fn allows_all(&self) -> bool {
        self.allow.allows_any() && self.deny.is_empty()
    }

    /// Returns every objection to a command line, and what else it takes to let it run.
    #[must_use]
    pub fn check(&self, command: &str) -> Checked {
        self.check_in(command, None)
    }

    /// Returns every objection to a command line that starts in a folder, as if the line began with a `cd` to it.
    #[must_use]
    pub fn check_in(&self, command: &str, folder: Option<&str>) -> Checked {
        let mut checked = Checked::default();
        if command.len() > COMMAND_BYTES_MAX {
            let unproven = Unproven { construct: Construct::TooLong, place: 1, program: Program::default() };
            checked.findings.push(CommandFinding::Unproven(unproven));
            return checked;
        }
        // To a shell no other white space is a blank: it is the name of a program.
        if self.allow.allows_none() && !command.trim_matches([' ', '\t', '\n']).is_empty() {
            checked.findings.push(CommandFinding::NothingAllowed);
        }
        let is_list = !self.allow.allows_any() && !self.allow.allows_none();
        let mut walk = Walk::new(is_list.then_some(&self.allow));
        if let Some(folder) = folder {
            checked.words.push((folder.to_owned(), false));
            walk.operand(FileOperand::new(folder.to_owned(), grammar::Access::Read));
            walk.directories.start(folder);
        }
        let read = walk.line(command);
        // The grammar has no functions: a line that is wholly in it defines none, whatever its texts say.
        if (read.is_err() || !walk.doubts.is_empty()) && loose::has_self_starting_function(command) {
            checked.findings.insert(0, CommandFinding::SelfSpawning);
        }
        match read {
            Ok(()) if walk.reached.is_empty() && walk.doubts.is_empty() => checked.findings.push(CommandFinding::Empty),
            Ok(()) => self.proven(command, walk, is_list, &mut checked),
            Err(refusal) => self.unproven(command, refusal, is_list, &mut checked),
        }
        checked
    }

    /// Judges a line that is in the grammar.
    fn proven(&self, command: &str, walk: Walk<'_>, is_list: bool, checked: &mut Checked) {
        for reached in walk.not_allowed.iter().filter_map(|index| walk.reached.get(*index)) {
            push(&mut checked.findings, self.not_allowed(command, reached));
        }
        let denied = if self.deny.is_empty() { deny::Denied::default() } else { self.deny.check(command, &walk) };
        if !is_list {
            self.blocked(&denied, checked);
        }
        if !is_list && self.lets_unproven_through && !walk.doubts.is_empty() && denied.patterns.is_empty() {
            // What a doubt hides is found among the words at least.
            self.blocked(&self.deny.check_loosely(command), checked);
        }
        let counts = is_list || (!self.deny.is_empty() && !self.lets_unproven_through);
        // What has not been looked at may name any file.
        for Doubt { construct, at, program } in walk.doubts.iter().filter(|doubt| counts || doubt.construct == Construct::TooMuch) {
            let unproven = Unproven { construct: *construct, place: place(command, *at), program: self.program(program.as_deref()) };
            push(&mut checked.findings, CommandFinding::Unproven(unproven));
        }
        if is_list {
            self.blocked(&denied, checked);
        }
        if let Some(at) = denied.hidden.filter(|_| !self.lets_unproven_through) {
            let construct = Construct::Argument(finding::HIDDEN);
            let unproven = Unproven { construct, place: place(command, at), program: Program::default() };
            push(&mut checked.findings, CommandFinding::Unproven(unproven));
        }
        let mut seen = FxHashSet::default();
        let mut note = |word: &str, is_glob: bool| {
            if seen.len() < WORDS_MAX && seen.insert((word.to_owned(), is_glob)) {
                checked.words.push((word.to_owned(), is_glob));
            }
        };
        // A line that has not been looked at to its end is refused for that.
        if !walk.doubts.iter().any(|doubt| doubt.construct == Construct::TooMuch) {
            walk.paths(&mut note);
        }
        if seen.len() >= WORDS_MAX {
            let unproven = Unproven { construct: Construct::TooMuch, place: 1, program: Program::default() };
            push(&mut checked.findings, CommandFinding::Unproven(unproven));
        }
        checked.prints_secrets = walk.prints_secrets;
        (checked.operands, checked.patterns, checked.urls) = (walk.operands, walk.patterns, walk.urls);
        if is_list {
            checked.files = walk.files;
        } else {
            // Whoever allows every command has not been asked for the right to open files.
            let operand = |file: FileUse| FileOperand::new(file.path, file.access);
            checked.operands.extend(walk.files.into_iter().map(operand));
        }
    }

    /// Returns what is said of a command that is not on the list.
    fn not_allowed(&self, command: &str, reached: &Reached) -> CommandFinding {
        let (path, arguments) = reached.words.split_first().map_or(("", Default::default()), |(first, rest)| (first.text.as_str(), rest));
        let name = path.rsplit('/').next().unwrap_or_default();
        let listed = match path {
            path if self.allow.names(path) => Listed::OtherWords,
            path if path.contains('/') && self.allow.names(name) => Listed::OtherPath,
            _ => Listed::Nothing,
        };
        let mut program = self.program(Some(name));
        if let Some(name) = program.name.as_mut().filter(|_| listed == Listed::OtherWords)
            && let Some(subcommand) = tables::subcommand_name(name, arguments)
        {
            *name = format!("{name} {subcommand}");
        }
        // Inside a text the place is that of the text, and the first command of a line needs none.
        let is_placed = program.name.is_none() && !reached.ways.iter().any(|way| matches!(way, Way::TextOf(_)));
        let at = reached.words.first().map_or(0, |first| first.at);
        CommandFinding::NotAllowed { program, listed, place: (is_placed && at > 0).then(|| place(command, at)) }
    }

    /// Judges a line that is not in the grammar.
    fn unproven(&self, command: &str, refusal: Refusal, is_list: bool, checked: &mut Checked) {
        let is_open = self.allow.allows_any();
        if is_open && !self.deny.is_empty() {
            self.blocked(&self.deny.check_loosely(command), checked);
        }
        if is_list || (is_open && !self.deny.is_empty() && !self.lets_unproven_through) {
            let Refusal { construct, at } = refusal;
            let unproven = Unproven { construct, place: place(command, at), program: Program::default() };
            push(&mut checked.findings, CommandFinding::Unproven(unproven));
        }
        if is_open {
            checked.words.extend(loose::words(command).into_iter().flatten().map(|word| (word.text, false)));
        }
    }

    fn blocked(&self, denied: &deny::Denied, checked: &mut Checked) {
        let patterns = denied.patterns.iter().filter_map(|index| self.deny.pattern(*index));
        checked.findings.extend(patterns.map(|pattern| CommandFinding::Blocked { pattern: pattern.to_owned() }));
    }

    /// Returns the program as it may be named: only if the name is well known or configured.
    fn program(&self, name: Option<&str>) -> Program {
        let may_be_named = |name: &&str| names::is_well_known(name) || self.allow.names(name) || self.deny.names(name);
        Program { name: name.filter(may_be_named).map(str::to_owned) }
    }
}

fn push(findings: &mut Vec<CommandFinding>, finding: CommandFinding) {
    if !findings.contains(&finding) {
        findings.push(finding);
    }
}

/// Returns the place of a byte in characters, from 1.
fn place(text: &str, at: usize) -> usize {
    text.char_indices().take_while(|(index, _)| *index < at).count() + 1
}

/// Returns the words of a text that is one simple command of literals; `None` for any other text.
fn literal_words(text: &str) -> Option<Vec<String>> {
    let list = grammar::parse(text, 0).ok()?;
    let [pipeline] = list.as_slice() else { return None };
    let [grammar::Command { kind: grammar::Kind::Simple(simple), redirects }] = pipeline.commands.as_slice() else { return None };
    if !simple.assignments.is_empty() || !simple.unbraced.is_empty() || !redirects.is_empty() || text.contains(['&', ';', '\n', '#']) {
        return None;
    }
    simple.words.iter().map(|word| word.as_text().map(str::to_owned)).collect()
}

/// The commands that a command line executes. It holds raw text, to be shown only to the author of the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The simple commands that are executed, in order.
    pub commands: Vec<ReachedCommand>,
    /// What cannot be proven.
    pub unproven: Vec<Unproven>,
}

/// A simple command that is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedCommand {
    /// Program and arguments. `*` stands for what is not known of them.
    pub words: Vec<Argument>,
    /// The indices of the arguments, from 0 on behind the program, that the program is known to take for files.
    pub files: Vec<usize>,
    /// How it is reached, from the outside in, such as `behind sudo, in a text given to sh`; empty if it stands openly in the line.
    pub how: String,
}

/// Returns what a command line executes, to explain it to its author: the texts are raw and must not be logged or published.
#[must_use]
pub fn analyse(command: &str) -> Analysis {
    let mut walk = Walk::new(None);
    let refusal =
        if command.len() > COMMAND_BYTES_MAX { Some(Refusal { construct: Construct::TooLong, at: 0 }) } else { walk.line(command).err() };
    let unproven = |construct, at, name| Unproven { construct, place: place(command, at), program: Program { name } };
    let commands = walk.reached.into_iter().map(|reached| {
        let ways: Vec<String> = reached.ways.iter().map(ToString::to_string).collect();
        ReachedCommand { words: reached.words.to_vec(), files: reached.files, how: ways.join(", ") }
    });
    let doubts = walk.doubts.into_iter().map(|doubt| unproven(doubt.construct, doubt.at, doubt.program));
    Analysis {
        commands: commands.collect(),
        unproven: refusal.map(|refusal| unproven(refusal.construct, refusal.at, None)).into_iter().chain(doubts).collect(),
    }
}
