//! A verdict as one line for people, in the width of the terminal.

use serde::Deserialize;

use super::{DIM, Screen, TITLE, clock, fit, shown, style_of};
use tollgate_operations::Verdict;

/// The space between columns.
const GAP: &str = "  ";
/// Widths of the columns that do not depend on the terminal: time, action with its sign, event, wait.
const TIME: usize = 8;
const ACTION: usize = 10;
const EVENT: usize = 8;
const WAIT: usize = 8;
/// The widths up to which the others grow. What is left then is the message's, if it is enough to say something.
const THREAD_MAX: usize = 28;
const TOOL_MAX: usize = 18;
const CODE_MAX: usize = 30;
const MESSAGE_MIN: usize = 24;
/// The width for which a wide row is laid out, whatever the terminal's is, and that of what stands behind it: whose call it is, and its ids.
const WIDE: usize = 200;
const WHOSE: [(&str, usize); 4] = [("agent", 16), ("tenant", 16), ("event id", 36), ("call id", 0)];
/// A terminal with less space than this for thread, tool and code shows neither the event nor the tool.
const NARROW: usize = 36;
/// A terminal with less space than this for them beside the event shows the event not, so that codes and tools are whole.
const WHOLE: usize = 56;

/// What a line shows of a verdict.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "type")]
    event: String,
    thread_id: String,
    agent_id: String,
    tenant_id: String,
    event_id: String,
    tool_call_id: String,
    tool_name: String,
    action: String,
    code: String,
    message: String,
}

/// The layout of lines in a terminal of some width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    screen: Screen,
    has_wait: bool,
    is_wide: bool,
}

/// The widths of the columns that depend on the terminal; 0 leaves a column out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Widths {
    thread: usize,
    event: usize,
    tool: usize,
    code: usize,
    message: usize,
}

impl Line {
    /// Returns the layout; with `has_wait` there is a column for how long the sender waited.
    pub(crate) fn new(screen: Screen, has_wait: bool) -> Self {
        Self { screen, has_wait, is_wide: false }
    }

    /// Returns the layout of rows that say everything, however wide they are.
    pub(crate) fn wide(screen: Screen) -> Self {
        Self { screen, has_wait: false, is_wide: true }
    }

    /// Returns the titles of the columns.
    pub(crate) fn head(&self) -> String {
        let fields = ["thread", "event", "tool", "code", "message"];
        let line = self.row(("time UTC", "  action"), fields, self.has_wait.then_some("wait")) + &self.whose(WHOSE.map(|(title, _)| title));
        self.screen.paint(TITLE, line.trim_end())
    }

    /// Returns a verdict's line. `waited_ms` is how long its sender waited for it, where that is known.
    pub(crate) fn of(&self, verdict: &Verdict, waited_ms: Option<f64>) -> String {
        let fields: Fields = serde_json::from_slice(&verdict.value).unwrap_or_default();
        let time = verdict.time_ms.map_or_else(|| "-".to_owned(), clock);
        let sign = match fields.action.as_str() {
            "allow" => '✓',
            "warn" => '!',
            _ => '✗',
        };
        let event = match fields.event.as_str() {
            "tool_call" => "call",
            "tool_result" => "result",
            "model_response" => "response",
            other => other,
        };
        let action = self.screen.paint(style_of(&fields.action), &fit(&shown(&format!("{sign} {}", fields.action)), ACTION));
        let time = self.screen.paint(DIM, &fit(&time, TIME));
        let wait = self.has_wait.then(|| waited_ms.map_or_else(String::new, wait_text));
        let texts = [&fields.thread_id, event, &fields.tool_name, &fields.code, &fields.message].map(|text| shown(text));
        let whose = [&fields.agent_id, &fields.tenant_id, &fields.event_id, &fields.tool_call_id].map(|text| shown(text));
        let row = self.row((&time, &action), texts.each_ref().map(|text| &**text), wait.as_deref());
        (row + &self.whose(whose.each_ref().map(|text| &**text))).trim_end().to_owned()
    }

    /// Returns what stands behind a row: nothing, unless rows are wide. An id that is longer than its column is whole all the same.
    fn whose(&self, texts: [&str; 4]) -> String {
        let columns = texts.into_iter().zip(WHOSE).filter(|_| self.is_wide);
        columns.map(|(text, (_, width))| format!("{GAP}{:width$}", if text.is_empty() { "-" } else { text })).collect()
    }

    /// Puts a row together; the first two are fitted already.
    fn row(&self, (time, action): (&str, &str), texts: [&str; 5], wait: Option<&str>) -> String {
        let Widths { thread, event, tool, code, message } =
            Widths::of(if self.is_wide { WIDE } else { self.screen.size().0 }, self.has_wait);
        let mut row = format!("{time}{GAP}{}", if action.len() < ACTION { fit(action, ACTION) } else { action.to_owned() });
        let mut push = |text: &str| {
            row.push_str(GAP);
            row.push_str(text);
        };
        let [thread_text, event_text, tool_text, code_text, message_text] = texts;
        for (text, width) in [(thread_text, thread), (event_text, event), (tool_text, tool), (code_text, code)] {
            if width > 0 {
                push(&fit(if text.is_empty() { "-" } else { text }, width));
            }
        }
        if let Some(wait) = wait {
            push(&format!("{wait:>WAIT$}"));
        }
        if message > 0 {
            push(&fit(message_text, message));
        }
        row
    }
}

/// Returns how long somebody waited, in three digits or so.
fn wait_text(waited_ms: f64) -> String {
    if waited_ms < 1_000.0 { format!("{waited_ms:.1} ms") } else { format!("{:.1} s", waited_ms / 1_000.0) }
}

impl Widths {
    fn of(total: usize, has_wait: bool) -> Self {
        let wait = if has_wait { GAP.len() + WAIT } else { 0 };
        let fixed = TIME + GAP.len() + ACTION + wait;
        // Thread and code are always there.
        let narrow = total.saturating_sub(fixed + 2 * GAP.len());
        let (left, without_event) = (narrow.saturating_sub(EVENT + 2 * GAP.len()), narrow.saturating_sub(GAP.len()));
        let (left, event) = if left < WHOLE && !has_wait { (without_event, 0) } else { (left, EVENT) };
        if left < NARROW {
            let code = (narrow / 2).min(CODE_MAX);
            return Self { thread: (narrow - code).min(THREAD_MAX), event: 0, tool: 0, code, message: 0 };
        }
        let (code, tool) = ((left * 53 / 100).min(CODE_MAX), (left / 5).min(TOOL_MAX));
        let thread = (left - code - tool).min(THREAD_MAX);
        let message = (left - code - tool - thread).saturating_sub(GAP.len());
        Self { thread, event, tool, code, message: if message < MESSAGE_MIN { 0 } else { message } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_the_terminal() {
        for total in 40..300 {
            for has_wait in [false, true] {
                let Widths { thread, event, tool, code, message } = Widths::of(total, has_wait);
                let columns = [TIME, ACTION, thread, event, tool, code, if has_wait { WAIT } else { 0 }, message];
                let used: usize = columns.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum::<usize>() - GAP.len();
                assert!(used <= total, "{used} of {total}: {columns:?}");
                assert!(thread > 0 && code > 0, "{columns:?}");
            }
        }
    }

    #[test]
    fn columns_grow_with_the_terminal() {
        assert_eq!(Widths::of(60, false), Widths { thread: 18, event: 0, tool: 0, code: 18, message: 0 });
        assert_eq!(Widths::of(100, false), Widths { thread: 22, event: 8, tool: 12, code: 30, message: 0 });
        // The longest codes and the names of most tools are whole at the usual width.
        assert_eq!(Widths::of(80, false), Widths { thread: 16, event: 0, tool: 10, code: 28, message: 0 });
        assert!(Widths::of(160, false).message >= MESSAGE_MIN);
    }

    #[test]
    fn waits_are_in_their_unit() {
        assert_eq!([0.04, 3.21, 999.9, 1_000.0, 12_345.0].map(wait_text), ["0.0 ms", "3.2 ms", "999.9 ms", "1.0 s", "12.3 s"]);
    }
}
