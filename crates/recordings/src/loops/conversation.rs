//! Conversations as short texts: a verdict with its reason, and calls with their results.
//!
//! ```text
//! loop: the folder is not there, whatever the line number says
//! shell: ls /srv => app logs
//! 8 times
//!   shell: cd /srv/ap => bash: line {n}: cd: /srv/ap: No such file or directory
//! ```
//!
//! - The first line is `loop`, `soft loop` or `productive`, a colon, and why.
//! - `TOOL: ARGUMENTS => RESULT` is a call; `=!>` in the place of `=>` says that it failed. `\n` is a line break of the result. Arguments that
//!   are no JSON object stand under `command`.
//! - `+` in front of a call: it belongs to the response of the call before it, and is published before that one's result.
//! - `N times` repeats the lines behind it that are indented. `{n}` is the number of the lap, from 1 on.
//! - `turn` begins a turn of the user. A line that begins with `#` is a comment.

use serde_json::{Value, json};
use tollgate_core::settings::put;

/// What a reader made of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The agent repeats itself and gets nowhere.
    Loop,
    /// The same, with other arguments each time.
    SoftLoop,
    /// The agent gets on, however often it does the same.
    Productive,
}

impl Verdict {
    /// Returns the verdict that these words say.
    #[must_use]
    pub fn from_words(words: &str) -> Option<Self> {
        match words {
            "loop" => Some(Self::Loop),
            "soft loop" | "soft_loop" => Some(Self::SoftLoop),
            "productive" => Some(Self::Productive),
            _ => None,
        }
    }
}

/// A conversation, ready to be decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// What a reader made of it.
    pub verdict: Verdict,
    /// Its events, each a JSON object. The event id of a call is its number, a dot, and the lap that it belongs to; 0 is outside of laps.
    pub events: Vec<String>,
}

struct Call<'t> {
    tool: &'t str,
    arguments: String,
    result: String,
    failed: bool,
    is_sibling: bool,
    lap: usize,
}

/// Reads a conversation. `thread_id` names its thread.
///
/// # Errors
/// A line is none of those above; the error names it by its number.
pub fn conversation(text: &str, thread_id: &str) -> Result<Conversation, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).peekable();
    let (_, first) = lines.next().ok_or("found no line; begin with `loop: why` or `productive: why`")?;
    let verdict = first.split_once(": ").filter(|(_, why)| !why.is_empty()).and_then(|(words, _)| Verdict::from_words(words));
    let verdict = verdict.ok_or("line 1: found no verdict; write `loop: why`, `soft loop: why` or `productive: why`")?;
    let mut writer = Writer { thread_id, events: Vec::new(), pending: Vec::new(), calls: 0, turns: 0 };
    writer.turn();
    while let Some((number, line)) = lines.next() {
        let fault = || format!("line {}: found no call; write `TOOL: ARGUMENTS => RESULT`", number + 1);
        if line == "turn" {
            writer.turn();
        } else if let Some(times) = line.strip_suffix(" times").and_then(|times| times.parse::<usize>().ok()) {
            let mut body = Vec::new();
            while let Some((_, indented)) = lines.next_if(|(_, line)| line.starts_with("  ")) {
                body.push(indented.trim());
            }
            for lap in 1..=times {
                for line in &body {
                    writer.line(line, lap).ok_or_else(fault)?;
                }
            }
        } else {
            writer.line(line, 0).ok_or_else(fault)?;
        }
    }
    writer.answer();
    Ok(Conversation { verdict, events: writer.events })
}

fn call(line: &str, lap: usize) -> Option<Call<'_>> {
    let (is_sibling, line) = line.strip_prefix("+ ").map_or((false, line), |line| (true, line));
    let (tool, rest) = line.split_once(": ")?;
    let (failed, arguments, result) = match rest.split_once("=!>") {
        Some((arguments, result)) => (true, arguments, result),
        None => rest.split_once("=>").map(|(arguments, result)| (false, arguments, result))?,
    };
    let fill = |text: &str| text.trim().replace("{n}", &lap.to_string()).replace("\\n", "\n");
    Some(Call { tool, arguments: fill(arguments), result: fill(result), failed, is_sibling, lap })
}

/// Writes the events of calls. A response's calls are published before their results.
struct Writer<'t> {
    thread_id: &'t str,
    events: Vec<String>,
    pending: Vec<Value>,
    calls: usize,
    turns: usize,
}

impl Writer<'_> {
    fn turn(&mut self) {
        self.answer();
        self.turns += 1;
        self.push(json!({"type": "turn_start", "event_id": format!("turn-{}", self.turns)}));
    }

    fn line(&mut self, line: &str, lap: usize) -> Option<()> {
        if line == "turn" {
            self.turn();
            return Some(());
        }
        let call = call(line, lap)?;
        if !call.is_sibling {
            self.answer();
        }
        self.calls += 1;
        let given: Option<Value> = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
        let input = given.unwrap_or_else(|| json!({"command": call.arguments}));
        let id = format!("call-{}", self.calls);
        let event_id = format!("{}.{}", self.calls, call.lap);
        self.push(json!({"type": "tool_call", "event_id": event_id, "tool_call_id": id, "tool_name": call.tool, "tool_input": input}));
        let mut result = json!({"type": "tool_result", "event_id": format!("{event_id}.r"), "tool_call_id": id, "tool_name": call.tool, "result": call.result});
        if call.failed {
            put(&mut result, "failed", true.into());
        }
        self.pending.push(result);
        Some(())
    }

    /// Writes the results that are due.
    fn answer(&mut self) {
        for result in std::mem::take(&mut self.pending) {
            self.push(result);
        }
    }

    fn push(&mut self, mut event: Value) {
        put(&mut event, "thread_id", self.thread_id.into());
        put(&mut event, "turn_id", format!("turn-{}", self.turns).into());
        self.events.push(event.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_siblings_and_turns_become_events() {
        let text = "loop: nothing comes of it\n# a comment\nls: / => a\nturn\n2 times\n  sh: x{n} =!> no {n}\\nno\n+ sh: {\"a\": 1} => y\n";
        let read = conversation(text, "t").unwrap();
        let events: Vec<Value> = read.events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let expected = ["turn_start", "tool_call", "tool_result", "turn_start", "tool_call", "tool_result", "tool_call", "tool_call"];
        assert_eq!((read.verdict, &types[..8], types.len()), (Verdict::Loop, &expected[..], 10));
        assert_eq!((&events[4]["event_id"], &events[4]["tool_input"]), (&json!("2.1"), &json!({"command": "x1"})));
        assert_eq!((&events[5]["result"], &events[5]["failed"]), (&json!("no 1\nno"), &json!(true)));
        assert_eq!((&events[7]["tool_input"], &events[7]["turn_id"]), (&json!({"a": 1}), &json!("turn-2")));
    }

    #[test]
    fn a_line_that_is_no_call_is_named() {
        assert!(conversation("maybe: x", "t").unwrap_err().starts_with("line 1"));
        assert!(conversation("loop: x\nls / => a", "t").unwrap_err().starts_with("line 2"));
    }
}
