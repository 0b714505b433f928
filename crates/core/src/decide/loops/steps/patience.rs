//! Patience: what looks like repetition and is not. Waiting for something, an outage that passes, actions whose effect a result does not
//! show, and results that do not tell whether another call may bring more have limits of their own.

use super::memory::{Marks, Step};
use super::rules::Case;
use super::settings::StepSettings;
use crate::decide::loops::CallContext;
use crate::decide::loops::search::position;
use crate::decide::ruling::Rule;
use crate::decide::tools::ToolPatterns;

/// The words of tools' names and command lines that wait, in lower case. A blank stands for any bytes between words.
#[rustfmt::skip]
const WAITING: [&str; 21] = [
    "poll", "polling", "status", "statuses", "wait", "await", "waiting", "sleep", "kubectl get", "logs", "watch", "get pods", "health",
    "healthz", "isready", "is active", "nc z", "receive", "tail", "get operation", "get terminal output",
];
/// The words of those that do not wait, whatever else they say: they ask for something that nobody else changes, or they change it.
const NOT_WAITING: [&str; 4] = ["git status", "update", "set", "change"];
/// The words of tools that act on something whose state their result need not show, in lower case.
const ACTING: [&str; 15] = [
    "click", "dblclick", "press", "scroll", "swipe", "keypress", "key", "hotkey", "tap", "next", "forward", "drag", "zoom", "arrow", "pan",
];
/// By how much longer the patience with actions is where steps of several tools are counted: each action is followed by looks at its effect.
const STEPS_PER_ACTION: u32 = 3;

/// The limits that patience puts in the place of a rule's.
#[derive(Debug)]
pub struct Patience {
    waiting: u32,
    passing: u32,
    acting: u32,
    tools: Vec<(ToolPatterns, u32)>,
}

impl Patience {
    pub fn new(settings: &StepSettings) -> Self {
        let tools = settings.waiting_tools.iter().map(|(pattern, limit)| (ToolPatterns::new([pattern.clone()]), *limit)).collect();
        Self { waiting: settings.waiting_after, passing: settings.passing_after, acting: settings.acting_after, tools }
    }

    /// Returns whether a call waits or acts, by the words of the tool's name and of the beginning of its command line.
    pub fn marks(&self, tool_name: &str, context: &CallContext<'_>) -> Marks {
        let (name, command, action) = (tool_name.as_bytes(), context.command(), context.action());
        let says = |words: &[&str]| words.iter().any(|word| has_words(name, word) || has_words(command, word));
        let waits = || says(&WAITING) || WAITING.iter().any(|word| has_words(action, word));
        let is_waiting = self.waiting > 0 && waits() && !says(&NOT_WAITING);
        let acts = |text: &[u8]| ACTING.iter().any(|word| has_words(text, word));
        let is_acting = self.acting > 0 && (acts(name) || acts(action));
        Marks::default().with(Marks::WAITING, is_waiting).with(Marks::ACTING, is_acting)
    }

    /// Returns the limit of a rule for a call.
    pub fn limit(&self, rule: Rule, limit: u32, marks: Marks, case: &Case<'_>, tool_name: &str) -> u32 {
        if matches!(rule, Rule::IdenticalCalls) && self.waiting == 0 {
            return limit;
        }
        let of_tool = self.tools.iter().find(|(tools, _)| tools.matches(tool_name)).map(|(_, limit)| *limit);
        if let Some(of_tool) = of_tool {
            return limit.max(of_tool);
        }
        let is_passing = self.passing > 0 && case.last.is_some_and(|last| last.marks.has(Marks::PASSING));
        let acts = |steps: usize| case.memory.steps.iter().rev().take(steps).any(|step| step.marks.has(Marks::ACTING));
        let own = match rule {
            // Nothing is waited for here.
            Rule::ErrorClass | Rule::NothingFound => 0,
            _ if marks.has(Marks::WAITING) => self.waiting,
            Rule::AlikeResult if marks.has(Marks::ACTING) => u32::MAX,
            Rule::NothingNew | Rule::FrequentCall | Rule::Cycle if marks.has(Marks::ACTING) || (self.acting > 0 && acts(8)) => {
                self.acting.saturating_mul(STEPS_PER_ACTION)
            }
            _ if marks.has(Marks::ACTING) || is_unclear(case) => self.acting,
            _ => 0,
        };
        limit.max(own).max(if is_passing { self.passing } else { 0 })
    }
}

/// Returns whether the last result of a call does not tell whether another call may bring more: it says nothing, or its numbers are others
/// than those before it.
fn is_unclear(case: &Case<'_>) -> bool {
    let Some(last) = case.last else { return false };
    let before = || case.memory.steps.iter().rev().filter(|step| step.call == case.call).nth(1);
    let is_other = |before: &Step| before.masked == last.masked && before.class != last.class;
    last.marks.has(Marks::UNCLEAR) || (!last.marks.has(Marks::FAILED) && before().is_some_and(is_other))
}

/// Returns whether a text has these words, as whole words in whichever case: `job_status`, `getStatus` and `git status` have `status`,
/// `thermostatus` does not.
fn has_words(text: &[u8], words: &str) -> bool {
    let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|text| position(text, first)).map(|at| from + at) {
        let end = at + first.len();
        if is_word(text, at, end) && follows(text, end, rest) {
            return true;
        }
        from = end;
    }
    false
}

/// Returns whether a word comes next behind bytes that belong to no word, or no word is asked for.
fn follows(text: &[u8], from: usize, word: &str) -> bool {
    let gap = text.get(from..).unwrap_or_default().iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    let (at, end) = (from + gap, from + gap + word.len());
    word.is_empty() || (text.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes())) && is_word(text, at, end))
}

/// Returns whether no word goes on at either end of a part of a text. An upper-case letter behind a lower-case one begins a word.
fn is_word(text: &[u8], start: usize, end: usize) -> bool {
    let at = |at: usize| text.get(at).copied().unwrap_or_default();
    let is_edge = |before: u8, after: u8| {
        !before.is_ascii_alphanumeric() || !after.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && after.is_ascii_uppercase())
    };
    (start == 0 || is_edge(at(start - 1), at(start))) && (end >= text.len() || is_edge(at(end - 1), at(end)))
}

#[cfg(test)]
mod tests {
    use super::has_words;

    #[test]
    fn words_stand_alone() {
        for (text, words) in [
            ("job_status", "status"),
            ("getStatus", "status"),
            ("statusOfJob", "status"),
            ("kubectl_get", "kubectl get"),
            ("kubectl get pods", "get pods"),
            ("nc -z localhost 80", "nc z"),
            ("WAIT", "wait"),
        ] {
            assert!(has_words(text.as_bytes(), words), "{text} {words}");
        }
        for (text, words) in [
            ("search_catalogs", "logs"),
            ("wordpress", "press"),
            ("datapoint", "tap"),
            ("awaited", "wait"),
            ("kubectl forget", "kubectl get"),
            ("", "a"),
        ] {
            assert!(!has_words(text.as_bytes(), words), "{text} {words}");
        }
    }
}
