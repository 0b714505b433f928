//! What is known of programs: a table for each, of the subcommands and options that are known to run, write and connect to nothing
//! beyond what the program's name, or the subcommand's, says. Whatever is not in a program's table is refused.
//!
//! A table says of each option how it takes its value, so that arguments are read as the program reads them: letters in a bundle (`-la`),
//! values that are attached (`-k2`, `--key=2`) or stand in the next argument. Long options must be written out: what an abbreviation
//! stands for depends on the version of the program.
//!
//! A program without a table is what the author of a list of commands allowed by its name. Its arguments must be literal.

mod archives;
mod awk;
mod builders;
mod builtins;
mod checks;
mod conditions;
mod connecting;
mod containers;
mod files;
mod find;
mod formatters;
mod git;
mod git_files;
mod git_options;
mod github;
mod golang;
mod interactive;
mod interpreters;
mod java;
mod jq;
mod lines;
mod linked;
mod looking;
mod movers;
mod node;
mod options;
mod outputs;
mod patterns;
mod plain;
mod printers;
mod printf;
mod printing;
mod python_tools;
mod reading;
mod rust;
mod search;
mod sed;
mod shell;
mod shells;
mod starters;
mod system;
mod system_packages;
mod texts;
mod touches;
mod trees;
mod values;
mod words;
mod xargs;

#[cfg(test)]
mod developer_tests;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::argument::Argument;
pub use builtins::is_refused;
pub use formatters::expands_patterns;
pub use git::{ASKS, asks, clone_operands};
pub use looking::{HIDDEN_ONES, UNHELD, is_everything, only_names};
use options::Options;
pub use outputs::outputs;
pub use patterns::{braces, chosen_names};
pub use printing::prints_secrets;
pub use reading::{COMPUTED, COMPUTED_NAME, LITERAL, OPERAND, SUBCOMMAND, Started, Unlisted, read, subcommand_behind_options};
pub use texts::{git_subcommand, reads_names, texts};
pub use touches::{Touch, touched};
pub use trees::trees;
pub use words::is_worded;

/// What is known of a program.
#[derive(Debug)]
pub struct Program {
    /// Its names.
    pub names: &'static [&'static str],
    /// The options in front of a subcommand, or of the program if it has no subcommands. They are written as in a manual page, with
    /// blanks between them: `-n` (a flag), `-k=TEXT` (takes a value: attached or the next argument), `-C[=TEXT]` (may have an attached
    /// value), `--key=TEXT` (takes a value: behind `=` or the next argument), `--color[=TEXT]` (may have one behind `=`), `-NUM` (a
    /// number, such as `-20`). [`Value`] has the words for values. A mark in front says that options belong together: one that begins
    /// with `?` is refused unless one stands there that begins with `!`, and a `?` alone says that one of those must always stand there.
    pub options: &'static str,
    /// How options are told from operands.
    pub style: Style,
    /// What may stand behind the options.
    pub operands: Operands,
    /// The subcommands, if it has any: then the first operand must be one.
    pub subcommands: &'static [Subcommand],
    /// What the program runs by its nature, if that is whatever it is given: "the script or text that it is given". A list that
    /// names such a program allows arbitrary code.
    pub runs: Option<&'static str>,
}

/// What a program is, where a field is not given.
pub const PROGRAM: Program =
    Program { names: &[], options: "", style: Style::Gnu, operands: Operands::Inert, subcommands: &[], runs: None };

/// What is known of a subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// Its names, with blanks between them. A subcommand of two words is written with a dot: `stash.list`.
    pub names: &'static str,
    /// The options behind it. Those of the program are not among them.
    pub options: &'static str,
    /// What may stand behind the options.
    pub operands: Operands,
}

/// Returns a subcommand with operands of any kind.
const fn any(names: &'static str, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Inert }
}

/// Returns a subcommand with at most so many operands.
const fn most(names: &'static str, most: usize, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::AtMost(most) }
}

/// Returns a subcommand with operands that a function checks.
const fn checked(names: &'static str, check: fn(&[&Argument]) -> Result<(), &'static str>, options: &'static str) -> Subcommand {
    Subcommand { names, options, operands: Operands::Checked(check) }
}

/// How options are told from operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Options stand anywhere up to `--`, letters may be bundled, long options begin with two dashes.
    Gnu,
    /// As [`Style::Gnu`], but options end at the first operand.
    First,
    /// Options are whole words behind one dash or two (`-version`), never bundled, and end at the first operand. `--` is no option.
    Words,
    /// As [`Style::Words`], but options stand anywhere.
    Anywhere,
}

impl Style {
    /// Returns whether options are whole words.
    #[must_use]
    pub fn has_words(self) -> bool {
        matches!(self, Self::Words | Self::Anywhere)
    }
}

/// What may stand behind the options.
#[derive(Debug, Clone, Copy)]
pub enum Operands {
    /// Anything: operands are texts, or names of files that are read. Whatever the program's name says is done with them.
    Inert,
    /// At most so many of the kind, because one more would be written to.
    AtMost(usize),
    /// A command that is started.
    Command {
        /// Whether `NAME=value` may stand in front of it.
        assignments: bool,
    },
    /// What a function says of them. It gets all operands in order, and returns what it objects to.
    Checked(fn(&[&Argument]) -> Result<(), &'static str>),
    /// All arguments are read by a function instead, options too, because the program reads them in a way of its own.
    Own(fn(&[Argument]) -> Result<Vec<Started>, Unlisted>),
}

/// What the value of an option is. `TWO` in its place says that the option takes the next two arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// `TEXT`: a text, or the name of a file that is read.
    Text,
    /// `NEXT`: a text that stands in the next argument. Attached it means something else in some versions of the program.
    Next,
    /// `SHELL`: a text that a shell executes: it is read as a command line.
    Shell,
    /// `SED`: a script for `sed`.
    Sed,
    /// `WORD`: a text; in the next argument it must be known to begin with neither `-` nor `@`, because some programs read their
    /// arguments twice, and the first time they take out of them what looks like an option or a file of arguments.
    Word,
    /// `NAME`: a text that is known and is no address, no option and no file of arguments (`@file`).
    Name,
    /// `EXPRESSION`: names of tests, combined with `and`, `or`, `not` and brackets.
    Expression,
    /// `WARNING`: what is done with which of Python's own warnings: `error::DeprecationWarning`.
    Warning,
    /// `DISABLED`: a plugin that is not loaded: `no:NAME`.
    Disabled,
    /// `FILE`: the name of a file that is read, or of a folder that is entered. It is a `NAME`, or `-`.
    File,
    /// `BELOW`: a path that is known and leads below the working folder, to nothing hidden.
    Below,
    /// `WRITTEN`: a file that is written, whose path is known. [`outputs`] finds it.
    Written,
    /// `GIT`: a setting of `git`, with its value.
    Git,
    /// `FORMAT`: how `git` shows something, without a signature, which another program checks. As [`Value::Word`] in the next argument.
    Format,
    /// `STRATEGY`: how `git` merges, where files stay in their folders.
    Strategy,
    /// `REPOSITORY`: `OWNER/NAME` on the usual host.
    Repository,
    /// `CMAKE`: a setting of `cmake`, with its value.
    Cmake,
}

/// A program's table, or a subcommand's, made ready for looking up.
#[derive(Debug)]
struct Compiled {
    program: &'static Program,
    options: Options,
    subcommands: FxHashMap<&'static str, (Options, &'static Subcommand)>,
    /// Whether the value of an option is a file or folder.
    has_files: bool,
}

/// TABLE: the tables, in alphabetical order of their files.
const PROGRAMS: &[&[Program]] = &[
    archives::PROGRAMS,
    awk::PROGRAMS,
    builders::PROGRAMS,
    conditions::PROGRAMS,
    connecting::PROGRAMS,
    containers::PROGRAMS,
    files::PROGRAMS,
    find::PROGRAMS,
    git::PROGRAMS,
    github::PROGRAMS,
    golang::PROGRAMS,
    interactive::PROGRAMS,
    interpreters::PROGRAMS,
    java::PROGRAMS,
    jq::PROGRAMS,
    lines::PROGRAMS,
    node::PROGRAMS,
    printf::PROGRAMS,
    python_tools::PROGRAMS,
    rust::PROGRAMS,
    search::PROGRAMS,
    sed::PROGRAMS,
    shell::PROGRAMS,
    shells::PROGRAMS,
    starters::PROGRAMS,
    system::PROGRAMS,
    system_packages::PROGRAMS,
    xargs::PROGRAMS,
];

static TABLES: LazyLock<FxHashMap<&'static str, Compiled>> = LazyLock::new(|| {
    let compiled = |program: &'static Program| {
        let subcommands = program.subcommands.iter().flat_map(|subcommand| {
            subcommand.names.split_whitespace().map(move |name| (name, (Options::new(subcommand.options), subcommand)))
        });
        let (options, subcommands) = (Options::new(program.options), subcommands.collect::<FxHashMap<_, _>>());
        let has_files = options.has_files || subcommands.values().any(|(options, _): &(Options, _)| options.has_files);
        Compiled { program, options, subcommands, has_files }
    };
    let programs = PROGRAMS.iter().flat_map(|programs| programs.iter());
    programs.flat_map(|program| program.names.iter().map(move |name| (*name, compiled(program)))).collect()
});

/// Returns the table of a program. A name may end in a version: `python3.13`.
fn table(name: &str) -> Option<&'static Compiled> {
    let unversioned = || name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    TABLES.get(name).or_else(|| TABLES.get(unversioned()))
}

/// Returns what is known of a program of this name, if it has a table of its own.
#[must_use]
pub fn program(name: &str) -> Option<&'static Program> {
    table(name).map(|compiled| compiled.program)
}

/// Returns what a program of this name runs by its nature, if that is arbitrary code.
#[must_use]
pub fn runs(name: &str) -> Option<&'static str> {
    table(name).and_then(|compiled| compiled.program.runs)
}

/// Returns whether there is a table for programs of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    table(name).is_some() || plain::is_plain(name)
}

/// Returns whether a program of this name is one of the tools that Python runs as a module of the same name.
#[must_use]
pub fn is_python_tool(name: &str) -> bool {
    python_tools::PROGRAMS.iter().any(|program| program.names.contains(&name))
}

/// TABLE: the shells, and the builtins that execute a text.
const EXECUTORS: [&str; 16] =
    ["alias", "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "ksh93", "mksh", "rbash", "sh", "tcsh", "trap", "yash", "zsh"];

/// Returns whether a program of this name is a shell or its like: what it is given or reads, it executes.
#[must_use]
pub fn executes_texts(name: &str) -> bool {
    EXECUTORS.contains(&name)
}
