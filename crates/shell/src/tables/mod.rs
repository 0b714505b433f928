//! What is known of programs: a row of `programs.txt` for each, of the subcommands and options that are known to run, write and connect to nothing
//! beyond what the program's name, or the subcommand's, says. Whatever is not in a program's table is refused.
//!
//! A table says of each option how it takes its value, so that arguments are read as the program reads them: letters in a bundle (`-la`),
//! values that are attached (`-k2`, `--key=2`) or stand in the next argument. Long options must be written out: what an abbreviation
//! stands for depends on the version of the program.
//!
//! A program without a table is what the author of a list of commands allowed by its name. Its arguments must be literal.

mod archives;
mod awk;
mod between;
mod checks;
mod conditions;
mod curl;
mod elsewhere;
mod find;
mod formatters;
mod git;
mod git_files;
mod handed;
mod jq;
mod left_out;
mod linked;
mod looking;
mod movers;
mod operands;
mod options;
mod outputs;
mod patterns;
mod printers;
mod printf;
mod printing;
mod reading;
mod rows;
mod sed;
mod shell;
mod shells;
mod starters;
mod texts;
mod touches;
mod trees;
mod unlisted;
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
pub use archives::extracts;
pub use between::{subcommand_name, without_options};
pub use curl::without_showing;
pub use elsewhere::{address_at, others};
pub use formatters::expands_patterns;
pub use git::{ASKS, asks, clone_operands};
pub use git_files::{is_from_root, pathspec_folders};
pub use left_out::left_out;
pub use linked::{CLIMBS, climbing_link, held_by_links, makes_links, moves_links};
pub use looking::{HIDDEN_ONES, UNHELD, is_everything, only_names};
pub use options::Options;
pub use outputs::outputs;
pub use patterns::{braces, chosen_names};
pub use printing::prints_secrets;
pub use reading::{
    COMPUTED, COMPUTED_NAME, COMPUTED_WORD, LITERAL, MISSING, NAMED, NEEDED, OPERAND, REFUSED, Reading, SUBCOMMAND, Started, Unlisted,
    VALUE, asks_version, read,
};
pub use sed::in_place;
pub use starters::FEEDS;
use texts::subcommand_of_git;
pub use texts::{git_subcommand, gives, reads_names, texts};
pub use touches::{Touch, searches, touched};
pub use trees::{trees, trees_of_entry};
pub use words::{entered, is_unnamed_at, is_worded, may_fetch, works_here};
pub use xargs::{reads_list, takes_nul};

/// What is known of a program.
#[derive(Debug)]
pub struct Program {
    /// Its names.
    pub names: Vec<&'static str>,
    /// The options in front of a subcommand, or of the program if it has no subcommands.
    pub options: Options,
    /// How options are told from operands.
    pub style: Style,
    /// What may stand behind the options.
    pub operands: Operands,
    /// The subcommands, if it has any: then the first operand must be one.
    pub subcommands: Vec<Subcommand>,
    /// What the program runs by its nature, if that is whatever it is given: "the script or text that it is given". A list that
    /// names such a program allows arbitrary code.
    pub runs: Option<&'static str>,
}

impl Program {
    /// Returns what is known of a subcommand. One of two words is written with a dot: `stash.list`.
    fn subcommand(&self, name: &str) -> Option<&Subcommand> {
        self.subcommands.iter().find(|subcommand| subcommand.names.contains(&name))
    }

    /// Returns whether the value of an option is a file or folder.
    fn has_files(&self) -> bool {
        self.all_options().any(|options| options.has_files)
    }

    /// Returns whether it works in a folder, which an option may name: the folder at hand without the option.
    fn has_folder(&self) -> bool {
        self.runs.is_some() && self.all_options().any(|options| options.words.iter().any(|word| word.contains("=BELOW")))
    }

    /// Returns how the options of a subcommand are told from operands: what stands behind a command, a script or a program, is its own.
    fn style_of(&self, subcommand: &Subcommand) -> Style {
        match (self.style, subcommand.operands) {
            (Style::Gnu, Operands::Command { .. } | Operands::Forwarded { named: true } | Operands::Program(_)) => Style::First,
            (Style::Anywhere, Operands::Program(_)) => Style::Words,
            (style, _) => style,
        }
    }

    fn all_options(&self) -> impl Iterator<Item = &Options> {
        std::iter::once(&self.options).chain(self.subcommands.iter().map(|subcommand| &subcommand.options))
    }
}

/// What is known of a subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// Its names. A subcommand of two words is written with a dot.
    pub names: Vec<&'static str>,
    /// The options behind it. Those of the program are not among them.
    pub options: Options,
    /// What may stand behind the options.
    pub operands: Operands,
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
    /// Anything, computed options too: no argument does harm.
    Open,
    /// Nothing, even if a list names it: what it does stays inside the shell.
    Refused,
    /// Nothing: a list has to say what it may do.
    Nothing,
    /// Nothing but `--version`.
    Version,
    /// Anything: operands are texts, or names of files that are read. Whatever the program's name says is done with them.
    Inert,
    /// At most so many of the kind, because one more would be written to.
    AtMost(usize),
    /// A command that is started.
    Command {
        /// Whether `NAME=value` may stand in front of it.
        assignments: bool,
    },
    /// Words of these, or options of these with any value; where `NAME` is among them, any word that is no option.
    Of(&'static str),
    /// What is handed on to a script, options too: where `named`, what stands behind options of the program and the script's name.
    Forwarded {
        /// Whether the script's name stands in front.
        named: bool,
    },
    /// A program that a function accepts by its name, and behind it whatever words and options are the program's own.
    Program(Check),
    /// What two functions accept: the first operand, and each of the others.
    Each(Check, Check),
    /// What a function accepts of them. It gets all operands in order, and returns the place of the first that it refuses.
    Checked(fn(&[&Argument]) -> Option<usize>),
    /// All arguments are read by a function instead, options too, because the program reads them in a way of its own.
    Own(fn(&[Argument]) -> Result<Vec<Started>, Unlisted>),
}

/// Says whether an operand is known to be harmless.
pub type Check = fn(&Argument) -> bool;

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
    /// `BELOW`: a folder in which the program works, or its file of settings, where it may write too. The path is known and leads below the
    /// working folder, to nothing hidden.
    Below,
    /// `INPUT`: the same of a file that is read.
    Input,
    /// `WRITTEN`: a file that is written, whose path is known. [`outputs`] finds it.
    Written,
    /// `GIT`: a setting of `git`, with its value.
    Git,
    /// `ENCODING`: the name of an encoding, perhaps with `//TRANSLIT` or `//IGNORE`. With another slash it is a file that says what characters are.
    Encoding,
    /// `TRIPLE`: the name of a platform, and no file that describes one: that names a linker.
    Triple,
    /// `FORMAT`: how `git` shows something, without a signature, which another program checks. As [`Value::Word`] in the next argument.
    Format,
    /// `STRATEGY`: how `git` merges, where files stay in their folders.
    Strategy,
    /// `PACKAGES`: what selects packages of a workspace: names, folders, globs of them. Folders are held to the rules of files by
    /// [`touched`].
    Packages,
    /// `REPOSITORY`: `OWNER/NAME` on the usual host.
    Repository,
    /// `CMAKE`: a setting of `cmake`, with its value.
    Cmake,
}

impl Value {
    /// Returns whether it is the name of a file or folder.
    fn is_file(self) -> bool {
        matches!(self, Self::File | Self::Below | Self::Input)
    }
}

/// The programs, as `programs.txt` has them.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| rows::read(include_str!("programs.txt")));

static TABLES: LazyLock<FxHashMap<&'static str, &'static Program>> =
    LazyLock::new(|| PROGRAMS.iter().flat_map(|program| program.names.iter().map(move |name| (*name, program))).collect());

/// Returns whether a word stands in a table, between blanks.
pub(crate) fn is_in(table: &str, word: &str) -> bool {
    table.split_ascii_whitespace().any(|known| known == word)
}

/// Returns what is known of a program of this name, if it has a table. The name may end in a version: `python3.13`.
#[must_use]
pub fn table(name: &str) -> Option<&'static Program> {
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let is_exact = |program: &&Program| matches!(program.operands, Operands::Open | Operands::Refused);
    TABLES.get(name).or_else(|| TABLES.get(unversioned).filter(|program| !is_exact(program))).copied()
}

/// Returns whether a program has a row under this very name.
#[must_use]
pub fn has_row(name: &str) -> bool {
    TABLES.contains_key(name)
}

/// Returns what a program of this name runs by its nature, if that is arbitrary code.
#[must_use]
pub fn runs(name: &str) -> Option<&'static str> {
    table(name).and_then(|program| program.runs)
}

/// Returns whether there is a table for programs of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    table(name).is_some() && !is_refused(name)
}

/// Returns whether this is a builtin or reserved word that is refused always.
#[must_use]
pub fn is_refused(name: &str) -> bool {
    table(name).is_some_and(|program| matches!(program.operands, Operands::Refused))
}

/// Returns whether a program of this name is one of the tools that Python runs as a module of the same name.
#[must_use]
pub fn is_python_tool(name: &str) -> bool {
    ["nox", "pip", "pip3", "poetry", "pytest", "tox", "uv"].contains(&name)
}

/// TABLE: the shells, and the builtins that execute a text.
const EXECUTORS: [&str; 16] =
    ["alias", "ash", "bash", "csh", "dash", "eval", "fish", "ksh", "ksh93", "mksh", "rbash", "sh", "tcsh", "trap", "yash", "zsh"];

/// Returns whether a program of this name is a shell or its like: what it is given or reads, it executes.
#[must_use]
pub fn executes_texts(name: &str) -> bool {
    EXECUTORS.contains(&name)
}
