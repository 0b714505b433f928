//! What a line did that it must not do.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Something that no allowed line may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// A program ran that is not listed: its path, and its arguments.
    Ran(String),
    /// A file was made, changed or removed: its path.
    Wrote(String),
    /// A connection was opened or a datagram was sent.
    Connected,
    /// The shell was still running when its time was over.
    Endless,
}

impl Harm {
    /// Returns whether two are of one kind, whatever program or file it was.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl std::fmt::Display for Harm {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ran(what) => write!(to, "ran {what}"),
            Self::Wrote(path) => write!(to, "wrote {path}"),
            Self::Connected => to.write_str("used the network"),
            Self::Endless => to.write_str("did not end"),
        }
    }
}

/// An allowed line that did harm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The shell that it was run by.
    pub shell: String,
    /// The rule set that allowed it.
    pub rules: String,
    /// The folder that it was run in.
    pub folder: String,
    /// The seed of the worker that made it.
    pub seed: u64,
    /// The line as it was made.
    pub line: String,
    /// What it did.
    pub harm: Harm,
    /// The shortest line that was found to be allowed and to do harm of the same kind in the same shell.
    pub minimised: String,
}

impl Finding {
    /// Returns a text that is equal for findings that probably have one cause: the same harm, by a line with the same marks.
    #[must_use]
    pub fn kind(&self) -> String {
        let harm = match &self.harm {
            Harm::Ran(what) => what.split(' ').next().unwrap_or_default().rsplit('/').next().unwrap_or_default(),
            Harm::Wrote(_) => "wrote",
            Harm::Connected => "connected",
            Harm::Endless => "endless",
        };
        let marks: BTreeSet<char> = self.minimised.chars().filter(|char| !char.is_alphanumeric()).collect();
        format!("{harm} {}", marks.into_iter().collect::<String>())
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(to, "an allowed line {}", self.harm)?;
        writeln!(to, "  shell:     {}", self.shell)?;
        writeln!(to, "  rule set:  {}", self.rules)?;
        writeln!(to, "  folder:    {}", self.folder)?;
        writeln!(to, "  seed:      {}", self.seed)?;
        writeln!(to, "  line:      {:?}", self.line)?;
        write!(to, "  minimised: {:?}", self.minimised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_kind_have_the_same_marks() {
        let finding = |minimised: &str, ran: &str| Finding {
            shell: "zsh".to_owned(),
            rules: "ls".to_owned(),
            folder: "/work".to_owned(),
            seed: 1,
            line: String::new(),
            harm: Harm::Ran(ran.to_owned()),
            minimised: minimised.to_owned(),
        };
        let one = finding("ls; <a", "/usr/bin/cat").kind();
        assert_eq!(one, finding("echo <b; <b", "/bin/cat -n").kind());
        assert_ne!(one, finding("ls; <a", "/usr/bin/id").kind());
        assert_ne!(one, finding("ls <a", "/usr/bin/cat").kind());
    }
}
