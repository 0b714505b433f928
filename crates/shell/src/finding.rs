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
        /// The program, with its subcommand where the list has the program with other words.
        program: Program,
        /// What the list has of the program.
        listed: Listed,
        /// Where the command stands in the command line, in characters from 1, if its program may not be named and it is not the first.
        place: Option<usize>,
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

/// What a list of commands has of the program of a command that is not on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Nothing.
    Nothing,
    /// The program with other words.
    OtherWords,
    /// A program of the same name, at another path or without a path.
    OtherPath,
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
            Self::NotAllowed { program, listed, place } => not_allowed(program, *listed, *place),
            Self::NothingAllowed => {
                "No commands are allowed: list them in allowed_commands, or write \"*\" to allow every command".to_owned()
            }
            Self::Blocked { pattern } => format!("Command contains blocked pattern: {pattern}"),
            Self::Unproven(Unproven { construct, place, program }) => {
                let name = program.name.as_ref().map(|name| format!(" '{name}'")).unwrap_or_default();
                let instead = instead_of(program.name.as_deref()).filter(|_| *construct == Construct::Argument(tables::REFUSED));
                let instead = instead.unwrap_or_else(|| construct.instead());
                format!("Command{name} has {} at character {place}; {instead}", construct.what())
            }
            Self::SelfSpawning => "Command defines a function that starts itself".to_owned(),
            Self::Empty => "Command is empty".to_owned(),
        }
    }
}

/// Says that a command is not on the list. A program and its subcommand are written as one name.
fn not_allowed(program: &Program, listed: Listed, place: Option<usize>) -> String {
    match (&program.name, listed, place) {
        (Some(name), Listed::OtherWords, _) if !name.contains(' ') => format!("Command '{name}' is in allowed list with other words only"),
        (Some(name), Listed::OtherPath, _) => format!("Command '{name}' is in allowed list, but not at this path"),
        (Some(name), ..) => format!("Command '{name}' is not in allowed list"),
        (None, _, Some(place)) => format!("Command at character {place} is not in allowed list"),
        (None, _, None) => "Command is not in allowed list".to_owned(),
    }
}

/// Returns what to write instead of a builtin that is refused always.
fn instead_of(builtin: Option<&str>) -> Option<&'static str> {
    match builtin? {
        "." | "source" => Some("call each program by a path that the list of allowed commands has, as in .venv/bin/python -m pytest"),
        "pushd" | "popd" => Some("write (cd DIR && command)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_is_configured_and_nothing_else() {
        let not_allowed = |name: Option<&str>, listed: Listed, place: Option<usize>| {
            CommandFinding::NotAllowed { program: Program { name: name.map(str::to_owned) }, listed, place }.message()
        };
        assert_eq!(not_allowed(Some("rm"), Listed::Nothing, None), "Command 'rm' is not in allowed list");
        assert_eq!(not_allowed(Some("git push"), Listed::OtherWords, None), "Command 'git push' is not in allowed list");
        assert_eq!(not_allowed(Some("curl"), Listed::OtherWords, None), "Command 'curl' is in allowed list with other words only");
        assert_eq!(not_allowed(Some("pip"), Listed::OtherPath, None), "Command 'pip' is in allowed list, but not at this path");
        assert_eq!(not_allowed(None, Listed::Nothing, Some(7)), "Command at character 7 is not in allowed list");
        assert_eq!(not_allowed(None, Listed::Nothing, None), "Command is not in allowed list");
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
