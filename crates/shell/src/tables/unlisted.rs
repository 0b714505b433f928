//! What is said of arguments that no table has, and of what a command starts.

use crate::argument::Argument;

/// What a command starts beside itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// A command.
    Command(Vec<Argument>),
    /// A text that a shell executes. It is always known.
    Text(Argument),
}

/// An argument that is not in the program's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unlisted {
    /// Its place among the arguments, from 0; as many as there are arguments if one is missing.
    pub index: usize,
    /// What it is, as the end of a sentence that begins with the program's name: "… has an option that is not known to be harmless".
    pub what: &'static str,
}

/// What a program starts by its arguments, or the first argument that its table does not have.
pub type Reading = Result<Vec<Started>, Unlisted>;

/// Says of an option that is not in the table.
pub const OPTION: &str = "an option that is not known to be harmless";
/// Says of a program of which a list has to say what it may do.
pub const NAMED: &str = "an argument that no entry names";
/// Says of a word that may be an option.
pub const COMPUTED: &str = "an argument that is computed and may be an option";
/// Says of a name of a file that the line computes.
pub const COMPUTED_NAME: &str = "a name of a file that is computed, and could be any";
/// Says of a word that the line computes, where a word may be the name of a file.
pub const COMPUTED_WORD: &str = "a word that is computed, and could be the name of any file";
/// Says of a subcommand that is not in the table.
pub const SUBCOMMAND: &str = "a subcommand that is not known to be harmless";
/// Says of an operand that is not in the table.
pub const OPERAND: &str = "an operand that is not known to be harmless";
/// Says of a word in front of a command that sets a variable.
pub const ASSIGNMENT: &str = "a variable that is not known to be harmless";
/// Says of a word that is missing, without which a program does more than with it.
pub const MISSING: &str = "too few arguments: without them it does what is not known to be harmless";
/// Says of the value of an option that is not in the table.
pub const VALUE: &str = "a value of an option that is not known to be harmless";
/// Says of a command that lacks an option without which the program asks, or reads from a file what it does.
pub const NEEDED: &str = "too few options: as it stands it asks for a text, or does what a file says,";
/// Says of a builtin that is refused always.
pub const REFUSED: &str = "effects inside the shell, which no list of commands holds,";
/// Says of a program without a table whose arguments are not literal.
pub const LITERAL: &str = "an argument that is computed, and may mean anything to this program";
