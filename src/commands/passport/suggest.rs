//! `tollgate passport check --suggest`: entries for the lines of a capture that the list of commands refuses.
//!
//! An entry is made of a refused command, word for word but for what changes from call to call: numbers, addresses and files become typed
//! places. A word that the program may run, or read as code, stays as it is. It is a proposal: whoever takes it over has to read it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use bash_commands::{Argument, ReachedCommand, analyse};
use serde_json::Value;
use tollgate_recordings::{Format, Line, Reader, open, read_line};

use crate::commands::shared::quoted;

/// The most entries that are proposed.
const ENTRIES_MAX: usize = 50;

/// Returns proposed entries with how many commands each would allow, the most wanted first. Events have at most `event_bytes_max`;
/// `is_allowed` says whether a line may run.
pub(super) fn suggest(capture: &Path, event_bytes_max: usize, is_allowed: impl Fn(&str) -> bool) -> anyhow::Result<Vec<(String, usize)>> {
    let unreadable = || format!("--suggest {}: cannot be read", capture.display());
    let (mut input, mut reader, mut line) = (open(capture).context("--suggest")?, Reader::new(Format::Auto), Vec::new());
    let bytes_max = reader.line_bytes_max(event_bytes_max);
    let mut counts = BTreeMap::<String, usize>::new();
    loop {
        match read_line(&mut input, &mut line, bytes_max).with_context(unreadable)? {
            Line::End => break,
            Line::TooLong => continue,
            Line::Whole => {}
        }
        let Some(refused) = command_of(&mut reader, &line).filter(|command| !is_allowed(command)) else { continue };
        for command in analyse(&refused).commands {
            if !is_allowed(&command_line(&command.words))
                && let Some(entry) = entry(&command)
            {
                *counts.entry(entry).or_default() += 1;
            }
        }
    }
    let mut entries: Vec<_> = counts.into_iter().collect();
    entries.sort_by(|(one, count), (other, others)| others.cmp(count).then_with(|| one.cmp(other)));
    if entries.len() > ENTRIES_MAX {
        say!("--suggest: {ENTRIES_MAX} of {} entries are proposed; take these over and ask again for the others", entries.len());
    }
    entries.truncate(ENTRIES_MAX);
    Ok(entries)
}

/// Returns the command of a line of a capture, if its event is a call that has a command. The rest of the event is not looked at.
fn command_of(reader: &mut Reader, line: &[u8]) -> Option<String> {
    let event: Value = serde_json::from_slice(&reader.read(line).ok()?.value?).ok()?;
    let input = match event.get("arguments").and_then(Value::as_str) {
        Some(arguments) => serde_json::from_str::<Value>(arguments).ok()?,
        None => event.get("tool_input")?.clone(),
    };
    (event.get("type")? == "tool_call").then_some(())?;
    Some(input.get("command")?.as_str()?.to_owned())
}

/// Returns a command as a line, with the words quoted that need it.
fn command_line(words: &[Argument]) -> String {
    words.iter().map(|word| quoted(&word.text)).collect::<Vec<_>>().join(" ")
}

/// Returns the entry for a command; `None` if a word is not known, or cannot stand in an entry.
fn entry(command: &ReachedCommand) -> Option<String> {
    let (program, arguments) = command.words.split_first()?;
    let mut entry = vec![program.as_known()?.to_owned()];
    for (index, argument) in arguments.iter().enumerate() {
        let text = argument.as_known()?;
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_path = text.contains('/') && !text.starts_with('-') && command.files.contains(&index);
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
        let entry_of = |line: &str| entry(&analyse(line).commands[0]);
        assert_eq!(entry_of("gh pr view 7 --json title").as_deref(), Some("gh pr view {number} --json title"));
        assert_eq!(entry_of("curl -s https://a.example/x").as_deref(), Some("curl -s {url}"));
        assert_eq!(entry_of("kubectl apply -f deploy/a.yaml").as_deref(), Some("kubectl apply -f {path}"));
        assert_eq!(entry_of("sed -i s/a/b/ src/a.py").as_deref(), Some("sed -i s/a/b/ {path}"), "a script is no file");
        assert_eq!(entry_of("env -i bin/x").as_deref(), Some("env -i bin/x"));
        assert_eq!(entry_of("psql -c 'select 1'"), None, "a word with a blank cannot stand beside a place");
    }

    #[test]
    fn lines_of_captures_are_events_or_records() {
        let event = r#"{"type":"tool_call","tool_input":{"command":"ls"}}"#;
        let record = serde_json::json!({"topic": "t", "partition": 0, "offset": 7, "key": null, "headers": [], "value": event}).to_string();
        let mut reader = Reader::new(Format::Auto);
        let mut command_of = |line: &str| command_of(&mut reader, line.as_bytes());
        assert_eq!([event, &record].map(&mut command_of), [Some("ls".to_owned()), Some("ls".to_owned())]);
        assert_eq!(command_of(r#"{"type":"tool_call","arguments":"{\"command\":\"pwd\"}"}"#).as_deref(), Some("pwd"));
        assert_eq!(command_of(r#"{"type":"turn_end"}"#), None);
    }
}
