//! The commands that run, how they are reached, and what cannot be proven of them.

use std::fmt;
use std::rc::Rc;

use super::argument::Argument;
use super::grammar::Construct;

/// A simple command that runs.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Program and arguments; never empty.
    pub words: Rc<[Argument]>,
    /// How it is reached, from the outside in; empty if it stands openly in the line.
    pub ways: Vec<Way>,
    /// Whether the program's table knows all arguments, so that none of them is executed.
    pub is_proven: bool,
    /// The places of the arguments that are texts to the program under a list, and no names of files, in order.
    pub texts: Vec<usize>,
    /// The places of the arguments that the program is known to take for files.
    pub files: Vec<usize>,
}

impl Reached {
    /// Returns the words that may be names of files. Where a program reads such names from a list, texts are names too. The program itself is only
    /// one if it is named by a path.
    pub(super) fn words_of_files(&self, reads_names: bool) -> impl Iterator<Item = &Argument> {
        let is_text = move |at: usize| !reads_names && at.checked_sub(1).is_some_and(|at| self.texts.binary_search(&at).is_ok());
        let is_name = |at: usize, word: &Argument| at == 0 && !word.text.contains('/') && self.ways.is_empty();
        self.words.iter().enumerate().filter(move |(at, word)| !is_text(*at) && !is_name(*at, word)).map(|(_, word)| word)
    }
}

/// How a command is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// In `"$( )"`.
    Substitution,
    /// Behind a program that starts it.
    Behind(String),
    /// In a text that a program gives to a shell.
    TextOf(String),
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Substitution => formatter.write_str("in a command substitution"),
            Self::Behind(program) => write!(formatter, "behind {program}"),
            Self::TextOf(program) => write!(formatter, "in a text given to {program}"),
        }
    }
}

/// What cannot be proven: what, where, and whose argument it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// The construct.
    pub construct: Construct,
    /// Where it stands, in bytes.
    pub at: usize,
    /// The program whose argument it is.
    pub program: Option<String>,
}
