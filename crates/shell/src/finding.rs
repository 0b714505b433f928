//! The objections to a command, in sentences that repeat nothing of it but names of programs and configured patterns.

use super::grammar::Construct;
use super::tables;

/// Says of a computed argument of a program that a pattern is about.
pub(crate) const HIDDEN: &str = "a computed argument that a blocked pattern may forbid";

/// An objection to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFinding {
    /// A command that is not on the list.
    NotAllowed {
        /// The program.
        program: Program,
    },
    /// There is no list of allowed commands, or an empty one.
    NothingAllowed,
    /// A blocked pattern.
    Blocked {
        /// The pattern as it is configured.
        pattern: String,
    },
    /// Something that cannot be proven harmless.
    Unproven(Unproven),
    /// A function that starts itself, as a fork bomb does.
    SelfSpawning,
    /// There is no command.
    Empty,
}

/// The program of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name without a path; only if it is well known or configured, because a message repeats nothing else of a command.
    pub name: Option<String>,
}

/// What cannot be proven harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unproven {
    /// The construct.
    pub construct: Construct,
    /// Where it stands in the command line, in characters from 1. Inside a text that is given to a shell it is the place of that text.
    pub place: usize,
    /// The program whose argument it is, if it is one.
    pub program: Program,
}

impl Unproven {
    /// Returns whether it is an argument that is written out and that the program's table does not have.
    #[must_use]
    pub fn is_listed_out(&self) -> bool {
        matches!(self.construct, Construct::Argument(what) if what != tables::COMPUTED && what != tables::LITERAL && what != HIDDEN)
    }
}

impl CommandFinding {
    /// Returns the reason's code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } | Self::NothingAllowed => "oap.command_not_allowed",
            Self::Blocked { .. } => "oap.blocked_pattern",
            // The program is on the list, and its table has this argument out: that is decided, and not in doubt.
            Self::Unproven(unproven) if unproven.is_listed_out() => "oap.command_not_allowed",
            Self::Unproven(_) => "oap.command_unproven",
            Self::SelfSpawning => "oap.dangerous_operation",
            Self::Empty => "oap.missing_required_context",
        }
    }

    /// Returns the reason's message.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::NotAllowed { program: Program { name: Some(name) } } => format!("Command '{name}' is not in allowed list"),
            Self::NotAllowed { program: Program { name: None } } => "Command is not in allowed list".to_owned(),
            Self::NothingAllowed => {
                "No commands are allowed: list them in allowed_commands, or write \"*\" to allow every command".to_owned()
            }
            Self::Blocked { pattern } => format!("Command contains blocked pattern: {pattern}"),
            Self::Unproven(Unproven { construct, place, program }) => {
                let name = program.name.as_ref().map(|name| format!(" '{name}'")).unwrap_or_default();
                format!("Command{name} has {} at character {place}; {}", construct.what(), construct.instead())
            }
            Self::SelfSpawning => "Command defines a function that starts itself".to_owned(),
            Self::Empty => "Command is empty".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_is_configured_and_nothing_else() {
        let named = CommandFinding::NotAllowed { program: Program { name: Some("rm".to_owned()) } };
        assert_eq!(named.message(), "Command 'rm' is not in allowed list");
        let unnamed = CommandFinding::NotAllowed { program: Program::default() };
        assert_eq!(unnamed.message(), "Command is not in allowed list");
        let blocked = CommandFinding::Blocked { pattern: "rm -rf".to_owned() };
        assert_eq!(blocked.message(), "Command contains blocked pattern: rm -rf");
        assert!(CommandFinding::NothingAllowed.message().contains("\"*\""));
    }

    #[test]
    fn what_is_unproven_is_named_with_its_place_and_what_to_write_instead() {
        let finding = CommandFinding::Unproven(Unproven { construct: Construct::Arithmetic, place: 6, program: Program::default() });
        assert_eq!(finding.message(), "Command has arithmetic at character 6; write the result as a number");
    }
}
