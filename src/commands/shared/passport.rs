//! Explains the decision on one call under a passport, check by check.

use std::borrow::Cow;

use anyhow::bail;
use serde::Serialize;
use serde_json::{Value, json};

use bash_commands::{Analysis, ReachedCommand, analyse};
use tollgate_json::{DEPTH_MAX, Parser, Text};
use tollgate_passport::{Call, Need, Outcome, Pack, Passport, PassportFault, Report, SchemaFault, Terms, ToolInput, examine};

use super::now_ms;

/// A tool that needs no capability, unless the configuration says otherwise.
const NEEDS_NOTHING: &str = "todo";

/// The checks of a call, in their order, and the decision.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Explanation {
    pub(crate) allow: bool,
    /// The code of the first denial.
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    policy_id: Option<Cow<'static, str>>,
    checks: Vec<Check>,
    /// Which entries of the passport's lists the call comes nearest to, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<String>,
    /// The commands that a shell command line runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    commands: Option<Vec<Reached>>,
}

#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    said: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'static, str>>,
}

impl Explanation {
    /// Returns the code and the message of the first denial.
    pub(crate) fn denial(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }
}

/// A simple command that a command line may run.
#[derive(Debug, Serialize)]
struct Reached {
    command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    how: String,
}

impl Report for Explanation {
    fn outcome(&mut self, check: &'static str, outcome: Outcome) {
        self.checks.push(match outcome {
            Outcome::Passed => Check { check, said: "passed", code: None, message: None },
            Outcome::Denied(denial) => Check { check, said: "denied", code: Some(denial.code), message: Some(denial.message) },
            Outcome::NotAsked(why) => Check { check, said: "not asked", code: None, message: Some(why.into()) },
        });
    }

    fn policy(&mut self, policy_id: Cow<'static, str>) {
        self.policy_id = Some(policy_id);
    }

    fn near(&mut self, nearest: &dyn Fn() -> Option<String>) {
        self.nearest.extend(nearest());
    }
}

/// Explains the decision on a call. `input` is a JSON object, or a command line for a tool that runs commands.
pub(crate) fn explain(
    passport: Result<&Passport, &PassportFault>,
    terms: &Terms,
    tool_name: &str,
    input: &str,
    time_ms: Option<i64>,
) -> anyhow::Result<Explanation> {
    let is_command = matches!(terms.capabilities.need(tool_name), Some(Need::Pack(Pack::Command)));
    let arguments = match input.trim_start().starts_with('{') {
        true => input.to_owned(),
        false if is_command => json!({"command": input}).to_string(),
        false => bail!("INPUT is no JSON object; write the tool's arguments, such as '{{\"path\": \"notes.md\"}}'"),
    };
    if let Err(error) = Parser::new().parse(arguments.as_bytes(), DEPTH_MAX) {
        bail!("INPUT is not JSON: {error}");
    }
    let mut explanation = Explanation::default();
    let call = Call { tool_name, input: &ToolInput::Encoded(Text::plain(arguments.as_bytes())), time_ms, earliest_ms: time_ms };
    examine(Some(passport), terms, &call, &mut explanation);
    let denial = explanation.checks.iter().find_map(|check| Some((check.code?, check.message.clone()?)));
    explanation.allow = denial.is_none();
    let (code, message) = denial.unwrap_or(("oap.allowed", "All policy checks passed".into()));
    (explanation.code, explanation.message) = (code.into(), message);
    let command = serde_json::from_str::<Value>(&arguments).ok().and_then(|arguments| Some(arguments.get("command")?.as_str()?.to_owned()));
    explanation.commands = command.filter(|_| is_command).map(|command| reached(&analyse(&command)));
    Ok(explanation)
}

fn reached(analysis: &Analysis) -> Vec<Reached> {
    analysis.commands.iter().map(|command| Reached { command: words(command), how: command.how.clone() }).collect()
}

fn words(command: &ReachedCommand) -> String {
    command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

impl Explanation {
    pub(crate) fn as_text(&self) -> String {
        let mut text = String::from("checks:\n");
        for Check { check, said, code, message } in &self.checks {
            text.push_str(&format!("  {check:<22} {said}"));
            text.push_str(&code.map(|code| format!(": {code}")).unwrap_or_default());
            text.push_str(&message.as_ref().map(|message| format!(": {message}")).unwrap_or_default());
            text.push('\n');
        }
        if let Some(commands) = &self.commands {
            text.push_str("commands in this line:\n");
            for Reached { command, how } in commands {
                let how = if how.is_empty() { String::new() } else { format!(" ({how})") };
                text.push_str(&format!("  {command}{how}\n"));
            }
        }
        self.nearest.iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
        let (said, policy) = (if self.allow { "allowed" } else { "denied" }, self.policy_id.as_deref().unwrap_or("no policy"));
        text.push_str(&format!("{said} by {policy}: {}: {}\n", self.code, self.message));
        text
    }
}

/// Returns a fault as two lines, for people.
pub(crate) fn fault_lines(SchemaFault { path, found, expected, effect }: &SchemaFault) -> String {
    format!("  {path}: found {found}, expected {expected}\n    {effect}")
}

/// Returns why every call under a passport is denied now, if it is: even a call that needs no capability.
pub(crate) fn denies_every_call(passport: &Passport) -> anyhow::Result<Option<String>> {
    let explanation = explain(Ok(passport), &Terms::default(), NEEDS_NOTHING, "{}", Some(now_ms()))?;
    Ok((!explanation.allow).then(|| explanation.denial()))
}
