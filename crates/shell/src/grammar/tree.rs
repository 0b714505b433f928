//! The tree of a command line.

/// Pipelines in the order in which they are written.
pub type List = Vec<Pipeline>;

/// Commands that are joined by pipes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The commands; never empty.
    pub commands: Vec<Command>,
    /// Whether `!` stands in front.
    pub is_negated: bool,
    /// What stands behind.
    pub end: End,
}

/// What stands behind a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// `&&`: what follows runs if the pipeline has succeeded.
    And,
    /// `||`: what follows runs if it has failed.
    Or,
    /// `;`, a line end, or the end of the list.
    Sequence,
    /// `&`: a shell of its own runs the pipeline, and those that `&&` and `||` join to it.
    Background,
}

/// A command of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it is.
    pub kind: Kind,
    /// Its redirections to and from files, and its here-documents.
    pub redirects: Vec<Redirect>,
}

/// What a command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A program with its arguments.
    Simple(Simple),
    /// `{ … }`.
    Group(List),
    /// `( … )`.
    Subshell(List),
    /// Conditions, each with its branch, and perhaps a last branch: `if`.
    If(Vec<List>),
    /// `while` and `until`.
    While {
        /// The condition.
        condition: List,
        /// The body.
        body: List,
    },
    /// `for name in words`.
    For {
        /// The variable.
        name: String,
        /// The words.
        words: Vec<Word>,
        /// The body.
        body: List,
        /// Whether it is written `name=word`, and the body is what follows.
        is_setting: bool,
    },
}

/// A program with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// The variables that are set for it.
    pub assignments: Vec<(String, Word)>,
    /// The program and its arguments; never empty. With braces, as bash and zsh take them.
    pub words: Vec<Word>,
    /// The same as dash and busybox sh take them, if there are braces of which bash and zsh make several words; else empty.
    pub unbraced: Vec<Word>,
}

/// A word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its pieces. An empty word has no piece, or an empty text.
    pub pieces: Vec<Piece>,
    /// Where it begins.
    pub at: usize,
    /// Whether some of its quoted text would be part of a glob without its quotes.
    pub quotes_glob: bool,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text, whether it was quoted or not.
    Text(String),
    /// `*`, `?` or `[` of a glob.
    Glob(char),
    /// `~` or `$HOME`.
    Home,
    /// `"$PWD"`.
    Directory,
    /// `$?`.
    Status,
    /// `$!`: the id of the last process in the background, or nothing.
    Background,
    /// `$((…))` of whole numbers and names of variables, with blanks, `+`, `-` and `*` between them.
    Sum(String),
    /// `$name`, `${name}`, `${name%text}` or `${name##*/}`.
    Variable {
        /// The name.
        name: String,
        /// What is taken away from its value.
        trim: Trim,
        /// Whether it stands in double quotes.
        quoted: bool,
        /// Where it stands.
        at: usize,
    },
    /// `"$(…)"` or `$(…)`.
    Output {
        /// The commands.
        list: List,
        /// Whether it stands in double quotes.
        quoted: bool,
    },
    /// `<(…)`: a file from which the output of the commands is read.
    Process(List),
}

/// What is taken away from the value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trim {
    /// Nothing.
    Nothing,
    /// `%text`: this end, if the value has it.
    End(String),
    /// `##*/`: everything up to the last slash.
    Folders,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirect {
    /// To or from a file.
    File {
        /// What is done with it.
        access: Access,
        /// Its name.
        target: Word,
    },
    /// From a text. Until its body has been read, that is the number of its operator.
    Document(String),
    /// Of one output to the other, as `2>&1` does: errors may stand among what is printed.
    Joined,
}

/// What is done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is read.
    Read,
    /// It is written or appended to.
    Write,
}

impl Word {
    /// Returns the text of a word that is one piece of text, or empty.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the commands of a word that is `$(…)` or `"$(…)"`, and nothing else.
    #[must_use]
    pub fn as_output(&self) -> Option<&List> {
        match self.pieces.as_slice() {
            [Piece::Output { list, .. }] => Some(list),
            [Piece::Text(text), Piece::Output { list, .. }] if text.is_empty() => Some(list),
            _ => None,
        }
    }
}
