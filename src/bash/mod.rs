//! Shell commands: which simple commands a text runs, and what lists of commands and patterns say about them.

/// What is allowed and what is blocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRules {
    allowed: Vec<String>,
    blocked: Vec<String>,
}

/// One thing against a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFinding {
    /// It is not on the list.
    NotAllowed,
    /// There is no list.
    NothingAllowed,
    /// A pattern matches it.
    Blocked {
        /// Which.
        pattern: String,
    },
}

impl CommandFinding {
    /// Its OAP code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAllowed | Self::NothingAllowed => "oap.command_not_allowed",
            Self::Blocked { .. } => "oap.blocked_pattern",
        }
    }

    /// Its sentence.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::NotAllowed => "Command is not in allowed list".to_owned(),
            Self::NothingAllowed => "Passport allows no command; write \"*\" to allow all".to_owned(),
            Self::Blocked { pattern } => format!("Command contains blocked pattern: {pattern}"),
        }
    }
}

impl CommandRules {
    /// Rules of these lists.
    #[must_use]
    pub fn new(allowed: Option<&[String]>, blocked: &[String]) -> Self {
        Self { allowed: allowed.unwrap_or_default().to_vec(), blocked: blocked.to_vec() }
    }

    /// Everything against a command.
    #[must_use]
    pub fn check(&self, command: &str) -> Vec<CommandFinding> {
        let starts = |entry: &String| entry == "*" || command == entry || command.starts_with(&format!("{entry} "));
        let allowed = match self.allowed.iter().any(starts) {
            true => None,
            false if self.allowed.is_empty() => Some(CommandFinding::NothingAllowed),
            false => Some(CommandFinding::NotAllowed),
        };
        let blocked = self.blocked.iter().filter(|pattern| command.contains(pattern.as_str()));
        allowed.into_iter().chain(blocked.map(|pattern| CommandFinding::Blocked { pattern: pattern.clone() })).collect()
    }
}

/// What a command line executes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Analysis {
    /// The simple commands.
    pub commands: Vec<ReachedCommand>,
}

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachedCommand {
    /// Program and arguments.
    pub words: Vec<ReachedWord>,
    /// How it is reached.
    pub how: String,
}

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachedWord {
    /// Its text.
    Known(String),
    /// What is known of it.
    Unknown(String),
}

/// What a command line executes.
#[must_use]
pub fn analyse(command: &str) -> Analysis {
    let words = command.split_whitespace().map(|word| ReachedWord::Known(word.to_owned())).collect();
    Analysis { commands: vec![ReachedCommand { words, how: String::new() }] }
}
