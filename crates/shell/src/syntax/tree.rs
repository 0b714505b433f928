//! The syntax tree: as much of a command line as matters for what it executes.
//!
//! Which of two branches runs is of no interest here, so that `if`, `while`, `case` and their like are one form: words that are
//! expanded and lists that may run.

use std::cell::OnceCell;
use std::rc::Rc;

/// Pipelines in order, joined by `;`, `&`, `&&`, `||` or a newline.
pub type List = Vec<Pipeline>;

/// Commands that are joined by `|`.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    /// In order; the output of each is the input of the next.
    pub commands: Vec<Command>,
    /// Whether it runs only if another one succeeds or fails: behind `&&` or `||`.
    pub conditional: bool,
    /// Whether it runs beside the shell: before `&`.
    pub background: bool,
}

/// A command and its redirections.
#[derive(Debug, Clone)]
pub struct Command {
    /// What it is.
    pub kind: Kind,
    /// Its redirections.
    pub redirects: Vec<Redirect>,
}

/// The forms of a command.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Assignments, a program and its arguments.
    Simple(Simple),
    /// Groups, subshells, loops, branches, tests.
    Compound(Compound),
    /// `name() …`
    Function(Box<Command>),
}

/// Assignments, a program and its arguments.
#[derive(Debug, Clone, Default)]
pub struct Simple {
    /// `NAME=value` before the program.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments; none where there are only assignments.
    pub words: Vec<Argument>,
}

/// A word of a simple command, or an assignment that a declaring builtin takes as an argument.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A word.
    Word(Word),
    /// `declare NAME=value`; also what looks like one.
    Assignment(Assignment),
}

/// A group, subshell, loop, branch or test.
#[derive(Debug, Clone, Default)]
pub struct Compound {
    /// Words that are expanded: what a loop runs over, what `case` compares, the operands of a test.
    pub words: Vec<Word>,
    /// Lists that may run.
    pub lists: Vec<List>,
    /// The variable of a loop or a coprocess.
    pub variable: Option<String>,
    /// Whether the variable has one of the words as its value in the lists: in `for`, but not in `select`.
    pub iterates: bool,
    /// Whether it is `[[ ]]`.
    pub is_test: bool,
    /// `(( ))` and `[[ ]]`: the text in between, which is commands to other shells.
    pub text: Option<String>,
}

/// `NAME=value`, `NAME[…]=value`, `NAME+=value`, `NAME=(…)`.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The word as it stands: name, sign and value.
    pub word: Word,
    /// The value of a plain assignment; of no array, element or addition.
    pub value: Option<Word>,
    /// The elements of an array.
    pub elements: Vec<Word>,
}

/// A redirection.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// What it does.
    pub kind: RedirectKind,
    /// The file, the descriptor or the string; the delimiter of a here-document.
    pub target: Word,
    /// The body of a here-document; unset where the text ends before it.
    pub document: Rc<OnceCell<Word>>,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `<>`, `&>`, `&>>`, and `>&` where a file follows
    Write,
    /// `>&` with a descriptor
    Duplicate,
    /// `<&` with a descriptor
    DuplicateInput,
    /// `<<` and `<<-`
    Document,
    /// `<<<`
    String,
}

/// A word before expansion.
#[derive(Debug, Clone, Default)]
pub struct Word {
    /// Its parts in order.
    pub parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub enum Part {
    /// Unquoted text, in which globs, braces and a tilde have their meaning.
    Bare(String),
    /// Text that means itself; may be empty, as `''` is a word.
    Quoted(String),
    /// `$name` and `${…}`.
    Parameter {
        /// The name or the special character.
        name: String,
        /// Whether anything but the name stands between the braces.
        modified: bool,
        /// The default that it assigns, as it is written: `${name:=…}`.
        assigns: Option<String>,
        /// Whether its value is expanded as a prompt is: `${name@P}`.
        prompt: bool,
        /// The words inside: defaults, patterns, subscripts.
        inner: Word,
        /// Whether it stands in double quotes, so that it is not split.
        quoted: bool,
    },
    /// `$( )` and backticks.
    Substitution {
        /// The commands.
        list: List,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
    /// `<( )` and `>( )`.
    Process(List),
    /// `$(( ))` and `$[ ]`: a number.
    Arithmetic(Word),
    /// Among the words inside an expansion or a test: text that is evaluated as arithmetic, as it is written. It expands to nothing.
    Evaluated(String),
    /// What other shells read differently, beginning here. It expands to nothing.
    Ambiguous,
}

impl Word {
    /// Returns the text, if the word is bare text without quotes or expansions.
    #[must_use]
    pub fn bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Bare(text)] => Some(text),
            _ => None,
        }
    }
}
