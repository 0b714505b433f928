//! The objections to a command, in sentences that repeat nothing of it but names of programs and configured patterns.

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
    /// There is no command.
    Empty,
}

/// The program of a command that is not allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name without a path; only if it is well known or configured, because a message repeats nothing else of a command.
    pub name: Option<String>,
}

/// Why a command cannot be proven harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unproven {
    /// The command is longer than [`super::COMMAND_BYTES_MAX`].
    TooLong,
    /// The command nests deeper than [`super::syntax::DEPTH_MAX`].
    TooDeep,
    /// The command executes more than [`super::COMMANDS_MAX`] commands, or expands to too much text.
    TooMuch,
    /// The command is not in the grammar of bash.
    Unparsable,
    /// An expansion makes the name of a program.
    CommandPosition,
    /// A shell or `eval` executes a text that is computed.
    ShellText,
    /// A shell reads commands from a pipe that is not literal text.
    DataIntoShell,
    /// A variable or option that makes programs load other code.
    Loader,
    /// Other shells read the text differently.
    Dialect,
    /// A word of a program that is blocked with certain options or words is computed.
    Arguments,
    /// A shell executes a text into which variables are expanded.
    ExpandedShellText,
    /// Variables whose values are not known are evaluated as arithmetic, or other shells do not understand a test.
    Evaluated,
    /// Variables are assigned.
    Assignment,
    /// Output goes to a file.
    Redirection,
    /// A program that starts others has an option that is not in the table.
    StarterOption,
    /// A program is given settings that may start others.
    Configuration,
}

impl Unproven {
    /// Returns whether the deny side cannot be checked at all.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        self <= Self::Unparsable
    }

    /// Returns whether commands may be hidden that a blocked pattern would match. The others matter only where not everything is allowed.
    #[must_use]
    pub fn hides_commands(self) -> bool {
        self <= Self::Arguments
    }

    /// Returns the sentence that says so.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::TooLong => "Command is longer than 64 KiB",
            Self::TooDeep => "Command nests too deeply",
            Self::TooMuch => "Command executes or expands to too much to be checked",
            Self::Unparsable => "Command is not understood as bash",
            Self::CommandPosition => "Command executes a program whose name is made by an expansion",
            Self::ShellText => "Command executes a computed text in a shell",
            Self::DataIntoShell => "Command feeds a shell with data that cannot be checked",
            Self::Loader => "Command makes programs load code that cannot be checked",
            Self::Dialect => "Command is read differently by other shells",
            Self::Evaluated => "Command evaluates texts in a test or in arithmetic that may execute others",
            Self::Arguments => "Command computes arguments of a program that is blocked with certain arguments",
            Self::ExpandedShellText => "Command executes a text in a shell into which variables are expanded",
            Self::Assignment => "Command assigns variables, which may change what programs do",
            Self::Redirection => "Command redirects output to a file",
            Self::StarterOption => "Command starts another command with an option that is not known here",
            Self::Configuration => "Command gives a program settings that may start other commands",
        }
    }
}

impl CommandFinding {
    /// Returns the reason's code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed { .. } | Self::NothingAllowed => "oap.command_not_allowed",
            Self::Blocked { .. } => "oap.blocked_pattern",
            Self::Unproven(_) => "oap.command_chain_unsupported",
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
            Self::Unproven(reason) => reason.message().to_owned(),
            Self::Empty => "Command is empty".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandFinding, Program, Unproven};

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
    fn a_command_that_cannot_be_parsed_is_never_allowed() {
        assert!(Unproven::Unparsable.is_fatal() && Unproven::TooLong.is_fatal());
        assert!(!Unproven::CommandPosition.is_fatal() && Unproven::CommandPosition.hides_commands());
        assert!(!Unproven::Redirection.hides_commands() && Unproven::Arguments.hides_commands());
    }
}
