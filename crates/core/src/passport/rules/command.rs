//! The rules of `system.command.execute`: shell commands.
//!
//! Without `allowed_commands` nothing is allowed; `*` in it allows any command. The crate `bash_commands` reads the shell's grammar.

use std::borrow::Cow;

use bash_commands::{COMMAND_BYTES_MAX, CommandRules};

use super::{Amount, Denial, Field, Malformed, Report, RuleCall, Rules, Section, check_amount, check_limit, report};

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

#[derive(Debug)]
pub(super) struct CommandLimits {
    rules: Field<CommandRules>,
    max_execution_time: Field<Amount>,
}

impl CommandLimits {
    pub(super) fn new(section: &Section<'_>) -> Self {
        let rules = match (section.strings("allowed_commands"), section.strings("blocked_patterns")) {
            (Field::Malformed(malformed), _) | (_, Field::Malformed(malformed)) => Field::Malformed(malformed),
            (allowed, blocked) => Field::Valid(CommandRules::new(list(&allowed), list(&blocked).unwrap_or_default())),
        };
        Self { rules, max_execution_time: section.number("max_execution_time") }
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
            Ok(command) => {
                let mut said = false;
                let findings = match &self.rules {
                    Field::Valid(rules) => rules.check(&command),
                    _ => Vec::new(),
                };
                for finding in findings {
                    said = true;
                    report(to, "command", Err(Denial::new(finding.code(), finding.message())));
                }
                if !said {
                    report(to, "command", check_limit(&self.rules, |_| Ok(())));
                }
            }
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
