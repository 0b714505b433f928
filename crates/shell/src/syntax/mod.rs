//! Parses bash: text → tree, in time that is linear in the text for a given depth of nesting, without panics.
//!
//! What the parser does not understand is a [`Fault`], never a guess. It follows what bash does in a script or `bash -c`: no history, no
//! aliases, extended globs inside `[[ ]]` only. Recursion is bounded by [`DEPTH_MAX`]. Nothing is parsed twice: where two readings begin
//! alike (`((` is arithmetic or two subshells), looking ahead decides.

mod ansi;
mod commands;
mod compound;
mod cursor;
mod dollar;
mod simple;
mod tree;
mod words;

pub use cursor::Parser;
pub use tree::{Argument, Assignment, Command, Compound, Kind, List, Part, Pipeline, Redirect, RedirectKind, Simple, Word};

/// The most constructs that may stand inside each other: quotes, substitutions, groups, branches.
pub const DEPTH_MAX: usize = 64;

/// Why a text was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The text is not in the grammar.
    Syntax,
    /// The text nests deeper than [`DEPTH_MAX`].
    Depth,
}

/// Parses the commands of a text that stands at this depth already.
///
/// # Errors
///
/// If the text is not understood.
pub fn parse(text: &str, depth: usize) -> Result<List, Fault> {
    let mut parser = Parser::new(text, depth);
    parser.program()
}

/// Parses a text that bash expands as it expands a here-document.
///
/// # Errors
///
/// If the text is not understood.
pub fn parse_document(text: &str, depth: usize) -> Result<Word, Fault> {
    Parser::new(text, depth).document()
}
