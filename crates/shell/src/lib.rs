//! Tells which commands a bash command line would execute, and whether a list of rules allows them.
//!
//! Give it a command line that somebody else wrote, such as a language model, and a list of what is allowed and what is blocked:
//! [`CommandRules::check`] returns the objections. [`analyse`] returns the commands themselves, to explain a decision.
//!
//! Command lines are parsed, not searched for text. The two kinds of rules are applied differently:
//!
//! - **The allow side** lets only what is proven pass. Every simple command that can be reached must be on the list, and what cannot be
//!   proven is refused.
//! - **The deny side** looks at everything that can be reached: behind `sudo`, `env`, `xargs` and their like, in `sh -c` texts, `eval`,
//!   substitutions, here-documents and pipes into shells, however it is quoted, and whatever the order and form of its options. Only
//!   words that are executed count: `echo 'rm -rf is bad'` is harmless.
//!
//! | file | what it does |
//! |---|---|
//! | [`syntax`] | text → tree: the grammar of bash |
//! | `braces`, `value`, `scope` | words → what they expand to, as far as that is known |
//! | `walk`, `run`, `stdin`, `arithmetic` | tree → the simple commands that are reached |
//! | `starters`, `executors`, `git` | programs that execute their arguments |
//! | `wrappers`, `variables`, `flags`, `programs` | the tables |
//! | `allow`, `deny`, `text` | the rules |
//! | `finding` | the objections to a command, with their messages |
//!
//! # Other shells
//!
//! Commands are read as bash reads them. A command line may be handed to another shell, such as the `sh` that is dash. What that shell
//! reads differently is read both ways:
//!
//! - To it `(( ))` is two subshells, and `[[` is a program. Both are walked in this way too, and what is no command line then is refused
//!   on the allow side.
//! - To it an escaped quote ends the text in `$'…'`. That is refused where commands could be hidden behind the quote.
//! - To it `time` is a program, and options may stand behind it. The deny side passes over them.
//!
//! # What this does not do
//!
//! It judges a command line, not what programs do, and it is no sandbox.
//!
//! - An allowed interpreter runs arbitrary code: `python -c`, `perl -e`, `node -e`, `awk`, `sed`, `make`, `vim`, and also `git` (hooks,
//!   settings of the repository) and `npm` (scripts of the package).
//! - Scripts that are named, by `sh file` or `./file` or `source file`, are not read: what an earlier command wrote there is executed
//!   unseen.
//! - What the environment holds is not known. A variable that the command line does not set is refused as a program's name, and
//!   elsewhere taken for one harmless word. What `find` or a loop over files hands on is taken for names of files.
//! - A glob is taken for names of files, not of options.
//! - On the allow side a path is not the name that is listed (`./git` may be anything). On the deny side it is compared by its last
//!   segment, and a program under another name is another program.

mod allow;
mod argument;
mod assignments;
mod arithmetic;
mod braces;
mod deny;
mod executors;
mod finding;
mod flags;
mod git;
mod programs;
mod run;
mod scope;
mod starters;
pub mod tables;
mod stdin;
pub mod syntax;
mod text;
mod value;
mod variables;
mod walk;
mod wrappers;

use allow::Allow;
use deny::Deny;
pub use finding::{CommandFinding, Program, Unproven};
use scope::Scope;
use value::Field;
use walk::{Context, Reached, Walk};

/// The longest command that is parsed, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// The most simple commands that one command line may execute.
pub const COMMANDS_MAX: usize = 4096;

/// The rules for commands, compiled.
#[derive(Debug)]
pub struct CommandRules {
    allow: Allow,
    deny: Deny,
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
        Self { allow: Allow::new(allowed), deny: Deny::new(blocked) }
    }

    /// Returns every objection in the order in which it is found, allow side first. If there is none, the command may run.
    #[must_use]
    pub fn check(&self, command: &str) -> Vec<CommandFinding> {
        let walk = match walk(command) {
            Some(walk) => walk,
            None => return vec![CommandFinding::Empty],
        };
        let mut findings = Vec::new();
        self.allow_side(&walk, &mut findings);
        if !self.deny.is_empty() {
            self.deny_side(command, &walk, &mut findings);
        }
        findings
    }

    fn allow_side(&self, walk: &Walk, findings: &mut Vec<CommandFinding>) {
        if self.allow.allows_none() {
            findings.push(CommandFinding::NothingAllowed);
        } else if !self.allow.allows_any() {
            for reached in walk.reached.iter().filter(|reached| !reached.assumed && !self.allow.allows(&reached.words)) {
                let finding = CommandFinding::NotAllowed { program: self.program(reached) };
                // A program whose name is an expansion is a finding of its own.
                let is_known = reached.words.first().is_some_and(|word| word.as_known().is_some());
                if is_known && !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        let is_restrictive = !self.allow.allows_any() && !self.allow.allows_none();
        let unproven = walk.unproven.iter().filter(|reason| is_restrictive || reason.is_fatal());
        findings.extend(unproven.map(|reason| CommandFinding::Unproven(*reason)));
        let has_unknown_program = walk.reached.iter().any(|reached| !reached.assumed && reached.words.first().is_some_and(is_expanded));
        let position = CommandFinding::Unproven(Unproven::CommandPosition);
        if is_restrictive && has_unknown_program && !findings.contains(&position) {
            findings.push(position);
        }
    }

    fn deny_side(&self, command: &str, walk: &Walk, findings: &mut Vec<CommandFinding>) {
        let denied = self.deny.check(command, walk);
        let patterns = denied.patterns.iter().filter_map(|index| self.deny.pattern(*index));
        findings.extend(patterns.map(|pattern| CommandFinding::Blocked { pattern: pattern.to_owned() }));
        let hidden = denied.hidden.then_some(Unproven::Arguments);
        for reason in walk.unproven.iter().copied().filter(|reason| reason.hides_commands()).chain(hidden) {
            let finding = CommandFinding::Unproven(reason);
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }

    /// Returns the program as it may be named: only if the name is well known or configured.
    fn program(&self, reached: &Reached) -> Program {
        let name = reached.words.first().and_then(Field::program);
        let may_be_named = |name: &&str| programs::is_well_known(name) || self.allow.names(name) || self.deny.names(name);
        Program { name: name.filter(may_be_named).map(str::to_owned) }
    }
}

fn is_expanded(word: &Field) -> bool {
    word.as_known().is_none()
}

/// Walks a command line; none if there is no command in it.
fn walk(command: &str) -> Option<Walk> {
    let mut walk = Walk::default();
    if command.len() > COMMAND_BYTES_MAX {
        walk.unproven(Unproven::TooLong);
        return Some(walk);
    }
    if command.trim().is_empty() {
        return None;
    }
    walk.text(command, &mut Scope::default(), &Context::outside());
    // The last expansion may have spent the rest of the budget.
    let _ = walk.is_over(0);
    let has_nothing = |list: syntax::List| list.iter().all(|pipeline| pipeline.commands.is_empty());
    let is_empty = walk.reached.is_empty() && walk.unproven.is_empty() && syntax::parse(command, 0).is_ok_and(has_nothing);
    (!is_empty).then_some(walk)
}

/// The commands that a command line may execute. It holds raw text, to be shown only to the author of the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The simple commands that may be executed, in order.
    pub commands: Vec<ReachedCommand>,
    /// What could not be proven.
    pub unproven: Vec<Unproven>,
}

/// A simple command that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedCommand {
    /// Program and arguments.
    pub words: Vec<ReachedWord>,
    /// How it is reached, from the outside in, such as `behind sudo, in a text given to sh`; empty if it stands openly in the line.
    pub how: String,
    /// Whether it only says what another command amounts to, or is one of two readings: it needs no permission.
    pub assumed: bool,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachedWord {
    /// Its text.
    Known(String),
    /// What is known of its text, with `…` for what is not.
    Unknown(String),
}

/// Returns what a command line may execute, to explain it to its author: the texts are raw and must not be logged or published.
#[must_use]
pub fn analyse(command: &str) -> Analysis {
    let Some(walk) = walk(command) else { return Analysis::default() };
    let commands = walk.reached.into_iter().map(|reached| {
        let ways: Vec<String> = reached.ways.iter().map(ToString::to_string).collect();
        ReachedCommand { words: reached.words.iter().map(shown).collect(), how: ways.join(", "), assumed: reached.assumed }
    });
    Analysis { commands: commands.collect(), unproven: walk.unproven }
}

fn shown(word: &Field) -> ReachedWord {
    if let Some(text) = word.as_known() {
        return ReachedWord::Known(text.to_owned());
    }
    let (mut text, mut from) = (String::new(), 0);
    for (at, _) in &word.holes {
        text.push_str(word.text.get(from..*at).unwrap_or_default());
        text.push('…');
        from = *at;
    }
    text.push_str(word.text.get(from..).unwrap_or_default());
    ReachedWord::Unknown(text)
}
