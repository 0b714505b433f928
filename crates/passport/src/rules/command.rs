//! The rules of `system.command.execute`: shell commands.
//!
//! Without `allowed_commands` nothing is allowed; `*` in it allows any command. The crate `bash_commands` proves what a command line runs.

use bash_commands::{COMMAND_BYTES_MAX, Checked, CommandFinding, CommandRules, HIDDEN_ONES};
use tollgate_json::{Text, Value};

use super::super::argument_names::fold;
use super::super::argument_role::ArgumentRole;
use super::super::arguments::Sorted;
use super::super::look_alike::plain_spelling;
use super::budget;
use super::command_patterns::read_patterns;
use super::file_path::{PATH_BYTES_MAX, read_path};
use super::{
    Amount, Denial, Field, Malformed, Report, RuleCall, Rules, SEVERAL_FOLDERS, Section, check_amount, check_judgeable, check_limit,
    report, secrets, unknown_argument,
};

/// Names of the languages that command lines are proven in.
const SHELL_LANGUAGES: [&str; 8] = ["bash", "sh", "shell", "zsh", "dash", "ash", "posix", "shellscript"];

/// Tools that run code of several languages.
const CODE_TOOLS: [&str; 1] = ["execute_code"];

/// Names for how long a command may run, each with how many seconds one of it is.
const TIMEOUTS: [(&str, f64); 10] = [
    ("timeout", 1.0),
    ("timeout_seconds", 1.0),
    ("timeout_secs", 1.0),
    ("timeout_ms", 0.001),
    ("timeout_millis", 0.001),
    ("timeout_minutes", 60.0),
    ("max_time", 1.0),
    ("time_limit", 1.0),
    ("max_execution_time", 1.0),
    ("execution_timeout", 1.0),
];

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
        let patterns = section.strings("blocked_patterns").and_then(|entries| read_patterns(entries, &section.path_of("blocked_patterns")));
        let rules = match (section.strings("allowed_commands"), patterns, lets_through) {
            (Field::Malformed(malformed), ..) | (_, Field::Malformed(malformed), _) | (.., Field::Malformed(malformed)) => {
                Field::Malformed(malformed)
            }
            (allowed, blocked, lets_through) => {
                let rules = CommandRules::new(allowed.valid().map(Vec::as_slice), blocked.valid().map(Vec::as_slice).unwrap_or_default());
                Field::Valid(rules.letting_unproven_through(lets_through == Field::Valid(true)))
            }
        };
        Self { rules, max_execution_time: section.number("max_execution_time") }
    }

    /// Returns whether any command may run, so that another one is no harm.
    fn allows_all(&self) -> bool {
        self.rules.valid().is_some_and(CommandRules::allows_all)
    }

    /// Checks that a call of a tool for code names the language: the tool may take another language by itself.
    fn check_language(&self, call: &RuleCall<'_>, sorted: &Sorted<'_>) -> Result<(), Denial> {
        let is_named = !CODE_TOOLS.contains(&call.tool_name) || sorted.of(ArgumentRole::Language).next().is_some();
        if is_named || self.allows_all() {
            return Ok(());
        }
        const MESSAGE: &str = "Argument 'language' is missing, and the tool may take the command for another language than a shell's";
        Err(Denial::new("oap.invalid_tool_arguments", MESSAGE))
    }

    /// Reports what the rules say of a command line that runs in a folder, then of the files that it names and opens.
    fn check_command(&self, command: &str, folder: Option<&str>, call: &RuleCall<'_>, to: &mut dyn Report) {
        let Field::Valid(rules) = &self.rules else {
            return report(to, "command", check_limit(&self.rules, |_| Ok(())));
        };
        let checked = rules.check_in(command, folder);
        if checked.findings.is_empty() {
            report(to, "command", Ok(()));
        }
        for finding in &checked.findings {
            report(to, "command", Err(Denial::new(finding.code(), finding.message())));
        }
        if checked.findings.iter().any(|finding| matches!(finding, CommandFinding::NotAllowed { .. })) {
            to.near(&|| rules.nearest(command).map(|near| near.to_string()));
            to.near(&|| entries_to_add(&rules.missing(command)));
        }
        if let Err(denial) = budget::check_line(&checked, command, call.files.limits.weight()) {
            return report(to, "budget", Err(denial));
        }
        report(to, "secrets", check_words(&checked));
        checked.files.iter().for_each(|file| call.files.check(file, to));
        checked.urls.iter().for_each(|url| call.files.check_address(url, to));
        if !checked.patterns.is_empty() {
            report(to, "patterns", call.files.check_patterns(&checked.patterns));
        }
        if !checked.operands.is_empty() {
            report(to, "files of arguments", call.files.check_operands(&checked.operands, &checked.patterns));
        }
    }
}

/// Says which entries the list needs to have for a line, with no word of the line but names of known programs.
fn entries_to_add(missing: &[Result<String, usize>]) -> Option<String> {
    let entry = |entry: &Result<String, usize>| match entry {
        Ok(entry) => format!("\"{entry}\""),
        Err(place) => format!("the program at character {place}"),
    };
    let entries = missing.iter().map(entry).collect::<Vec<_>>().join(", ");
    let advice = format!("to allow every command of the line, add to limits.system.command.execute.allowed_commands: {entries}");
    (!missing.is_empty()).then_some(advice)
}

/// Checks that no word of a command line names a place of secrets, or a place by another name, and that no command prints secrets.
fn check_words(checked: &Checked) -> Result<(), Denial> {
    if checked.prints_secrets {
        const MESSAGE: &str =
            "Command prints or hands on what holds secrets, such as the environment, tokens or settings; ask for what is needed by name";
        return Err(Denial::new("oap.blocked_pattern", MESSAGE));
    }
    let mut is_secret = checked.patterns.iter().any(|pattern| pattern.len() > PATH_BYTES_MAX || secrets::secret_pattern(pattern));
    let (mut secret, mut is_other_name, mut is_too_long) = (None, false, false);
    checked.each_word(&mut |word, is_glob| {
        // No glob is as long as a text.
        is_secret |= is_glob && (budget::is_text(word) || secrets::secret_glob(word));
        for piece in budget::pieces(word) {
            is_too_long |= piece.len() > PATH_BYTES_MAX;
            if is_too_long {
                return;
            }
            let spelled = || plain_spelling(piece).and_then(|spelling| secrets::secret_of_word(&spelling));
            secret = secret.or_else(|| secrets::secret_of_word(piece)).or_else(spelled);
            is_other_name |= secrets::other_name_word(piece);
        }
    });
    if is_too_long {
        let message =
            format!("Command has a word of more than {PATH_BYTES_MAX} bytes, which may be a path; split it by blanks or punctuation");
        return Err(Denial::new("oap.context_too_large", message));
    }
    match (is_secret || secret.is_some(), is_other_name) {
        (true, _) if checked.patterns.iter().any(|pattern| pattern == HIDDEN_ONES) => {
            const MESSAGE: &str = "Command shows or changes hidden files that a program finds, and secrets may be among them; have it look for \
                 names, as grep --include='*.py' and find -name '*.py' do";
            Err(Denial::new("oap.blocked_pattern", MESSAGE))
        }
        (true, _) => Err(secrets::denial("Command names a file that", secret)),
        (_, true) => Err(Denial::new("oap.path_not_allowed", "Command names a place by another name, such as one below /proc or ~user")),
        _ => Ok(()),
    }
}

impl Rules for CommandLimits {
    fn faults(&self) -> Vec<Option<&Malformed>> {
        vec![self.rules.malformed(), self.max_execution_time.malformed()]
    }

    fn check(&self, call: &RuleCall<'_>, to: &mut dyn Report) {
        let sorted = match call.arguments.sorted(&call.names) {
            Ok(sorted) => sorted,
            Err(denial) => return report(to, "command", Err(denial)),
        };
        match read_command(&sorted).and_then(|command| self.check_language(call, &sorted).map(|()| command)) {
            Ok(command) => self.check_command(command, folder(&sorted), call, to),
            Err(denial) => report(to, "command", Err(denial)),
        }
        let is_harmless = |text: &str| text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit());
        if sorted.unknown.iter().any(|text| !is_harmless(text)) && !self.allows_all() {
            report(to, "unknown arguments", Err(unknown_argument("another command")));
        }
        let is_time = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let is_other = |(_, value): &(usize, Value<'_>)| value.as_text().and_then(Text::into_str).is_some_and(|text| !is_time(&text));
        let mut named = call.arguments.named(&TIMEOUTS.map(|(name, _)| name));
        named.extend(call.arguments.named(&["wait_ms", "yield_time_ms"]));
        if named.iter().any(is_other) && !self.allows_all() {
            const MESSAGE: &str = "A timeout is a text that is no number, and a tool may write it into a command; write a number";
            report(to, "unknown arguments", Err(Denial::new("oap.invalid_tool_arguments", MESSAGE)));
        }
        let asked = || call.arguments.largest(TIMEOUTS);
        report(to, "max_execution_time", check_amount(&self.max_execution_time, asked, "Command timeout exceeds max_execution_time"));
    }
}

/// Returns the command line, which is the only one and written for a shell.
fn read_command<'s>(sorted: &'s Sorted<'_>) -> Result<&'s str, Denial> {
    let invalid = |message: &'static str| Err(Denial::new("oap.invalid_tool_arguments", message));
    let mut commands = sorted.of(ArgumentRole::Command).filter(|command| !command.trim().is_empty());
    let Some(command) = commands.next() else {
        return Err(Denial::new("oap.missing_required_context", "Command context must include command"));
    };
    check_judgeable(sorted)?;
    if commands.next().is_some() {
        return invalid("Arguments hold several commands, of which a tool may run any");
    }
    if sorted.of(ArgumentRole::Language).any(|language| fold(language).is_none_or(|name| !SHELL_LANGUAGES.contains(&name.as_str()))) {
        return invalid("Argument 'language' names another language than a shell's, in which the command means something else");
    }
    if sorted.of(ArgumentRole::Folder).count() > 1 {
        return invalid(SEVERAL_FOLDERS);
    }
    folder(sorted).map_or(Ok(()), check_folder)?;
    if command.len() > COMMAND_BYTES_MAX {
        let message = format!("Command has {} bytes; at most {COMMAND_BYTES_MAX} are looked at", command.len());
        return Err(Denial::new("oap.context_too_large", message));
    }
    Ok(command)
}

/// Returns the working folder, if the call tells one.
fn folder<'s>(sorted: &'s Sorted<'_>) -> Option<&'s str> {
    sorted.of(ArgumentRole::Folder).map(|folder| &**folder).find(|folder| !folder.is_empty())
}

/// Refuses a working folder that a tool may take for something else, such as a command line that goes there.
fn check_folder(folder: &str) -> Result<(), Denial> {
    let is_plain = folder.trim() == folder && !folder.contains(|char| "`$;|&<>*?{}'\"".contains(char));
    if !is_plain {
        const MESSAGE: &str = "The working folder has blanks around it, or a character that has a meaning to shells; write its path";
        return Err(Denial::new("oap.invalid_tool_arguments", MESSAGE));
    }
    read_path(folder).map(drop)
}
