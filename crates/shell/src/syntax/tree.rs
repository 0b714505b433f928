//! The syntax tree: as much of a command line as matters for what it executes.
//!
//! Which of two branches runs does not matter here. So `if`, `while`, `case` and their like have one form: words that are expanded and
//! lists that may run.

use std::cell::OnceCell;
use std::rc::Rc;

/// Pipelines in order, joined by `;`, `&`, `&&`, `||` or a newline.
pub type List = Vec<Pipeline>;

/// Commands that are joined by `|`.
#[derive(Debug, Clone, Default)]
pub struct Pipeline {
    /// The commands in order; the output of each is the input of the next.
    pub commands: Vec<Command>,
    /// Whether it runs only if another one succeeds or fails: behind `&&` or `||`.
    pub conditional: bool,
    /// Whether it runs beside the shell: before `&`.
    pub background: bool,
}

/// A command and its redirections.
#[derive(Debug, Clone)]
pub struct Command {
    /// The form of the command.
    pub kind: Kind,
    /// The redirections of the whole command.
    pub redirects: Vec<Redirect>,
}

/// The forms of a command.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Assignments, a program and its arguments.
    Simple(Simple),
    /// Groups, subshells, loops, branches, tests.
    Compound(Compound),
    /// The definition of a function: `name() …`.
    Function(Box<Command>),
}

/// Assignments, a program and its arguments.
#[derive(Debug, Clone, Default)]
pub struct Simple {
    /// The assignments before the program: `NAME=value`.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments; none where there are only assignments.
    pub words: Vec<Argument>,
}

/// A word of a simple command, or an assignment that a declaring builtin takes as an argument.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A word.
    Word(Word),
    /// An assignment, as in `declare NAME=value`, or what looks like one.
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
    /// The text inside `(( ))` and `[[ ]]`, which other shells read as commands.
    pub text: Option<String>,
}

/// An assignment: `NAME=value`, `NAME[…]=value`, `NAME+=value` or `NAME=(…)`.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The word as it stands: name, sign and value.
    pub word: Word,
    /// The value of a plain assignment; none for an array, an element or an addition.
    pub value: Option<Word>,
    /// The elements of an array.
    pub elements: Vec<Word>,
}

/// A redirection.
#[derive(Debug, Clone)]
pub struct Redirect {
    /// The kind of redirection.
    pub kind: RedirectKind,
    /// The file, the descriptor or the string; the delimiter of a here-document.
    pub target: Word,
    /// The body of a here-document; unset where the text ends before it.
    pub document: Rc<OnceCell<Word>>,
}

/// The kinds of redirections, by operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// Reads a file: `<`.
    Read,
    /// Writes a file: `>`, `>>`, `>|`, `<>`, `&>`, `&>>`, and `>&` where a file follows.
    Write,
    /// Copies an output descriptor: `>&` with a descriptor.
    Duplicate,
    /// Copies an input descriptor: `<&` with a descriptor.
    DuplicateInput,
    /// Reads a here-document: `<<` and `<<-`.
    Document,
    /// Reads a word as text: `<<<`.
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
    /// Text that means itself. It may be empty, as `''` is a word.
    Quoted(String),
    /// A parameter: `$name` and `${…}`.
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
    /// A command substitution: `$( )` and backticks.
    Substitution {
        /// The commands.
        list: List,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
    /// A process substitution: `<( )` and `>( )`.
    Process(List),
    /// An arithmetic expansion, whose result is a number: `$(( ))` and `$[ ]`.
    Arithmetic(Word),
    /// Text that is evaluated as arithmetic, as it is written, inside an expansion or a test. It expands to nothing.
    Evaluated(String),
    /// A mark where text begins that other shells read differently. It expands to nothing.
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
