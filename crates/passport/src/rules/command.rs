//! The rules of `system.command.execute`: shell commands.
//!
//! Without `allowed_commands` nothing is allowed; `*` in it allows any command. The crate `bash_commands` proves what a command line runs.

use std::borrow::Cow;

use bash_commands::{COMMAND_BYTES_MAX, Checked, CommandRules};

use super::{Amount, Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_amount, check_limit, report, secrets};

/// Arguments that would change what a command does in ways that its text does not show, or that a tool may execute in its place.
const OTHER_ARGUMENTS: [&str; 17] = [
    "args",
    "argv",
    "env",
    "environment",
    "shell",
    "executable",
    "interpreter",
    "user",
    "stdin",
    "input",
    "code",
    "script",
    "cmd",
    "commands",
    "program",
    "source",
    "data",
];

/// The longest word that is taken for one path, in bytes. In a longer one every piece is.
const WORD_BYTES_MAX: usize = 512;

/// The longest path of Linux, in bytes.
const PATH_BYTES_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct CommandLimits {
    rules: Field<CommandRules>,
    max_execution_time: Field<Amount>,
}

impl CommandLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        let lets_through = section.string("unproven_commands").and_then(|word| match word.as_str() {
            "allow" => Ok(true),
            "deny" => Ok(false),
            _ => Err(Malformed::new(section.path_of("unproven_commands"), "another word", "`allow` or `deny`")),
        });
        let rules = match (section.strings("allowed_commands"), section.strings("blocked_patterns"), lets_through) {
            (Field::Malformed(malformed), ..) | (_, Field::Malformed(malformed), _) | (.., Field::Malformed(malformed)) => {
                Field::Malformed(malformed)
            }
            (allowed, blocked, lets_through) => {
                let rules = CommandRules::new(list(&allowed), list(&blocked).unwrap_or_default());
                Field::Valid(rules.letting_unproven_through(matches!(lets_through, Field::Valid(true))))
            }
        };
        Self { rules, max_execution_time: section.number("max_execution_time") }
    }

    /// Reports what the rules say of a command line, then of the files that it names and opens.
    fn check_command(&self, command: &str, call: &RuleCall<'_>, to: &mut dyn Report) {
        let Field::Valid(rules) = &self.rules else {
            return report(to, "command", check_limit(&self.rules, |_| Ok(())));
        };
        let checked = rules.check(command);
        if checked.findings.is_empty() {
            report(to, "command", Ok(()));
        }
        for finding in &checked.findings {
            report(to, "command", Err(Denial::new(finding.code(), finding.message())));
        }
        report(to, "secrets", check_words(&checked));
        checked.files.iter().for_each(|file| call.files.check(file, to));
    }
}

/// Checks that no word of a command line names a place of secrets, or a place by another name.
fn check_words(checked: &Checked) -> Result<(), Denial> {
    let (mut is_secret, mut is_other_name) = (false, false);
    checked.each_word(&mut |word, is_glob| {
        // A long word is a text, in which a path may stand between blanks and punctuation. No glob is that long.
        is_secret |= is_glob && (word.len() > WORD_BYTES_MAX || secrets::secret_glob(word));
        let is_separator = |char: char| char.is_whitespace() || "=@:,;'\"()[]{}<>|&".contains(char);
        let pieces = word.split(|char| word.len() > WORD_BYTES_MAX && is_separator(char));
        for piece in pieces.filter(|piece| piece.len() <= PATH_BYTES_MAX) {
            is_secret |= secrets::secret_word(piece);
            is_other_name |= secrets::other_name_word(piece);
        }
    });
    match (is_secret, is_other_name) {
        (true, _) => Err(Denial::new("oap.blocked_pattern", "Command names a file that matches default sensitive read pattern")),
        (_, true) => Err(Denial::new("oap.path_not_allowed", "Command names a place by another name, such as one below /proc or ~user")),
        _ => Ok(()),
    }
}

fn list(field: &Field<Vec<String>>) -> Option<&[String]> {
    if let Field::Valid(entries) = field { Some(entries) } else { None }
}

impl Rules for CommandLimits {
    fn faults(&self) -> Vec<&Malformed> {
        [self.rules.malformed(), self.max_execution_time.malformed()].into_iter().flatten().collect()
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        match read_command(call) {
            Ok(command) => self.check_command(&command, call, to),
            Err(denial) => report(to, "command", Err(denial)),
        }
        let asked = call.arguments.number("timeout");
        report(to, "max_execution_time", check_amount(&self.max_execution_time, asked, "Command timeout exceeds max_execution_time"));
    }
}

fn read_command<'c>(call: &RuleCall<'c>) -> Result<Cow<'c, str>, Denial> {
    let missing = || Denial::new("oap.missing_required_context", "Command context must include command");
    let command = call.arguments.text("command")?.filter(|command| !command.trim().is_empty()).ok_or_else(missing)?;
    if let Some(other) = OTHER_ARGUMENTS.iter().find(|key| call.arguments.holds(key)) {
        let message = format!("Argument '{other}' changes what a command does; only 'command' is looked at");
        return Err(Denial::new("oap.invalid_tool_arguments", message));
    }
    if command.len() > COMMAND_BYTES_MAX {
        let message = format!("Command has {} bytes; at most {COMMAND_BYTES_MAX} are looked at", command.len());
        return Err(Denial::new("oap.context_too_large", message));
    }
    Ok(command)
}
