//! Text → tree: the part of the shell language in which bash, dash, zsh and busybox sh read every token in the same way.
//!
//! What is not in this grammar is refused with its [`Construct`] and its place. Nothing here looks for what is dangerous: a construct is
//! understood, or it is out. The page `docs/command-lines.md` of Tollgate has the grammar and says why each part of it is in.
//!
//! ```text
//! list      = pipeline { (";" | "&" | "&&" | "||" | newline) pipeline }
//!           | name "=" (literal | output) (";" | "&&" | newline) list
//! pipeline  = [ "!" ] command { "|" command }
//! command   = (simple | "(" list ")" | "{" list "}" | if | while | for) { redirect }
//! if        = "if" list "then" list { "elif" list "then" list } [ "else" list ] "fi"
//! while     = ("while" | "until") list "do" list "done"
//! for       = "for" name "in" { word } (";" | newline) "do" list "done"
//! simple    = { name "=" literal } word { word | redirect }
//! redirect  = "<" word | ["1" | "2"] (">" | ">>") word | "2>&1" | "1>&2" | ">&2" | ">&1" | "<<" delimiter
//! word      = pieces: bare | \c | '…' | "…" | * ? [ ] | ~ | $name | ${name} | ${name%literal} | ${name##*/} | output | "<(" list ")"
//! output    = "$(" list ")"
//! ```

mod braces;
mod commands;
mod construct;
mod cursor;
mod names;
mod quotes;
mod redirects;
mod tree;
mod words;

pub use construct::Construct;
pub use names::is_loop_name;
pub use tree::{Access, Command, End, Kind, List, Piece, Pipeline, Redirect, Simple, Trim, Word};
pub use words::sum;

use cursor::Parser;

/// How many constructs may stand inside one another.
pub const DEPTH_MAX: usize = 32;

/// What is not in the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What it is.
    pub construct: Construct,
    /// Where it stands, in bytes from the beginning of the text.
    pub at: usize,
}

/// Reads a command line; `depth` is how many constructs are around it already.
///
/// # Errors
/// [`Refusal`] names the first construct that is not in the grammar.
pub fn parse(text: &str, depth: usize) -> Result<List, Refusal> {
    Parser::new(text, depth, false).line()
}

/// Reads a command line. `takes_bare`: whether the delimiter of a here-document may stand without quotes, if nothing in its body is expanded.
/// Where patterns are looked for, such a line is better compared as a text.
///
/// # Errors
/// As [`parse`].
pub fn parse_line(text: &str, takes_bare: bool) -> Result<List, Refusal> {
    Parser::new(text, 0, takes_bare).line()
}
