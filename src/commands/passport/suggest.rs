//! `tollgate passport check --suggest`: entries for the lines of a capture that the list of commands refuses.
//!
//! An entry is made of a refused command, word for word but for what changes from call to call: numbers, addresses and paths become typed
//! places. It is a proposal: whoever takes it over has to read it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use bash_commands::{Argument, analyse};
use serde_json::Value;

/// The most entries that are proposed.
const ENTRIES_MAX: usize = 50;

/// Returns proposed entries with how many commands each would allow, the most wanted first. `is_allowed` says whether a line may run.
pub(super) fn suggest(capture: &Path, is_allowed: impl Fn(&str) -> bool) -> anyhow::Result<Vec<(String, usize)>> {
    let text = std::fs::read_to_string(capture).with_context(|| format!("--suggest {}: cannot be read", capture.display()))?;
    let mut counts = BTreeMap::<String, usize>::new();
    for line in text.lines().filter_map(command_of).filter(|line| !is_allowed(line)) {
        for command in analyse(&line).commands {
            if !is_allowed(&written(&command.words))
                && let Some(entry) = entry(&command.words)
            {
                *counts.entry(entry).or_default() += 1;
            }
        }
    }
    let mut entries: Vec<_> = counts.into_iter().collect();
    entries.sort_by(|(one, count), (other, others)| others.cmp(count).then_with(|| one.cmp(other)));
    entries.truncate(ENTRIES_MAX);
    Ok(entries)
}

/// Returns the command of a line of a capture: an event, or a record with the event as its value.
fn command_of(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).ok()?;
    let inner = line.get("value").and_then(Value::as_str).and_then(|value| serde_json::from_str::<Value>(value).ok());
    let event = inner.unwrap_or(line);
    let input = match event.get("arguments").and_then(Value::as_str) {
        Some(arguments) => serde_json::from_str::<Value>(arguments).ok()?,
        None => event.get("tool_input")?.clone(),
    };
    (event.get("type")? == "tool_call").then_some(())?;
    Some(input.get("command")?.as_str()?.to_owned())
}

/// Returns a command as a line, with the words quoted that need it.
fn written(words: &[Argument]) -> String {
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./,:@%+=".contains(&byte));
    let quoted = |word: &Argument| if is_plain(&word.text) { word.text.clone() } else { format!("'{}'", word.text.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns the entry for a command; `None` if a word is not known, or cannot stand in an entry.
fn entry(words: &[Argument]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut entry = vec![program.as_known()?.to_owned()];
    for argument in arguments {
        let text = argument.as_known()?;
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_path = text.contains('/') && !text.starts_with('-');
        entry.push(match text {
            _ if is_number => "{number}".to_owned(),
            _ if text.starts_with("http://") || text.starts_with("https://") => "{url}".to_owned(),
            _ if is_path => "{path}".to_owned(),
            _ if text.is_empty() || text.contains(|char: char| char.is_whitespace() || "'\"\\[]{}".contains(char)) => return None,
            _ => text.to_owned(),
        });
    }
    Some(entry.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_from_call_to_call_becomes_a_place() {
        let entry_of = |line: &str| entry(&analyse(line).commands[0].words);
        assert_eq!(entry_of("gh pr view 7 --json title").as_deref(), Some("gh pr view {number} --json title"));
        assert_eq!(entry_of("curl -s https://a.example/x").as_deref(), Some("curl -s {url}"));
        assert_eq!(entry_of("kubectl apply -f deploy/a.yaml").as_deref(), Some("kubectl apply -f {path}"));
        assert_eq!(entry_of("psql -c 'select 1'"), None, "a word with a blank cannot stand beside a place");
    }

    #[test]
    fn lines_of_captures_are_events_or_records() {
        let event = r#"{"type":"tool_call","tool_input":{"command":"ls"}}"#;
        let record = serde_json::json!({"topic": "t", "value": event}).to_string();
        assert_eq!([event, &record].map(command_of), [Some("ls".to_owned()), Some("ls".to_owned())]);
        assert_eq!(command_of(r#"{"type":"tool_call","arguments":"{\"command\":\"pwd\"}"}"#).as_deref(), Some("pwd"));
        assert_eq!(command_of(r#"{"type":"turn_end"}"#), None);
    }
}
